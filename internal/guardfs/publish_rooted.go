//go:build !linux || rooted

package guardfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// publish is Publish once both names are judged. Here names can't be exchanged in one step, and this is best effort.
func (p *Entry) publish(temp *Entry, out, in Precondition) (*Published, error) {
	if err := errors.Join(p.still(), temp.still()); err != nil {
		return nil, err
	}
	if !in.nothing() {
		_, err := temp.match(in)
		if _, ok := errors.AsType[*ConflictError](err); ok {
			err = p.conflict(TempSwapped)
		}
		if err != nil {
			return nil, err
		}
	}
	if !out.nothing() {
		if _, err := p.match(out); err != nil {
			return nil, err
		}
	}
	var err error
	again := false
	switch made := temp.staged(); {
	case in.nothing():
		err = renameNew(p, p.base, temp, temp.base)
	case out.nothing():
		err = renameNew(temp, temp.base, p, p.base)
	case made == nil || made.ID != in.ID: // a step is taken back
		again, err = true, rename(temp, temp.base, p, p.base)
	default:
		err = p.replace(temp)
	}
	switch {
	case err == nil:
	case os.IsExist(err) && out.nothing():
		return nil, p.conflict(Appeared)
	case os.IsExist(err):
		return nil, temp.conflict(Appeared)
	default:
		return nil, p.nameFailed("publish", err)
	}
	pub := &Published{True: p.object.True}
	if err = p.verify(temp, out, in, again, pub); err == nil {
		return pub, nil
	}
	// One rename back, which replaces nothing. The caller undoes the rest by the objects that stand at the two names.
	c, changed := errors.AsType[*ConflictError](err)
	switch {
	case in.nothing():
		if !changed {
			c = &ConflictError{Path: p.object.Spelled, Err: cause(err)}
		}
		if os.IsExist(renameNew(temp, temp.base, p, p.base)) && temp.temp == nil {
			c.Left = temp.object.True
		}
		return nil, c
	case out.nothing() && !(changed && c.Why == PublishedToo):
		renameNew(p, p.base, temp, temp.base) //nolint:errcheck // see above
	}
	return nil, err
}

// verify looks at both names after the rename.
func (p *Entry) verify(temp *Entry, out, in Precondition, again bool, pub *Published) error {
	if !out.nothing() && !again {
		gone, err := temp.match(out)
		if err != nil {
			return err
		}
		pub.Displaced, pub.LinksBroken = Found(gone), max(int(gone.Info.Links)-1, 0)
	}
	if !in.nothing() {
		now, err := p.match(in)
		if c, ok := errors.AsType[*ConflictError](err); ok {
			c.Why = PublishedToo
		}
		if err != nil {
			return err
		}
		pub.Info = now.Info
	}
	return errors.Join(p.still(), temp.still())
}

// match reads what is at p, and is a *ConflictError if that is not what is wanted. It reads the content only where want has it.
func (p *Entry) match(want Precondition) (now *Before, err error) {
	info, err := p.lstat()
	switch {
	case os.IsNotExist(err):
		return nil, p.conflict(WasRemoved)
	case err != nil:
		return nil, p.failed("stat", err)
	case want.Like != nil && info.Kind != want.Like.Info.Kind:
		return nil, p.conflict(NowA(info.Kind.String()))
	case info.ID != want.ID:
		return nil, p.conflict(Replaced)
	}
	if made := p.staged(); made != nil && made.ID == want.ID && made.Kind != KindDir &&
		(made.Size != info.Size || made.Mode != info.Mode || !made.ModTime.Equal(info.ModTime)) {
		return nil, p.conflict(ContentChanged)
	}
	was := want.content()
	if was == nil {
		return &Before{Exists: true, Info: info}, nil
	}
	if info.Mode != was.Info.Mode {
		return nil, p.conflict(ModeChanged)
	}
	now, err = p.load(max(int64(len(was.Content)), was.Info.Size), refuseLarger)
	if _, large := errors.AsType[*TooLargeError](err); large || err == nil && now.Hash != was.Hash {
		return nil, p.conflict(ContentChanged)
	}
	return now, err
}

// replace renames the new file of temp over what is at p, which gets another name before: by a link, so that p always has something.
// Where there are no links it is away for a moment. That other name is the one of temp then.
func (p *Entry) replace(temp *Entry) (err error) {
	old := OldName(temp.base)
	linked := between(p, p.base, temp, old, true) == nil || same(p, p.base, temp, old)
	if !linked {
		err = renameNew(p, p.base, temp, old)
	} else if !same(p, p.base, temp, old) {
		err = syscall.ENOENT // replaced, or removed, just now
	}
	if err == nil {
		if err = rename(temp, temp.base, p, p.base); err == nil {
			temp.base, temp.object.True = old, join(temp.dir.True, old)
			return nil
		}
		if !linked {
			renameNew(temp, old, p, p.base) //nolint:errcheck // the first error is the one that counts
		}
	}
	if linked && same(p, p.base, temp, old) { // else it may be the only name that is left
		temp.root.Remove(old) //nolint:errcheck // see above
	}
	return err
}

// DropLink removes the name temp if it is a link to the very file at p: a process died within a
// rename that is a link and a removal.
func (p *Entry) DropLink(temp *Entry) error {
	if !same(p, p.base, temp, temp.base) {
		return nil
	}
	return p.failed("publish", temp.root.Remove(temp.base))
}

// renameNew is a rename that replaces nothing: by link, and where there is none by a look and a
// rename. Some file systems report failures of calls that took effect.
func renameNew(p *Entry, from string, q *Entry, to string) (err error) {
	err = between(p, from, q, to, true)
	if err != nil && !same(p, from, q, to) {
		if os.IsExist(err) {
			return err
		}
		if _, err := q.root.Lstat(to); !os.IsNotExist(err) {
			return errors.Join(fs.ErrExist, err)
		}
		return rename(p, from, q, to)
	}
	if err = p.root.Remove(from); err != nil {
		q.root.Remove(to) //nolint:errcheck // the first error is the one that counts
	}
	return err
}

// rename knows of such failures too.
func rename(p *Entry, from string, q *Entry, to string) error {
	was, err := p.root.Lstat(from)
	if err == nil {
		err = between(p, from, q, to, false)
	}
	if err == nil || was == nil {
		return err
	}
	if now, lerr := q.root.Lstat(to); lerr == nil && os.SameFile(was, now) {
		return nil
	}
	return err
}

// between gives the object at from in p's directory the name to in q's, or with link both names.
func between(p *Entry, from string, q *Entry, to string, link bool) error {
	op := "rename"
	if link {
		op = "link"
	}
	return p.root.do(op, func() error {
		switch {
		case p.dir.True != q.dir.True:
			return across(p, from, q, to, link)
		case link:
			return p.root.Root.Link(from, to)
		}
		return p.root.Root.Rename(from, to)
	})
}

// same reports whether two names are those of one object.
func same(p *Entry, x string, q *Entry, y string) bool {
	a, aerr := p.root.Lstat(x)
	b, berr := q.root.Lstat(y)
	return aerr == nil && berr == nil && os.SameFile(a, b)
}
