//go:build unix

package guardfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Append leaves alone an object that came to the entry since it was looked at, and one that
// has another name as well.
func TestAppendOnlyToItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		swap func(dir string) error
		want Interference
	}{
		"the same":    {func(string) error { return nil }, ""},
		"a file":      {func(d string) error { return os.Rename(d+"/victim", d+"/d/f") }, Replaced},
		"a link":      {func(d string) error { return errors.Join(os.Remove(d+"/d/f"), os.Symlink("../victim", d+"/d/f")) }, Replaced},
		"a directory": {func(d string) error { return errors.Join(os.Remove(d+"/d/f"), os.Mkdir(d+"/d/f", 0o700)) }, Replaced},
		"nothing":     {func(d string) error { return os.Remove(d + "/d/f") }, WasRemoved},
		"a name":      {func(d string) error { return os.Link(d+"/d/f", d+"/victim2") }, NameAdded},
		"moved":       {func(d string) error { return os.Rename(d+"/d", d+"/e") }, DirMoved},
	} {
		t.Run(name, func(t *testing.T) {
			roads(t, &fence{root: "/"}, func(t *testing.T, f *FS) {
				dir := base(t)
				lay(t, dir, "d/f = old", "victim = victim")
				p, err := f.Entry(dir + "/d/f")
				must(t, err)
				defer p.Close()
				b, err := p.Peek(nil, 1)
				must(t, err)
				if b.Hash != "" || b.Content != nil || b.Info.Size != 3 {
					t.Errorf("it was read: %+v", b)
				}
				must(t, c.swap(dir))
				a, err := p.Append(b.Info.ID, []byte(" and new"))
				_, conflict := errors.AsType[*ConflictError](err)
				conflict = conflict || err != nil && f.Containment() == "best_effort"
				switch {
				case c.want == "" && (err != nil || a.At != 3 || a.Bytes != 8 || a.Info.Size != 11):
					t.Errorf("%+v %v", a, err)
				case c.want != "" && (!conflict || a.Bytes != 0):
					t.Errorf("%+v %v", a, err)
				}
				must(t, filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
					if err == nil && e.Type().IsRegular() {
						var got []byte
						if got, err = os.ReadFile(p); strings.Contains(string(got), "new") != (c.want == "") && string(got) != "victim" {
							t.Errorf("%s holds %q", p, got)
						}
						if string(got) == "victim and new" {
							t.Errorf("%s was appended to", p)
						}
					}
					return err
				}))
			})
		})
	}
}
