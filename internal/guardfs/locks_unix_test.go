//go:build linux && !rooted

package guardfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bothForms runs a test with two tables of locks in one directory, as two processes have them: with locks that are bytes of
// one file, and with ones that are files of their own.
func bothForms(t *testing.T, run func(t *testing.T, mine, theirs *Locks)) {
	for _, bytes := range []bool{true, false} {
		dir := t.TempDir()
		mine, err := OpenLocks(dir)
		must(t, err)
		theirs, err := OpenLocks(dir)
		must(t, err)
		if bytes && !mine.bytes {
			continue // this system can't lock bytes for an open file
		}
		mine.bytes, theirs.bytes = bytes, bytes
		run(t, mine, theirs)
	}
}

func TestLockNamesItsHolder(t *testing.T) { bothForms(t, locksNameTheirHolder) }

func locksNameTheirHolder(t *testing.T, mine, other *Locks) {
	ctx := context.Background()
	if n := mine.Open([]string{"k1", "k2", "k1"}); mine.bytes && n != 1 || !mine.bytes && n != 2 {
		t.Errorf("foretold %d files", n)
	}
	unlock, err := mine.For("session a\nb").Lock(ctx, "k1", "k2", "k1")
	must(t, err)
	for name, l := range map[string]*Locks{"same process": mine.For("x"), "another table": other.For("y")} {
		soon, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		_, err := l.Lock(soon, "k2")
		cancel()
		var locked *LockedError
		if !errors.As(err, &locked) || locked.Key != "k2" || locked.Holder != fmt.Sprintf("process %d, session ab", os.Getpid()) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v %+v", name, err, locked)
		}
	}
	unlock()
	unlock()
	again, err := other.Lock(ctx, "k2")
	must(t, err)
	again()
}

// further is locks beyond those of the machine, of which a key is held elsewhere.
type further struct {
	held  string
	order []string
}

type heldError struct{ error }

func (heldError) Holder() string { return "gateway g, Edit" }

func (f *further) Lock(ctx context.Context, holder string, keys ...string) (func(), error) {
	if slices.Contains(keys, f.held) {
		return nil, heldError{context.Cause(ctx)}
	}
	f.order = append(f.order, "took "+holder+" "+strings.Join(keys, " "))
	return func() { f.order = append(f.order, "gave "+holder) }, nil
}

// Further locks are taken after those of the machine and given back before them; where one is not free, nothing is held.
func TestFurtherLocks(t *testing.T) {
	bothForms(t, func(t *testing.T, mine, other *Locks) {
		ctx := context.Background()
		beyond := &further{held: "far"}
		l := mine.Further(beyond).For("Edit")
		free := func() bool {
			soon, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
			defer cancel()
			unlock, err := other.Lock(soon, "k")
			if err == nil {
				unlock()
			}
			return err == nil
		}
		unlock, err := l.Lock(ctx, "k", Shared("t"))
		must(t, err)
		if free() {
			t.Error("the lock of the machine is free")
		}
		unlock()
		unlock()
		if got := strings.Join(beyond.order, ", "); got != "took Edit k shared t, gave Edit, gave Edit" || !free() {
			t.Error(got)
		}
		_, err = l.Lock(ctx, "k", "far")
		var locked *LockedError
		if !errors.As(err, &locked) || locked.Holder != "gateway g, Edit" || !free() {
			t.Errorf("%v, and the lock of the machine is free: %v", err, free())
		}
		meets, err := other.Lock(ctx, "k") // a call of this machine never comes that far
		must(t, err)
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		if _, err := l.Lock(soon, "k"); err == nil || len(beyond.order) != 3 {
			t.Error(err, beyond.order)
		}
		meets()
	})
}

// Many keys in any order: nobody waits for ever, and two are never in one place.
func TestLocksInAnyOrder(t *testing.T) {
	noLeak(t)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var inside [5]atomic.Int32 // who is there; as between processes, nothing but the locks keeps them apart
	for g := range 8 {
		l, err := OpenLocks(dir)
		must(t, err)
		wg.Go(func() {
			for i := range 60 {
				keys := slices.Compact([]int{(g + i) % 5, (g*3 + i*7) % 5})
				var names []string
				for _, k := range keys {
					names = append(names, strconv.Itoa(k))
				}
				unlock, err := l.Lock(ctx, names...)
				if err != nil {
					t.Error(err)
					return
				}
				for _, k := range keys {
					if n := inside[k].Add(1); n != 1 {
						t.Errorf("%d hold lock %d", n, k)
					}
				}
				for range 20 {
					runtime.Gosched() // long enough to be met, if anybody can come in
				}
				for _, k := range keys {
					inside[k].Add(-1)
				}
				unlock()
			}
		})
	}
	wg.Wait()
}

