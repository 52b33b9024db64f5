//go:build !linux || rooted

package guardfs

import (
	"errors"
	"os"
)

// publish is Publish once both names are judged. Here names can't be exchanged in one step, and this is best effort.
func (p *Entry) publish(temp *Entry, out, in Precondition) (*Published, error) {
	pub := &Published{}
	if err := newExchange(p, temp, out, in).run(pub); err != nil {
		return nil, err
	}
	return pub, nil
}

// handle is nothing here: objects go by their names.
type handle struct{}

func (handle) close(*FS) {}

// identity gives the identity of the object that expect found as e asks.
func (handle) identity(_ *FS, e Precondition) (Identity, error) { return e.ID, nil }

// expect looks at what stands at p before that is exchanged. why says in what it is not what is wanted, or not as Stage left it.
func (p *Entry) expect(want Precondition) (h handle, why Interference, err error) {
	why, _, err = p.match(want)
	if os.IsNotExist(err) {
		why, err = WasRemoved, nil
	}
	return h, why, err
}

// came compares what has come to p with what was wanted, and says what it is.
func (p *Entry) came(want Precondition, _ handle) (why Interference, now Info, err error) {
	return p.match(want)
}

// match looks at what is at p, and says in what it is not what is wanted. It reads the content only where want has it.
func (p *Entry) match(want Precondition) (why Interference, info Info, err error) {
	info, err = p.lstat()
	switch {
	case err != nil:
		return "", info, err
	case want.Like != nil && info.Kind != want.Like.Info.Kind:
		return NowA(info.Kind.String()), info, nil
	case info.ID != want.ID:
		return Replaced, info, nil
	}
	if made := p.staged(); made != nil && made.ID == want.ID && made.Kind != KindDir &&
		(made.Size != info.Size || made.Mode != info.Mode || !made.ModTime.Equal(info.ModTime)) {
		return ContentChanged, info, nil
	}
	was := want.content()
	if was == nil {
		return "", info, nil
	}
	if info.Mode != was.Info.Mode {
		return ModeChanged, info, nil
	}
	now, err := p.load(max(int64(len(was.Content)), was.Info.Size), refuseLarger)
	if _, large := errors.AsType[*TooLargeError](err); large || err == nil && now.Hash != was.Hash {
		return ContentChanged, info, nil
	}
	return "", info, err
}

// moved looks whether the directory is where it was.
func (p *Entry) moved() (name string, why Interference) {
	if p.still() != nil {
		return "", DirMoved
	}
	return p.object.True, ""
}

// apart reports whether the directories of p and q may be different ones.
func (p *Entry) apart(*Entry) bool { return true }

// lookAt looks at a name in p's directory.
func (p *Entry) lookAt(name string) (Info, error) {
	fi, err := p.root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(p.root.Root, name, fi), nil
}

// same reports whether two names are those of one object.
func (p *Entry) same(x string, q *Entry, y string) bool {
	a, aerr := p.root.Lstat(x)
	b, berr := q.root.Lstat(y)
	return aerr == nil && berr == nil && os.SameFile(a, b)
}

// renameTo renames what is at from in p's directory to a name in q's. Here a rename only replaces. Some file systems report failures of
// calls that took effect.
func (p *Entry) renameTo(from string, q *Entry, to string, how renaming) error {
	if how != replaces {
		return errors.ErrUnsupported
	}
	was, err := p.root.Lstat(from)
	if err == nil {
		err = p.between("rename", from, q, to)
	}
	if err != nil && was != nil {
		if now, lerr := q.root.Lstat(to); lerr == nil && os.SameFile(was, now) {
			err = nil
		}
	}
	return cause(err)
}

// linkTo gives what is at from in p's directory a second name, in q's.
func (p *Entry) linkTo(from string, q *Entry, to string) error {
	return cause(p.between("link", from, q, to))
}

// between makes a rename or a link.
func (p *Entry) between(op, from string, q *Entry, to string) error {
	return p.root.do(op, func() error {
		switch {
		case p.dir.True != q.dir.True:
			return across(p, from, q, to, op == "link")
		case op == "link":
			return p.root.Root.Link(from, to)
		}
		return p.root.Root.Rename(from, to)
	})
}

// unlink removes a name.
func (p *Entry) unlink(name string) error { return cause(p.root.Remove(name)) }
