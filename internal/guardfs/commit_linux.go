//go:build !rooted

package guardfs

import "golang.org/x/sys/unix"

// noFlags says that the file system does not know the flags of renameat2.
func noFlags(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
}

// moved looks where the directory is right after a publication. A move to a place that the Judge refuses
// is a reason to take it back; any other is only told.
func (p *Place) moved() (name string, why Meanwhile) {
	at, gone, err := p.where()
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
