//go:build !rooted

package guardfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A step is one path and what becomes of it: a rename between the path and a hold, or to.
type step struct {
	action, path, to string
	what             NewObject
	dir              string // of the hold
	before, after    Identity
}

// row is an engine's record of a plan: all steps, once all is staged.
type row struct {
	steps []step
	saved bool // durable
	made  bool // likewise; from here on it only goes forward
}

func plan() []step {
	file := func(text string) NewObject { return NewObject{Kind: KindFile, Content: []byte(text)} }
	dir := NewObject{Kind: KindDir}
	link := NewObject{Kind: KindSymlink, Content: []byte("../keep")}
	return []step{
		{action: "remove", path: "d/b/c"}, {action: "remove", path: "d/a"}, {action: "rmdir", path: "d/b"}, {action: "rmdir", path: "d"},
		{action: "remove", path: "f"}, {action: "rmdir", path: "empty/in"}, {action: "rmdir", path: "empty"},
		{action: "mkdir", path: "x", what: dir}, {action: "mkdir", path: "x/y", what: dir}, {action: "mkdir", path: "f", what: dir},
		{action: "rename", path: "tree", to: "moved"},
		{action: "put", path: "e", what: file("new e")}, {action: "put", path: "keep/k", what: file("new k")},
		{action: "put", path: "x/y/f", what: file("new f")}, {action: "put", path: "d", what: file("new d")},
		{action: "link", path: "f/l", what: link},
	}
}

var planned = []string{"e = old", "keep/k = linked", "keep/h <= keep/k", "d/a = a", "d/b/c = c", "f = f", "empty/in/", "tree/t/u = u"}

func expect(id Identity) Precondition { return Precondition{ID: id} }

// open gives the places of a step; its hold is the one that is there.
func (s *step) open(f *FS, top string, n int) (p, hold *Entry, err error) {
	if p, err = f.EntryLink(top + "/" + s.path); err != nil {
		return nil, nil, err
	}
	if s.to != "" {
		hold, err = f.EntryLink(top + "/" + s.to)
	} else {
		var at *Entry
		if at, err = f.EntryLink(s.dir + "/any"); err == nil {
			hold, _, err = at.Stage(context.Background(), TempName(someTag, n), NewObject{})
			at.Close()
		}
	}
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	return p, hold, nil
}

// carryOut stages all, saves the row, and swaps each; then the holds go.
func (r *row) carryOut(f *FS, top string) error {
	for i := range r.steps {
		s := &r.steps[i]
		anchor := s.path // in a directory that stays
		for _, o := range r.steps {
			if (o.action == "rmdir" || o.action == "remove") && len(o.path) < len(anchor) && strings.HasPrefix(anchor, o.path+"/") {
				anchor = o.path
			}
		}
		at, _, err := f.NearestEntry(top + "/" + anchor)
		if err != nil {
			return err
		}
		s.dir = at.ParentTrue()
		taken := slices.ContainsFunc(r.steps[:i], func(o step) bool { return o.path == s.path })
		if p, err := f.EntryLink(top + "/" + s.path); err == nil && !taken {
			s.before = p.Object().Info.ID
			p.Close()
		}
		if s.what.Kind != KindAbsent {
			h, made, err := at.Stage(context.Background(), TempName(someTag, i), s.what)
			if err != nil {
				at.Close()
				return err
			}
			s.after = made.Info.ID
			h.Close()
		}
		at.Close()
	}
	r.saved = true
	for i := range r.steps {
		s := &r.steps[i]
		p, h, err := s.open(f, top, i)
		if err != nil {
			return err
		}
		_, err = p.Publish(context.Background(), h, expect(s.before), expect(s.after))
		p.Close()
		h.Close()
		if err != nil {
			return err
		}
	}
	r.made = true
	return r.recover(f, top)
}

