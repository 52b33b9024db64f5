//go:build unix && (!linux || rooted)

package guardfs

import "golang.org/x/sys/unix"

// across is between for two directories: by handles of both, so that no link on the way is followed.
func across(p *Entry, x string, q *Entry, y string, link bool) error {
	from, err := p.root.Root.Open(".")
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // nothing was written through it
	to, err := q.root.Root.Open(".")
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // nothing was written through it
	if link {
		return unix.Linkat(int(from.Fd()), x, int(to.Fd()), y, 0)
	}
	return unix.Renameat(int(from.Fd()), x, int(to.Fd()), y)
}
