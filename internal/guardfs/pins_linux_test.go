//go:build !rooted

package guardfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that waits for its publication without a descriptor is published only as it was left: what somebody else put under its temporary name, or wrote
// into it, is not, and stays theirs.
func TestHoldIsTampered(t *testing.T) {
	root := ramdisk(t)
	for name, tamper := range map[string]func(temp string) error{
		"no": func(string) error { return nil },
		"swapped": func(temp string) error {
			return errors.Join(os.Remove(temp), os.WriteFile(temp, []byte("ours"), 0o644))
		},
		"written": func(temp string) error { return os.WriteFile(temp, []byte("evil"), 0o644) },
		"linked":  func(temp string) error { return errors.Join(os.Remove(temp), os.Symlink(root+"/victim", temp)) },
		"removed": os.Remove,
		"fifo":    func(temp string) error { return errors.Join(os.Remove(temp), unix.Mkfifo(temp, 0o644)) },
		"chmod":   func(temp string) error { return os.Chmod(temp, 0o777) },
	} {
		for _, old := range []string{"old", "-"} {
			for i := range 2 {
				nameless := i == 0
				dir := filepath.Join(root, name+old+fmt.Sprint(i))
				lay(t, dir, "other = other")
				lay(t, root, "victim = victim")
				if old != "-" {
					lay(t, dir, "f = "+old)
				}
				f := open(t, &fence{root: root})
				p, err := f.Entry(dir + "/f")
				must(t, err)
				before, err := p.Load(-1)
				must(t, err)
				if !nameless { // as where files can't be made without a name
					first := true
					f.kernel.hook = func(op string) *Fault {
						if op == "openat" && first {
							first = false
							return &Fault{Err: unix.EOPNOTSUPP}
						}
						return nil
					}
				}
				fds := openFDs(t)
				h, made, err := p.Stage(context.Background(), TempName(someTag, 1),
					NewObject{Kind: KindFile, Content: []byte("ours"), Like: before, Sync: true})
				must(t, err)
				if now := openFDs(t); now != fds {
					t.Errorf("%s: %d descriptors more", name, now-fds)
				}
				temps, err := filepath.Glob(dir + "/" + tempPrefix + "*")
				if err != nil || len(temps) != 1 || content(temps[0]) != "ours" {
					t.Fatalf("%s: temporary names %v: %v", name, temps, err)
				}
				must(t, tamper(temps[0]))
				pub, err := p.Publish(context.Background(), h, Found(before), made.Precondition())
				if err == nil {
					must(t, h.Drop(pub.Displaced))
				}
				h.Drop(made.Precondition())
				h.Close()
				where := fmt.Sprintf("%s, %s, nameless %v: %v", name, old, nameless, err)
				if name == "no" {
					if err != nil || content(dir+"/f") != "ours" || pub.Info.Links != 1 || litter(t, dir) != nil {
						t.Errorf("%s: %+v\n%s", where, pub, snapshot(t, dir))
					}
				} else if outcome(err) != "conflict" || content(dir+"/f") != old {
					t.Errorf("%s: %q is there", where, content(dir+"/f"))
				}
				if left := litter(t, dir); (name == "swapped" || name == "linked" || name == "fifo") != (len(left) == 1) {
					t.Errorf("%s: left %v", where, left)
				}
				p.Close()
			}
		}
	}
	if content(root+"/victim") != "victim" {
		t.Error("the victim was changed")
	}
}

// Places in one directory share its descriptor; each has it until it is closed, and a directory that took the other's name has its own.
func TestPlacesShareTheirDirectory(t *testing.T) {
	root := ramdisk(t)
	roads(t, &fence{root: root}, func(t *testing.T, f *FS) {
		dir := filepath.Join(root, f.Containment())
		lay(t, dir, "d/a = a", "d/b = b", "e/a = theirs", "l => d")
		fds := openFDs(t)
		place := func(path string) *Entry {
			t.Helper()
			p, err := f.Entry(dir + "/" + path)
			must(t, err)
			return p
		}
		expect := func(open int) {
			t.Helper()
			if now := openFDs(t); now-fds != open {
				t.Errorf("%d descriptors are open, want %d", now-fds, open)
			}
		}
		a, b, c := place("d/a"), place("d/b"), place("l/new")
		expect(1)
		a.Close()
		a.Close()
		expect(1)
		if _, err := a.Load(-1); err == nil {
			t.Error("a place that is closed loads")
		}
		// The names trade places: those who held the directory hold it still, and refuse; whoever comes now gets what is there.
		must(t, unix.Renameat2(unix.AT_FDCWD, dir+"/d", unix.AT_FDCWD, dir+"/e", unix.RENAME_EXCHANGE))
		d := place("d/a")
		expect(2)
		if got, err := d.Load(-1); err != nil || string(got.Content) != "theirs" {
			t.Errorf("%v %v", got, err)
		}
		before, err := b.Load(-1)
		must(t, err)
		if _, err := publish(b, before, "ours", options{}); outcome(err) != "conflict" {
			t.Errorf("its directory is another one's by name: %v", err)
		}
		e := place("e/b")
		expect(3) // known by another name: not shared
		b.Close()
		c.Close()
		expect(2)
		if got, err := e.Load(-1); err != nil || string(got.Content) != "b" {
			t.Errorf("%v %v", got, err)
		}
		d.Close()
		e.Close()
		expect(0)
		if len(f.pins.dirs) != 0 {
			t.Errorf("remembered: %v", f.pins.dirs)
		}
	})
}

// However many keys a call locks, it has one file open.
func TestLocksTakeOneFile(t *testing.T) {
	l, err := OpenLocks(t.TempDir())
	must(t, err)
	if !l.bytes {
		t.Skip("SKIPPED: this system can't lock bytes for an open file")
	}
	fds := openFDs(t)
	var keys []string
	for i := range 20_000 {
		keys = append(keys, fmt.Sprint(i))
	}
	unlock, err := l.Lock(context.Background(), keys...)
	must(t, err)
	if now := openFDs(t); now != fds+1 || l.Open(keys) != 1 {
		t.Errorf("%d files are open for it, and %d foretold", now-fds, l.Open(keys))
	}
	unlock()
	if now := openFDs(t); now != fds {
		t.Errorf("%d files stay open", now-fds)
	}
}
