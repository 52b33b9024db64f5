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
	names, err := p.temporaryNames(dir)
	for _, name := range names {
		ino, hash, of, ours := parseTemp(name[len(tempPrefix):])
		if !ours || !tagged(of, tag) {
			continue
		}
		st, lerr := k.lstat(dir, name)
		switch {
		case lerr == unix.ENOENT:
		case lerr != nil:
			err = lerr
		case k.disposable(dir, name, &st, ino, hash):
			if lerr := k.removeOwn(dir, name, st.info.ID); lerr != nil {
				err = lerr
			}
		default:
			p.keep(dir, p.dir.True, name)
		}
	}
	if err != nil {
		return p.failed("sweep directory of", err)
	}
	return nil
}

// temporaryNames are those in the place's directory that begin as ours do.
func (p *Place) temporaryNames(dir int) (names []string, err error) {
	fd, err := p.fs.kernel.openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	all := DirVerdict{Entry: func(string, Kind) bool { return true }} // the names go no further
	d := newDirUnder(p.fs, fd, p.dir.True, status{info: p.dir.Info}, nil, all)
	defer d.Close() //nolint:errcheck // nothing was written through it
	entries, _, err := d.List(nil)
	for _, e := range entries {
		if strings.HasPrefix(e.Name, tempPrefix) {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// SweepHolds removes the holds of a process that is no more from the place's directory, where done
// says of the tag of their operation that nothing needs them. What is in a directory by then is
// somebody's: that gets a lasting name. So does a file under the number 0: its process died between
// the rename and the look at what came out, which somebody may have written right before. left says
// that others are there still.
func (p *Place) SweepHolds(process string, done func(operation string) bool) (left bool,
	err error) {
	dir, err := p.fd.use()
	if err != nil {
		return true, p.failed("sweep directory of", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.still(dir); err != nil {
		return true, err
	}
	names, err := p.temporaryNames(dir)
	for _, name := range names {
		tag, by, ok := ParseHold(name)
		if !ok || by != process {
			continue
		}
		if !done(tag) {
			left = true
			continue
		}
		st, lerr := p.fs.kernel.lstat(dir, name)
		if lerr == nil && st.info.Kind == KindFile && onlyHold(name) {
			p.keep(dir, p.dir.True, name)
		} else if lerr == nil {
			lerr = p.fs.kernel.removeOwn(dir, name, st.info.ID)
		}
		switch lerr {
		case nil, unix.ENOENT:
		case unix.ENOTEMPTY:
			p.keep(dir, p.dir.True, name)
		default:
			err = lerr
		}
	}
	if err != nil {
		return true, p.failed("sweep directory of", err)
	}
	return left, nil
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
