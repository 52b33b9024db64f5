package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moltisfs/internal/fleetbox"
)

// A fleetOf has what the machines of a test share: a tree, a database and a bucket.
type fleetOf struct {
	t                  testing.TB
	dir, tree          string
	database, contents string
	fs, fleet          string // more of [tools.fs] and of [tools.fs.fleet]
}

func newFleet(t testing.TB) *fleetOf {
	dir := realDir(t)
	f := &fleetOf{t: t, dir: dir, tree: filepath.Join(dir, "tree"), database: fleetbox.Database(t), contents: fleetbox.Contents(t, nil)}
	must(t, os.Mkdir(f.tree, 0o755))
	return f
}

// A machine has a data directory and a configuration of its own.
type machine struct {
	*fleetOf
	data, config string
}

// machine gives the machine of a name. database is how it reaches the fleet's; "": none is in between. "-": it is in no fleet.
func (f *fleetOf) machine(name, database string) *machine {
	f.t.Helper()
	m := &machine{f, filepath.Join(f.dir, "data-"+name), filepath.Join(f.dir, name+".toml")}
	text := fmt.Sprintf("[tools.fs]\nworkspace_root = %q\nallow_paths = [\"${ROOT}/**\"]\ncheckpoint_before_mutation = true\n%s\n", f.tree, cmp.Or(f.fs, "require_approval = false"))
	if database == "" {
		database = f.database
	}
	if database != "-" {
		text += fmt.Sprintf("[tools.fs.fleet]\ndatabase = %q\ncontents = %q\n%s", database, f.contents, f.fleet)
	}
	must(f.t, os.WriteFile(m.config, []byte(text), 0o600))
	return m
}

func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary(m.t), args...)
	cmd.Dir = m.tree
	cmd.Env = append(os.Environ(), "HOME="+m.dir, "MOLTIS_CONFIG="+m.config, "MOLTIS_DATA_DIR="+m.data)
	withoutTerminal(cmd)
	return cmd
}

// try runs a command.
func (m *machine) try(args ...string) (status int, out, errs string) {
	m.t.Helper()
	cmd := m.command(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		m.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// run runs a command that has to succeed, and gives its answer.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	status, out, errs := m.try(args...)
	if status != 0 {
		m.t.Fatalf("%s: status %d: %s%s", strings.Join(args, " "), status, out, errs)
	}
	return out
}

func (f *fleetOf) content(name string) string {
	text, err := os.ReadFile(filepath.Join(f.tree, name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// large writes a file that is too large for the catalog, and can't be packed. It begins with "large".
func (f *fleetOf) large(name string) {
	text := []byte("large\n")
	for i := range 20_000 {
		text = fmt.Appendf(text, "%x\n", sha256.Sum256(fmt.Append(nil, name, i)))
	}
	must(f.t, os.WriteFile(filepath.Join(f.tree, name), text, 0o600))
}

// What one machine has made is seen and undone on another.
func TestFleetUndoesElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a, b := f.machine("a", ""), f.machine("b", "")
	a.run("call", "Write", filepath.Join(f.tree, "x"), "content=one\n")
	a.run("call", "Write", filepath.Join(f.tree, "x"), "content=two\n")
	if log := b.run("log"); strings.Count(log, "x") < 2 {
		t.Error(log)
	}
	b.run("undo", "--session", "default", "--yes")
	if got := f.content("x"); got != "one\n" {
		t.Errorf("%q", got)
	}
	a.run("redo", "--yes")
	if got := f.content("x"); got != "two\n" {
		t.Errorf("%q", got)
	}
}

// A store moves into a fleet and out of it, and its history stays what it was.
func TestFleetMove(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	alone, b := f.machine("alone", "-"), f.machine("b", "")
	for i, content := range []string{"one", "two", "three"} {
		alone.run("call", "Write", filepath.Join(f.tree, "x"), "content="+content, "--session", fmt.Sprint("s", i%2), "--turn", fmt.Sprint("turn ", i))
	}
	f.large("x")
	alone.run("call", "Edit", filepath.Join(f.tree, "x"), "old_string=large", "new_string=LARGE")
	alone.run("undo", "--yes")
	id := regexp.MustCompile(`ck-\w+`).FindString(alone.run("log", "--all"))
	alone.run("checkpoint", "pin", id, "--label", "kept")
	all := []string{"log", "--all", "--json", "--limit", "1000"}
	want := alone.run(all...)
	if status, _, errs := b.try("store", "import", alone.data, "--principal", "ann"); status != exitMisuse {
		t.Error(status, errs)
	}
	for range 2 { // the second time nothing is left to be done
		b.run("store", "import", alone.data)
		if got := b.run(all...); got != want {
			t.Errorf("in the fleet:\n%s\nbefore:\n%s", got, want)
		}
	}
	b.run("store", "check", "--data")
	out := f.machine("out", "-")
	out.data = filepath.Join(f.dir, "out")
	if status, _, errs := b.try("store", "backup", f.dir); status != exitMisuse {
		t.Error(status, errs)
	}
	b.run("store", "backup", out.data)
	if got := out.run(all...); got != want {
		t.Errorf("out again:\n%s\nbefore:\n%s", got, want)
	}
	out.run("redo", "--yes")
	if got := f.content("x"); !strings.HasPrefix(got, "LARGE") {
		t.Errorf("%.100q", got)
	}
}
