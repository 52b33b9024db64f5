package checkpoint

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"
)

func checkLocal(dir string) error {
	root := filepath.VolumeName(dir) + `\`
	p, err := windows.UTF16PtrFromString(root)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	if windows.GetDriveType(p) == windows.DRIVE_REMOTE {
		return &NetworkError{dir, "remote drive"}
	}
	return nil
}

// checkOwner: the access list of the profile directory guards the store.
func checkOwner(fs.FileInfo) error { return nil }

// syncDir: NTFS journals directory entries itself.
func syncDir(string) error { return nil }
