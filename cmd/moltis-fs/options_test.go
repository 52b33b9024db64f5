package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"moltisfs/checkpoint"
)

type optionCase struct {
	command, base string
	options       map[string]string
}

// optionCases says of every command that works on the history how each of its options changes what base does. The first row of a command shows those
// that all have. $T is the tree, $W the directory above it, $H the hash of what d.txt was first, $B the checkpoint of b.txt.
var optionCases = []optionCase{
	{"checkpoint list", "", map[string]string{"path": "$T/a.txt", "contains": "NEW", "turn": "t2", "tool": "Write", "label": "L", "since": "0s",
		"until": "1h", "limit": "1", "cursor": "2", "principal": "p2", "session": "s2"}},
	{"log", "--all", map[string]string{"root": "$T/sub", "name-only": "", "contains": "NEW", "turn": "t2", "tool": "Write", "label": "L", "since": "0s",
		"until": "1h", "limit": "1", "cursor": "2", "principal": "p2", "session": "s2"}},
	{"log", "--root $T/sub", map[string]string{"all": ""}},
	{"checkpoint show", "ck-1H0", map[string]string{"principal": "p2", "session": "s2"}},
	{"diff", "ck-1H0 --principal p1", map[string]string{"after": "", "root": "$T/sub", "session": "s2"}},
	{"diff", "ck-1H0", map[string]string{"principal": "p2"}},
	{"diff", "--principal p1 --session s1", map[string]string{"turn": "t2", "since": "1h", "label": "L"}},
	{"diff", "--principal p1 --turn t1", map[string]string{"session": "s1"}},
	{"restore", "ck-1H0 --principal p1 --yes", map[string]string{"mode": "inverse", "dry-run": "", "keep-times": "", "root": "$T/sub", "session": "s2"}},
	{"restore", "ck-1H0 --yes", map[string]string{"principal": "p2"}},
	{"restore", "ck-1H0 --principal p1", map[string]string{"yes": ""}},
	{"restore", "$B --principal p1 --yes", map[string]string{"on-conflict": "force"}},
	{"checkpoint rewind", "--principal p1 --session s1 --turn t1 --yes", map[string]string{"dry-run": "", "keep-times": "", "root": "$T/sub"}},
	{"checkpoint rewind", "--principal p1 --session s1 --yes", map[string]string{"turn": "t2", "since": "1h", "label": "L"}},
	{"checkpoint rewind", "--principal p1 --session s1 --turn t1", map[string]string{"yes": ""}},
	{"checkpoint rewind", "--session s1 --turn t1 --yes", map[string]string{"principal": "p1"}},
	{"checkpoint rewind", "--principal p1 --turn t1 --yes", map[string]string{"session": "s1"}},
	{"checkpoint rewind", "--principal p1 --session s2 --turn t1 --yes", map[string]string{"on-conflict": "force"}},
	{"undo", "--principal p1 --session s1 --yes", map[string]string{"dry-run": "", "all": "", "keep-times": "", "root": "$T/sub"}},
	{"undo", "--principal p1 --session s1", map[string]string{"yes": ""}},
	{"undo", "--session s1 --yes", map[string]string{"principal": "p1"}},
	{"undo", "--principal p1 --yes", map[string]string{"session": "s1"}},
	{"undo", "--principal p1 --session s2 --yes", map[string]string{"on-conflict": "force"}},
	{"redo", "--principal p1 --session s1 --yes", map[string]string{"dry-run": "", "keep-times": "", "root": "$T/sub"}},
	{"redo", "--principal p1 --session s1", map[string]string{"yes": ""}},
	{"redo", "--session s1 --yes", map[string]string{"principal": "p1"}},
	{"redo", "--principal p1 --yes", map[string]string{"session": "s1"}},
	{"redo", "--principal p1 --session s2 --yes", map[string]string{"on-conflict": "force"}},
	{"checkpoint pin", "$B", map[string]string{"label": "x", "principal": "p2", "session": "s1"}},
	{"checkpoint unpin", "ck-1H0", map[string]string{"no-label": "", "principal": "p2", "session": "s2"}},
	{"store export", "", map[string]string{"root": "$T/sub", "turn": "t2", "since": "0s", "until": "1h", "principal": "p2", "session": "s2"}},
	{"store import", "$W/moltis", map[string]string{"principal": "p9"}},
	{"store backup", "$W/out.git", nil},
	{"store gc", "", nil},
	{"store gc", "--config $W/brief.toml", map[string]string{"dry-run": ""}},
	{"store check", "", map[string]string{"data": ""}},
	{"store stats", "", nil},
	{"store purge", "--path a.txt --yes", map[string]string{"dry-run": ""}},
	{"store purge", "--path a.txt", map[string]string{"yes": ""}},
	{"store purge", "--path cut.txt --yes", map[string]string{"cut-off": ""}},
	{"store purge", "--dry-run", map[string]string{"path": "a.txt", "sha256": "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"}},
	{"trash list", "", map[string]string{"contains": "GONE4", "limit": "1", "cursor": "tr-2VR", "principal": "p2", "session": "s8"}},
	{"trash restore", "tr-1H0 --principal p1 --yes", map[string]string{"dry-run": "", "root": "$T/sub", "session": "s8"}},
	{"trash restore", "tr-1H0 --yes", map[string]string{"principal": "p2"}},
	{"trash restore", "tr-1H0 --principal p1", map[string]string{"yes": ""}},
	{"trash empty", "--all --yes", map[string]string{"principal": "p1", "session": "s8", "dry-run": ""}},
	{"trash empty", "tr-1H0 --yes", map[string]string{"principal": "p2", "session": "s8"}},
	{"trash empty", "--yes", map[string]string{"expired": "", "all": "", "kept": ""}},
	{"trash empty", "--all", map[string]string{"yes": ""}},
}

