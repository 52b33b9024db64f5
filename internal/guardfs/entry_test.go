//go:build unix

package guardfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPlace(t *testing.T) {
	tree := []string{"ws/f = A", "ws/d/", "ws/l => f", "ws/dangling => none", "ws/lo => ../out/s", "out/s = S",
		"ws/p |", "ws/in => d", "ws/away => ../out", "ws/secrets/"}
	for _, c := range []struct{ path, want, kind, missing string }{
		{path: "f", kind: "file"},
		{path: "none", kind: "absent"},
		{path: "d", kind: "directory"},
		{path: "p", kind: "special file"},
		{path: "l", want: "symlink"},
		{path: "dangling", want: "symlink"},
		{path: "lo", want: "symlink"}, // the link is inside, and it is not followed
		{path: "in/x", kind: "absent"},
		{path: "away/s", want: "denied"},
		{path: "away/none", want: "denied"},
		{path: "secrets/x", want: "denied"},
		{path: "../out/s", want: "denied"},
		{path: "none/none/x", want: "no parent", missing: "none"},
		{path: "d/none/x", want: "no parent", missing: "d/none"},
		{path: "f/x", want: "notdir"},
		{path: "d/", want: "bad"},
		{path: "d/.", want: "bad"},
		{path: "d/..", want: "bad"},
		{path: "", want: "bad"},
		{path: "d/../g", kind: "absent"},
	} {
		t.Run(c.path, func(t *testing.T) {
			b := base(t)
			lay(t, b, tree...)
			was := snapshot(t, b)
			roads(t, &fence{root: b + "/ws", deny: []string{b + "/ws/secrets"}}, func(t *testing.T, f *FS) {
				noLeak(t)
				p, err := f.Entry(b + "/ws/" + c.path)
				if c.want == "" {
					c.want = "ok"
				}
				if got := outcome(err); got != c.want {
					t.Fatalf("%s: %v", got, err)
				}
				var missing *MissingParentError
				if errors.As(err, &missing) && missing.Missing != b+"/ws/"+c.missing {
					t.Errorf("missing %s", missing.Missing)
				}
				if err != nil {
					return
				}
				defer p.Close()
				if got := p.Object().Info.Kind.String(); got != c.kind {
					t.Errorf("kind %s", got)
				}
			})
			if now := snapshot(t, b); now != was {
				t.Errorf("the tree has changed:\n%s", now)
			}
		})
	}
}

func TestPublish(t *testing.T) {
	for _, dir := range []func(testing.TB) string{base, ramdisk} {
		b := dir(t)
		everyWay(t, &fence{root: b}, func(t *testing.T, f *FS, way string) {
			noLeak(t)
			p := b + "/f"
			defer os.Remove(p)
			for i, content := range []string{"", "one", strings.Repeat("x", 3<<20), "two"} {
				pub, err := write(f, p, content, options{Sync: i%2 == 0, way: way})
				must(t, err)
				got, err := os.ReadFile(p)
				must(t, err)
				if string(got) != content {
					t.Fatalf("%d bytes instead of %d", len(got), len(content))
				}
				if pub.True != p || pub.Info.Size != int64(len(content)) ||
					pub.Info.Links != 1 || len(pub.Dropped) != 0 || pub.LinksBroken != 0 {
					t.Errorf("%+v", pub)
				}
			}
			if left := litter(t, b); left != nil {
				t.Error(left)
			}
		})
	}
}

