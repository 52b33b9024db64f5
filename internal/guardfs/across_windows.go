package guardfs

import (
	"os"
	"path"
	"strings"
	"syscall"
)

// across is between for two directories. Here there is no call for two handles: it goes by names below
// a directory that both are in.
func across(p *Entry, x string, q *Entry, y string, link bool) error {
	top := p.dir.True
	for top != q.dir.True && !strings.HasPrefix(q.dir.True, strings.TrimSuffix(top, "/")+"/") {
		up := path.Dir(top)
		if up == top || strings.HasSuffix(up, ":") {
			return syscall.EXDEV
		}
		top = up
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing was written through it
	below := func(of *Entry, name string) string {
		return strings.TrimPrefix(strings.TrimPrefix(join(of.dir.True, name), top), "/")
	}
	for _, of := range []*Entry{p, q} {
		if fi, err := root.Stat(path.Dir(below(of, "x"))); err != nil || !os.SameFile(fi, of.fi) {
			return of.conflict(DirMoved)
		}
	}
	if link {
		return root.Link(below(p, x), below(q, y))
	}
	return root.Rename(below(p, x), below(q, y))
}
