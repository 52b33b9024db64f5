package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/internal/landlock"
)

// heldMark has the test program be a worker for scripts that tries what no worker may.
const heldMark = "a-worker-that-escaped"

// escaped is the test's side of a worker: a worker that reads from it is confined by then, or never will be.
type escaped struct{ file, address string }

func (e escaped) Read([]byte) (int, error) {
	_, read := os.ReadFile(e.file)
	write := os.WriteFile(e.file+".new", nil, 0o600)
	_, run := exec.Command("/bin/true").Output()
	c, connect := net.Dial("tcp", e.address)
	if connect == nil {
		_ = c.Close()
	}
	for _, err := range []error{read, write, run, connect} {
		fmt.Println(err == nil, err)
	}
	return 0, io.EOF
}

// heldWorker is the command js-worker, or with "free " before its argument only its end, or with
// "root DIR|" the worker of a sandbox whose own checks are out of the way.
func heldWorker(argument string) {
	if in, ok := strings.CutPrefix(argument, "root "); ok {
		root, rest, _ := strings.Cut(in, "|")
		if held, err := confineWorker(root); !held || err != nil {
			fmt.Println(held, err)
		}
		argument = "free " + rest
	}
	file, address, _ := strings.Cut(argument, "|")
	if free, ok := strings.CutPrefix(file, "free "); ok {
		_, _ = escaped{free, address}.Read(nil)
	} else {
		_ = jsWorkerCommand().run(context.Background(), &invocation{streams: streams{in: escaped{file, address}, out: io.Discard}})
	}
	os.Exit(0)
}

// Should a script break out of its engine, the kernel keeps its process from every file, program and
// connection; and the worker of a sandbox, should its own checks fail, from all outside of its root.
func TestHeldWorker(t *testing.T) {
	t.Parallel()
	if landlock.ABI() < 4 { // the first that knows of connections
		t.Skipf("SKIPPED: Landlock has version %d here", landlock.ABI())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	file := filepath.Join(t.TempDir(), "a")
	must(t, os.WriteFile(file, []byte("a"), 0o600))
	away := t.TempDir()
	for _, c := range []struct {
		before string
		want   []bool
	}{
		{"free ", []bool{true, true, true, true}},
		{"", []bool{false, false, false, false}},
		{"root " + filepath.Dir(file) + "|", []bool{true, true, false, false}},
		{"root " + away + "|", []bool{false, false, false, false}},
	} {
		cmd := exec.Command(os.Args[0], heldMark, c.before+file+"|"+l.Addr().String())
		out, err := cmd.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err != nil || len(lines) != 4 {
			t.Fatalf("%q: %v %s", c.before, err, out)
		}
		for i, what := range []string{"reading", "writing", "running", "connecting"} {
			if strings.HasPrefix(lines[i], "true") != c.want[i] || !c.want[i] && !strings.Contains(lines[i], "permission denied") {
				t.Errorf("%s, %q: %s", what, c.before, lines[i])
			}
		}
	}
}