func TestPublishRefusals(t *testing.T) {
	b := base(t)
	lay(t, b, "d/x", "p |", "f = A")
	roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
		noLeak(t)
		was := snapshot(t, b)
		for name, want := range map[string]string{"d": "directory", "p": "fifo"} {
			p, err := f.Entry(b + "/" + name)
			must(t, err)
			if _, err := p.Load(-1); outcome(err) != want {
				t.Errorf("load %s: %v", name, err)
			}
			if _, err := publish(p, &Before{}, "new", options{}); outcome(err) != "conflict" {
				t.Errorf("publish over %s: %v", name, err)
			}
			if err := remove(p, &Before{Exists: true}); outcome(err) != "conflict" {
				t.Errorf("remove %s: %v", name, err)
			}
			p.Close()
		}
		p, err := f.Entry(b + "/f")
		must(t, err)
		defer p.Close()
		before, err := p.Load(1)
		must(t, err)
		if _, err := p.Load(0); outcome(err) != "large" {
			t.Errorf("load of too much: %v", err)
		}
		what := NewObject{Kind: KindFile, Content: []byte("new"), Open: true}
		h, made, err := p.Stage(context.Background(), TempName(someTag, 1), what)
		must(t, err)
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := p.Publish(gone, h, Found(before), made.Precondition()); !errors.Is(err, context.Canceled) {
			t.Errorf("swap after the end: %v", err)
		}
		must(t, h.Drop(made.Precondition()))
		must(t, h.Close())
		must(t, h.Close())
		if _, err := p.Publish(context.Background(), h, Found(before), made.Precondition()); err == nil {
			t.Error("swap after close")
		}
		if _, _, err := p.Stage(gone, TempName(someTag, 1), what); !errors.Is(err, context.Canceled) {
			t.Errorf("hold after the end: %v", err)
		}
		if now := snapshot(t, b); now != was {
			t.Errorf("the tree has changed:\n%s", now)
		}
	})
}

// A Publish notices any change since Load, and the change stays.
func TestConflicts(t *testing.T) {
	for name, change := range map[string]func(p string) error{
		"content":   func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o644) },
		"same size": func(p string) error { return os.WriteFile(p, []byte("XXX"), 0o644) },
		"same size and time": func(p string) error {
			fi, err := os.Stat(p)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(p, []byte("XXX"), 0o644), os.Chtimes(p, fi.ModTime(), fi.ModTime()))
		},
		"replaced": func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("old"), 0o644), os.Rename(p+"2", p))
		},
		"removed":   os.Remove,
		"link":      func(p string) error { return errors.Join(os.Rename(p, p+"2"), os.Symlink("f2", p)) },
		"directory": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o755)) },
		"fifo":      func(p string) error { return errors.Join(os.Remove(p), mkfifo(p)) },
		"mode":      func(p string) error { return os.Chmod(p, 0o600) },
		"truncated": func(p string) error { return os.Truncate(p, 0) },
		"moved directory": func(p string) error {
			return os.Rename(filepath.Dir(p), filepath.Dir(p)+"2")
		},
		"swapped directory": func(p string) error {
			d := filepath.Dir(p)
			return errors.Join(os.Rename(d, d+"2"), os.Mkdir(d, 0o755), os.WriteFile(p, []byte("old"), 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"opened", "held", "remove"} {
				b := base(t)
				roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
					noLeak(t)
					top := filepath.Join(b, verb, f.Containment())
					lay(t, top, "d/f = old")
					place, err := f.Entry(top + "/d/f")
					must(t, err)
					defer place.Close()
					before, err := place.Load(-1)
					must(t, err)
					what := NewObject{Kind: KindFile, Content: []byte("ours"), Like: before, Open: verb == "opened"}
					if verb == "remove" {
						what = NewObject{}
					}
					h, made, err := place.Stage(context.Background(), TempName(someTag, 1), what)
					must(t, err)
					defer h.Close()
					if verb != "remove" && strings.Contains(name, "directory") && f.Containment() == "best_effort" {
						must(t, h.Drop(made.Precondition()))
						return // the hold goes with its directory
					}
					must(t, change(top+"/d/f"))
					was := withoutLitter(snapshot(t, top))
					_, err = place.Publish(context.Background(), h, Found(before), made.Precondition())
					must(t, h.Drop(made.Precondition()))
					if got := outcome(err); got != "conflict" {
						t.Errorf("%s: %v", got, err)
					}
					if now := snapshot(t, top); now != was {
						t.Errorf("the tree has changed:\n%s\nwas\n%s", now, was)
					}
				})
			}
		})
	}
	t.Run("appeared", func(t *testing.T) {
		b := base(t)
		roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
			noLeak(t)
			defer os.Remove(b + "/f")
			place, err := f.Entry(b + "/f")
			must(t, err)
			defer place.Close()
			before, err := place.Load(-1)
			must(t, err)
			lay(t, b, "f = theirs")
			if _, err := publish(place, before, "ours", options{}); outcome(err) != "conflict" {
				t.Error(err)
			}
			if got, _ := os.ReadFile(b + "/f"); string(got) != "theirs" {
				t.Errorf("%q", got)
			}
		})
	})
}

