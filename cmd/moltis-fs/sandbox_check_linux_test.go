package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// boxedIn is a directory with a tree, and a configuration by which sessions run in it through a command.
func boxedIn(t *testing.T, command, more string) (dir, conf string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tree"), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := "all"
	if strings.HasPrefix(more, "sessions") {
		mode = "sessions"
	}
	return dir, laid(t, filepath.Join(dir, "c.toml"), fmt.Sprintf("[tools.fs]\nrequire_approval = false\n[tools.sandbox]\nmode = %q\n"+
		"command = [%s]\nroot = %q\n%s", mode, command, filepath.Join(dir, "tree"), more))
}

// What is there is told before a session needs it, by the doctor, by a try and at a start: each with its exit status.
func TestSandboxTold(t *testing.T) {
	t.Parallel()
	const refuses, falls = "calls that belong into it are refused until it is there", "the tools operate on this machine, for all sessions"
	for _, c := range []struct {
		name, command, more  string
		doctor, check, start string
		sick, differs, wrote int // exit status of doctor, check and call
	}{
		{"real", `"env"`, "", "is real; its worker is this build on linux/", "every answer was the same", "", exitOK, exitOK, exitOK},
		{"absent", `"no-such-program-4711"`, "", "no real sandbox is there: exec: ", "can't be reached", refuses, exitOK, exitBroken, exitRefused},
		{"broken", `"sh", "-c", "echo no such box >&2; exit 1"`, "", `there: its worker did not start: it said "no such box"; its calls`, `it said "no such box"`, refuses, exitOK, exitBroken, exitRefused},
		{"not required", `"false"`, "require = false\n", "a start has the calls run on this machine", "can't be reached", falls, exitRefused, exitBroken, exitOK},
		{"not required for some", `"false"`, "sessions = [\"*\"]\nrequire = false\n", "a start has the calls run on this machine", "can't be reached", falls, exitRefused, exitBroken, exitOK},
		{"other", `"sh", "-c", "ulimit -f 0; exec \"$@\"", "sh"`, "", "is real", "Write differs\n  here:  {", "", exitOK, exitRefused, exitRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, conf := boxedIn(t, c.command, c.more)
			tree := filepath.Join(dir, "tree")
			run := func(want int, says string, args ...string) string {
				t.Helper()
				cmd := exec.Command(binary(t), append(args, "--config", conf, "--data-dir", filepath.Join(dir, "data"), "--root", tree)...)
				withoutTerminal(cmd)
				out, _ := cmd.CombinedOutput()
				if got := cmd.ProcessState.ExitCode(); got != want || !strings.Contains(string(out), says) {
					t.Errorf("%s ends with %d, want %d and %q: %s", args[0], got, want, says, out)
				}
				return string(out)
			}
			run(c.sick, c.doctor, "doctor")
			run(c.differs, c.check, "sandbox", "check")
			if found, _ := os.ReadDir(tree); len(found) > 0 && c.differs != exitRefused {
				t.Error("the check leaves", found)
			}
			said := run(c.wrote, c.start, "call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"x\n"}`, tree+"/f"), "--text")
			if n := strings.Count(said, "no real sandbox backend is available"); (c.start != "") != (n == 1) || strings.Count(said, "no such box") > 1 {
				t.Errorf("a start says %s", said)
			}
			where := "[where: " + map[bool]string{true: "host", false: base(c.command)}[c.start == falls]
			if !strings.Contains(said, where) {
				t.Errorf("%q is not in %s", where, said)
			}
			if _, err := os.Lstat(tree + "/f"); (err == nil) != (c.wrote == exitOK) {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

// Where all calls run in a sandbox, workspace_root and the rules are not looked for on this machine.
func TestRootOfASandbox(t *testing.T) {
	t.Parallel()
	dir, conf := boxedIn(t, `"env"`, "[tools.fs]\nworkspace_root = \"/no-such-4711\"\nallow_paths = [\"${ROOT}/**\", \"/no-such-4711/**\"]\n")
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	laid(t, conf, strings.Replace(string(text), "[tools.fs]\nrequire_approval = false\n", "", 1))
	laid(t, filepath.Join(dir, "tree", "a.txt"), "hi\n")
	for range 2 {
		for _, c := range []struct{ want, args string }{
			{"c.toml is valid\n", "config check " + conf},
			{" is real; ", "doctor --config " + conf + " --data-dir " + dir + "/data"},
			{`"paths":["` + dir + `/tree/a.txt"]`, `call Glob {"pattern":"*"} --config ` + conf + " --data-dir " + dir + "/data"},
		} {
			cmd := exec.Command(binary(t), strings.Fields(c.args)...)
			withoutTerminal(cmd)
			out, _ := cmd.CombinedOutput()
			if !strings.Contains(string(out), c.want) || strings.Contains(string(out), "warning") || strings.Contains(string(out), "not denied") {
				t.Errorf("%s: %s", c.args, out)
			}
		}
		text, err := os.ReadFile(conf)
		if err != nil {
			t.Fatal(err)
		}
		laid(t, conf, strings.Replace(string(text), "workspace_root", "# workspace_root", 1)) // and without one
	}
}

// base is the program of a command as its name begins.
func base(command string) string {
	word, _, _ := strings.Cut(strings.Trim(command, `"`), `"`)
	return word + "-"
}
