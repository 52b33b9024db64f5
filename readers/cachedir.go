package readers

import (
	"os"
	"path/filepath"
)

// private makes the directory if it is missing and reports whether it and what is in it belong to us alone: no link, no other owner, no
// leave to write for anybody else.
func private(dir string) bool {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false
	}
	if !ours(dir) {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.IsDir() && !ours(filepath.Join(dir, e.Name())) || e.Type()&os.ModeSymlink != 0 {
			return false
		}
	}
	return true
}

func ours(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && ownedByUs(info)
}
