package guardfs

import (
	"errors"
	"os"
	"path"
)

// across gives x of one directory the name y in another, or renames it. Here there is no call for two
// handles: it goes by names below r.
func (r *dirRoot) across(a *os.Root, x string, b *os.Root, y string, link bool) error {
	below := func(root *os.Root, name string) (string, error) {
		for dir, part := range r.parts {
			if part == root {
				return path.Join(dir, name), nil
			}
		}
		return "", errors.New("no part of it")
	}
	from, err := below(a, x)
	if err != nil {
		return err
	}
	to, err := below(b, y)
	if err != nil {
		return err
	}
	if link {
		return r.Root.Link(from, to)
	}
	return r.Root.Rename(from, to)
}