// withoutLitter drops the lines of files that are staged under a name.
func withoutLitter(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		if !strings.Contains(line, tempPrefix) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// A touch changes no content and no metadata worth keeping.
func TestTouchIsNoConflict(t *testing.T) {
	b := base(t)
	everyWay(t, &fence{root: b}, func(t *testing.T, f *FS, way string) {
		lay(t, b, "f = old")
		place, err := f.Entry(b + "/f")
		must(t, err)
		defer place.Close()
		before, err := place.Load(-1)
		must(t, err)
		must(t, os.Chtimes(b+"/f", time.Now(), time.Now().Add(-time.Hour)))
		_, err = publish(place, before, "new", options{way: way})
		must(t, err)
	})
}

func TestUmask(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	for _, dir := range []func(testing.TB) string{base, ramdisk} {
		b := dir(t)
		everyWay(t, &fence{root: b}, func(t *testing.T, f *FS, way string) {
			defer os.Remove(b + "/f")
			pub, err := write(f, b+"/f", "x", options{way: way})
			must(t, err)
			if pub.Info.Mode != 0o640 {
				t.Errorf("mode %v", pub.Info.Mode)
			}
		})
	}
}

func TestHardLinkIsBroken(t *testing.T) {
	b := base(t)
	everyWay(t, &fence{root: b}, func(t *testing.T, f *FS, way string) {
		top := b + "/" + f.Containment() + way
		lay(t, top, "f = old", "g <= f", "h <= f")
		pub, err := write(f, top+"/f", "new", options{way: way})
		must(t, err)
		if pub.LinksBroken != 2 {
			t.Errorf("%d links broken", pub.LinksBroken)
		}
		if got, _ := os.ReadFile(top + "/g"); string(got) != "old" {
			t.Errorf("the other name has %q", got)
		}
	})
}

// A hard link to a file that is refused by identity is refused under any name.
func TestHardLinkToDenied(t *testing.T) {
	b := base(t)
	lay(t, b, "secret = S", "ws/h <= secret")
	f := open(t, &fence{root: b})
	h, err := f.Resolve(b+"/secret", Look)
	must(t, err)
	h.Close()
	j := &fence{root: b + "/ws", ids: []Identity{h.Object().Info.ID}}
	roads(t, j, func(t *testing.T, f *FS) {
		if _, err := read(f, b+"/ws/h"); err != errDenied {
			t.Errorf("read: %v", err)
		}
		if _, err := f.Entry(b + "/ws/h"); err != errDenied {
			t.Errorf("place: %v", err)
		}
		d := dirOf(t, f, b+"/ws")
		if _, err := d.OpenFile("h"); err != errDenied {
			t.Errorf("open in a directory that no rule touches: %v", err)
		}
		if _, err := d.Stat("h"); err != errDenied {
			t.Errorf("stat in a directory that no rule touches: %v", err)
		}
	})
}

func TestRemoveAndMake(t *testing.T) {
	b := base(t)
	roads(t, &fence{root: b, deny: []string{b + "/ws/secrets"}}, func(t *testing.T, f *FS) {
		noLeak(t)
		defer os.RemoveAll(b + "/ws")
		lay(t, b, "ws/dangling => none/x")
		made, err := makeParents(f, b+"/ws/x/y/z/file")
		must(t, err)
		if fmt.Sprint(made) != fmt.Sprint([]string{b + "/ws/x", b + "/ws/x/y", b + "/ws/x/y/z"}) {
			t.Errorf("made %v", made)
		}
		made, err = makeParents(f, b+"/ws/x/./y/z/file")
		if err != nil || made != nil {
			t.Errorf("made again: %v %v", made, err)
		}
		for p, want := range map[string]string{
			"ws/secrets/a/f": "denied", "ws/dangling/a/f": "symlink", "ws/none/../a/f": "bad", "../a/b": "denied",
		} {
			if made, err := makeParents(f, b+"/"+p); outcome(err) != want || made != nil {
				t.Errorf("%s: %v %v", p, made, err)
			}
		}
		place := func(name string) *Entry {
			p, err := f.EntryLink(b + "/ws/" + name)
			must(t, err)
			t.Cleanup(func() { p.Close() })
			return p
		}
		lay(t, b, "ws/l => ../elsewhere")
		l := place("l")
		before, err := l.Load(-1)
		must(t, err)
		if string(before.Content) != "../elsewhere" || before.Info.Kind != KindSymlink {
			t.Errorf("%+v", before)
		}
		must(t, remove(l, before))
		if err := remove(l, before); outcome(err) != "conflict" {
			t.Error(err)
		}
		d := place("d")
		must(t, d.Mkdir(0o755))
		if err := d.Mkdir(0o755); outcome(err) != "exists" {
			t.Error(err)
		}
		lay(t, b, "ws/d/f = A")
		if err := d.RemoveEmptyDir(); err == nil {
			t.Error("removed a directory that was not empty")
		}
		file := place("d/f")
		before, err = file.Load(-1)
		must(t, err)
		must(t, remove(file, before))
		must(t, d.RemoveEmptyDir())
		lay(t, b, "ws/f = A")
		if err := place("f").RemoveEmptyDir(); outcome(err) != "notdir" {
			t.Error(err)
		}
		for _, p := range []string{"l", "d"} {
			if _, err := os.Lstat(b + "/ws/" + p); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there: %v", p, err)
			}
		}
		if left := litter(t, b); left != nil {
			t.Error(left)
		}
	})
}

