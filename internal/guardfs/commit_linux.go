//go:build !rooted

package guardfs

import "golang.org/x/sys/unix"

// publish gives the staged file its name, where out is. What came out has the temporary name then.
func (s *staged) publish(dir int, out Expect) (*Published, error) {
	p, k := s.place, s.place.fs.kernel
	fd, err := s.fd.use()
	if err != nil {
		return nil, p.failed("publish", err)
	}
	defer s.fd.done() //nolint:errcheck // it is not the last use
	pub := &Published{}
	if s.was, err = k.stat(fd); err != nil {
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
	if pub.Info.ID == s.id {
		return pub, nil
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
func (s *staged) isOwn(dir int, name string) bool {
	st, err := s.place.fs.kernel.lstat(dir, name)
	return err == nil && st.info.ID == s.id
}

// publishNew gives the staged file a name that nobody has.
func (s *staged) publishNew(dir, fd int, pub *Published) error {
	p, k := s.place, s.place.fs.kernel
	if err := p.still(dir); err != nil {
		return err
	}
	err := k.publish(fd, dir, p.base) // by descriptor: a swapped temporary name makes no difference
	if s.temp != "" && err != nil && err != unix.EEXIST {
		err = k.renameNew(dir, s.temp, dir, p.base)
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
func (s *staged) takeBack(dir, fd int, why Meanwhile) error {
	p := s.place
	w := swap{p: p, hold: p.beside(s.name), dir: dir, other: dir, in: Expect{ID: s.id}, fd: fd, was: s.was}
	left := w.backIn()
	p.drop(dir, s.name, s.id) //nolint:errcheck // it is on record
	return &ConflictError{Path: p.object.Spelled, Why: why, Left: left}
}

// replace lets the staged file and the occupant trade places.
func (s *staged) replace(dir, fd int, out Expect, pub *Published) error {
	p := s.place
	if err := s.take(dir, s.name); err == unix.ENOENT {
		return p.conflict(DirRemoved)
	} else if err != nil {
		return p.failed("publish", err)
	}
	w := swap{p: p, hold: p.beside(s.name), dir: dir, other: dir, out: out, in: Expect{ID: s.id}, fd: fd, was: s.was}
	return w.run(pub)
}

// keep gives what has that name in the directory called at a lasting one, and puts that on record.
func (p *Place) keep(dir int, at, from string) string {
	k, to := p.fs.kernel, keptName()
	if err := k.renameNew(dir, from, dir, to); err != nil {
		if _, lerr := k.lstat(dir, to); lerr != nil {
			p.fs.temporaries.Stays()
			return from
		}
	}
	p.fs.temporaries.keep(KeptFile{join(at, to), p.object.True})
	return to
}
