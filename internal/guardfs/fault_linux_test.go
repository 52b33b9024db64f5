//go:build !rooted

package guardfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mutation is one thing done to the tree, with what it looks like before and after.
type mutation struct {
	name   string
	tree   []string
	run    func(f *FS, dir string) error
	before string // content of "f"; "-" when it is not there
	after  string
}

const bigNew = 10000 // bytes, more than one write takes when it is short

var mutations = []mutation{
	{"create", nil, func(f *FS, dir string) error {
		_, err := write(f, dir+"/f", strings.Repeat("n", bigNew), options{Sync: true})
		return err
	}, "-", strings.Repeat("n", bigNew)},
	{"replace", []string{"f = old"}, func(f *FS, dir string) error {
		_, err := write(f, dir+"/f", strings.Repeat("n", bigNew), options{Sync: true})
		return err
	}, "old", strings.Repeat("n", bigNew)},
	{"create held", nil, func(f *FS, dir string) error {
		_, err := write(f, dir+"/f", strings.Repeat("n", bigNew), options{Sync: true, way: held})
		return err
	}, "-", strings.Repeat("n", bigNew)},
	{"replace held", []string{"f = old"}, func(f *FS, dir string) error {
		_, err := write(f, dir+"/f", strings.Repeat("n", bigNew), options{Sync: true, way: held})
		return err
	}, "old", strings.Repeat("n", bigNew)},
	{"restore", []string{"f = old"}, func(f *FS, dir string) error {
		_, err := write(f, dir+"/f", "new", options{Sync: true, Meta: &Metadata{Mode: 0o600, UID: 12, GID: 13,
			Xattrs: map[string][]byte{"user.k": []byte("v")}}})
		return err
	}, "old", "new"},
	{"remove", []string{"f = old"}, func(f *FS, dir string) error {
		p, err := f.Entry(dir + "/f")
		if err != nil {
			return err
		}
		defer p.Close()
		before, err := p.Load(-1)
		if err != nil {
			return err
		}
		return remove(p, before)
	}, "old", "-"},
	{"make parents", []string{"x/"}, func(f *FS, dir string) error {
		_, err := makeParents(f, dir+"/x/y/z/f")
		return err
	}, "-", "-"},
	{"make directory", nil, func(f *FS, dir string) error {
		p, err := f.EntryLink(dir + "/d")
		if err != nil {
			return err
		}
		defer p.Close()
		return p.Mkdir(0o777)
	}, "-", "-"},
	{"read", []string{"f = old"}, func(f *FS, dir string) error {
		_, err := read(f, dir+"/f")
		return err
	}, "old", "old"},
	{"walk", []string{"f = old", "d/e/f", "l => d/e"}, func(f *FS, dir string) error {
		h, err := f.Resolve(dir+"/l/..", Look)
		if err != nil {
			return err
		}
		defer h.Close()
		d, err := h.Dir()
		if err != nil {
			return err
		}
		defer d.Close()
		sub, err := d.OpenDir("e", false)
		if err != nil {
			return err
		}
		defer sub.Close()
		if _, _, err := sub.List(nil); err != nil {
			return err
		}
		if _, err := sub.ReadSmall("f", 100); err != nil {
			return err
		}
		up, err := sub.Parent()
		if err != nil {
			return err
		}
		return up.Close()
	}, "old", "old"},
}

// faults are the failures of one call.
var faults = map[string]Fault{
	"EIO":          {Err: unix.EIO},
	"ENOSPC":       {Err: unix.ENOSPC},
	"EDQUOT":       {Err: unix.EDQUOT},
	"EINTR":        {Err: unix.EINTR},
	"EROFS":        {Err: unix.EROFS},
	"EACCES":       {Err: unix.EACCES},
	"EMFILE":       {Err: unix.EMFILE},
	"EINVAL":       {Err: unix.EINVAL},
	"ENOSYS":       {Err: unix.ENOSYS},
	"EOPNOTSUPP":   {Err: unix.EOPNOTSUPP},
	"ENOENT":       {Err: unix.ENOENT},
	"EIO, but did": {Err: unix.EIO, After: true},
	"EEXIST, did":  {Err: unix.EEXIST, After: true},
	"short":        {Err: unix.EIO, Short: true},
}