// sealedCases are tried on a store that is encrypted to a key that is not at hand.
var sealedCases = []optionCase{
	{"diff", "ck-1H0 --after --principal p1", map[string]string{"identity": "$W/key"}},
	{"restore", "ck-1H0 --principal p1 --yes", map[string]string{"identity": "$W/key"}},
	{"checkpoint rewind", "--principal p1 --session s1 --turn t1 --yes", map[string]string{"identity": "$W/key"}},
	{"undo", "--principal p1 --session s1 --yes", map[string]string{"identity": "$W/key"}},
	{"redo", "--principal p1 --session s1 --yes", map[string]string{"identity": "$W/key"}},
	{"store export", "", map[string]string{"identity": "$W/key"}},
	{"store check", "--data", map[string]string{"identity": "$W/key"}},
	{"store backup", "$W/out.git", map[string]string{"identity": "$W/key"}},
	{"store purge", "--sha256 $H --yes", map[string]string{"identity": "$W/key"}},
	{"trash restore", "tr-1H0 --principal p1 --yes", map[string]string{"identity": "$W/key"}},
}

// An option that a command takes and does not carry out is a trap: --session with trash empty once removed what other sessions had deleted. So
// every option of every command changes what the command answers or does. The table is tried in three parts, each with a history of its own.
func TestOptionsAreCarriedOut(t *testing.T) {
	t.Parallel()
	shown, parts := map[string]map[string]bool{}, map[string][]optionCase{"sealed": sealedCases}
	for _, c := range optionCases {
		if shown[c.command] == nil {
			shown[c.command] = map[string]bool{}
			c.options = withCommon(c.command, c.options)
		}
		for option := range c.options {
			shown[c.command][option] = true
		}
		part := "others"
		switch strings.TrimPrefix(c.command, "checkpoint ") {
		case "restore", "rewind", "undo", "redo":
			part = "restores"
		}
		parts[part] = append(parts[part], c)
	}
	for _, c := range sealedCases {
		shown[c.command]["identity"] = true
	}
	for _, c := range commands() {
		if !slices.Contains([]string{"log", "diff", "restore", "undo", "redo", "checkpoint", "store", "trash"}, c.name) {
			continue
		}
		for _, one := range leaves(c) {
			for _, o := range one.options {
				if !one.hidden && !shown[one.path][o.name] {
					t.Errorf("nothing shows that %s carries out --%s", one.path, o.name)
				}
			}
		}
	}
	for part, cases := range parts {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			dir := realDir(t)
			f := newOptionFixture(t, dir, part == "sealed")
			for _, c := range cases {
				f.try(t, c)
			}
		})
	}
}

// try sees to it that each option of a case changes something.
func (f *optionFixture) try(t *testing.T, c optionCase) {
	t.Helper()
	without := f.answer(t, c.command, c.base, "")
	left := f.left(t)
	if _, first := c.options["sandbox"]; first { // of its command in the table
		if again := f.answer(t, c.command, c.base, "") + f.left(t); again != without+left {
			t.Fatalf("%s %s answers something else every time:\n%s\nand\n%s", c.command, c.base, without+left, again)
		}
	}
	for option, value := range c.options {
		with := f.answer(t, c.command, c.base, strings.TrimSpace("--"+option+" "+value))
		if with == without && f.left(t) == left {
			t.Errorf("%s %s: --%s %s changes nothing:\n%s", c.command, c.base, option, value, with)
		}
		if strings.Contains(with, "has no option") {
			t.Errorf("%s takes no --%s", c.command, option)
		}
	}
}

