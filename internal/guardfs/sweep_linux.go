//go:build !rooted

package guardfs

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep removes the temporary files that killed processes have left in this directory longer ago than olderThan, which
// SHOULD be far more than any call takes. It removes only what it can prove to be ours: a file that was
// staged and never published, or a pre-image that its name tells the hash of. What it must leave is in kept; so are,
// always, the names ending in ".kept".
func (d *Dir) Sweep(olderThan time.Duration) (removed int, kept []string, err error) {
	return d.sweep(time.Now().Add(-olderThan), "")
}

// sweep is Sweep of what has not changed since limit; with only, of what has that tag.
func (d *Dir) sweep(limit time.Time, only string) (removed int, kept []string, err error) {
	var entries []Entry
	if entries, err = d.names(); err != nil {
		return 0, nil, err
	}
	dir, err := d.fd.use()
	if err != nil {
		return 0, nil, d.failed("sweep", ".", err)
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	k := d.fs.kernel
	for _, e := range entries {
		middle, ours := strings.CutPrefix(e.Name, tempPrefix)
		if !ours {
			continue
		}
		if strings.HasSuffix(middle, keptSuffix) {
			kept = append(kept, e.Name)
			continue
		}
		ino, hash, tag, ours := parseTemp(middle)
		if !ours || only != "" && tag != only {
			continue
		}
		st, err := k.lstat(dir, e.Name)
		if err == unix.ENOENT || err == nil && st.info.ChangeTime.After(limit) {
			continue
		}
		if err == nil && d.disposable(dir, e.Name, &st, ino, hash) {
			err = d.allow(e.Name, &st, Remove)
			if err == nil {
				err = k.removeOwn(dir, e.Name, st.info.ID)
			}
			if err == nil {
				removed++
				continue
			}
		}
		kept = append(kept, e.Name)
	}
	return removed, kept, nil
}

// Sweep is Dir.Sweep for the place's directory.
func (p *Place) Sweep(olderThan time.Duration) (removed int, kept []string, err error) {
	return p.sweep(time.Now().Add(-olderThan), "")
}

// SweepOf removes from the place's directory, however new it is, what the operation whose places had that tag (Label) left when its process was killed. The
// caller has made sure that it is not under way.
func (p *Place) SweepOf(tag string) error {
	_, _, err := p.sweep(time.Now().Add(time.Hour), tag)
	return err
}

func (p *Place) sweep(limit time.Time, only string) (removed int, kept []string, err error) {
	dir, err := p.fd.use()
	if err != nil {
		return 0, nil, p.failed("sweep directory of", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.still(dir); err != nil {
		return 0, nil, err
	}
	fd, err := p.fs.kernel.openat(dir, ".", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, nil, p.failed("sweep directory of", err)
	}
	d, err := newDir(p.fs, fd, p.dir.True, status{info: p.dir.Info})
	if err != nil {
		return 0, nil, err
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	return d.sweep(limit, only)
}

// names lists the directory without asking the Judge; the names go no further than Sweep.
func (d *Dir) names() ([]Entry, error) {
	own := &Dir{fs: d.fs, name: d.name, st: d.st, verdict: DirVerdict{All: true}}
	dir, err := d.fd.use()
	if err != nil {
		return nil, d.failed("sweep", ".", err)
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	fd, err := d.fs.kernel.openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, d.failed("sweep", ".", err)
	}
	own.fd.open(fd)
	defer own.Close() //nolint:errcheck // nothing was written through it
	entries, _, err := own.List(nil)
	return entries, err
}

// disposable: it is a staged file that was never published, or the very content that the trade was to replace.
func (d *Dir) disposable(dir int, name string, st *status, ino uint64, hash string) bool {
	k := d.fs.kernel
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
