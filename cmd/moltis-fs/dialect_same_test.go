package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/jsfs"
)

// same is one operation under the names of each dialect that has it. R is the root.
var same = []struct {
	what string
	by   map[string][2]string // dialect: tool and arguments
}{
	{"read a file", map[string][2]string{
		"tools": {"Read", `{"file_path":"R/a"}`}, "capability": {"filesystem.read", `{"path":"R/a"}`},
		"jettson": {"jettson_files_read", `{"path":"a"}`},
		"jsfs":    {"run_js", `{"code":"await fs.readFile('a')"}`}}},
	{"read nothing", map[string][2]string{
		"tools": {"Read", `{"file_path":"R/none"}`}, "capability": {"filesystem.read", `{"path":"R/none"}`},
		"jettson": {"jettson_files_read", `{"path":"none"}`},
		"jsfs":    {"run_js", `{"code":"await fs.readFile('none')"}`}}},
	{"read what is denied", map[string][2]string{
		"tools": {"Read", `{"file_path":"R/secret/b"}`}, "capability": {"filesystem.read", `{"path":"R/secret/b"}`},
		"jettson": {"jettson_files_read", `{"path":"secret/b"}`},
		"jsfs":    {"run_js", `{"code":"await fs.readFile('secret/b')"}`}}},
	{"read a link that leads to what is denied", map[string][2]string{
		"tools": {"Read", `{"file_path":"R/out"}`}, "capability": {"filesystem.read", `{"path":"R/out"}`},
		"jsfs": {"run_js", `{"code":"await fs.readFile('out')"}`}}},
	{"write a new file", map[string][2]string{
		"tools": {"Write", `{"file_path":"R/new","content":"x\n"}`}, "capability": {"filesystem.write", `{"path":"R/new","content":"x\n"}`},
		"jettson": {"jettson_files_write", `{"path":"new","content":"x\n"}`},
		"jsfs":    {"run_js", `{"code":"await fs.writeFile('new', 'x\\n')"}`}}},
	{"write over a file", map[string][2]string{
		"tools": {"Write", `{"file_path":"R/a","content":"x\n"}`}, "capability": {"filesystem.write", `{"path":"R/a","content":"x\n"}`},
		"jettson": {"jettson_files_write", `{"path":"a","content":"x\n"}`},
		"jsfs":    {"run_js", `{"code":"await fs.writeFile('a', 'x\\n')"}`}}},
	{"write what is there", map[string][2]string{
		"tools": {"Write", `{"file_path":"R/a","content":"one\n"}`}, "capability": {"filesystem.write", `{"path":"R/a","content":"one\n"}`},
		"jettson": {"jettson_files_write", `{"path":"a","content":"one\n"}`},
		"jsfs":    {"run_js", `{"code":"await fs.writeFile('a', 'one\\n')"}`}}},
	{"write what is denied", map[string][2]string{
		"tools": {"Write", `{"file_path":"R/secret/b","content":"x"}`}, "capability": {"filesystem.write", `{"path":"R/secret/b","content":"x"}`},
		"jettson": {"jettson_files_write", `{"path":"secret/b","content":"x"}`},
		"jsfs":    {"run_js", `{"code":"await fs.writeFile('secret/b', 'x')"}`}}},
	{"write over a link", map[string][2]string{
		"tools": {"Write", `{"file_path":"R/link","content":"x"}`}, "capability": {"filesystem.write", `{"path":"R/link","content":"x"}`},
		"jettson": {"jettson_files_write", `{"path":"link","content":"x"}`},
		"jsfs":    {"run_js", `{"code":"await fs.writeFile('link', 'x')"}`}}},
	{"write over a directory", map[string][2]string{
		"tools": {"Write", `{"file_path":"R/dir","content":"x"}`}, "capability": {"filesystem.write", `{"path":"R/dir","content":"x"}`},
		"jettson": {"jettson_files_write", `{"path":"dir","content":"x"}`},
		"jsfs":    {"run_js", `{"code":"await fs.writeFile('dir', 'x')"}`}}},
	{"write below a file", map[string][2]string{
		"tools": {"Write", `{"file_path":"R/a/b","content":"x"}`}, "capability": {"filesystem.write", `{"path":"R/a/b","content":"x"}`},
		"jsfs": {"run_js", `{"code":"await fs.writeFile('a/b', 'x')"}`}}},
	{"delete a file", map[string][2]string{
		"capability": {"filesystem.delete", `{"path":"R/a"}`}, "jettson": {"jettson_files_delete", `{"path":"a"}`},
		"jsfs": {"run_js", `{"code":"await fs.rm('a')"}`}}},
	{"delete nothing", map[string][2]string{
		"capability": {"filesystem.delete", `{"path":"R/none"}`}, "jettson": {"jettson_files_delete", `{"path":"none"}`},
		"jsfs": {"run_js", `{"code":"await fs.rm('none')"}`}}},
	{"delete what is denied", map[string][2]string{
		"capability": {"filesystem.delete", `{"path":"R/secret/b"}`}, "jettson": {"jettson_files_delete", `{"path":"secret/b"}`},
		"jsfs": {"run_js", `{"code":"await fs.unlink('secret/b')"}`}}},
	{"list a directory", map[string][2]string{
		"capability": {"filesystem.list", `{"path":"R"}`}, "jettson": {"jettson_files_list", `{"path":"."}`},
		"jsfs": {"run_js", `{"code":"await fs.readdir('.')"}`}}},
}

