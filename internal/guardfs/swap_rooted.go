//go:build !linux || rooted

package guardfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// Swap lets the names p and hold trade what they have: out has to be at p, and in at hold. It looks
// before and after; what is not as expected is put back, and the answer is a *ConflictError. Here
// names can't trade in one step: what is at p gets a second name first, and is never destroyed.
// What came out is not removed: see Drop.
func (p *Place) Swap(ctx context.Context, hold *Place, out, in Expect) (*Published, error) {
	if err := ctx.Err(); err != nil {
		return nil, p.failed("publish", err)
	}
	if out.nothing() && in.nothing() {
		return nil, p.failed("publish", syscall.ENOENT)
	}
	if err := judgeSwap(p, hold, out, in); err != nil {
		return nil, err
	}
	root, a, b, err := p.common(hold)
	if err != nil {
		return nil, p.failed("publish", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written through it
	why, err := Meanwhile(""), errors.Join(p.still(), hold.still())
	if err == nil && !in.nothing() {
		if _, why, err = hold.unlike(in); err == nil && why != "" {
			why = TempSwapped
		}
	}
	pub := &Published{True: p.object.True}
	if err == nil && why == "" && !out.nothing() {
		_, why, err = p.unlike(out)
	}
	if err != nil || why != "" {
		return nil, p.orConflict(err, why)
	}
	if pub.CAS, err = p.exchange(hold, root, a, b, out.nothing(), in.nothing()); err != nil {
		switch {
		case os.IsExist(err) && out.nothing():
			return nil, p.conflict(Appeared)
		case os.IsExist(err):
			return nil, hold.conflict(Appeared)
		}
		return nil, p.failed("publish", err)
	}
	if !out.nothing() {
		var gone *Before
		if gone, why, err = hold.found(out); err == nil && why == "" {
			pub.Displaced, pub.LinksBroken = Found(gone), max(int(gone.Info.Links)-1, 0)
		}
	}
	if !in.nothing() {
		now, odd, uerr := p.found(in)
		if odd != "" { // what is there is newer, and stays
			why = PublishedToo
			left := ""
			if !out.nothing() && hold.hold != nil {
				left = join(hold.dir.True, hold.keep(hold.base, p.object.True))
			}
			return nil, &ConflictError{Path: p.object.Spelled, Why: why, Left: left}
		}
		if err = errors.Join(err, uerr); uerr == nil {
			pub.Info = now.Info
		}
	}
	if err == nil && why == "" {
		err = errors.Join(p.still(), hold.still())
	}
	if err == nil && why == "" {
		return pub, nil
	}
	if _, berr := p.exchange(hold, root, a, b, in.nothing(), out.nothing()); berr != nil {
		return nil, &ConflictError{Path: p.object.Spelled, Why: why, Left: hold.object.True, Err: cause(berr)}
	}
	return nil, p.orConflict(err, why)
}

// orConflict is err, if there is one and nothing else to say.
func (p *Place) orConflict(err error, why Meanwhile) error {
	if err != nil && why == "" {
		return err
	}
	return p.conflict(why)
}

// judgeSwap asks about both names, for what is to become of them.
func judgeSwap(p, hold *Place, out, in Expect) error {
	access := func(other Expect) Access {
		if other.nothing() {
			return Remove
		}
		return Modify
	}
	if err := p.look(access(in)); err != nil {
		return err
	}
	if hold.hold != nil {
		return nil
	}
	return hold.look(access(out))
}

// common opens a directory that both places are in or below, and gives their names from there.
func (p *Place) common(q *Place) (root *dirRoot, a, b string, err error) {
	if p.dir.True == q.dir.True {
		root, err = p.root.OpenRoot(".")
		return root, p.base, q.base, err
	}
	top := p.dir.True
	for top != q.dir.True && !strings.HasPrefix(q.dir.True, strings.TrimSuffix(top, "/")+"/") {
		up := path.Dir(top)
		if up == top || strings.HasSuffix(up, ":") {
			return nil, "", "", syscall.EXDEV
		}
		top = up
	}
	above, err := os.OpenRoot(top)
	if err != nil {
		return nil, "", "", err
	}
	root = &dirRoot{Root: above, hook: p.root.hook}
	below := func(of *Place) string {
		return strings.TrimPrefix(strings.TrimPrefix(join(of.dir.True, of.base), top), "/")
	}
	a, b = below(p), below(q)
	root.parts = map[string]*os.Root{path.Dir(a): p.root.Root, path.Dir(b): q.root.Root}
	for name, of := range map[string]*Place{path.Dir(a): p, path.Dir(b): q} {
		if fi, serr := root.Stat(name); err == nil && (serr != nil || !os.SameFile(fi, of.fi)) {
			err = of.conflict(DirMoved)
		}
	}
	if err != nil {
		root.Close() //nolint:errcheck // nothing was written through it
	}
	return root, a, b, err
}

// exchange renames, with a to get nothing, or to have had nothing, or neither. What is new may come
// from a name that b does not get; hold has it no more then.
func (p *Place) exchange(hold *Place, root *dirRoot, a, b string, empty, nothing bool) (
	cas string, err error,
) {
	from := path.Join(path.Dir(b), hold.at())
	defer func() {
		if h := hold.hold; h != nil && err == nil {
			h.temp = ""
		}
	}()
	switch {
	case nothing:
		return renameNew(root, a, b)
	case empty:
		return renameNew(root, from, a)
	}
	cas = "recheck"
	second, err := p.second(hold)
	if err != nil {
		return cas, err
	}
	second = path.Join(path.Dir(a), second)
	linked := root.Link(a, second) == nil || sameFile(root, a, second)
	if !linked { // then it is away for a moment
		if _, err := renameNew(root, a, second); err != nil {
			return cas, err
		}
	}
	if err = rename(root, from, a); err == nil {
		for range 3 { // a passing fault is no reason to lose its name
			if err = rename(root, second, b); err == nil {
				return cas, nil
			}
		}
		root.Rename(second, a) //nolint:errcheck // over what should have come in
		return cas, err
	}
	if !linked {
		renameNew(root, second, a) //nolint:errcheck // the first error is the one that counts
	} else if sameFile(root, a, second) { // else it may be the only name that is left
		root.Remove(second) //nolint:errcheck // see above
	}
	return cas, err
}

// EndSwap puts right what a process that died within a Swap has left: names can trade in several
// steps only, and one of them may have been made and not the next. The names are then as before it
// or as after it.
func (p *Place) EndSwap(hold *Place) error {
	root, a, b, err := p.common(hold)
	if err != nil {
		return p.failed("publish", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written through it
	second := path.Join(path.Dir(a), secondOf(hold.base))
	is, ierr := root.Lstat(a)
	held, herr := root.Lstat(b)
	third, terr := root.Lstat(second)
	switch there := terr == nil && hold.hold != nil; {
	case ierr == nil && herr == nil && os.SameFile(is, held):
		err = root.Remove(b)
	case there && (os.SameFile(third, is) || os.SameFile(third, held)):
		err = root.Remove(second)
	case there && os.IsNotExist(herr):
		_, err = renameNew(root, second, b)
	case there && os.IsNotExist(ierr):
		_, err = renameNew(root, second, a)
	}
	if err != nil {
		return p.failed("publish", err)
	}
	return nil
}

// renameNew is a rename that replaces nothing: by link, and where there is none by a look and a
// rename. Some file systems report failures of calls that took effect.
func renameNew(root *dirRoot, from, to string) (cas string, err error) {
	err = root.Link(from, to)
	if err != nil && !sameFile(root, from, to) {
		if os.IsExist(err) {
			return "link", err
		}
		if _, err := root.Lstat(to); !os.IsNotExist(err) {
			return "recheck", errors.Join(fs.ErrExist, err)
		}
		return "recheck", rename(root, from, to)
	}
	if err = root.Remove(from); err != nil {
		if _, gone := root.Lstat(from); os.IsNotExist(gone) {
			return "link", nil
		}
		root.Remove(to) //nolint:errcheck // the first error is the one that counts
	}
	return "link", err
}

// rename knows of such failures too.
func rename(root *dirRoot, from, to string) error {
	was, err := root.Lstat(from)
	if err == nil {
		err = root.Rename(from, to)
	}
	if err == nil || was == nil {
		return err
	}
	if now, lerr := lstatAgain(root, to); lerr == nil && os.SameFile(was, now) {
		return nil
	}
	return err
}

func sameFile(root *dirRoot, a, b string) bool {
	x, xerr := root.Lstat(a)
	y, yerr := root.Lstat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

// found is unlike where the names have changed already: a passing fault of a look is no reason to
// take that back, or to leave something behind.
func (p *Place) found(want Expect) (now *Before, why Meanwhile, err error) {
	for range 3 {
		if now, why, err = p.unlike(want); err == nil {
			break
		}
	}
	return now, why, err
}

// unlike compares what is at the place with what is to be there.
func (p *Place) unlike(want Expect) (now *Before, why Meanwhile, err error) {
	if before := want.content(); before != nil {
		return p.differs(p.at(), before)
	}
	now = &Before{}
	fi, err := p.root.Lstat(p.at())
	switch {
	case os.IsNotExist(err):
		return now, WasRemoved, nil
	case err != nil:
		return now, "", p.failed("stat", err)
	}
	now.Exists, now.Info = true, infoOf(p.root.Root, p.at(), fi)
	if now.Info.ID != want.ID || want.Like != nil && now.Info.Kind != want.Like.Info.Kind {
		why = Replaced
	}
	if left := p.left(); left != nil && left.ID == want.ID &&
		(left.Size != now.Info.Size || left.Mode != now.Info.Mode || !left.ModTime.Equal(now.Info.ModTime)) {
		why = ContentChanged
	}
	return now, why, nil
}

// lstatAgain is Lstat of what was just made: see found.
func lstatAgain(root *dirRoot, name string) (fi fs.FileInfo, err error) {
	for range 3 {
		if fi, err = root.Lstat(name); err == nil {
			break
		}
	}
	return fi, err
}