func withCommon(command string, options map[string]string) map[string]string {
	all := map[string]string{"json": "", "config": "$W/bad.toml", "data-dir": "$W/elsewhere", "sandbox": "none"}
	switch command {
	case "store export": // a patch has no form in JSON
		delete(all, "json")
	case "diff", "restore", "checkpoint rewind", "trash restore", "undo", "redo": // they are calls
		all["policies-json"] = "$W/no-policies.json"
	}
	for name, value := range options {
		all[name] = value
	}
	return all
}

// An optionFixture is a tree with a history of two principals, each with sessions, turns and a trash. Every answer is given on a fresh copy.
type optionFixture struct {
	dir, hash, ofB string
}

func newOptionFixture(t *testing.T, dir string, sealed bool) *optionFixture {
	f := &optionFixture{dir: dir}
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	on := "[tools.fs]\ncheckpoint_before_mutation = true\n[tools.fs.checkpoint]\n"
	if sealed {
		on += fmt.Sprintf("encrypt_to = %q\n", identity.Recipient().String())
	}
	tree := filepath.Join(dir, "tree")
	goes, stays := noise(2000), noise(1000) // d.txt loses the one, and is a delta then
	f.hash = fmt.Sprintf("%x", sha256.Sum256([]byte(goes+stays)))
	for name, text := range map[string]string{
		"on.toml": on, "brief.toml": on + "keep_within = \"0s\"\nkeep_last = 1\n", "bad.toml": "[tools.fs]\nno_such_key = 1\n", "key": identity.String() + "\n",
		"tree/a.txt": "one\ntwo\n", "tree/b.txt": "b\n", "tree/c.txt": "c\n", "tree/d.txt": goes + stays, "tree/sub/x": "x\n", "tree/gone4.txt": "4\n", "tree/gone5.txt": "5\n", "tree/gone6.txt": "6\n",
		"moltis/00000000000000000000000000000001/manifest.json": `{"id":"00000000000000000000000000000001","created_at":1760000000,"reason":"Edit","source_path":"/home/user/new.txt","source_kind":null,"existed":false,"backup_path":null}`,
	} {
		f.write(t, name, text)
	}
	old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	touch := func(name string) {
		t.Helper()
		must(t, os.Chtimes(filepath.Join(tree, name), old, old))
	}
	touch("a.txt")
	call := func(principal, session, turn, tool string, args map[string]string) {
		t.Helper()
		raw, err := json.Marshal(args)
		must(t, err)
		dialect := "tools"
		if strings.HasPrefix(tool, "filesystem.") {
			dialect = "capability"
		}
		if status, out, errs := runWith(t, "", "call", "--yes", "--dialect", dialect, "--config", filepath.Join(dir, "on.toml"), "--data-dir", filepath.Join(dir, "data"),
			"--principal", principal, "--session", session, "--turn", turn, tool, string(raw)); status != exitOK {
			t.Fatalf("%s: %d: %s%s", raw, status, out, errs)
		}
	}
	edit := func(session, turn, name, from, to string) {
		call("p1", session, turn, "Edit", map[string]string{"file_path": filepath.Join(tree, name), "old_string": from, "new_string": to})
	}
	write := func(principal, session, turn, name string) {
		call(principal, session, turn, "Write", map[string]string{"file_path": filepath.Join(tree, name), "content": name + "\n"})
	}
	edit("s1", "t1", "a.txt", "one", "1")
	write("p1", "s1", "t1", "new.txt")
	write("p1", "s2", "t1", "b.txt")
	touch("a.txt")
	edit("s1", "t2", "a.txt", "two", "2")
	write("p2", "s1", "t1", "c.txt")
	write("p1", "s1", "t3", "gone1.txt")
	write("p1", "s2", "t3", "gone2.txt")
	write("p2", "s1", "t3", "gone3.txt")
	edit("s3", "t1", "d.txt", goes, "end\n")
	edit("s3", "t1", "d.txt", "end", "END")
	touch("gone1.txt")
	for _, of := range [][2]string{{"p1", "s1"}, {"p1", "s2"}, {"p2", "s1"}} {
		call(of[0], of[1], "undo", "checkpoint_restore", map[string]string{"id": "undo"})
	}
	for _, d := range [][3]string{{"p1", "s7", "gone4.txt"}, {"p1", "s8", "gone5.txt"}, {"p2", "s7", "gone6.txt"}} {
		call(d[0], d[1], "delete", "filesystem.delete", map[string]string{"path": filepath.Join(tree, d[2])})
	}
	f.write(t, "tree/b.txt", "outside\n")
	f.write(t, "tree/gone2.txt", "outside\n")
	f.run(t, "checkpoint", "pin", "ck-1H0", "--label", "L", "--data-dir", filepath.Join(dir, "data"))
	f.ofB, _, _ = strings.Cut(f.run(t, "log", filepath.Join(tree, "b.txt"), "--tool", "Write", "--data-dir", filepath.Join(dir, "data")), " ")
	if !sealed {
		db, err := checkpoint.Open(filepath.Join(dir, "data", "checkpoints"), checkpoint.Options{})
		must(t, err)
		_, err = db.Save(context.Background(), checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p8", Session: "s1", Opening: checkpoint.Opening{Tag: "cut"}, Changes: []checkpoint.Change{{
			Path: filepath.Join(tree, "cut.txt"), Role: "target", Content: []byte("cut\n"), After: checkpoint.State{Kind: checkpoint.Absent},
			Before: checkpoint.State{Kind: checkpoint.File, Mode: 0o644, Size: 4, Hash: fmt.Sprintf("%x", sha256.Sum256([]byte("cut\n")))}}}})
		must(t, errors.Join(err, db.Close()))
	}
	for _, name := range []string{"tree", "data"} {
		must(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "first-"+name)))
	}
	return f
}

