package localdir

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Network names the kind of network file system that dir is on; "" when it is a local one.
func Network(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if st.Flags&unix.MNT_LOCAL == 0 {
		return unix.ByteSliceToString(st.Fstypename[:]), nil
	}
	return "", nil
}