// A lock is free when it is given back, also where a process that is being started has a copy of its file for a moment.
func TestUnlockBesideForks(t *testing.T) {
	bothForms(t, func(t *testing.T, mine, theirs *Locks) {
		unlock, err := mine.Lock(t.Context(), "k")
		must(t, err)
		fds, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		copies := 0
		for _, fd := range fds {
			n, _ := strconv.Atoi(fd.Name())
			if at, _ := os.Readlink("/proc/self/fd/" + fd.Name()); !strings.HasPrefix(at, mine.dir+"/") {
				continue
			}
			copied, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 0)
			must(t, err)
			defer unix.Close(copied)
			copies++
		}
		unlock()
		now, cancel := context.WithCancel(t.Context())
		cancel()
		unlock, err = theirs.Lock(now, "k")
		if err != nil || copies == 0 {
			t.Fatal(copies, err)
		}
		unlock()
	})
}

// A waiter whose lock file was deleted meanwhile locks the file that has the name now, so that the next one waits for him.
func TestLockFileDeleted(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	var all [3]*Locks
	for i := range all {
		var err error
		all[i], err = OpenLocks(dir)
		must(t, err)
	}
	unlock, err := all[0].Lock(ctx, "k")
	must(t, err)
	got := make(chan func())
	go func() {
		free, err := all[1].Lock(ctx, "k")
		if err != nil {
			t.Error(err)
		}
		got <- free
	}()
	time.Sleep(20 * time.Millisecond) // it waits with the file open; were it late, the test would prove less and still hold
	names, err := os.ReadDir(dir)
	must(t, err)
	must(t, os.Remove(dir+"/"+names[0].Name()))
	unlock()
	free := <-got
	soon, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	if third, err := all[2].Lock(soon, "k"); err == nil {
		third()
		t.Error("two have the lock")
	}
	free()
}

// count is the program of TestProcessesCount.
func count(file, locks string) {
	f, err := New(Options{Judge: &fence{root: "/"}})
	if err != nil {
		panic(err)
	}
	l, err := OpenLocks(locks)
	if err != nil {
		panic(err)
	}
	for range 50 {
		place, err := f.Entry(file)
		if err != nil {
			panic(err)
		}
		unlock, err := l.Lock(context.Background(), place.LockKey())
		if err != nil {
			panic(err)
		}
		before, err := place.Load(-1)
		if err != nil {
			panic(err)
		}
		n, err := strconv.Atoi(string(before.Content))
		if err != nil {
			panic(err)
		}
		if _, err := publish(place, before, strconv.Itoa(n+1), options{}); err != nil {
			panic(err) // with the lock nobody else is there: there can be no conflict
		}
		unlock()
		place.Close()
	}
}

// Processes that take the lock never conflict, and lose nothing.
func TestProcessesCount(t *testing.T) {
	dir, locks := ramdisk(t), t.TempDir()
	lay(t, dir, "n = 0")
	var cmds []*exec.Cmd
	var out strings.Builder
	var mu sync.Mutex
	for range 6 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "GUARDFS_COUNT="+dir+"/n", "GUARDFS_LOCKS="+locks)
		cmd.Stderr = writerFunc(func(p []byte) (int, error) { mu.Lock(); defer mu.Unlock(); return out.Write(p) })
		must(t, cmd.Start())
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, out.String())
		}
	}
	if got := content(dir + "/n"); got != "300" {
		t.Errorf("counted to %s, not 300", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Sharers of a tree's lock have it together, and an exclusive holder has it alone: within a process
// and between two.
func TestSharedLocks(t *testing.T) {
	noLeak(t)
	bothForms(t, sharedLocks)
}

func sharedLocks(t *testing.T, mine, theirs *Locks) {
	t.Helper()
	ctx := context.Background()
	tree, shared := TreeKey("/a"), Shared(TreeKey("/a"))
	free := func(l *Locks, keys ...string) bool {
		soon, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		unlock, err := l.Lock(soon, keys...)
		if err == nil {
			unlock()
		}
		return err == nil
	}
	for name, other := range map[string]*Locks{"same process": mine, "another": theirs} {
		for _, c := range []struct {
			first, then []string
			want        bool
		}{
			{[]string{shared}, []string{shared}, true},
			{[]string{shared}, []string{tree}, false},
			{[]string{tree}, []string{shared}, false},
			{[]string{tree}, []string{tree}, false},
			{[]string{shared, tree}, []string{shared}, false},
			{[]string{tree, shared}, []string{shared}, false},
			{[]string{tree}, []string{NameKey("/a"), TreeKey("/b"), TreeKey("/a/b"), Shared(TreeKey("/"))}, true},
		} {
			unlock, err := mine.Lock(ctx, c.first...)
			must(t, err)
			if got := free(other, c.then...); got != c.want {
				t.Errorf("%s: %q beside %q: %v", name, c.then, c.first, got)
			}
			unlock()
			if !free(other, c.then...) {
				t.Errorf("%s: %q is held after %q", name, c.then, c.first)
			}
		}
	}
}