// noise is a line that can't be packed well.
func noise(n int) string {
	b := make([]byte, n/2)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return fmt.Sprintf("%x\n", b)
}

func (f *optionFixture) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(f.dir, name)
	must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o644)))
}

// run gives the output of a command line. One that ends before it could ask anything runs in this process, which is faster.
func (f *optionFixture) run(t *testing.T, args ...string) string {
	t.Helper()
	for _, value := range []string{f.dir + "/bad.toml", f.dir + "/no-policies.json", "none"} { // see withCommon
		if slices.Contains(args, value) {
			_, out, errs := runWith(t, "", args...)
			return out + errs
		}
	}
	cmd := exec.Command(binary(t), args...)
	cmd.Dir = f.dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MOLTIS_") }), "HOME="+f.dir)
	withoutTerminal(cmd)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		fmt.Fprintf(&out, "%v\n", err)
	}
	return out.String()
}

var instants = regexp.MustCompile(`\b20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`)

// answer gives the output of a command line on the history as it was first.
func (f *optionFixture) answer(t *testing.T, command, base, option string) string {
	t.Helper()
	data, tree := filepath.Join(f.dir, "data"), filepath.Join(f.dir, "tree")
	err := errors.Join(os.RemoveAll(filepath.Join(f.dir, "out.git")), os.RemoveAll(filepath.Join(f.dir, "elsewhere")), os.RemoveAll(data), os.RemoveAll(tree))
	for _, name := range []string{"tree", "data"} {
		err = errors.Join(err, os.CopyFS(filepath.Join(f.dir, name), os.DirFS(filepath.Join(f.dir, "first-"+name))), os.Chmod(filepath.Join(f.dir, name), 0o700))
	}
	err = errors.Join(err, filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error { // CopyFS leaves the modes to the umask
		switch {
		case err == nil && d.IsDir():
			err = os.Chmod(path, 0o700)
		case err == nil && strings.Contains(path, "/.moltis-trash-"): // only that very object is brought back
			err = errors.Join(os.Remove(path), os.Link(filepath.Join(f.dir, "first-data")+strings.TrimPrefix(path, data), path))
		}
		return err
	}))
	must(t, err)
	args := strings.Fields(command + " " + base + " " + option)
	for name, value := range map[string]string{"--config": "$W/on.toml", "--data-dir": "$W/data"} {
		if !slices.Contains(args, name) {
			args = append(args, name, value)
		}
	}
	fill := strings.NewReplacer("$T", tree, "$W", f.dir, "$H", f.hash, "$B", f.ofB)
	for i := range args {
		args[i] = fill.Replace(args[i])
	}
	return instants.ReplaceAllString(f.run(t, args...), "TIME")
}

// left lists the tree and the store as the last command line left them.
func (f *optionFixture) left(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(filepath.Join(f.dir, "tree"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&out, "%s of %d: %.40q\n", path, info.ModTime().Year(), content)
		return err
	})
	must(t, err)
	for _, list := range [][]string{{"log", "--all"}, {"trash", "list"}} {
		if status := run(append(list, "--json", "--limit", "1000", "--data-dir", filepath.Join(f.dir, "data")), streams{nil, &out, &out, func(string) string { return "" }}); status != exitOK {
			t.Fatalf("%v: %d\n%s", list, status, out.String())
		}
	}
	return instants.ReplaceAllString(out.String(), "TIME")
}