// An operation leaves the same tree, the same checkpoint and the same outcome in the audit log,
// whichever dialect it comes in by.
func TestDialectsLeaveTheSame(t *testing.T) {
	for _, op := range same {
		left, by := "", ""
		for _, name := range []string{"tools", "capability", "jettson", "jsfs"} {
			call, ok := op.by[name]
			if !ok {
				continue
			}
			now := leftBy(t, name, call[0], call[1])
			if left == "" {
				left, by = now, name
			} else if now != left {
				t.Errorf("%s: %s leaves\n%s\nand %s\n%s", op.what, by, left, name, now)
			}
		}
	}
}

var (
	audited     = regexp.MustCompile(`"(?:phase|outcome|decision|rule)":"[^"]*"|"(?:before|after)":"[0-9a-f]*"`)
	checkpoints = regexp.MustCompile(`"checkpoint":"[^"]*"`)
)

// leftBy makes a call in a tree of its own, and tells what is there afterwards: the tree with modes
// and contents, and what the audit log says.
func leftBy(t *testing.T, name, tool, args string) string {
	t.Helper()
	root, data, by := dialectsOver(t, map[string]string{"a": "one\n", "dir/c": "c", "secret/b": "b"}, approval.Yes("config"), func(fs *config.FS) {
		fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**"}
	})
	for p, to := range map[string]string{"link": "a", "out": "secret/b"} {
		must(t, os.Symlink(to, filepath.Join(root, p)))
	}
	a, err := by(name).Call(t.Context(), dialect.Call{Session: "s", Tool: tool,
		Args: json.RawMessage(strings.ReplaceAll(args, `"R`, `"`+root))})
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	refused := a.Refused()
	var out strings.Builder
	if name == jsfs.Name { // the call is the script's
		said, err := a.JSON(false)
		if err != nil || refused {
			t.Fatalf("%s, %v", said, err)
		}
		refused = !strings.Contains(string(said), `"error":null`)
	}
	fmt.Fprintln(&out, "refused:", refused)
	out.WriteString(strings.ReplaceAll(fmt.Sprintln(snapshot(t, root)), root, ""))
	for line := range strings.Lines(recordsOf(t, data)) {
		if strings.Contains(line, `"tool":"run_js"`) {
			continue // it has no path; those of its script are the operations
		}
		fmt.Fprintln(&out, audited.FindAllString(line, -1), "checkpoint:", checkpoints.MatchString(line))
	}
	return out.String()
}

// snapshot is every file and directory below root, with its mode and a hash of its content.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		out[path] = fmt.Sprintf("%s %x", info.Mode(), sha256.Sum256(content))
		return nil
	})
	must(t, err)
	return out
}
