package tools_test

import (
	"cmp"
	"context"
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/sandbox"
	"moltisfs/internal/testbox"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

var sandboxed = flag.String("sandbox", "", `have the tests of this package make their calls through a worker: "worker", "bwrap" or "ssh"; make interop`)

// openIn is Open where the calls are made by a worker, whose root is the workspace.
func openIn(t testing.TB, how string, cfg config.Config, o tools.Options) (*tools.Suite, error) {
	t.Helper()
	dir, _, _ := strings.Cut(cmp.Or(cfg.Tools.FS.WorkspaceRoot, strings.Join(cfg.Tools.FS.AllowPaths, "")), "/ws")
	root := dir + "/ws"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := []string{self, workerArg, root}
	if how != "worker" {
		line = slices.Concat(testbox.Command(t, how, root), line)
	}
	s, err := sandbox.Start(t.Context(), sandbox.Options{Command: line, Root: root, Build: "test",
		Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	suite, err := tools.OpenAt(cfg, o, s.Calls(), s.Close)
	if err != nil {
		_ = s.Close()
	}
	return suite, err
}

// through is the carrier of golden calls through a worker.
func through(how string) toolstest.Carrier {
	return func(t *testing.T, cfg config.Config, o tools.Options) func(tools.Call) (toolstest.Answer, error) {
		s, err := openIn(t, how, cfg, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return func(c tools.Call) (toolstest.Answer, error) {
			p, err := s.Call(context.Background(), c)
			if err != nil {
				return toolstest.Answer{}, err
			}
			raw, err := tools.Encode(p)
			return toolstest.Answer{Payload: raw, Text: p.Text(), Cause: tools.CauseOf(p)}, err
		}
	}
}

// The same calls have the same answers, byte by byte, where a worker makes the system calls. Without -sandbox it is a part
// of them, by a worker beside us.
func TestGoldenCallsInSandbox(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: sandboxes are of Linux")
	}
	t.Parallel()
	how, quick := *sandboxed, *sandboxed == ""
	if quick {
		how = "worker"
	}
	carry := through(how)
	toolstest.Run(t, "../testdata/calls", func(t *testing.T, cfg config.Config, o tools.Options) func(tools.Call) (toolstest.Answer, error) {
		_, of, _ := strings.Cut(t.Name(), "/")
		if quick && !slices.Contains(quickCases, of) {
			t.Skip("SKIPPED: with -sandbox")
		}
		if of == "checkpoints/unheld" { // it looks at the tree, and the trash is in it
			t.Skip("SKIPPED: what the store can't hold goes to a trash inside")
		}
		return carry(t, cfg, o)
	})
}

// quickCases are the golden calls that go through a worker each time: one of each tool.
var quickCases = []string{"edit/unique", "edit/bad", "edit/must_read", "write/overwrite", "write/symlink_refused", "read/text",
	"glob/denied", "grep/context", "checkpoints/undo_redo", "policy/narrow_allow"}

// Some strange paths by every tool, through a worker; with -sandbox all of them.
func TestPathsInSandbox(t *testing.T) {
	if runtime.GOOS != "linux" || *sandboxed != "" {
		t.Skip("SKIPPED: TestEveryPathTimesEveryTool has them all")
	}
	t.Parallel()
	everyPathTimesEveryTool(t, "worker", pathCases[:3], func(*config.FS) *dialect.Scope { return nil })
}
