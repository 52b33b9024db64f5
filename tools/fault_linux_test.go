//go:build linux && !rooted

package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/tools"
)

// openFiles counts the descriptors of this process that lead to files, but for those of the stores that keep some open as they like.
func openFiles(t *testing.T) (n int, names string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(to, "anon_inode:") &&
			!strings.Contains(to, "/checkpoints/") && !strings.Contains(to+"/", "/ledger/") {
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
	cells := 0
	for _, c := range faultyCalls {
		for _, checkpoint := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/checkpoint=%v", c.name, checkpoint), func(t *testing.T) {
				x := faulty(t, func(fs *config.FS) { fs.CheckpointBeforeMutation, fs.TrackReads = checkpoint, true })
				s, root, hook := x.Suite, x.root, &x.hook
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
				does(t, s, "Write", map[string]any{"file_path": filepath.Join(root, "opens"), "content": "new\n"})
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
						must(t, err)
						for _, e := range entries {
							if e.Name() != "f" {
								t.Fatalf("%s: left %s", where, e.Name())
							}
						}
						if now, list := openFiles(t); now > fds {
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

// TestHalfMadeIsTold: where the disk takes nothing any more from the N-th system call of a rewind on, for every N, the answer names the files that are changed and
// could not be put back, and does not say that nothing is. They are put back once the disk takes something again, and not given up before.
func TestHalfMadeIsTold(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EROFS} {
		x := faulty(t, func(*config.FS) {})
		call := func(turn, tool, args string) (tools.Payload, error) {
			return x.Call(context.Background(), tools.Call{Session: "s", Turn: turn, Tool: tool, Args: json.RawMessage(args)})
		}
		var files []string
		for i := range 4 {
			files = append(files, filepath.Join(x.root, fmt.Sprint("f", i)))
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
		halfWay := func() []string { return leftOpen(t, filepath.Dir(x.root)) }
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
			x.hook.Store(&h)
			p, err := call("", "checkpoint_restore", `{"turn":"t1"}`)
			changed := looks()
			if err != nil {
				t.Fatalf("%v from call %d on: %v", errno, n, err)
			}
			if !tools.Refused(p) {
				if len(changed) != len(files) {
					t.Fatalf("%v from call %d on: restored, but only %v", errno, n, changed)
				}
				x.hook.Store(nil)
				break
			}
			r := p.(*tools.Refusal)
			b := []byte(mustEncode(t, r))
			var answer struct {
				Left []string `json:"not_put_back"`
			}
			must(t, json.Unmarshal(b, &answer))
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
				x.reopen(t) // the disk takes nothing yet
				if len(halfWay()) == 0 {
					t.Fatalf("%v from call %d on: given up, and there is %v", errno, n, looks())
				}
			}
			x.hook.Store(nil)
			x.reopen(t)
			if changed, m := looks(), halfWay(); changed != nil || m != nil {
				t.Fatalf("%v from call %d on: it stays that %v, marked %v", errno, n, changed, m)
			}
		}
		if told == 0 {
			t.Errorf("%v: nothing was ever left half-way: the test tests nothing", errno)
		}
	}
}

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
	must(t, errors.Join(os.RemoveAll(root), os.Mkdir(root, 0o755), os.Symlink("victim", d.link)))
	write(t, d.file, old)
	write(t, filepath.Join(root, "victim"), "victim")
	return d
}

func (d twoNames) swap() error {
	return unix.Renameat2(unix.AT_FDCWD, d.file, unix.AT_FDCWD, d.link, unix.RENAME_EXCHANGE)
}

// lost says what of the two is nowhere any more: the link always has to be somewhere, byte for
// byte, and the file's content unless the call said that it changed it. A file with another name than
// before has to be in the answer.
func (d twoNames) lost(t *testing.T, old string, changed bool, answer string) string {
	t.Helper()
	links, files := 0, 0
	entries, err := os.ReadDir(d.root)
	must(t, err)
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

// A faultySuite has checkpoints, and its hook says what each system call on the tree comes to.
type faultySuite struct {
	*tools.Suite
	cfg  config.Config
	root string
	hook atomic.Pointer[func(op string) *guardfs.Fault]
}

// faulty is a suite in a directory of its own in memory.
func faulty(t *testing.T, change func(*config.FS)) *faultySuite {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "faulty")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	x := &faultySuite{cfg: config.Default(), root: filepath.Join(dir, "ws")}
	must(t, os.Mkdir(x.root, 0o755))
	fs := &x.cfg.Tools.FS
	fs.WorkspaceRoot, fs.AllowPaths, fs.RequireApproval = x.root, []string{x.root + "/**"}, false
	fs.CheckpointBeforeMutation, fs.MustReadBeforeWrite = true, false
	change(fs)
	x.reopen(t)
	t.Cleanup(func() { x.Close() })
	return x
}

func (x *faultySuite) reopen(t *testing.T) {
	t.Helper()
	if x.Suite != nil {
		x.Close()
	}
	var err error
	x.Suite, err = tools.OpenFaulty(x.cfg, tools.Options{DataDir: filepath.Join(filepath.Dir(x.root), "data")}, func(op string) *guardfs.Fault {
		if h := x.hook.Load(); h != nil {
			return (*h)(op)
		}
		return nil
	})
	must(t, err)
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
	x := faulty(t, func(*config.FS) {})
	s, root, hook := x.Suite, x.root, &x.hook
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
				h := func(string) *guardfs.Fault {
					if count++; count == n || restless && count > n {
						if err := d.swap(); err != nil && !errors.Is(err, os.ErrNotExist) {
							t.Error(err)
						}
					}
					return nil
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
	x := faulty(t, func(*config.FS) {})
	s, root := x.Suite, x.root
	tries := 300
	for name, c := range swappedCalls {
		d := layNames(t, root, c.old)
		stop, swaps := keepSwapping(d)
		outcomes, answers := map[string]int{}, ""
		for n := range tries {
			session, args := fmt.Sprint(name, n), c.args
			if name == "restore" {
				answers += mustEncode(t, callIn(t, s, session, "Write", `{"file_path":"$F","content":"changed `+session+`\n"}`, d.file))
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

// TestCloseWaits: a call under way when Close begins runs to its end.
func TestCloseWaits(t *testing.T) {
	x := faulty(t, func(*config.FS) {})
	s, root, hook := x.Suite, x.root, &x.hook
	f := write(t, root+"/a.txt", "one\n")
	under, goOn := make(chan struct{}), make(chan struct{})
	holds := func(string) *guardfs.Fault {
		hook.Store(nil)
		close(under)
		<-goOn
		return nil
	}
	hook.Store(&holds)
	type outcome struct {
		p   tools.Payload
		err error
	}
	ended, closed := make(chan outcome, 1), make(chan error, 1)
	go func() {
		p, err := s.Call(context.Background(), tools.Call{Tool: "Write", Args: json.RawMessage(`{"file_path":"` + f + `","content":"two\n"}`)})
		ended <- outcome{p, err}
	}()
	<-under
	go func() { closed <- s.Close() }()
	for { // until Close has begun
		if _, err := s.Call(context.Background(), tools.Call{Tool: "Nope"}); errors.Is(err, tools.ErrClosed) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	select {
	case <-closed:
		t.Error("Close came back in the middle of a call")
	default:
	}
	close(goOn)
	if o := <-ended; o.err != nil || tools.Refused(o.p) {
		t.Errorf("the call under way: %v %v", o.p, o.err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	has(t, f, "two\n")
}
