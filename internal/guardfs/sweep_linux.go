//go:build !rooted

package guardfs

import (
	"strings"

	"golang.org/x/sys/unix"
)

// SweepOf removes from the place's directory what was left there under names with that tag: of a
// process that is no more, which Temporaries.Dead tells, or of an operation (Label) that is not
// under way, which the caller has made sure of. A file that was staged and never published goes,
// and so does a pre-image that its name tells the hash of. Whatever else has such a name is
// somebody's: it gets a lasting name and is on record.
func (p *Place) SweepOf(tag string) error {
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("sweep directory of", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.still(dir); err != nil {
		return err
	}
	k := p.fs.kernel
	fd, err := k.openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return p.failed("sweep directory of", err)
	}
	all := DirVerdict{Entry: func(string, Kind) bool { return true }} // the names go no further
	d := newDirUnder(p.fs, fd, p.dir.True, status{info: p.dir.Info}, nil, all)
	defer d.Close() //nolint:errcheck // nothing was written through it
	entries, _, err := d.List(nil)
	for _, e := range entries {
		middle, ours := strings.CutPrefix(e.Name, tempPrefix)
		if !ours {
			continue
		}
		ino, hash, of, ours := parseTemp(middle)
		if !ours || !tagged(of, tag) {
			continue
		}
		st, lerr := k.lstat(dir, e.Name)
		switch {
		case lerr == unix.ENOENT:
		case lerr != nil:
			err = lerr
		case k.disposable(dir, e.Name, &st, ino, hash):
			if lerr := k.removeOwn(dir, e.Name, st.info.ID); lerr != nil {
				err = lerr
			}
		default:
			p.keep(dir, p.dir.True, e.Name)
		}
	}
	if err != nil {
		return p.failed("sweep directory of", err)
	}
	return nil
}

// disposable: it is a staged file that was never published, or the very content that the trade was to replace.
func (k *kernel) disposable(dir int, name string, st *status, ino uint64, hash string) bool {
	if st.info.Kind == KindSymlink && hash != "" { // it was removed
		fd, err := k.openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW, 0)
		if err != nil {
			return false
		}
		defer k.close(fd)
		text, err := k.target(fd)
		return err == nil && strings.HasPrefix(hashOf([]byte(text)), hash)
	}
	if st.info.Kind != KindFile {
		return false
	}
	if hash == "" || st.info.ID.Ino == ino {
		return true
	}
	fd, err := k.openat(dir, name, readFlags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer k.close(fd)
	full, err := k.hash(fd)
	return err == nil && strings.HasPrefix(full, hash)
}
