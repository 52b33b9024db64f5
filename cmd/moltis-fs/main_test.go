package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite in the scripts what cmp compares standard output with")

// binary is the built program, not the test in its place: its readers run in processes that it starts from its own file.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "moltis-fs-test")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, program)
		if filepath.Separator == '\\' {
			binary += ".exe"
		}
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// TestScripts runs testdata/scripts. $HOME is empty there, and the program is in $PATH. Besides the commands of testscript:
//
//	exits N program args... [<file]    runs with no terminal to ask on, and checks the exit status
//	grow file N text                   writes a file of text N times over
//	matches file regexp                checks a file's whole content
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "../../testdata/scripts",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			real, err := filepath.EvalSymlinks(e.WorkDir)
			e.Setenv("REAL", real)
			return errors.Join(err, os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o700))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "grow": grow, "matches": matches},
	})
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[1:]
	var stdin []byte
	if last := args[len(args)-1]; strings.HasPrefix(last, "<") {
		stdin = []byte(ts.ReadFile(last[1:]))
		args = args[:len(args)-1]
	}
	path := args[0]
	if path == program {
		path = binary
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"), "MOLTIS_CONFIG=" + ts.Getenv("MOLTIS_CONFIG"), "MOLTIS_DATA_DIR=" + ts.Getenv("MOLTIS_DATA_DIR")}
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	withoutTerminal(cmd)
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		ts.Fatalf("%v", err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func grow(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat([]byte(args[2]), n), 0o666))
}

func matches(ts *testscript.TestScript, neg bool, args []string) {
	if got := ts.ReadFile(args[0]); regexp.MustCompile(args[1]).MatchString(got) == neg {
		ts.Fatalf("%s holds %q", args[0], got)
	}
}
