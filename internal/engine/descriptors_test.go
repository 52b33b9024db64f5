//go:build linux && !rooted

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// openFiles lets the process have so many files open until the test ends; with more, so many beside those that are open now.
func openFiles(t *testing.T, more bool, files int) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if more {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("SKIPPED: open files can't be counted: ", err)
		}
		files += len(fds)
	}
	now := was
	if now.Cur = uint64(files); now.Cur > was.Max {
		t.Skipf("SKIPPED: no more than %d files may be open here", was.Max)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Skip("SKIPPED: the limit can't be set: ", err)
	}
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) }) //nolint:errcheck // it was so before
}

// unlittered fails where a temporary file is left.
func (x *tree) unlittered() {
	x.t.Helper()
	err := filepath.WalkDir(x.ws, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".moltis-") && !d.IsDir() {
			x.t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		x.t.Error(err)
	}
}

// With a fraction as many open files, hundreds of files are changed, rewound, and made anew after
// they were removed, all in one go; in soak it is ten thousand with a thousand.
func TestThousandsWithinOpenFiles(t *testing.T) {
	for name, c := range map[string]struct{ files, each int }{
		"one directory": {*manyFiles, *manyFiles}, "many directories": {*manyFiles / 5, 4},
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			var names []string
			for i := range c.files {
				names = append(names, fmt.Sprintf("d%d/f%d", i/c.each, i))
				x.write(names[i], "old\n")
			}
			openFiles(t, false, max(128, *manyFiles/10))
			call := x.call("s")
			call.Turn = "t1"
			x.BeginTurn(ctx, call)
			all := func(want string) {
				t.Helper()
				for _, name := range names {
					x.has(name, want)
				}
				x.unlittered()
			}
			if err := x.writeAll(call, names, "new\n"); err != nil {
				t.Fatal(err)
			}
			all("new\n")
			if done, err := x.Restore(ctx, call, rewindTo("t1"), engine.RestoreOptions{}); err != nil || done.Checkpoint == "" {
				t.Fatal(err)
			}
			all("old\n")
			if _, err := x.Undo(ctx, call, engine.RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			all("new\n")
			for i := range (c.files + c.each - 1) / c.each {
				if err := os.RemoveAll(fmt.Sprintf("%s/d%d", x.ws, i)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := x.Restore(ctx, call, rewindTo("t1"), engine.RestoreOptions{OnConflict: engine.OnConflictForce}); err != nil {
				t.Fatal(err)
			}
			all("old\n")
		})
	}
}

// A change half of which is made when something comes in its way is put back as a whole, also where its new files were closed meanwhile, and none of these stays.
func TestParkedChangeFails(t *testing.T) {
	x := grow(t, nil)
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("d/f%d", i))
		if i%2 == 0 {
			x.write(names[i], "old\n")
		}
	}
	x.write("d/other", "theirs\n")
	call := x.call("s")
	var links atomic.Int64 // from several goroutines
	parked := 0
	x.Close()
	x.fault = func(op string) *guardfs.Fault {
		if op != "rename" && op != "link" {
			return nil
		}
		if links.Add(1) != 300 { // 200 of them name the closed ones
			return nil
		}
		entries, err := os.ReadDir(x.ws + "/d")
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".moltis-") {
				parked++
			}
		}
		if err := os.WriteFile(x.ws+"/d/f199", []byte("theirs\n"), 0o600); err != nil {
			t.Error(err)
		}
		return nil
	}
	x.open()
	openFiles(t, true, 150)
	err := x.writeAll(call, names, "new\n")
	if _, ok := errors.AsType[*guardfs.ConflictError](err); !ok || parked < 50 {
		t.Fatalf("somebody else made one of them, and %d were parked: %v", parked, err)
	}
	for i, name := range names[:199] {
		x.has(name, map[bool]string{true: "old\n", false: "-"}[i%2 == 0])
	}
	x.has("d/f199", "theirs\n")
	x.unlittered()
}

// A start that takes back a change which was cut off sweeps what that has left under temporary names, and not the new contents that another change, which is
// under way, has closed in the same directory, also where both are of the same content.
func TestParkedIsNotSweptByOthers(t *testing.T) {
	for try := range 12 {
		done := false
		t.Run(fmt.Sprint(try), func(t *testing.T) { done = parkedAndSwept(t) }) // its end lifts the limit on open files
		if done || t.Failed() {
			return
		}
	}
	t.Error("no start took back what was cut off")
}

