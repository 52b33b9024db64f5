package guardfs

import "errors"

// Lstat looks at what path names, a link in the last component for itself, and asks the Judge for
// Look. target is the text of a link. The errors are those of Resolve.
func (f *FS) Lstat(path string) (o Object, target string, err error) {
	for range retries {
		p, err := f.placeFor(path, Look)
		_, bad := errors.AsType[*BadPathError](err) // "/", or what ends in ".."
		_, gone := errors.AsType[*MissingParentError](err)
		if err != nil && !bad && !gone {
			return Object{}, "", err
		}
		if err == nil {
			o = p.object
			if o.Info.Kind == KindSymlink {
				target, err = p.readTarget()
			}
			p.Close() //nolint:errcheck // nothing was written through it
			if o.Info.Kind == KindSymlink && err == nil {
				return o, target, nil
			}
		}
		h, err := f.Resolve(path, Look)
		if err != nil {
			return Object{}, "", err
		}
		h.Close() //nolint:errcheck // nothing was written through it
		if bad || h.object.True == o.True {
			return h.object, "", nil
		} // else a link took its place, or gave it up
	}
	return Object{}, "", &ConflictError{Path: path, Why: LinkInTurns}
}
