//go:build linux && !rooted

package tools_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/tools"
)

// openFiles counts the descriptors of this process that lead to files, but for those of the stores that keep some open as they like.
func openFiles(t *testing.T) (n int, names string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(to, "anon_inode:") &&
			!strings.Contains(to, "/checkpoints/") && !strings.Contains(to, "/ledger/") {
			n++
			names += to + "\n"
		}
	}
	return n, names
}

// faultyCalls are the changing calls, each on a file that is there with the content "old\n" or not at all.
var faultyCalls = []struct {
	name, tool, args string
	there            bool
	after            string
}{
	{"Write a new file", "Write", `{"file_path":"$F","content":"new\n"}`, false, "new\n"},
	{"Write over a file", "Write", `{"file_path":"$F","content":"new\n"}`, true, "new\n"},
	{"Edit", "Edit", `{"file_path":"$F","old_string":"old","new_string":"new"}`, true, "new\n"},
	{"Edit creates", "Edit", `{"file_path":"$F","old_string":"","new_string":"new\n"}`, false, "new\n"},
	{"MultiEdit", "MultiEdit", `{"file_path":"$F","edits":[{"old_string":"old","new_string":"mid"},{"old_string":"mid","new_string":"new"}]}`, true, "new\n"},
	{"MultiEdit creates", "MultiEdit", `{"file_path":"$F","edits":[{"old_string":"","new_string":"mid\n"},{"old_string":"mid","new_string":"new"}]}`, false, "new\n"},
}

var every = flag.Bool("every", false, "each kind of fault at every call, also where a few stand for the others")

// TestFaultAtEveryOperation: whatever goes wrong with the N-th system call of a change, for every N: the file is as before or as after,
// the answer says which, no temporary file stays, no descriptor, and the next call finds no lock.
func TestFaultAtEveryOperation(t *testing.T) {
	kinds := map[string]guardfs.Fault{
		"EIO":          {Err: syscall.EIO},
		"ENOSPC":       {Err: syscall.ENOSPC},
		"EINTR":        {Err: syscall.EINTR},
		"EACCES":       {Err: syscall.EACCES},
		"ENOENT":       {Err: syscall.ENOENT},
		"EINVAL":       {Err: syscall.EINVAL},
		"EIO, but did": {Err: syscall.EIO, After: true},
		"short":        {Err: syscall.EIO, Short: true},
	}
	if testing.Short() {
		kinds = map[string]guardfs.Fault{"EIO": kinds["EIO"], "EIO, but did": kinds["EIO, but did"]}
	}
	base, err := os.MkdirTemp("/dev/shm", "faults")
	if err != nil {
		base = t.TempDir()
	}
	defer os.RemoveAll(base)
	cells := 0
	for _, c := range faultyCalls {
		for _, checkpoint := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/checkpoint=%v", c.name, checkpoint), func(t *testing.T) {
				dir, err := os.MkdirTemp(base, "")
				if err != nil {
					t.Fatal(err)
				}
				root, data := filepath.Join(dir, "ws"), filepath.Join(dir, "data")
				if err := os.Mkdir(root, 0o755); err != nil {
					t.Fatal(err)
				}
				cfg := config.Default()
				fs := &cfg.Tools.FS
				fs.WorkspaceRoot, fs.AllowPaths, fs.RequireApproval = root, []string{root + "/**"}, false
				fs.CheckpointBeforeMutation, fs.TrackReads, fs.MustReadBeforeWrite = checkpoint, true, false
				var hook atomic.Pointer[func(string) *guardfs.Fault]
				s, err := tools.OpenFaulty(cfg, tools.Options{DataDir: data}, func(op string) *guardfs.Fault {
					if h := hook.Load(); h != nil {
						return (*h)(op)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				file := filepath.Join(root, "f")
				lay := func() (before string) {
					if os.Remove(file); c.there {
						write(t, file, "old\n")
						return "old\n"
					}
					return ""
				}
				calls := 0
				run := func() (tools.Payload, error) {
					calls++ // a session of its own: nothing is stale
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
					defer cancel()
					return s.Call(ctx, tools.Call{Session: fmt.Sprint(calls), Tool: c.tool, Args: json.RawMessage(strings.ReplaceAll(c.args, "$F", file))})
				}
				lay()
				write(t, filepath.Join(root, "opens"), "old\n") // what is opened once
				if p := call(t, s, "Write", map[string]any{"file_path": filepath.Join(root, "opens"), "content": "new\n"}); tools.Refused(p) {
					t.Fatal(p)
				}
				os.Remove(filepath.Join(root, "opens"))
				if p, err := run(); err != nil || tools.Refused(p) {
					t.Fatal(err, p)
				}
				fds, names := openFiles(t)
				for kind, bad := range kinds {
					stride := int64(7)
					if *every || kind == "EIO" || kind == "EIO, but did" {
						stride = 1
					}
					for n := int64(1); ; n += stride {
						before := lay()
						var count atomic.Int64
						hit := ""
						h := func(op string) *guardfs.Fault {
							if count.Add(1) == n {
								hit = op
								return &bad
							}
							return nil
						}
						hook.Store(&h)
						p, err := run()
						hook.Store(nil)
						if hit == "" {
							break
						}
						cells++
						where := fmt.Sprintf("%s at call %d (%s)", kind, n, hit)
						if err != nil {
							t.Fatalf("%s: the host is said to be broken: %v", where, err)
						}
						got, _ := os.ReadFile(file)
						_, statErr := os.Stat(file)
						switch {
						case tools.Refused(p) && (string(got) != before || (statErr == nil) != c.there):
							t.Fatalf("%s: refused, and the file has %q: %s", where, got, mustEncode(t, p))
						case !tools.Refused(p) && string(got) != c.after:
							t.Fatalf("%s: done, and the file has %q: %s", where, got, mustEncode(t, p))
						}
						entries, err := os.ReadDir(root)
						if err != nil {
							t.Fatal(err)
						}
						for _, e := range entries {
							if e.Name() != "f" {
								t.Fatalf("%s: left %s", where, e.Name())
							}
						}
						if now, list := openFiles(t); now != fds {
							t.Fatalf("%s: %d descriptors, %d before\n%s\nbefore\n%s", where, now, fds, list, names)
						}
						lay()
						if p, err := run(); err != nil || tools.Refused(p) {
							t.Fatalf("%s: the next call: %v %v", where, err, p)
						}
					}
				}
			})
		}
	}
	t.Logf("%d faults", cells)
	if cells < 20*len(kinds)*len(faultyCalls) {
		t.Error("fewer faults than there are calls")
	}
}
