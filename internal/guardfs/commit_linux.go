//go:build !rooted

package guardfs

import "golang.org/x/sys/unix"

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

// keep gives what has that name in the directory called at a lasting one, and puts that on record.
func (p *Place) keep(dir int, at, from string) string {
	k, to := p.fs.kernel, keptName()
	if err := k.renameNew(dir, from, dir, to); err != nil {
		if _, lerr := k.lstat(dir, to); lerr != nil {
			return from
		}
	}
	of := p.object.True
	if p.hold != nil {
		of = p.object.Spelled // what it is beside
	}
	p.fs.journal.keep(KeptFile{join(at, to), of})
	return to
}
