//go:build !rooted

package guardfs

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var tries = flag.Int("tries", 2000, "attempts of each race: go test -run TestRace ./internal/guardfs -args -tries 1000000")

// race is a place that an attacker changes as fast as he can while we use it.
type race struct {
	name  string
	tree  []string
	swap  [2]string // names that trade places all the time
	path  string
	write bool
}

// In each tree: "in" may be seen, "victim" may neither be seen nor changed. Somebody who may rename the victim itself to an
// allowed name has got at it without us, so that is not among them.
var races = []race{
	{"read through a directory that is a link outside now and then", []string{"ws/d/f = in", "ws/l => ../out", "out/f = victim"},
		[2]string{"ws/d", "ws/l"}, "ws/d/f", false},
	{"read through a directory that is a link to a denied one now and then", []string{"ws/d/f = in", "ws/l => secrets", "ws/secrets/f = victim"},
		[2]string{"ws/d", "ws/l"}, "ws/d/f", false},
	{"read a file that is a link outside now and then", []string{"ws/f = in", "ws/l => ../out/f", "out/f = victim"},
		[2]string{"ws/f", "ws/l"}, "ws/f", false},
	{"write through a directory that is a link outside now and then", []string{"ws/d/f = in", "ws/l => ../out", "out/f = victim"},
		[2]string{"ws/d", "ws/l"}, "ws/d/f", true},
	{"write through a directory that is a link to a denied one now and then", []string{"ws/d/f = in", "ws/l => secrets", "ws/secrets/f = victim"},
		[2]string{"ws/d", "ws/l"}, "ws/d/f", true},
	{"write a file that is a link outside now and then", []string{"ws/f = in", "ws/l => ../out/f", "out/f = victim"},
		[2]string{"ws/f", "ws/l"}, "ws/f", true},
}

// swapper lets two names trade places until stop is called, which tells how often they did.
func swapper(t *testing.T, a, b string) (stop func() int64) {
	var end atomic.Bool
	var n atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		for !end.Load() {
			if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
				n.Add(1)
			}
		}
	})
	stop = sync.OnceValue(func() int64 { end.Store(true); wg.Wait(); return n.Load() })
	t.Cleanup(func() { stop() })
	return stop
}

// escaped says what happened to the victim, "" when nothing did.
func (r *race) escaped(dir, got string) string {
	if got == "victim" {
		return "the victim was read"
	}
	if !r.write {
		return ""
	}
	victim := dir + "/out/f"
	if strings.Contains(r.tree[len(r.tree)-1], "secrets") {
		victim = dir + "/ws/secrets/f"
	}
	if now := content(victim); now != "victim" {
		return fmt.Sprintf("the victim is now %q", now)
	}
	return ""
}

func TestRace(t *testing.T) {
	root := ramdisk(t)
	for i, r := range races {
		t.Run(r.name, func(t *testing.T) {
			j := &fence{}
			roads(t, j, func(t *testing.T, f *FS) {
				dir := filepath.Join(root, fmt.Sprint(i, f.Containment()))
				lay(t, dir, r.tree...)
				j.root, j.deny = dir+"/ws", []string{dir + "/ws/secrets"}
				noLeak(t)
				stop := swapper(t, dir+"/"+r.swap[0], dir+"/"+r.swap[1])
				outcomes := map[string]int{}
				told := ""
				for n := range *tries {
					got, err := "", error(nil)
					if r.write {
						_, err = write(f, dir+"/"+r.path, fmt.Sprint("ours ", n), options{way: ways[n%len(ways)]})
					} else {
						got, err = read(f, dir+"/"+r.path)
					}
					if why := r.escaped(dir, got); why != "" {
						t.Fatalf("try %d: %s (%v)", n, why, err)
					}
					word := outcome(err)
					if word == "conflict" && strings.Contains(err.Error(), keptSuffix) {
						told += err.Error()
						word = "conflict, one kept"
					}
					outcomes[word]++
				}
				swaps := stop()
				for _, left := range litter(t, dir) {
					if !strings.HasSuffix(left, keptSuffix) || !strings.Contains(told, filepath.Base(left)) {
						t.Errorf("left %v, and no error says so", left)
					}
				}
				if r.write && strings.Contains(r.tree[1], "=>") && strings.Count(snapshot(t, dir), " -> ") != 1 {
					t.Errorf("the link was destroyed:\n%s", snapshot(t, dir))
				}
				t.Logf("%d tries against %d swaps: %v", *tries, swaps, outcomes)
			})
		})
	}
}

