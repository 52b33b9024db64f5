//go:build !rooted

package guardfs

import "golang.org/x/sys/unix"

// OpenListed is OpenFile for a name that List gave as KindFile, without the look before: a walk that opens every file
// pays for one stat less, a sixth of a search. Whatever took the name's place meanwhile is opened without blocking
// and without following, found not to be a regular file, and closed unread. The Judge is asked about what was opened.
func (d *Dir) OpenListed(name string) (*File, error) {
	dir, err := d.enter(name)
	if err != nil {
		return nil, err
	}
	defer d.fd.done() //nolint:errcheck // Close reports it
	if !d.shows(name, KindFile) {
		return d.OpenFile(name) // the verdict is a quick one; the Judge has the last word
	}
	k := d.fs.kernel
	fd, err := k.openat(dir, name, ReadFlags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return d.OpenFile(name) // for its errors, which do not tell a denied file from a missing one
	}
	st, err := k.stat(fd)
	if err == nil && st.info.Kind == KindFile && st.mount == d.st.mount {
		if err := d.allow(name, &st, Read); err != nil {
			k.close(fd)
			return nil, err
		}
		f := &File{kernel: k, dir: d.name, name: name, info: st.info}
		f.fd.open(fd, k.calls)
		return f, nil
	}
	k.close(fd)
	return d.OpenFile(name)
}
