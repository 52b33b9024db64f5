//go:build !rooted

package guardfs

import (
	"strings"

	"golang.org/x/sys/unix"
)

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

// Sweep removes from the place's directory what a process left there that is no more: files that
// never were complete, and the holds of which done says, of the tag of their operation, that nothing
// needs them. What may be somebody's gets a lasting name. left says that others are there still.
func (p *Place) Sweep(process string, done func(operation string) bool) (left bool, err error) {
	dir, err := p.fd.use()
	if err != nil {
		return true, p.failed("sweep directory of", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.still(dir); err != nil {
		return true, err
	}
	k := p.fs.kernel
	names, err := p.temporaryNames(dir)
	for _, name := range names {
		st, lerr := k.lstat(dir, name)
		if lerr == unix.ENOENT {
			continue
		}
		becomes := fateOf(name, process, &st.info, done)
		if becomes == goes && lerr == nil {
			lerr = k.removeOwn(dir, name, st.info.ID)
		}
		switch {
		case becomes == alien:
		case becomes == needed:
			left = true
		case lerr == unix.ENOTEMPTY || lerr == nil && becomes == keeps:
			p.keep(dir, p.dir.True, name)
		case lerr != nil:
			err = lerr
		}
	}
	if err != nil {
		return true, p.failed("sweep directory of", err)
	}
	return left, nil
}
