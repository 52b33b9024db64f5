//go:build !rooted

package guardfs

import (
	"context"
	"strings"

	"golang.org/x/sys/unix"
)

// Commit gives the staged file its name. before is what the caller saw there (nil or Exists false: nothing).
//
// Where nothing was, the name is made by link, which never replaces. Where a file was, the two trade places in one
// step; then what came out is compared with before, and if it is not exactly that, they trade back. An
// error means that the place is as others left it; a *ConflictError, that somebody else was there in between.
// The staged file is used up either way.
func (s *Staged) Commit(ctx context.Context, before *Before) (*Published, error) {
	p := s.place
	if err := ctx.Err(); err != nil {
		return nil, p.failed("publish", err)
	}
	dir, err := p.fd.use()
	if err != nil {
		return nil, p.failed("publish", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	pub, err := s.publish(dir, Found(before))
	if err == nil && before != nil && before.Exists {
		if s.place.drop(dir, s.temp, pub.Displaced.ID) != nil {
			pub.Leftover = s.temp
		}
		s.temp = ""
	}
	if err != nil {
		s.Discard() //nolint:errcheck // the first error is the one that counts
		return nil, err
	}
	if s.sync {
		if err := p.fs.kernel.syncDir(dir); err != nil {
			pub.Unsynced = "syncing the directory: " + err.Error()
		}
	}
	if err := s.fd.close(); err != nil && pub.Unsynced == "" {
		pub.Unsynced = "closing the file: " + err.Error()
	}
	return pub, nil
}

// publish gives the staged file its name, where out is. What came out has the temporary name then.
func (s *Staged) publish(dir int, out Expect) (*Published, error) {
	p, k := s.place, s.place.fs.kernel
	fd, done, err := s.open(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	pub := &Published{Dropped: s.dropped}
	if s.staged, err = k.stat(fd); err != nil {
		return nil, p.failed("stat", err)
	}
	if out.nothing() {
		if err = s.publishNew(dir, fd, pub); err == nil {
			s.unlinkTemp() //nolint:errcheck // Discard tries again
		}
	} else {
		err = s.replace(dir, fd, out, pub)
	}
	if err != nil {
		return nil, err
	}
	if st, err := k.stat(fd); err == nil {
		pub.Info = st.info
	} else {
		pub.Info = Info{Kind: KindFile, ID: s.id}
	}
	return pub, nil
}

// isOwn reports whether name is the staged file's. It is asked after a call that changes names has failed,
// because remote file systems report failures of calls that took effect.
func (s *Staged) isOwn(dir int, name string) bool {
	st, err := s.place.fs.kernel.lstat(dir, name)
	return err == nil && st.info.ID == s.id
}

// publishNew gives the staged file a name that nobody has.
func (s *Staged) publishNew(dir, fd int, pub *Published) error {
	p, k := s.place, s.place.fs.kernel
	if err := p.still(dir); err != nil {
		return err
	}
	pub.CAS = "link"
	err := k.publish(fd, dir, p.base) // by descriptor: a swapped temporary name makes no difference
	if s.temp != "" && err != nil && err != unix.EEXIST {
		pub.CAS, err = k.renameNew(dir, s.temp, dir, p.base)
		if err == nil && !s.isOwn(dir, p.base) {
			return p.conflict(TempSwapped)
		}
	}
	if err != nil && !s.isOwn(dir, p.base) {
		switch err {
		case unix.EEXIST:
			return p.conflict(Appeared)
		case unix.ENOENT:
			return p.conflict(DirRemoved)
		}
		return p.failed("publish", err)
	}
	name, why := p.moved(dir)
	if why != "" {
		return s.takeBack(dir, fd, why)
	}
	pub.True = name
	return nil
}

// noFlags says that the file system does not know the flags of renameat2.
func noFlags(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
}

// moved looks where the directory is right after a publication. A move to a place that the Judge refuses
// is a reason to take it back; any other is only told.
func (p *Place) moved(dir int) (name string, why Meanwhile) {
	at, gone, err := p.where(dir)
	switch {
	case err != nil:
		return "", DirNameless
	case gone:
		return "", DirRemoved
	}
	o := p.object
	if o.True = join(at, p.base); at != p.dir.True {
		if err := p.fs.judge.Judge(o, Modify); err != nil {
			return "", DirRefused
		}
	}
	return o.True, ""
}

// takeBack removes a new file from where it should not be, unless it was replaced there already, or
// written into.
func (s *Staged) takeBack(dir, fd int, why Meanwhile) error {
	p := s.place
	temp, err := p.temporary()
	if err != nil {
		return &ConflictError{Path: p.object.Spelled, Why: why, Err: err}
	}
	w := swap{p: p, hold: p.beside(temp), dir: dir, other: dir, in: Expect{ID: s.id}, fd: fd, was: s.staged}
	left := w.backIn()
	p.drop(dir, temp, s.id) //nolint:errcheck // it is on record
	return &ConflictError{Path: p.object.Spelled, Why: why, Left: left}
}

// replace lets the staged file and the occupant trade places.
func (s *Staged) replace(dir, fd int, out Expect, pub *Published) error {
	p, k := s.place, s.place.fs.kernel
	like := ""
	if out.Like != nil {
		like = out.Like.Hash
	}
	trade, err := s.name, error(nil)
	if trade == "" {
		trade, err = p.trade(s.id.Ino, like)
	}
	if err != nil {
		return err
	}
	if _, hash, _, _ := parseTemp(strings.TrimPrefix(s.temp, tempPrefix)); hash != "" && strings.HasPrefix(like, hash) {
		trade = s.temp // it was parked under such a name
	} else if err = k.publish(fd, dir, trade); err == nil {
		s.unlinkTemp() //nolint:errcheck // it has served; it is on record
	} else if s.temp != "" && !s.isOwn(dir, trade) {
		err = k.rename(dir, s.temp, trade, 0)
	}
	if err != nil && !s.isOwn(dir, trade) {
		if err == unix.ENOENT {
			return p.conflict(DirRemoved)
		}
		return p.failed("publish", err)
	}
	s.temp = trade
	w := swap{p: p, hold: p.beside(trade), dir: dir, other: dir, out: out, in: Expect{ID: s.id}, fd: fd, was: s.staged}
	return w.run(pub)
}

// keep gives what has that name in the directory called at a lasting one, and puts that on record.
func (p *Place) keep(dir int, at, from string) string {
	k, to := p.fs.kernel, keptName()
	if _, err := k.renameNew(dir, from, dir, to); err != nil {
		if _, lerr := k.lstat(dir, to); lerr != nil {
			p.fs.temporaries.Stays()
			return from
		}
	}
	p.fs.temporaries.keep(KeptFile{join(at, to), p.object.True})
	return to
}
