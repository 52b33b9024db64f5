//go:build !linux || rooted

package guardfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Publish gives the object at hold the name p, and the one at p the name hold: out has to be at p, and in
// at hold. It looks before and after. Here names can't trade in one step, and this is best effort:
// a file that others rename to p between our last look and our rename is lost. The old object is not
// removed: see Drop. When a step is taken back (hold is one of Temp), the object at p is not kept.
func (p *Entry) Publish(ctx context.Context, hold *Entry, out, in Precondition) (*Published, error) {
	if err := ctx.Err(); err != nil {
		return nil, p.failed("publish", err)
	}
	if out.nothing() && in.nothing() {
		return nil, p.failed("publish", syscall.ENOENT)
	}
	if err := judgeSwap(p, hold, out, in); err != nil {
		return nil, err
	}
	why, err := Interference(""), errors.Join(p.still(), hold.still())
	if err == nil && !in.nothing() {
		if _, why, err = hold.unlike(in); err == nil && why != "" {
			why = TempSwapped
		}
	}
	if err == nil && why == "" && !out.nothing() {
		_, why, err = p.unlike(out)
	}
	if err != nil || why != "" {
		return nil, p.orConflict(err, why)
	}
	pub, back := &Published{True: p.object.True}, false
	switch left := hold.left(); {
	case in.nothing():
		err = renameNew(p, p.base, hold, hold.base)
	case out.nothing():
		err = renameNew(hold, hold.base, p, p.base)
	case left == nil || left.ID != in.ID:
		back, err = true, rename(hold, hold.base, p, p.base)
	default:
		err = p.replace(hold)
	}
	switch {
	case err == nil:
	case os.IsExist(err) && out.nothing():
		return nil, p.conflict(Appeared)
	case os.IsExist(err):
		return nil, hold.conflict(Appeared)
	default:
		return nil, p.nameFailed("publish", err)
	}
	if !out.nothing() && !back {
		var gone *Before
		if gone, why, err = hold.found(out); err == nil && why == "" {
			pub.Displaced, pub.LinksBroken = Found(gone), max(int(gone.Info.Links)-1, 0)
		}
	}
	if !in.nothing() && err == nil && why == "" {
		var now *Before
		if now, why, err = p.found(in); why == "" && err == nil {
			pub.Info = now.Info
		} else if why != "" {
			why = PublishedToo
		}
	}
	if err == nil && why == "" {
		err = errors.Join(p.still(), hold.still())
	}
	if err == nil && why == "" {
		return pub, nil
	}
	// One rename back, which replaces nothing. Whatever is at the two names then, the caller undoes by what stands there.
	switch left := ""; {
	case in.nothing():
		if os.IsExist(renameNew(hold, hold.base, p, p.base)) && hold.hold == nil {
			left = hold.object.True
		}
		return nil, &ConflictError{Path: p.object.Spelled, Why: why, Left: left, Err: cause(err)}
	case out.nothing() && why != PublishedToo:
		renameNew(p, p.base, hold, hold.base) //nolint:errcheck // see above
	}
	return nil, p.orConflict(err, why)
}

// replace renames the new file of hold over what is at p, which gets another name before: by a link, so that p always has something.
// Where there are no links it is away for a moment. That other name is the one of hold then.
func (p *Entry) replace(hold *Entry) (err error) {
	old := OldName(hold.base)
	linked := between(p, p.base, hold, old, true) == nil || same(p, p.base, hold, old)
	if !linked {
		err = renameNew(p, p.base, hold, old)
	} else if !same(p, p.base, hold, old) {
		err = syscall.ENOENT // replaced, or removed, just now
	}
	if err == nil {
		if err = rename(hold, hold.base, p, p.base); err == nil {
			hold.base, hold.object.True = old, join(hold.dir.True, old)
			return nil
		}
		if !linked {
			renameNew(hold, old, p, p.base) //nolint:errcheck // the first error is the one that counts
		}
	}
	if linked && same(p, p.base, hold, old) { // else it may be the only name that is left
		hold.root.Remove(old) //nolint:errcheck // see above
	}
	return err
}

// orConflict is err, if there is one and nothing else to say.
func (p *Entry) orConflict(err error, why Interference) error {
	if err != nil && why == "" {
		return err
	}
	return p.conflict(why)
}

// DropLink removes the name hold if it is a link to the very file at p: a process died within a
// rename that is a link and a removal.
func (p *Entry) DropLink(hold *Entry) error {
	if !same(p, p.base, hold, hold.base) {
		return nil
	}
	if err := hold.root.Remove(hold.base); err != nil {
		return p.failed("publish", err)
	}
	return nil
}

// between gives what p's directory has under the name x the name y in q's, or with link both.
func between(p *Entry, x string, q *Entry, y string, link bool) error {
	op := "rename"
	if link {
		op = "link"
	}
	return p.root.do(op, func() error {
		switch {
		case p.dir.True != q.dir.True:
			return across(p, x, q, y, link)
		case link:
			return p.root.Root.Link(x, y)
		}
		return p.root.Root.Rename(x, y)
	})
}

// renameNew is a rename that replaces nothing: by link, and where there is none by a look and a
// rename. Some file systems report failures of calls that took effect.
func renameNew(p *Entry, x string, q *Entry, y string) (err error) {
	err = between(p, x, q, y, true)
	if err != nil && !same(p, x, q, y) {
		if os.IsExist(err) {
			return err
		}
		if _, err := q.root.Lstat(y); !os.IsNotExist(err) {
			return errors.Join(fs.ErrExist, err)
		}
		return rename(p, x, q, y)
	}
	if err = p.root.Remove(x); err != nil {
		if _, gone := p.root.Lstat(x); os.IsNotExist(gone) {
			return nil
		}
		q.root.Remove(y) //nolint:errcheck // the first error is the one that counts
	}
	return err
}

// rename knows of such failures too.
func rename(p *Entry, x string, q *Entry, y string) error {
	was, err := p.root.Lstat(x)
	if err == nil {
		err = between(p, x, q, y, false)
	}
	if err == nil || was == nil {
		return err
	}
	if now, lerr := lstatAgain(q.root, y); lerr == nil && os.SameFile(was, now) {
		return nil
	}
	return err
}

func same(p *Entry, x string, q *Entry, y string) bool {
	a, aerr := p.root.Lstat(x)
	b, berr := q.root.Lstat(y)
	return aerr == nil && berr == nil && os.SameFile(a, b)
}

// found is unlike where the names have changed already: a passing fault of a look is no reason to
// take that back, or to leave something behind.
func (p *Entry) found(want Precondition) (now *Before, why Interference, err error) {
	for range 3 {
		if now, why, err = p.unlike(want); err == nil {
			break
		}
	}
	return now, why, err
}

// unlike compares what is at the place with what is to be there.
func (p *Entry) unlike(want Precondition) (now *Before, why Interference, err error) {
	if before := want.content(); before != nil {
		return p.differs(p.base, before)
	}
	now = &Before{}
	fi, err := p.root.Lstat(p.base)
	switch {
	case os.IsNotExist(err):
		return now, WasRemoved, nil
	case err != nil:
		return now, "", p.failed("stat", err)
	}
	now.Exists, now.Info = true, infoOf(p.root.Root, p.base, fi)
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
