//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// readmeScript is the n-th shell script of the section about hooks in docs/policy.md, as a program in dir.
func readmeScript(t *testing.T, dir string, n int) string {
	t.Helper()
	readme, err := os.ReadFile("../../docs/policy.md")
	must(t, err)
	_, section, _ := strings.Cut(string(readme), "\n## Ask a program about each call: hooks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	scripts := regexp.MustCompile("(?s)\n```sh\n(#!/bin/sh\n.*?)```\n").FindAllStringSubmatch(section, -1)
	if len(scripts) != 2 {
		t.Fatalf("docs/policy.md has %d programs as hooks", len(scripts))
	}
	return scriptAt(t, filepath.Join(dir, "hook"), scripts[n][1])
}

func scriptAt(t *testing.T, path, script string) string {
	t.Helper()
	// written by a child: a file that this process holds open for writing can't be run while another goroutine forks
	write := exec.Command("sh", "-c", `cat >"$0" && chmod 755 "$0"`, path)
	write.Stdin = strings.NewReader(script)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// called runs the program for one call of tool with args, under the text of a configuration, and gives its answer.
func called(t *testing.T, config, root, dialect, tool, args string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "moltis.toml")
	must(t, os.WriteFile(file, []byte(config), 0o600))
	cmd := exec.Command(binary(t), "call", "--config", file, "--root", root, "--data-dir", filepath.Join(t.TempDir(), "data"),
		"--dialect", dialect, "--yes", tool, args)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	out, _ := cmd.CombinedOutput() // a refusal is an exit status too
	return string(out)
}

// Hooks see the arguments that are carried out, however a call spells them, in every dialect that a model calls. The example of docs/policy.md
// finds its text in all of them.
func TestHooksSeeWhatRuns(t *testing.T) {
	t.Parallel()
	const key = "-----BEGIN PRIVATE KEY-----"
	b64 := base64.StdEncoding.EncodeToString([]byte(key))
	for i, c := range []struct{ dialect, tool, args, sees string }{
		{"tools", "Write", `{"path":"ROOT/n","content":"KEY"}`, `{"file_path":"ROOT/n","content":"KEY"}`},
		{"tools", "Write", `{"filePath":"ROOT/n","content":"-----\u0042EGIN PRIVATE KEY-----","dry_run":"false"}`, `{"file_path":"ROOT/n","content":"KEY","dry_run":false}`},
		{"tools", "Write", `{"File_Path":"ROOT/n","Content":"KEY","_session_key":"k"}`, `{"_session_key":"k","content":"KEY","file_path":"ROOT/n"}`},
		{"tools", "Write", `{"filename":"ROOT/n","text":"KEY"}`, `{"file_path":"ROOT/n","content":"KEY"}`},
		{"tools", "Edit", `{"path":"ROOT/a","old_str":"one","new_str":"KEY"}`, `{"file_path":"ROOT/a","old_string":"one","new_string":"KEY"}`},
		{"tools", "Edit", `{"filepath":"ROOT/a","oldString":"one","newString":"KEY","replaceAll":"true"}`, `{"file_path":"ROOT/a","old_string":"one","new_string":"KEY","replace_all":true}`},
		{"tools", "Edit", `{"File_Path":"ROOT/a","OLD_STRING":"one","New_String":"KEY"}`, `{"file_path":"ROOT/a","old_string":"one","new_string":"KEY"}`},
		{"tools", "MultiEdit", `{"path":"ROOT/a","edits":"[{\"oldString\":\"one\",\"newString\":\"KEY\"}]"}`, `{"file_path":"ROOT/a","edits":[{"old_string":"one","new_string":"KEY"}]}`},
		{"tools", "MultiEdit", `{"file_path":"ROOT/a","edits":[{"old_str":"one","new_str":"KEY","replaceAll":"True"}]}`, `{"file_path":"ROOT/a","edits":[{"old_string":"one","new_string":"KEY","replace_all":true}]}`},
		{"tools", "NotebookEdit", `{"path":"ROOT/n.ipynb","new_source":"KEY","edit_mode":"insert","cell_type":"code"}`, `{"notebook_path":"ROOT/n.ipynb","new_source":"KEY","cell_type":"code","edit_mode":"insert"}`},
		{"capability", "filesystem.write", `{"path":"ROOT/n","content":"KEY","create_parents":"true"}`, `{"path":"ROOT/n","content":"KEY","create_parents":true}`},
		{"capability", "filesystem.write", `{"path":"ROOT/n","content":"` + b64 + `","encoding":"binary"}`, `{"path":"ROOT/n","content":"KEY"}`},
		{"capability", "filesystem.edit", `{"path":"ROOT/a","pattern":"one","replace":"KEY","expected_replacements":"1"}`, `{"path":"ROOT/a","pattern":"one","replace":"KEY","expected_replacements":1}`},
		{"jettson", "jettson_files_write", `{"content":"-----BEGIN PRIVATE \u004bEY-----","path":"n"}`, `{"path":"n","content":"KEY"}`},
		{"jsfs", "run_js", `{"timeout_secs":"5","code":"1 // KEY"}`, `{"code":"1 // KEY","timeout_secs":5}`},
		{"jsfs", "run_js", `{"code":"await fs.writeFile('n', new Uint8Array(CODES))"}`, `{"path":"n","data":"KEY"}`},
		{"jsfs", "run_js", `{"code":"await fs.appendFile('a', ['-----BEGIN', 'PRIVATE KEY-----'].join(' '))"}`, `{"path":"a","data":"KEY"}`},
		{"tools", "Read", `{"path":"ROOT/a","offset":"1","limit":1e0,"pages":null}`, `{"file_path":"ROOT/a","offset":1,"limit":1}`},
		{"tools", "Read", `{"filePath":"ROOT/a","Limit":"5"}`, `{"file_path":"ROOT/a","limit":5}`},
		{"tools", "Grep", `{"pattern":"<a> && b","-i":"true","HEAD_LIMIT":"3"}`, `{"pattern":"<a> && b","-i":true,"head_limit":3}`},
		{"jsfs", "run_js", `{"code":"await fs.writeFile('n', new Uint8Array([255]))"}`, `{"path":"n","data_base64":"/w=="}`},
	} {
		t.Run(c.tool+strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			dir := realDir(t)
			root, saw := filepath.Join(dir, "ws"), filepath.Join(dir, "saw")
			codes, _ := json.Marshal(func() (n []int) {
				for _, b := range []byte(key) {
					n = append(n, int(b))
				}
				return n
			}())
			names := strings.NewReplacer("ROOT", root, "PRIVATE KEY", "PRIVATE KEY", "KEY", key, "CODES", string(codes))
			for name, text := range map[string]string{"a": "one\n", "n.ipynb": `{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}`} {
				must(t, os.MkdirAll(root, 0o755))
				must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
			}
			look := scriptAt(t, filepath.Join(dir, "look"), "#!/bin/sh\ncat >>"+saw+"\n")
			config := "[tools.fs]\nworkspace_root = \"" + root + "\"\n[tools.js]\nfilesystem = true\n[tools.fs.hooks]\nbefore_tool_call = [\"" +
				look + "\", \"" + readmeScript(t, dir, 0) + "\"]\n"
			answer := called(t, config, root, c.dialect, c.tool, names.Replace(c.args))
			want := strings.NewReplacer("ROOT", root, "KEY", key).Replace(c.sees)
			all, _ := os.ReadFile(saw)
			var seen []string
			for line := range bytes.Lines(all) {
				var one struct{ Arguments json.RawMessage }
				if err := json.Unmarshal(line, &one); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				seen = append(seen, string(one.Arguments))
			}
			if len(seen) == 0 || seen[len(seen)-1] != want {
				t.Errorf("%s\nthe hook saw %s\nwant %s\n%s", c.args, seen, want, answer)
			}
			if blocked := strings.Contains(answer, "no private keys"); blocked != strings.Contains(want, key) {
				t.Errorf("blocked is %t: %s", blocked, answer)
			}
			if b, _ := os.ReadFile(filepath.Join(root, "n")); strings.Contains(string(b), key) {
				t.Errorf("it was written: %q", b)
			}
		})
	}
}

// The program of docs/policy.md that hides keys of answers does so, and lets others be.
func TestReadmeAnswerHook(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	config := "[tools.fs]\nworkspace_root = \"" + dir + "\"\n[tools.fs.hooks]\ntool_result_persist = [\"" + readmeScript(t, t.TempDir(), 1) + "\"]\n"
	for text, want := range map[string]string{
		"id = AKIAIOSFODNN7EXAMPLE, \"result\":{\"result\":{\\}}\n": `id = (a key), \"result\":{\"result\":{\\}}`, "plain\n": "plain",
	} {
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644))
		got := called(t, config, dir, "tools", "Read", `{"file_path":"`+dir+`/f"}`)
		if !strings.Contains(got, want) || strings.Contains(got, "AKIA") {
			t.Errorf("%q: %s", text, got)
		}
	}
}
