package tools_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/sandbox"
	"moltisfs/internal/testbox"
	"moltisfs/internal/testdir"
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
	must(t, err)
	line := []string{self, workerArg, root}
	if how != "worker" {
		line = slices.Concat(testbox.Command(t, how, root), line)
	}
	s, err := sandbox.Start(t.Context(), sandbox.Options{Command: line, Root: root, Build: "test",
		Log: func(line string) { t.Log(line) }})
	must(t, err)
	suite, err := tools.OpenAt(cfg, o, s.Calls(), s.Close)
	if err != nil {
		_ = s.Close()
	}
	return suite, err
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
	carry := toolstest.Through(func(t *testing.T, cfg config.Config, o tools.Options) (*tools.Suite, error) {
		return openIn(t, how, cfg, o)
	})
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

// BenchmarkSandboxed makes the same calls on this machine and through a worker, in turns: on files of 4 KB, and
// a search of Go's source tree. Report: medians in µs, and what the sandbox adds.
func BenchmarkSandboxed(b *testing.B) {
	how := "bwrap"
	if _, err := exec.LookPath(how); err != nil {
		how = "worker"
	}
	for _, tool := range []string{"Read", "Edit", "Write", "Grep"} {
		b.Run(tool, func(b *testing.B) {
			sides := [2]string{"", how}
			var suites [2]*tools.Suite
			var files [2]string
			for i := range sides {
				var root string
				suites[i], root = suiteIn(b, sides[i], func(fs *config.FS) {
					fs.CheckpointBeforeMutation = true
				}, tools.Options{})
				if tool == "Grep" {
					plantGo(b, root)
				}
				files[i] = write(b, root+"/f.go", "counter 0;\n"+strings.Repeat("some line of code that is about sixty-four bytes in its length\n", 64))
			}
			var spent [2][]time.Duration
			b.ResetTimer()
			for n := range b.N {
				for i, s := range suites {
					args := map[string]string{
						"Read":  fmt.Sprintf(`{"file_path":%q}`, files[i]),
						"Edit":  fmt.Sprintf(`{"file_path":%q,"old_string":"counter %d;","new_string":"counter %d;"}`, files[i], n, n+1),
						"Grep":  `{"pattern":"func Test[A-Z]+x","output_mode":"content"}`,
						"Write": fmt.Sprintf(`{"file_path":"%s%d","content":"counter %d"}`, files[i], n, n),
					}[tool]
					start := time.Now()
					benchCall(b, s, tool, args)
					spent[i] = append(spent[i], time.Since(start))
				}
			}
			b.StopTimer()
			var median [2]float64
			for i, d := range spent {
				slices.Sort(d)
				median[i] = float64(d[len(d)/2].Nanoseconds()) / 1e3
			}
			b.ReportMetric(median[0], "here-µs")
			b.ReportMetric(median[1], "inside-µs")
			b.ReportMetric(median[1]-median[0], "added-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// plantGo copies the source tree of Go.
func plantGo(b *testing.B, root string) {
	if err := os.CopyFS(root+"/go", os.DirFS(testdir.GoSource(b))); err != nil {
		b.Fatal(err)
	}
}

func benchCall(b *testing.B, s *tools.Suite, tool, args string) {
	b.Helper()
	p, err := s.Call(context.Background(), tools.Call{Tool: tool, Args: json.RawMessage(args)})
	if err != nil || tools.Refused(p) {
		b.Fatal(err, p)
	}
}

func BenchmarkRead4K(b *testing.B) {
	for _, track := range []bool{false, true} {
		b.Run(fmt.Sprintf("track=%v", track), func(b *testing.B) {
			s, root := suite(b, func(fs *config.FS) { fs.TrackReads = track }, tools.Options{})
			f := write(b, root+"/f.go", strings.Repeat("some line of code that is about sixty-four bytes in its length\n", 64))
			args := fmt.Sprintf(`{"file_path":%q}`, f)
			b.SetBytes(4096)
			b.ReportAllocs()
			for b.Loop() {
				benchCall(b, s, "Read", args)
			}
		})
	}
}

func BenchmarkEdit(b *testing.B) {
	for _, c := range []struct {
		name       string
		size       int
		checkpoint bool
	}{
		{"4KB", 4 << 10, false},
		{"10KB", 10 << 10, false},
		{"10KB+checkpoint", 10 << 10, true},
		{"200KB", 200 << 10, false},
		{"200KB+checkpoint", 200 << 10, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, root := suite(b, func(fs *config.FS) { fs.CheckpointBeforeMutation = c.checkpoint }, tools.Options{})
			f := write(b, root+"/f.go", "counter 0;\n"+strings.Repeat("some line of code that is about sixty-four bytes in its length\n", c.size/63))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				benchCall(b, s, "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"counter %d;","new_string":"counter %d;"}`, f, i, i+1))
			}
		})
	}
}
