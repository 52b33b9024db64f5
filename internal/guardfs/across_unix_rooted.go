//go:build unix && (!linux || rooted)

package guardfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// across gives x of one directory the name y in another, or renames it: by handles of both.
func (r *dirRoot) across(a *os.Root, x string, b *os.Root, y string, link bool) error {
	from, err := a.Open(".")
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // nothing was written through it
	to, err := b.Open(".")
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // nothing was written through it
	if link {
		return unix.Linkat(int(from.Fd()), x, int(to.Fd()), y, 0)
	}
	return unix.Renameat(int(from.Fd()), x, int(to.Fd()), y)
}
