//go:build linux && !rooted

package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/tools"
)

// TestHalfMadeIsTold: where the disk takes nothing any more from the N-th system call of a rewind on, for every N, the answer names the files that are changed and
// could not be put back, and does not say that nothing is. They are put back once the disk takes something again, and not given up before.
func TestHalfMadeIsTold(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EROFS} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		root := filepath.Join(dir, "ws")
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		fs := &cfg.Tools.FS
		fs.WorkspaceRoot, fs.AllowPaths, fs.RequireApproval = root, []string{root + "/**"}, false
		fs.CheckpointBeforeMutation = true
		var hook atomic.Pointer[func(string) *guardfs.Fault]
		var s *tools.Suite
		open := func() {
			t.Helper()
			if s, err = tools.OpenFaulty(cfg, tools.Options{DataDir: filepath.Join(dir, "data")}, func(op string) *guardfs.Fault {
				if h := hook.Load(); h != nil {
					return (*h)(op)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		open()
		defer func() { s.Close() }()
		call := func(turn, tool, args string) (tools.Payload, error) {
			return s.Call(context.Background(), tools.Call{Session: "s", Turn: turn, Tool: tool, Args: json.RawMessage(args)})
		}
		var files []string
		for i := range 4 {
			files = append(files, filepath.Join(root, fmt.Sprint("f", i)))
		}
		for turn, content := range []string{"old", "new"} {
			for _, f := range files {
				if p, err := call(fmt.Sprint("t", turn), "Write", fmt.Sprintf(`{"file_path":%q,"content":%q,"acknowledge":true}`, f, content)); err != nil || tools.Refused(p) {
					t.Fatal(p, err)
				}
			}
		}
		looks := func() (changed []string) {
			for _, f := range files {
				if b, err := os.ReadFile(f); err != nil || string(b) != "new" {
					changed = append(changed, f)
				}
			}
			return changed
		}
		halfWay := func() []string { return leftOpen(t, dir) }
		told := 0
		stride := int64(6)
		if *every {
			stride = 1
		}
		for n := int64(1); ; n += stride {
			var count atomic.Int64
			h := func(op string) *guardfs.Fault {
				if count.Add(1) >= n && op != "open" && op != "read" && op != "stat" {
					return &guardfs.Fault{Err: errno}
				}
				return nil
			}
			hook.Store(&h)
			p, err := call("", "checkpoint_restore", `{"turn":"t1"}`)
			changed := looks()
			if err != nil {
				t.Fatalf("%v from call %d on: %v", errno, n, err)
			}
			if !tools.Refused(p) {
				if len(changed) != len(files) {
					t.Fatalf("%v from call %d on: restored, but only %v", errno, n, changed)
				}
				hook.Store(nil)
				break
			}
			r := p.(*tools.Refusal)
			b, merr := json.Marshal(r)
			if merr != nil {
				t.Fatal(merr)
			}
			var answer struct {
				Left []string `json:"not_put_back"`
			}
			if err := json.Unmarshal(b, &answer); err != nil {
				t.Fatal(err)
			}
			for _, f := range changed {
				if !slices.Contains(answer.Left, f) {
					t.Errorf("%v from call %d on: %s is changed, and the answer is %s", errno, n, f, b)
				}
			}
			if n > 1000 {
				t.Fatalf("refused for another reason: %s", b)
			}
			if len(changed) > 0 {
				told++
				if text := r.Text(); strings.Contains(text, "nothing") || !strings.Contains(text, changed[0]) {
					t.Errorf("%v from call %d on: %v is changed, and the answer is %s", errno, n, changed, text)
				}
				s.Close()
				open() // the disk takes nothing yet
				if len(halfWay()) == 0 {
					t.Fatalf("%v from call %d on: given up, and there is %v", errno, n, looks())
				}
			}
			hook.Store(nil)
			s.Close()
			open()
			if changed, m := looks(), halfWay(); changed != nil || m != nil {
				t.Fatalf("%v from call %d on: it stays that %v, marked %v", errno, n, changed, m)
			}
		}
		if told == 0 {
			t.Errorf("%v: nothing was ever left half-way: the test tests nothing", errno)
		}
	}
}
