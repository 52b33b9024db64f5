//go:build !rooted

package guardfs

import (
	"context"
	"strings"
	"time"

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
	fd, done, err := s.open(dir)
	if err != nil {
		s.Discard() //nolint:errcheck // the first error is the one that counts
		return nil, err
	}
	pub := &Published{Dropped: s.dropped}
	if s.staged, err = p.fs.kernel.stat(fd); err != nil {
		err = p.failed("stat", err)
	} else if before == nil || !before.Exists {
		err = s.publishNew(dir, fd, pub)
	} else {
		err = s.replace(dir, fd, before, pub)
	}
	if err == nil && s.parked != nil {
		s.unlinkTemp() //nolint:errcheck // Discard tries again
	}
	if err == nil {
		s.finish(dir, fd, pub)
	}
	done()
	if err != nil {
		s.Discard() //nolint:errcheck // the first error is the one that counts
		return nil, err
	}
	if err := s.fd.close(); err != nil && pub.Unsynced == "" {
		pub.Unsynced = "closing the file: " + err.Error()
	}
	return pub, nil
}

// finish syncs the directory and tells what is there now. The file is published: nothing here is an error any more.
func (s *Staged) finish(dir, fd int, pub *Published) {
	k := s.place.fs.kernel
	if s.sync {
		if err := k.syncDir(dir); err != nil {
			pub.Unsynced = "syncing the directory: " + err.Error()
		}
	}
	if st, err := k.stat(fd); err == nil {
		pub.Info = st.info
	} else {
		pub.Info = Info{Kind: KindFile, ID: s.id}
	}
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
		if err = k.rename(dir, s.temp, p.base, unix.RENAME_NOREPLACE); noFlags(err) {
			pub.CAS = "recheck"
			if _, lerr := k.lstat(dir, p.base); lerr == nil {
				err = unix.EEXIST
			} else if err = lerr; lerr == unix.ENOENT {
				err = k.rename(dir, s.temp, p.base, 0)
			}
		}
		if err == nil && !s.isOwn(dir, p.base) {
			return p.conflict("its temporary file was swapped for another")
		}
	}
	if err != nil && !s.isOwn(dir, p.base) {
		switch err {
		case unix.EEXIST:
			return p.conflict("something appeared there")
		case unix.ENOENT:
			return p.conflict("its directory was removed")
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
func (p *Place) moved(dir int) (name, why string) {
	at, gone, err := p.where(dir)
	switch {
	case err != nil:
		return "", "its directory has no name any more: " + err.Error()
	case gone:
		return "", "its directory was removed"
	}
	o := p.object
	if o.True = join(at, p.base); at != p.dir.True {
		if err := p.fs.judge.Judge(o, Modify); err != nil {
			return "", "its directory was moved to a place that is refused"
		}
	}
	return o.True, ""
}

// takeBack removes a new file from where it should not be, unless it was replaced there already, or
// written into.
func (s *Staged) takeBack(dir, fd int, why string) error {
	p, k := s.place, s.place.fs.kernel
	temp, err := p.temporary()
	if err == nil {
		err = k.rename(dir, p.base, temp, unix.RENAME_NOREPLACE)
	}
	if noFlags(err) {
		err = k.rename(dir, p.base, temp, 0)
	}
	if err == nil {
		if s.isOwn(dir, temp) && !s.written(fd) {
			err = p.drop(dir, temp, s.id)
		} else {
			err = k.rename(dir, temp, p.base, unix.RENAME_NOREPLACE)
		}
	}
	if err != nil && err != unix.ENOENT {
		why += "; the new file could not be taken back: " + err.Error()
	}
	return p.conflict(why)
}

// replace lets the staged file and the occupant trade places.
func (s *Staged) replace(dir, fd int, before *Before, pub *Published) error {
	p, k := s.place, s.place.fs.kernel
	trade, err := p.trade(s.id.Ino, before.Hash)
	if err != nil {
		return err
	}
	if _, hash, _, _ := parseTemp(strings.TrimPrefix(s.temp, tempPrefix)); hash != "" && strings.HasPrefix(before.Hash, hash) {
		trade = s.temp // it was parked under such a name
	} else if err = k.publish(fd, dir, trade); err == nil {
		s.unlinkTemp() //nolint:errcheck // it has served; it is on record
	} else if s.temp != "" && !s.isOwn(dir, trade) {
		err = k.rename(dir, s.temp, trade, 0)
	}
	if err != nil && !s.isOwn(dir, trade) {
		if err == unix.ENOENT {
			return p.conflict("its directory was removed")
		}
		return p.failed("publish", err)
	}
	s.temp = trade
	if err := p.still(dir); err != nil {
		return err
	}
	// The last look comes right before the exchange: what is swapped in after it has to be put
	// back.
	held, why, err := k.hold(dir, p.base, before)
	if err != nil {
		return p.failed("compare", err)
	}
	if why != "" {
		return p.conflict(why)
	}
	defer k.close(held)
	err = k.rename(dir, trade, p.base, unix.RENAME_EXCHANGE)
	if err != nil && !s.isOwn(dir, p.base) {
		switch {
		case noFlags(err):
			return s.overwrite(dir, before, held, pub)
		case err == unix.ENOENT:
			return p.conflict("it was removed")
		}
		return p.failed("publish", err)
	}
	pub.CAS = "exchange"
	return s.settle(dir, fd, before, held, pub)
}

// settle looks at what came out of the trade, and at where the directory is, and either finishes it or undoes it.
func (s *Staged) settle(dir, fd int, before *Before, held int, pub *Published) error {
	p, k := s.place, s.place.fs.kernel
	why, out, err := k.differs(dir, s.temp, before, held)
	if err == unix.ENOENT {
		why, err = "what it replaced was taken from under its temporary name", nil
	}
	if err == nil && why == "" {
		// Who swapped the temporary name for another has published that; who replaced the file just now was
		// a moment later than we. It looks the same, and the pre-image is kept.
		if now, lerr := k.lstat(dir, p.base); lerr == nil && now.info.ID != s.id {
			why = "somebody else published at the same moment"
		}
	}
	var name string
	if err == nil && why == "" {
		name, why = p.moved(dir)
	}
	if err != nil || why != "" {
		kept := s.putBack(dir, fd)
		if err != nil {
			if kept != "" {
				return p.conflict("it could not be compared (" + err.Error() + ") and is kept as " + join(p.dir.True, kept))
			}
			return p.failed("compare", err)
		}
		if kept != "" {
			why += "; what could not be put back is kept as " + join(p.dir.True, kept)
		}
		return p.conflict(why)
	}
	pub.True = name
	pub.LinksBroken = max(int(out.info.Links)-1, 0)
	if err := p.drop(dir, s.temp, out.info.ID); err != nil {
		pub.Leftover = s.temp
	}
	s.temp = ""
	return nil
}

// putBack undoes a trade: what was displaced has the temporary name, the staged file behind fd the
// place. They trade back only while the staged file is there. Where somebody has moved it on, it is
// waited for a little, because whoever lets two names trade places brings it back. Where it is
// gone, what is there is newer and stays. What nobody asked to be removed and has no place is kept
// beside it: the name it is kept under is the answer.
func (s *Staged) putBack(dir, fd int) (kept string) {
	p, k := s.place, s.place.fs.kernel
	for round := range 64 {
		now, err := k.lstat(dir, p.base)
		switch {
		case err == unix.ENOENT: // the new file was removed meanwhile: give the old one its name again
			err = k.rename(dir, s.temp, p.base, unix.RENAME_NOREPLACE)
			if err == nil || err == unix.ENOENT {
				s.temp = ""
				return ""
			}
			continue
		case err != nil:
			continue
		case now.info.ID != s.id:
			if own, err := k.stat(fd); err == nil && own.info.Links == 0 {
				return s.keep(dir)
			}
			if round > 8 {
				time.Sleep(100 * time.Microsecond)
			}
			continue
		}
		if k.rename(dir, s.temp, p.base, unix.RENAME_EXCHANGE) == nil && !s.isOwn(dir, s.temp) {
			// Something newer was swapped in before the exchange: turn that round.
			k.rename(dir, s.temp, p.base, unix.RENAME_EXCHANGE) //nolint:errcheck // nothing is removed in any case
		}
		switch out, err := k.lstat(dir, s.temp); {
		case err == unix.ENOENT: // whoever took it from under the temporary name has it
			s.temp = ""
			return ""
		case err != nil || out.info.ID != s.id:
		case s.written(fd):
			return s.keep(dir)
		default:
			return "" // Discard removes it
		}
	}
	return s.keep(dir)
}

// written reports whether somebody wrote into the staged file while it had its name.
func (s *Staged) written(fd int) bool {
	now, err := s.place.fs.kernel.stat(fd)
	return err != nil || now.info.Size != s.staged.info.Size || !now.info.ModTime.Equal(s.staged.info.ModTime)
}

// keep gives what has the temporary name a lasting one, and puts that on record.
func (s *Staged) keep(dir int) string {
	from := s.temp
	s.temp = ""
	return s.place.keep(dir, from)
}

func (p *Place) keep(dir int, from string) string {
	k, to := p.fs.kernel, keptName()
	err := k.rename(dir, from, to, unix.RENAME_NOREPLACE)
	if noFlags(err) {
		err = k.rename(dir, from, to, 0)
	}
	if err != nil {
		if _, lerr := k.lstat(dir, to); lerr != nil {
			p.fs.temporaries.stays()
			return from
		}
	}
	p.fs.temporaries.keep(KeptFile{join(p.dir.True, to), p.object.True})
	return to
}

// overwrite is for file systems that cannot let names trade places: look once more, then rename over it.
func (s *Staged) overwrite(dir int, before *Before, held int, pub *Published) error {
	p, k := s.place, s.place.fs.kernel
	why, out, err := k.differs(dir, p.base, before, held)
	if err != nil {
		return p.failed("compare", err)
	}
	if why != "" {
		return p.conflict(why)
	}
	if err := p.still(dir); err != nil {
		return err
	}
	if err := k.rename(dir, s.temp, p.base, 0); err != nil && !s.isOwn(dir, p.base) {
		return p.failed("publish", err)
	}
	s.temp = ""
	pub.CAS = "recheck"
	pub.LinksBroken = max(int(out.info.Links)-1, 0)
	if now, lerr := k.lstat(dir, p.base); lerr == nil && now.info.ID != s.id {
		return p.conflict("somebody else published at the same moment")
	}
	name, why := p.moved(dir)
	if why != "" {
		return p.conflict(why + "; the file there is replaced and cannot be brought back")
	}
	pub.True = name
	return nil
}
