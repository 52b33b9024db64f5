//go:build linux && !rooted

package guardfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A directory that holds something is not the one that was just made: its mode and owner are somebody else's.
func TestSetDirOfAnother(t *testing.T) {
	for _, held := range []bool{false, true} {
		root := base(t)
		dir := filepath.Join(root, "new")
		f := open(t, &fence{root: root})
		p, err := f.Place(dir)
		must(t, err)
		must(t, p.Mkdir(0o700))
		if held {
			must(t, os.WriteFile(filepath.Join(dir, "theirs"), nil, 0o600))
		}
		_, err = p.SetDir(Metadata{Mode: os.ModeDir | 0o755, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())})
		must(t, p.Close())
		fi, serr := os.Stat(dir)
		must(t, serr)
		var conflict *ConflictError
		if held != errors.As(err, &conflict) || held != (fi.Mode().Perm() == 0o700) {
			t.Errorf("held %v: %v, mode %v", held, err, fi.Mode())
		}
	}
}
