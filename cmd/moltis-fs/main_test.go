package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"moltisfs/internal/audit"
	runs "moltisfs/internal/run"
	"moltisfs/internal/testbox"
	"moltisfs/internal/testdir"
)

var update = flag.Bool("update", false, "rewrite in the scripts what cmp compares standard output with")

// copied is this test program under the name of the real one, in a directory of its own: under that name it is the real one, see
// TestMain, and so are the readers' processes that it starts from its own file.
var copied struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	testdir.NumberedIDs()
	if self, err := os.Executable(); err == nil && filepath.Base(self) == fileName {
		main()
	}
	if len(os.Args) == 3 && os.Args[1] == heldMark {
		heldWorker(os.Args[2])
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("6") // they wait more than they compute
	}
	remove := testdir.InMemory()
	status := m.Run()
	_ = os.RemoveAll(copied.dir) // what stays behind is in the temporary directory
	testbox.Stop()
	remove()
	os.Exit(status)
}

// binary is the path of the program.
func binary(t testing.TB) string {
	t.Helper()
	if raced {
		t.Skip("SKIPPED: thousands of processes are too slow under the race detector; the plain run has it")
	}
	copied.once.Do(func() {
		if copied.dir, copied.err = os.MkdirTemp("", "moltis-fs-test"); copied.err == nil {
			copied.err = errors.Join(copySelf(filepath.Join(copied.dir, fileName)),
				os.Setenv("PATH", copied.dir+string(filepath.ListSeparator)+os.Getenv("PATH"))) // for workers in sandboxes
		}
	})
	if copied.err != nil {
		t.Fatal(copied.err)
	}
	return filepath.Join(copied.dir, fileName)
}

// runsHere says why programs can't be run by this user; nil where they can.
var runsHere = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "runs-here")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	o := runs.Options{Root: filepath.Join(dir, "root"), Data: filepath.Join(dir, "data")}
	if err := errors.Join(os.Mkdir(o.Root, 0o755), os.Mkdir(o.Data, 0o700)); err != nil {
		return err
	}
	return runs.Probe(o)
})

// copySelf copies this program while no process is forked: one that held the file open for writing would keep others from running it.
func copySelf(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// dependOnSources looks at every source file of the program, for the go command to see that the results rest on them: it must not
// give those of another program from its cache.
func dependOnSources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() != ".." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".js") && d.Name() != "go.mod":
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
}

// TestScripts runs testdata/scripts. $HOME is empty there, and the program is in $PATH. Besides the commands of testscript:
//
//	exits N program args... [<file]    runs with no terminal to ask on, and checks the exit status
//	grow file N text                   writes a file of text N times over
//	matches file regexp                checks a file's whole content
func TestScripts(t *testing.T) {
	path := binary(t)
	testscript.Run(t, testscript.Params{
		Dir:           "../../testdata/scripts",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("GOCOVERDIR", os.Getenv("GOCOVERDIR")) // what scripts run counts as covered
			real, err := filepath.EvalSymlinks(e.WorkDir)
			e.Setenv("REAL", real)
			return errors.Join(err, os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o700))
		},
		Condition: func(what string) (bool, error) { return what == "runs" && runsHere() == nil, nil },
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "grow": grow, "matches": matches},
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
		path = filepath.Join(copied.dir, fileName)
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"), "MOLTIS_CONFIG=" + ts.Getenv("MOLTIS_CONFIG"), "MOLTIS_DATA_DIR=" + ts.Getenv("MOLTIS_DATA_DIR"),
		"GOCOVERDIR=" + ts.Getenv("GOCOVERDIR")}
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

const readyMCP = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// must ends a test whose preparation failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// realDir is a temporary directory by its true name.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// runWith runs one command line in this process.
func runWith(t *testing.T, stdin string, args ...string) (status int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	status = run(args, streams{strings.NewReader(stdin), &o, &e, func(string) string { return "" }})
	return status, o.String(), e.String()
}

// recordsOf are both logs under a data directory, in the order of time.
func recordsOf(t *testing.T, data string) string {
	t.Helper()
	var lines []string
	must(t, audit.ReadBack(t.Context(), filepath.Join(data, "audit"), audit.Mark{}, time.Time{}, false, func(line []byte, _ *audit.Entry, _ audit.Mark, _ bool) bool {
		lines = append(lines, string(line)+"\n")
		return false
	}))
	slices.Reverse(lines)
	return strings.Join(lines, "")
}