// At the N-th call, for every N and every fault: the file is as before or as after, an error means before, no
// temporary file stays and no descriptor.
func TestFaultAtEveryCall(t *testing.T) {
	root := ramdisk(t)
	cells := 0
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			roads(t, &fence{root: root}, func(t *testing.T, f *FS) {
				for name, bad := range faults {
					for n := 1; ; n++ {
						dir := filepath.Join(root, m.name, fmt.Sprint(name, n))
						lay(t, dir, m.tree...)
						must(t, os.MkdirAll(dir, 0o755))
						fds := openFDs(t)
						count, hit := 0, ""
						f.kernel.hook = func(op string) *Fault {
							if count++; count == n {
								hit = op
								return &bad
							}
							return nil
						}
						err := m.run(f, dir)
						f.kernel.hook = nil
						if hit == "" {
							must(t, err)
							os.RemoveAll(dir)
							break
						}
						cells++
						where := fmt.Sprintf("%s at call %d (%s): %v", name, n, hit, err)
						got := content(dir + "/f")
						switch {
						case got != m.before && got != m.after:
							t.Errorf("%s: the file has %.20q", where, got)
						case err == nil && got != m.after:
							t.Errorf("%s: reported done, and is not", where)
						case err != nil && got != m.before:
							t.Errorf("%s: reported undone, and is done", where)
						}
						if left := litter(t, dir); left != nil {
							t.Errorf("%s: left %v", where, left)
						}
						if _, serr := os.Lstat(dir + "/d"); m.name == "make directory" && (serr == nil) != (err == nil) && !errors.Is(err, fs.ErrExist) {
							t.Errorf("%s: is it there? %v", where, serr)
						}
						if now := openFDs(t); now != fds {
							t.Fatalf("%s: %d descriptors, %d before", where, now, fds)
						}
						os.RemoveAll(dir)
					}
				}
			})
		})
	}
	t.Logf("%d faults", cells)
	if cells < 5000 {
		t.Error("fewer faults than these operations have calls")
	}
}

// From the N-th call on everything fails, so that nothing can be cleaned up either. Even then the old content is
// there, under its name or one that the error or the listing shows.
func TestNothingWorksFromTheNthCallOn(t *testing.T) {
	root := ramdisk(t)
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			f := open(t, &fence{root: root})
			for _, errno := range []error{unix.EIO, unix.EINTR, unix.ENOSPC, unix.EINVAL} {
				for n := 1; ; n++ {
					dir := filepath.Join(root, m.name, fmt.Sprint(errno, n))
					lay(t, dir, m.tree...)
					must(t, os.MkdirAll(dir, 0o755))
					fds := openFDs(t)
					count, hit := 0, ""
					f.kernel.hook = func(op string) *Fault {
						if count++; count >= n {
							hit = op
							return &Fault{Err: errno}
						}
						return nil
					}
					err := m.run(f, dir)
					f.kernel.hook = nil
					if hit == "" {
						must(t, err)
						break
					}
					found := content(dir + "/f")
					if found != m.before && found != m.after {
						found = "-"
						for _, name := range litter(t, dir) {
							if content(name) == m.before {
								found = m.before
							}
						}
						if found != m.before {
							t.Errorf("%v from call %d (%s) on: the content is gone: %v", errno, n, hit, err)
						}
					}
					if now := openFDs(t); now != fds {
						t.Fatalf("%v from call %d (%s) on: %d descriptors, %d before", errno, n, hit, now, fds)
					}
					os.RemoveAll(dir)
				}
			}
		})
	}
}
