package localdir

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Network names the kind of network file system that dir is on; "" when it is a local one.
func Network(dir string) (string, error) {
	p, err := windows.UTF16PtrFromString(filepath.VolumeName(dir) + `\`)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	if windows.GetDriveType(p) == windows.DRIVE_REMOTE {
		return "remote drive", nil
	}
	return "", nil
}

// Own: the access list of the profile directory guards what is in it.
func Own(fs.FileInfo) error { return nil }

// Sync: NTFS journals directory entries itself.
func Sync(string) error { return nil }
