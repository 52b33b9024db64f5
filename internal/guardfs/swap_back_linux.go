//go:build !rooted

package guardfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// back undoes the rename. Where it left what it could not put back it tells.
func (s *swap) back() (left string) {
	switch {
	case s.in.nothing():
		return s.backOut()
	case s.out.nothing():
		return s.backIn()
	}
	return s.backBoth()
}

// backOut gives what went to the hold its name again.
func (s *swap) backOut() (left string) {
	k := s.p.fs.kernel
	var err error
	for range 3 {
		err = k.renameNew(s.other, s.hold.base, s.dir, s.p.base)
		if err == nil || err == unix.EEXIST || err == unix.ENOENT {
			break
		}
	}
	if err == nil {
		return ""
	}
	if _, lerr := k.lstat(s.other, s.hold.base); lerr == unix.ENOENT {
		return ""
	}
	return s.keep()
}

// backIn takes what is new from where it should not be, unless it was replaced there already, or
// written into.
func (s *swap) backIn() (left string) {
	k := s.p.fs.kernel
	if !s.isAt(s.dir, s.p.base, s.in.ID) {
		return ""
	}
	err := k.renameNew(s.dir, s.p.base, s.other, s.hold.base)
	if err == nil && (!s.isAt(s.other, s.hold.base, s.in.ID) || s.written()) {
		err = k.renameNew(s.other, s.hold.base, s.dir, s.p.base)
	}
	if err != nil && err != unix.ENOENT {
		return s.p.object.True
	}
	return ""
}

// backBoth undoes a trade: what was displaced is at the hold, what is new at the place. They trade
// back only while that is so. Where somebody has moved the new one on, it is waited for a little,
// because whoever lets two names trade places brings it back. Where it is gone, what is there is
// newer and stays. What nobody asked to be removed and has no place is kept beside it.
func (s *swap) backBoth() (left string) {
	k := s.p.fs.kernel
	if s.steps {
		return s.backOver()
	}
	for round := range 64 {
		now, err := k.lstat(s.dir, s.p.base)
		switch {
		case err == unix.ENOENT: // the new one was removed meanwhile: give the old one its name again
			if err = k.renameNew(s.other, s.hold.base, s.dir, s.p.base); err == nil || err == unix.ENOENT {
				return ""
			}
			continue
		case err != nil:
			continue
		case now.info.ID != s.in.ID:
			if own, err := k.stat(s.fd); err == nil && own.info.Links == 0 {
				return s.keep()
			}
			if round > 8 {
				time.Sleep(100 * time.Microsecond)
			}
			continue
		}
		if err := s.exchange(); err == nil && !s.isAt(s.other, s.hold.base, s.in.ID) {
			s.exchange() //nolint:errcheck // something newer came before it: turn that round; nothing is removed in any case
		}
		switch out, err := k.lstat(s.other, s.hold.base); {
		case err == unix.ENOENT: // whoever took it from under the temporary name has it
			return ""
		case err != nil || out.info.ID != s.in.ID:
		case s.written():
			return s.keep()
		default:
			return ""
		}
	}
	return s.keep()
}

// backOver is backBoth where names can't trade: the old file is renamed over the new one.
func (s *swap) backOver() (left string) {
	k := s.p.fs.kernel
	if s.isAt(s.dir, s.p.base, s.in.ID) && !s.written() &&
		k.rename2(s.other, s.hold.base, s.dir, s.p.base, 0) == nil {
		return ""
	}
	if _, err := k.lstat(s.other, s.hold.base); err == unix.ENOENT {
		return ""
	}
	return s.keep()
}

// DropLink removes the name hold if it is a link to the very file at p: a process died within a
// rename that is a link and a removal.
func (p *Place) DropLink(hold *Place) error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("publish", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	other, err := hold.fd.use()
	if err != nil {
		return p.failed("publish", err)
	}
	defer hold.fd.done() //nolint:errcheck // Close reports it
	k := p.fs.kernel
	is, err := k.lstat(dir, p.base)
	held, herr := k.lstat(other, hold.base)
	if err != nil || herr != nil || is.info.ID != held.info.ID {
		return nil
	}
	if err := k.unlink(other, hold.base, 0); err != nil {
		return p.failed("publish", err)
	}
	return nil
}

// written reports whether somebody wrote into what came in while it had its name. A name that is
// made in a directory is nothing that a way back loses.
func (s *swap) written() bool {
	now, err := s.p.fs.kernel.stat(s.fd)
	return err != nil || now.info.Kind == KindFile &&
		(now.info.Size != s.was.info.Size || !now.info.ModTime.Equal(s.was.info.ModTime))
}

// keep gives what is at a hold a lasting name, and tells where it is.
func (s *swap) keep() (left string) {
	name := s.hold.base
	if s.hold.hold != nil {
		name = s.p.keep(s.other, s.hold.dir.True, s.hold.base)
	}
	return join(s.hold.dir.True, name)
}