// recover is the common part of a start after a kill and the end of a change. The object that came out is
// dropped at the end: an engine would look first whether it has the content.
func (r *row) recover(f *FS, top string) error {
	at := func(p *Entry) (Identity, error) {
		st, err := p.fs.kernel.lstat(p.fd.fd, p.base)
		if err == unix.ENOENT {
			return Identity{}, nil
		}
		return st.info.ID, err
	}
	for _, back := range []bool{true, false} {
		for i, s := range slices.Backward(r.steps) {
			if back && r.made || !back && s.to != "" {
				continue
			}
			p, h, err := s.open(f, top, i)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) { // above it nothing is as yet
				p, h, err = (&step{path: "any", dir: s.dir}).open(f, top, i)
				if err == nil && back {
					p.Close()
					h.Close()
					continue
				}
			}
			if err != nil {
				return err
			}
			is, err := at(p)
			held, herr := at(h)
			switch err = errors.Join(err, herr); {
			case err != nil:
			case back && s.before != s.after && is == s.after && held == s.before:
				_, err = p.Publish(context.Background(), h, expect(s.after), expect(s.before))
			case !back && held != Identity{} && (held == s.before || held == s.after):
				err = h.Drop(expect(held))
			}
			p.Close()
			h.Close()
			if err != nil {
				return fmt.Errorf("%s %s: %w", s.action, s.path, err)
			}
		}
	}
	return nil
}

// objects is the tree with the identity of each object.
func objects(t *testing.T, top string) string {
	var out strings.Builder
	must(t, filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(p, &st)
		}
		fmt.Fprintf(&out, "%s %d %o\n", strings.TrimPrefix(p, top), st.Ino, st.Mode)
		return err
	}))
	return out.String()
}

// killedAt has every call fail from the n-th on that changes the tree, as for a killed process; it
// tells whether there was such a call.
func killedAt(f *FS, n int, run func() error) (killed bool, err error) {
	count := 0
	f.kernel.hook = func(op string) *Fault {
		switch op {
		case "rename", "link", "unlink", "mkdir", "symlink", "write", "chmod":
			count++
		}
		if count >= n {
			killed = true
			return &Fault{Err: unix.EIO}
		}
		return nil
	}
	err = run()
	f.kernel.hook = nil
	return killed, err
}

// A plan of sixteen steps, killed before each of its calls that change something, and its recovery
// before each of its own: all is old, by object, or new.
func TestKilledAnywhere(t *testing.T) {
	root := ramdisk(t)
	every := 4 // of the calls of a recovery
	cells, old, fresh := 0, 0, 0
	for n := 1; ; n++ {
		last := false
		for m := 1 + n%every; !last || m == 1+n%every; m += every {
			top := fmt.Sprintf("%s/%d-%d", root, n, m)
			lay(t, top, planned...)
			was := objects(t, top)
			f := open(t, &fence{root: top})
			r := &row{steps: plan()}
			killed, err := killedAt(f, n, func() error { return r.carryOut(f, top) })
			if !killed {
				must(t, err)
				if n < 35 {
					t.Errorf("a plan of %d calls", n)
				}
				t.Logf("%d cells, %d old, %d new", cells, old, fresh)
				if old == 0 || fresh == 0 {
					t.Error("one of the two never happened")
				}
				return
			}
			cells++
			if !r.saved { // nothing is visible but holds, which nobody has on record
				for _, name := range litter(t, top) {
					if !Temporary(filepath.Base(name)) {
						t.Errorf("killed at %d: %s is left", n, name)
					}
					must(t, os.RemoveAll(name))
				}
				last = true
			} else {
				again, _ := killedAt(f, m, func() error { return r.recover(f, top) })
				last = !again
				if err := r.recover(f, top); err != nil {
					t.Fatalf("killed at %d, recovery at %d: %v\n%s", n, m, err, snapshot(t, top))
				}
			}
			now := objects(t, top)
			switch {
			case !r.made && now == was:
				old++
			case r.made && content(top+"/x/y/f") == "new f" && content(top+"/d") == "new d" && litter(t, top) == nil && content(top+"/moved/t/u") == "u":
				fresh++
			default:
				t.Fatalf("killed at %d, recovery at %d, made %v:\n%s\nwas\n%s", n, m, r.made, now, was)
			}
			must(t, os.RemoveAll(top))
			if last {
				break
			}
		}
	}
}