func TestLockKey(t *testing.T) {
	b := base(t)
	lay(t, b, "d/f", "l => d", "e/")
	f := open(t, &fence{root: b})
	keys := map[string]string{}
	for _, p := range []string{"d/f", "l/f", "d/F", "d/../l/f", "e/f", "d/g"} {
		place, err := f.Entry(b + "/" + p)
		must(t, err)
		keys[p] = place.LockKey()
		place.Close()
	}
	for _, p := range []string{"l/f", "d/F", "d/../l/f"} {
		if keys[p] != keys["d/f"] {
			t.Errorf("%s has key %s, d/f %s", p, keys[p], keys["d/f"])
		}
	}
	for _, p := range []string{"e/f", "d/g"} {
		if keys[p] == keys["d/f"] {
			t.Errorf("%s shares the key of d/f", p)
		}
	}
}

func TestReload(t *testing.T) {
	for name, change := range map[string]func(p string) error{
		"nothing": func(string) error { return nil },
		"content": func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o644) },
		"mode":    func(p string) error { return os.Chmod(p, 0o600) },
		"replaced": func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("old"), 0o644), os.Rename(p+"2", p))
		},
		"removed":    os.Remove,
		"other name": func(p string) error { return os.Link(p, p+"2") },
		"link":       func(p string) error { return errors.Join(os.Remove(p), os.Symlink("x", p)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := base(t)
			roads(t, &fence{root: b}, func(t *testing.T, f *FS) {
				noLeak(t)
				p := filepath.Join(b, f.Containment(), "f")
				lay(t, b, p+" = old")
				place, err := f.Entry(p)
				must(t, err)
				defer place.Close()
				before, err := place.Load(-1)
				must(t, err)
				time.Sleep(20 * time.Millisecond) // more than a tick of the clock that stamps files
				must(t, change(p))
				again, err := place.Reload(before, -1)
				if name == "link" {
					if link, ok := errors.AsType[*SymlinkError](err); !ok || link.Target != "x" {
						t.Errorf("a link that nobody meant was loaded: %v", err)
					}
					return
				}
				must(t, err)
				now, err := place.Load(-1)
				must(t, err)
				if again.Exists != now.Exists || again.Hash != now.Hash || again.Info != now.Info {
					t.Errorf("reloaded %+v, loaded %+v", again, now)
				}
				if same := again == before; same != (name == "nothing") && f.Containment() != "best_effort" {
					t.Errorf("the same: %v", same)
				}
			})
		})
	}
}
