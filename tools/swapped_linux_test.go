//go:build linux && !rooted

package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/tools"
)

// swappedCalls are the calls that change a file at a path; $F is the path.
var swappedCalls = map[string]struct{ tool, args, old string }{
	"Write":        {"Write", `{"file_path":"$F","content":"new\n"}`, "old\n"},
	"Edit":         {"Edit", `{"file_path":"$F","old_string":"old","new_string":"new"}`, "old\n"},
	"MultiEdit":    {"MultiEdit", `{"file_path":"$F","edits":[{"old_string":"old","new_string":"new"}]}`, "old\n"},
	"NotebookEdit": {"NotebookEdit", `{"notebook_path":"$F","cell_id":"c","new_source":"new"}`, notebook("old")},
	"restore":      {"checkpoint_restore", `{"id":"undo"}`, "old\n"},
}

func notebook(source string) string {
	return `{"cells":[{"cell_type":"code","execution_count":null,"id":"c","metadata":{},"outputs":[],"source":["` + source +
		`"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}` + "\n"
}

// twoNames is a file and a link beside it, which somebody lets trade places.
type twoNames struct{ root, file, link string }

func layNames(t *testing.T, root, old string) twoNames {
	t.Helper()
	d := twoNames{root, filepath.Join(root, "f.ipynb"), filepath.Join(root, "l")}
	if err := errors.Join(os.RemoveAll(root), os.Mkdir(root, 0o755), os.Symlink("victim", d.link)); err != nil {
		t.Fatal(err)
	}
	write(t, d.file, old)
	write(t, filepath.Join(root, "victim"), "victim")
	return d
}

func (d twoNames) swap() error {
	return unix.Renameat2(unix.AT_FDCWD, d.file, unix.AT_FDCWD, d.link, unix.RENAME_EXCHANGE)
}

// lost says what of the two is nowhere any more: the link always has to be somewhere, byte for
// byte, and the file's content unless the call said that it changed it. What has another name than
// before has to be in the answer.
func (d twoNames) lost(t *testing.T, old string, changed bool, answer string) string {
	t.Helper()
	links, files := 0, 0
	entries, err := os.ReadDir(d.root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := filepath.Join(d.root, e.Name())
		if strings.HasPrefix(e.Name(), ".moltis-") && !strings.Contains(answer, e.Name()) {
			return e.Name() + " is left, and no answer says so"
		}
		if text, err := os.Readlink(name); err == nil && text == "victim" {
			links++
		} else if b, err := os.ReadFile(name); err == nil && e.Type().IsRegular() && string(b) == old {
			files++
		}
	}
	if content(t, filepath.Join(d.root, "victim")) != "victim" {
		return "the link was followed"
	}
	if links != 1 {
		return fmt.Sprintf("%d links are left of 1", links)
	}
	if files == 0 && !changed {
		return "the file's content is nowhere"
	}
	return ""
}

// swapped opens a suite over root/ws, in which hook sees every system call on the tree.
func swapped(t *testing.T) (s *tools.Suite, root string, hook *atomic.Pointer[func(string)]) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "swapped")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	root = filepath.Join(dir, "ws")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	fs := &cfg.Tools.FS
	fs.WorkspaceRoot, fs.AllowPaths, fs.RequireApproval = root, []string{root + "/**"}, false
	fs.CheckpointBeforeMutation, fs.MustReadBeforeWrite = true, false
	hook = new(atomic.Pointer[func(string)])
	s, err = tools.OpenFaulty(cfg, tools.Options{DataDir: filepath.Join(dir, "data")}, func(op string) *guardfs.Fault {
		if h := hook.Load(); h != nil {
			(*h)(op)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, root, hook
}

func callIn(t *testing.T, s *tools.Suite, session, tool, args, file string) tools.Payload {
	t.Helper()
	p, err := s.Call(context.Background(), tools.Call{Session: session, Tool: tool, Args: json.RawMessage(strings.ReplaceAll(args, "$F", file))})
	if err != nil {
		t.Fatalf("%s: the host is broken: %v", tool, err)
	}
	return p
}

// A file and a symbolic link trade places before any one system call of a call, or before every one
// from there on: the call answers what is so, and neither is lost.
func TestLinkSwappedInBetweenAnyTwoCalls(t *testing.T) {
	t.Parallel()
	s, root, hook := swapped(t)
	cells := 0
	for name, c := range swappedCalls {
		for _, restless := range []bool{false, true} {
			for n := 1; ; n++ {
				d := layNames(t, root, c.old)
				session := fmt.Sprint(name, restless, n)
				if name == "restore" {
					callIn(t, s, session, "Write", `{"file_path":"$F","content":"changed\n"}`, d.file)
				}
				count := 0
				h := func(string) {
					if count++; count == n || restless && count > n {
						if err := d.swap(); err != nil && !errors.Is(err, os.ErrNotExist) {
							t.Error(err)
						}
					}
				}
				hook.Store(&h)
				p := callIn(t, s, session, c.tool, c.args, d.file)
				hook.Store(nil)
				if count < n {
					break
				}
				cells++
				old := c.old
				if name == "restore" {
					old = "changed\n"
				}
				if why := d.lost(t, old, !tools.Refused(p), mustEncode(t, p)); why != "" {
					t.Errorf("%s, swapped before call %d (on and on: %v): %s: %s", name, n, restless, why, mustEncode(t, p))
				}
			}
		}
	}
	t.Logf("%d cells", cells)
}

// Somebody lets the two trade places as fast as he can. The control does what most programs do,
// looks and then replaces, and has to lose the link: else the race proves nothing.
func TestLinkSwappedInAllTheTime(t *testing.T) {
	t.Parallel()
	s, root, _ := swapped(t)
	tries := 300
	for name, c := range swappedCalls {
		d := layNames(t, root, c.old)
		stop, swaps := keepSwapping(d)
		outcomes, answers := map[string]int{}, ""
		for n := range tries {
			session, args := fmt.Sprint(name, n), c.args
			if name == "restore" {
				callIn(t, s, session, "Write", `{"file_path":"$F","content":"changed `+session+`\n"}`, d.file)
			}
			if name == "Write" {
				args = strings.Replace(args, "new", fmt.Sprint("new ", n), 1)
			}
			p := callIn(t, s, session, c.tool, args, d.file)
			outcomes[p.Kind()]++
			if text := mustEncode(t, p); strings.Contains(text, ".kept") {
				answers += text
			}
		}
		stop()
		if why := d.lost(t, "", true, answers); why != "" {
			t.Errorf("%s: %s after %v", name, why, outcomes)
		}
		t.Logf("%s: %d calls against %d swaps: %v", name, tries, swaps.Load(), outcomes)
	}
	d := layNames(t, root, "old\n")
	stop, _ := keepSwapping(d)
	defer stop()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if i, err := os.Lstat(d.file); err != nil || !i.Mode().IsRegular() {
			continue
		}
		temp := filepath.Join(root, "temp")
		write(t, temp, "new\n")
		if err := os.Rename(temp, d.file); err != nil {
			t.Fatal(err)
		}
		stop()
		if d.lost(t, "", true, "") != "" {
			return
		}
		d = layNames(t, root, "old\n")
		stop, _ = keepSwapping(d)
	}
	t.Error("the control lost nothing")
}

func keepSwapping(d twoNames) (stop func(), swaps *atomic.Int64) {
	end, swaps, done := new(atomic.Bool), new(atomic.Int64), make(chan struct{})
	go func() {
		defer close(done)
		for !end.Load() {
			if d.swap() == nil {
				swaps.Add(1)
			}
		}
	}()
	return func() { end.Store(true); <-done }, swaps
}
