//go:build unix

package localdir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Own is an error if what fi describes belongs to another user.
func Own(fi fs.FileInfo) error {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return errors.New("belongs to another user")
	}
	return nil
}

// Sync returns when the names in dir are on stable storage.
func Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