// The same attacks on what most programs do, check the name and then use it, must succeed: else they prove nothing.
func TestRaceControl(t *testing.T) {
	root := ramdisk(t)
	for i, r := range races {
		t.Run(r.name, func(t *testing.T) {
			dir := filepath.Join(root, fmt.Sprint(i))
			lay(t, dir, r.tree...)
			j := &fence{root: dir + "/ws", deny: []string{dir + "/ws/secrets"}}
			swapper(t, dir+"/"+r.swap[0], dir+"/"+r.swap[1])
			end := time.Now().Add(30 * time.Second)
			for n := 1; time.Now().Before(end); n++ {
				if why := r.escaped(dir, naive(j, dir+"/"+r.path, r.write)); why != "" {
					t.Logf("escape after %d tries: %s", n, why)
					return
				}
			}
			t.Error("the control survived: either the attack is none, or this machine does not let it run")
		})
	}
}

// naive is the usual mistake.
func naive(j Judge, path string, write bool) string {
	name, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if j.Judge(Object{Spelled: path, True: name}, Modify) != nil {
		return ""
	}
	if write {
		os.WriteFile(path, []byte("ours"), 0o644)
		return ""
	}
	b, _ := os.ReadFile(path)
	return string(b)
}

// The directory that was checked is itself moved to a denied place and back, all the time. Nobody can prevent that a file lands
// there in the moment between the look and the publication; but it is noticed and taken back.
func TestRaceOfTheDirectoryItself(t *testing.T) {
	root := ramdisk(t)
	j := &fence{}
	roads(t, j, func(t *testing.T, f *FS) {
		dir := filepath.Join(root, f.Containment())
		lay(t, dir, "ws/d/f = in", "ws/secrets/")
		j.root, j.deny = dir+"/ws", []string{dir + "/ws/secrets"}
		noLeak(t)
		var end atomic.Bool
		var wg sync.WaitGroup
		moves := 0
		wg.Go(func() {
			runtime.LockOSThread()
			for !end.Load() {
				if os.Rename(dir+"/ws/d", dir+"/ws/secrets/d") == nil && os.Rename(dir+"/ws/secrets/d", dir+"/ws/d") == nil {
					moves++
				}
			}
		})
		outcomes := map[string]int{}
		for n := range *tries {
			ours := fmt.Sprint("ours ", n)
			pub, err := write(f, dir+"/ws/d/f", ours, options{way: ways[n%len(ways)]})
			word := outcome(err)
			if err == nil && pub.True != dir+"/ws/d/f" {
				t.Fatalf("published as %s", pub.True)
			}
			if why := (*ConflictError)(nil); errors.As(err, &why) && strings.Contains(string(why.Why), "moved") {
				word = "moved, taken back"
			}
			outcomes[word]++
			if err != nil {
				if a, b := content(dir+"/ws/d/f"), content(dir+"/ws/secrets/d/f"); a == ours || b == ours {
					t.Fatalf("try %d: %v, and it is there", n, err)
				}
			}
		}
		end.Store(true)
		wg.Wait()
		if left := litter(t, dir); left != nil {
			t.Errorf("left %v", left)
		}
		t.Logf("%d tries against %d moves: %v", *tries, moves, outcomes)
	})
}

// A file that is replaced all the time, by us and by others, is always there for who reads it, with one of its contents.
func TestReadWhileReplaced(t *testing.T) {
	root := ramdisk(t)
	roads(t, &fence{root: root, deny: nil}, func(t *testing.T, f *FS) {
		noLeak(t)
		p := root + "/" + f.Containment()
		lay(t, root, p+" = old")
		var end atomic.Bool
		var wg sync.WaitGroup
		writes := 0
		wg.Go(func() {
			for ; !end.Load(); writes++ {
				if writes%2 == 0 {
					write(f, p, "ours", options{})
				} else {
					renamedOver(p, "theirs")
				}
			}
		})
		for n := range 3 * *tries {
			got, err := read(f, p)
			if err != nil || got != "old" && got != "ours" && got != "theirs" {
				t.Fatalf("try %d: %q %v", n, got, err)
			}
			if place, err := f.Entry(p); err != nil {
				t.Fatalf("try %d: %v", n, err)
			} else {
				place.Close()
			}
		}
		end.Store(true)
		wg.Wait()
		t.Logf("%d reads against %d replacements", 3**tries, writes)
	})
}