// parkedAndSwept is false where two of the paths share a lock by chance, so that the other process had
// to wait for us. Other inode numbers have other locks.
func parkedAndSwept(t *testing.T) bool {
	x := grow(t, nil)
	var names, others []string
	for i := range 32 {
		name := fmt.Sprintf("d/f%d", i)
		x.write(name, "old\n")
		if names = append(names, name); i >= 30 {
			names, others = names[:30], append(others, name)
		}
	}
	for session, of := range map[string][]string{"s": names, "sx": others} {
		who := x.call(session)
		who.Turn = "t"
		x.BeginTurn(ctx, who)
		must(t, x.writeAll(who, of, "new\n"))
	}
	renames := 0
	cut := func(op string) *guardfs.Fault { // after the first file nothing works any more
		if op == "rename" {
			renames++
		}
		if renames > 1 {
			return &guardfs.Fault{Err: syscall.EIO}
		}
		return nil
	}
	litter := func() int {
		names, _ := filepath.Glob(x.ws + "/d/.moltis-*")
		return len(names)
	}
	parked, cutOff, after, locked := 0, 0, 0, false
	meanwhile := func() {
		parked = litter()
		for _, fault := range []func(string) *guardfs.Fault{cut, nil} {
			other, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(x.ws, x.deny), DataDir: x.data, Fault: fault})
			if err != nil {
				t.Error(err)
				return
			}
			other.SetLockWait(100 * time.Millisecond) // it never comes
			if fault != nil {
				_, err := other.Restore(ctx, x.call("sx"), rewindTo("t"), engine.RestoreOptions{})
				if err == nil {
					t.Error("it was to be cut off")
				}
				_, locked = errors.AsType[*guardfs.LockedError](err)
				cutOff = litter()
			}
			other.Close()
		}
		after = litter()
		for _, name := range others {
			now, err := os.ReadFile(x.ws + "/" + name)
			must(t, err)
			locked = locked || string(now) != "new\n"
		}
	}
	var once sync.Once
	system := callsOf(x)
	start := func(op string) *guardfs.Fault {
		if op == "rename" {
			once.Do(meanwhile)
		}
		return nil
	}
	system.hook.Store(&start)
	defer system.hook.Store(nil)
	openFiles(t, true, 64)
	if _, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{}); err != nil {
		t.Errorf("%d were parked, %d after the start of another: %v", parked, after, err)
	}
	if locked {
		return false
	}
	if parked < len(names) || cutOff <= parked || after != parked {
		t.Errorf("%d were parked, with what was cut off %d, and after the start of another %d", parked, cutOff, after)
	}
	for i, name := range append(names, others...) {
		x.has(name, map[bool]string{true: "old\n", false: "new\n"}[i < len(names)])
	}
	x.unlittered()
	return true
}

// With however few open files, a restore of what was removed is refused or goes, and never fails half-way. A refusal comes before anything changes, and
// says in how many directories the paths may be.
func TestRestoreWithinOpenFiles(t *testing.T) {
	const files = 120
	for _, c := range []struct {
		name string
		gone bool
	}{{"d/f%d", false}, {"d%d/f", false}, {"d%d/f", true}} { // one directory; many; and many that have to be made
		refused := 0
		x := grow(t, nil)
		who := x.call("s")
		who.Turn = "t1"
		x.BeginTurn(ctx, who)
		var names []string
		for i := range files {
			names = append(names, fmt.Sprintf(c.name, i))
			x.write(names[i], "old\n")
		}
		if err := x.writeAll(who, names, "new\n"); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.Remove(x.ws + "/" + name); err != nil {
				t.Fatal(err)
			}
			if c.gone {
				if err := os.Remove(filepath.Dir(x.ws + "/" + name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for more := 20; ; more += 20 {
			var err error
			t.Run(fmt.Sprintf("%s %v %d more", c.name, c.gone, more), func(t *testing.T) {
				openFiles(t, true, more)
				_, err = x.Restore(ctx, who, rewindTo("t1"), engine.RestoreOptions{OnConflict: engine.OnConflictForce})
			})
			if err == nil {
				break
			}
			limit, ok := factsOf[engine.CountFacts](err, engine.TooManyPaths)
			if refused++; !ok || limit.Dirs && limit.Most < 8 {
				t.Fatalf("%s: with %d open files more: %v", c.name, more, err)
			}
			if more > 2*files {
				t.Fatalf("%s: %d open files more are not enough: %v", c.name, more, err)
			}
			x.has(names[0], "-")
		}
		if refused == 0 {
			t.Errorf("%s: nothing was refused: the test tests nothing", c.name)
		}
		for _, name := range names {
			x.has(name, "old\n")
		}
		x.unlittered()
	}
}

// So many directories as a refusal names do go.
func TestRestoreInParts(t *testing.T) {
	const dirs, each = 300, 1
	x := grow(t, nil)
	who := x.call("s")
	who.Turn = "t1"
	x.BeginTurn(ctx, who)
	var names []string
	for i := range dirs * each {
		names = append(names, fmt.Sprintf("d%d/f%d", i/each, i%each))
		x.write(names[i], "old\n")
	}
	if err := x.writeAll(who, names, "new\n"); err != nil {
		t.Fatal(err)
	}
	openFiles(t, true, 150)
	for _, o := range []engine.RestoreOptions{{DryRun: true}, {}} {
		_, err := x.Restore(ctx, who, rewindTo("t1"), o)
		limit, ok := factsOf[engine.CountFacts](err, engine.TooManyPaths)
		if !ok || !limit.Dirs || limit.Most < 50 || limit.Most > 150 {
			t.Fatalf("%+v: it must be refused: %v", o, err)
		}
		if o.DryRun {
			continue
		}
		r := checkpoint.Restore{Turn: "t1"}
		for i := range limit.Most {
			r.Paths = append(r.Paths, fmt.Sprintf("%s/d%d", x.ws, i))
		}
		if _, err := x.Restore(ctx, who, r, engine.RestoreOptions{}); err != nil {
			t.Fatalf("%d directories must go: %v", limit.Most, err)
		}
		x.has("d0/f0", "old\n")
		x.has(fmt.Sprintf("d%d/f0", limit.Most), "new\n")
	}
}

// The soft limit does not count: Go's runtime raises it to the hard one before main.
func TestSoftLimitIsRaised(t *testing.T) {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ENGINE_SOFT_LIMIT") != "" {
		if now.Cur+1 < now.Max { // it may leave one out
			t.Errorf("%d files may be open, and %d might", now.Cur, now.Max)
		}
		return
	}
	cmd := exec.Command("sh", "-c", `ulimit -Sn 100 && exec "$0" -test.run '^TestSoftLimitIsRaised$'`, os.Args[0])
	cmd.Env = append(os.Environ(), "ENGINE_SOFT_LIMIT=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
