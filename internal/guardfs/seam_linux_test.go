//go:build !rooted

package guardfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// move is an act of somebody else on d/f at some moment.
type move struct {
	name string
	do   func(dir string) error
	// lasting checks what must hold afterwards, whenever the move came.
	lasting func(t *testing.T, dir string) error
}

// somewhere finds a file with that content below dir.
func somewhere(t *testing.T, dir, text string) error {
	if !strings.Contains(snapshot(t, dir), fmt.Sprintf("%q", text)) {
		return fmt.Errorf("%q is nowhere", text)
	}
	return nil
}

func renamedOver(p, text string) error {
	return errors.Join(os.WriteFile(p+".theirs", []byte(text), 0o644), os.Rename(p+".theirs", p))
}

var moves = []move{
	{"edit in place", func(dir string) error { return os.WriteFile(dir+"/d/f", []byte("theirs"), 0o644) },
		func(t *testing.T, dir string) error { return somewhere(t, dir, "theirs") }},
	{"replace", func(dir string) error { return renamedOver(dir+"/d/f", "theirs") },
		func(t *testing.T, dir string) error { return somewhere(t, dir, "theirs") }},
	{"delete", func(dir string) error { return ignoreAbsent(os.Remove(dir + "/d/f")) }, nil},
	{"swap for a link", func(dir string) error {
		return errors.Join(ignoreAbsent(os.Rename(dir+"/d/f", dir+"/d/g")), os.Symlink("../out/victim", dir+"/d/f"))
	}, func(t *testing.T, dir string) error {
		if !strings.Contains(snapshot(t, dir+"/d"), "-> ../out/victim") {
			return errors.New("the link was destroyed")
		}
		return nil
	}},
	{"swap the directory for a link", func(dir string) error {
		return errors.Join(os.Rename(dir+"/d", dir+"/d2"), os.Symlink("out", dir+"/d"))
	}, nil},
	{"swap the directory for a link to a denied one", func(dir string) error {
		return errors.Join(os.Rename(dir+"/d", dir+"/d2"), os.Symlink("secrets", dir+"/d"))
	}, nil},
	{"move the directory", func(dir string) error { return os.Rename(dir+"/d", dir+"/d2") }, nil},
	{"move the directory to a denied place", func(dir string) error { return os.Rename(dir+"/d", dir+"/secrets/d") },
		func(t *testing.T, dir string) error {
			if strings.Contains(snapshot(t, dir+"/secrets"), `"ours"`) {
				return errors.New("published in a denied place")
			}
			return nil
		}},
	{"chmod", func(dir string) error { return ignoreAbsent(os.Chmod(dir+"/d/f", 0o600)) },
		func(t *testing.T, dir string) error {
			fi, err := os.Stat(dir + "/d/f")
			if err == nil && fi.Mode().Perm() == 0o644 && content(dir+"/d/f") != "ours" {
				return errors.New("the mode was lost")
			}
			return nil
		}},
	{"truncate", func(dir string) error { return ignoreAbsent(os.Truncate(dir+"/d/f", 0)) },
		func(t *testing.T, dir string) error {
			if content(dir+"/d/f") == "old" {
				return errors.New("the truncation was undone")
			}
			return nil
		}},
	{"swap for a fifo", func(dir string) error {
		return errors.Join(ignoreAbsent(os.Rename(dir+"/d/f", dir+"/d/g")), mkfifo(dir+"/d/f"))
	}, func(t *testing.T, dir string) error {
		if !strings.Contains(snapshot(t, dir+"/d"), "prw-") {
			return errors.New("the fifo was destroyed")
		}
		return nil
	}},
	{"swap for a directory", func(dir string) error {
		return errors.Join(ignoreAbsent(os.Rename(dir+"/d/f", dir+"/d/g")), os.Mkdir(dir+"/d/f", 0o755),
			os.WriteFile(dir+"/d/f/theirs", []byte("theirs"), 0o644))
	}, func(t *testing.T, dir string) error { return somewhere(t, dir, "theirs") }},
	{"link", func(dir string) error { return ignoreAbsent(os.Link(dir+"/d/f", dir+"/d/h")) },
		func(t *testing.T, dir string) error {
			if got := content(dir + "/d/h"); got == "" {
				return errors.New("the other name was emptied")
			}
			return nil
		}},
	{"take the temporary names", func(dir string) error {
		names, err := filepath.Glob(dir + "/d/" + tempPrefix + "*")
		for _, n := range names {
			err = errors.Join(err, os.Rename(n, dir+"/d/taken"), os.WriteFile(n, []byte("theirs"), 0o644))
		}
		return err
	}, func(t *testing.T, dir string) error { return nil }},
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Between every two system calls of every mutation, every move: nothing of theirs is lost, nothing lands outside.
func TestMoveBetweenAnyTwoCalls(t *testing.T) {
	root := ramdisk(t)
	cells := 0
	for verb, tree := range map[string][]string{"create": nil, "replace": {"f = old"}, "create held": nil, "replace held": {"f = old"},
		"remove": {"f = old"}, "read": {"f = old"}} {
		for _, mv := range moves {
			t.Run(verb+"/"+mv.name, func(t *testing.T) {
				j := &fence{}
				roads(t, j, func(t *testing.T, f *FS) {
					for n := 1; ; n++ {
						dir := filepath.Join(root, fmt.Sprint(verb, n))
						lay(t, dir, "d/", "out/victim = victim", "secrets/x = secret")
						lay(t, dir+"/d", tree...)
						j.root, j.deny = dir, []string{dir + "/out", dir + "/secrets"}
						fds := openFDs(t)
						count, moved, done := 0, false, false // done: published when the move came
						hook := func(string) *Fault {
							if count++; count == n {
								moved = true
								done = content(dir+"/d/f") == "ours"
								if err := mv.do(dir); err != nil && !errors.Is(err, os.ErrExist) {
									t.Errorf("the move itself: %v", err)
								}
							}
							return nil
						}
						err := raced(f, verb, dir+"/d/f", hook)
						if !moved {
							os.RemoveAll(dir)
							break
						}
						cells++
						where := fmt.Sprintf("before call %d: %v", n, err)
						if mv.lasting != nil && !(done && err == nil && strings.HasPrefix(mv.name, "move the")) {
							if lerr := mv.lasting(t, dir); lerr != nil {
								t.Errorf("%s: %v\n%s", where, lerr, snapshot(t, dir))
							}
						}
						if s := snapshot(t, dir+"/out"); !strings.Contains(s, `victim -rw-r--r-- "victim"`) || strings.Count(s, "\n") != 2 {
							t.Errorf("%s: outside is now\n%s", where, s)
						}
						all := snapshot(t, dir)
						late := err != nil && strings.Contains(err.Error(), "published_too") // it was published, and moved on
						if err != nil && strings.Contains(all, `"ours"`) && mv.name != "take the temporary names" && !late {
							t.Errorf("%s: ours is there in spite of it\n%s", where, all)
						}
						for _, l := range litter(t, dir) {
							if !strings.HasSuffix(l, keptSuffix) && mv.name != "take the temporary names" {
								t.Errorf("%s: left %s", where, l)
							}
						}
						if mv.name == "take the temporary names" && strings.HasPrefix(verb, "replace") {
							// Somebody who takes the pre-image from under its temporary name has it.
							if lerr := somewhere(t, dir, "old"); lerr != nil && (err != nil || content(dir+"/d/f") != "ours") {
								t.Errorf("%s: %v\n%s", where, lerr, all)
							}
						}
						if now := openFDs(t); now != fds {
							t.Fatalf("%s: %d descriptors, %d before", where, now, fds)
						}
						os.RemoveAll(dir)
					}
				})
			})
		}
	}
	t.Logf("%d cells", cells)
	if cells < 2000 {
		t.Error("fewer moves than these operations have calls")
	}
}

// raced does one thing to p and lets hook in on every call from the moment on when the caller has seen what is there.
func raced(f *FS, verb, p string, hook func(string) *Fault) error {
	defer func() { f.kernel.hook = nil }()
	if verb == "read" {
		f.kernel.hook = hook
		got, err := read(f, p)
		if err == nil && got != "old" && got != "theirs" && got != "" {
			return fmt.Errorf("read %q", got)
		}
		return err
	}
	place, err := f.Entry(p)
	if err != nil {
		return err
	}
	defer place.Close()
	before, err := place.Load(-1)
	if err != nil {
		return err
	}
	f.kernel.hook = hook
	if verb == "remove" {
		return remove(place, before)
	}
	_, way, _ := strings.Cut(verb, " ")
	_, err = publish(place, before, "ours", options{way: way})
	return err
}

// A third writer, who never rests: he replaces the file before every single call from the n-th on,
// or writes into it. The last thing he wrote is under the name, and nothing that he did not
// overwrite himself is gone.
func TestRestlessWriter(t *testing.T) {
	root := ramdisk(t)
	inPlace := func(p, text string) error { return os.WriteFile(p, []byte(text), 0o644) }
	for i, name := range []string{"rename", "stat", "every", "rename", "stat", "every", "rename", "stat", "every"} {
		verb, write := "replace", renamedOver
		switch {
		case i >= 6:
			write = inPlace
		case i >= 3:
			verb = "replace held"
		}
		for n := 1; n < 40; n++ {
			dir := filepath.Join(root, fmt.Sprint(i, n))
			lay(t, dir, "f = old")
			f := open(t, &fence{root: dir})
			count, written := 0, 0
			hook := func(op string) *Fault {
				if count++; count >= n && (op == name || name == "every") {
					written++
					must(t, write(dir+"/f", fmt.Sprint("theirs", written)))
				}
				return nil
			}
			err := raced(f, verb, dir+"/f", hook)
			if written > 0 {
				last := fmt.Sprint("theirs", written)
				if serr := somewhere(t, dir, last); serr != nil && !(err == nil && content(dir+"/f") == "ours") {
					t.Errorf("%s: %s from call %d on: %v: %v\n%s", verb, name, n, err, serr, snapshot(t, dir))
				}
				if got := content(dir + "/f"); got != last && err != nil && i < 6 {
					t.Errorf("%s: %s from call %d on: %v: the name has %q, not %q", verb, name, n, err, got, last)
				}
			}
		}
	}
}

// Between every two system calls of the making of a directory, the one that it is made in is moved to a denied place, or a link outside takes its
// place: nothing is made there, or it is taken away again.
func TestMkdirWhileItsDirectoryMoves(t *testing.T) {
	root := ramdisk(t)
	j := &fence{}
	taken := 0
	for _, mv := range moves {
		if !strings.Contains(mv.name, "directory") || mv.name == "swap for a directory" {
			continue
		}
		roads(t, j, func(t *testing.T, f *FS) {
			for n := 1; ; n++ {
				dir := filepath.Join(root, fmt.Sprint(mv.name, f.Containment(), n))
				lay(t, dir, "d/", "out/victim = victim", "secrets/x = secret")
				j.root, j.deny = dir, []string{dir + "/out", dir + "/secrets"}
				fds := openFDs(t)
				p, err := f.EntryLink(dir + "/d/new")
				must(t, err)
				count, made := 0, false // made: when the move came
				f.kernel.hook = func(string) *Fault {
					if count++; count == n {
						_, err := os.Lstat(dir + "/d/new")
						made = err == nil
						must(t, mv.do(dir))
					}
					return nil
				}
				err = p.Mkdir(0o755)
				f.kernel.hook = nil
				p.Close()
				all := snapshot(t, dir)
				if count < n {
					must(t, err)
					break
				}
				if there := strings.Contains(all, "new "); there && err != nil {
					t.Errorf("%s before call %d: %v, and it is there\n%s", mv.name, n, err, all)
				} else if made && err != nil {
					taken++
				}
				if s := snapshot(t, dir+"/out"); !strings.Contains(s, `victim -rw-r--r-- "victim"`) || strings.Count(s, "\n") != 2 {
					t.Errorf("%s before call %d: outside is now\n%s", mv.name, n, s)
				}
				if now := openFDs(t); now != fds {
					t.Fatalf("%s before call %d: %d descriptors, %d before", mv.name, n, now, fds)
				}
			}
		})
	}
	if taken == 0 {
		t.Error("no move came between the making and the last look: the test tests nothing")
	}
}

// A Publish that does not look afterwards must lose to the moves: else they prove nothing.
func TestMoveControl(t *testing.T) {
	root := ramdisk(t)
	lost := 0
	for n := 1; ; n++ {
		dir := filepath.Join(root, fmt.Sprint(n))
		lay(t, dir, "f = old")
		f := open(t, &fence{root: dir})
		p, err := f.Entry(dir + "/f")
		must(t, err)
		before, err := p.Load(-1)
		must(t, err)
		h, made, err := p.Stage(context.Background(), TempName(someTag, 1), NewObject{Kind: KindFile, Content: []byte("ours")})
		must(t, err)
		fd, err := p.fd.use()
		must(t, err)
		count := 0
		f.kernel.hook = func(string) *Fault {
			if count++; count == n {
				must(t, renamedOver(dir+"/f", "theirs"))
			}
			return nil
		}
		s := &exchange{p: p, temp: h, out: Found(before), in: made.Precondition()}
		held, why, err := f.kernel.openLike(fd, p.base, s.out)
		must(t, err)
		if why == "" {
			must(t, s.rename())
			f.kernel.discard(held)
		}
		calls := count
		f.kernel.hook = nil
		must(t, h.Drop(Precondition{ID: identity(t, h)}))
		if calls >= n && somewhere(t, dir, "theirs") != nil {
			lost++
		}
		p.fd.done()
		p.Close()
		h.Close()
		if calls < n {
			break
		}
	}
	if lost == 0 {
		t.Error("the control survived")
	}
}

// identity is the identity of the object at an entry.
func identity(t *testing.T, p *Entry) Identity {
	st, err := p.fs.kernel.lstat(p.fd.fd, p.base)
	must(t, err)
	return st.info.ID
}

// TestWrittenInPlace: Append and Overwrite sync the file after its last byte, and do not write to a file that has a second name.
func TestWrittenInPlace(t *testing.T) {
	for name, write := range map[string]func(p *Entry, b *Before) error{
		"append":    func(p *Entry, b *Before) error { _, err := p.Append(b.Info.ID, []byte("new")); return err },
		"overwrite": func(p *Entry, b *Before) error { _, _, err := p.Overwrite(Found(b), []byte("n")); return err },
	} {
		dir := base(t)
		lay(t, dir, "f = old")
		f := open(t, &fence{root: dir})
		p, err := f.Entry(dir + "/f")
		must(t, err)
		b, err := p.Load(-1)
		must(t, err)
		last := ""
		f.kernel.hook = func(op string) *Fault {
			if op == "write" || op == "truncate" || op == "fsync" {
				last = op
			}
			return nil
		}
		must(t, write(p, b))
		if f.kernel.hook = nil; last != "fsync" {
			t.Errorf("%s ends with %q", name, last)
		}
		b, err = p.Load(-1)
		must(t, err)
		must(t, os.Link(dir+"/f", dir+"/g"))
		if c, ok := errors.AsType[*ConflictError](write(p, b)); !ok || c.Why != NameAdded {
			t.Errorf("%s to a file with two names: %v", name, c)
		}
		p.Close()
	}
}
