//go:build darwin || (linux && rooted)

package guardfs

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// xattrs reads the extended attributes of an open file that can be read.
func xattrs(f *os.File) map[string][]byte {
	fd := int(f.Fd())
	raw := make([]byte, 64<<10)
	n, err := unix.Flistxattr(fd, raw)
	if err != nil || n == 0 {
		return nil
	}
	all := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(raw[:n]), "\x00"), "\x00") {
		size, err := unix.Fgetxattr(fd, name, nil)
		if err != nil {
			continue
		}
		value := make([]byte, size)
		if size, err = unix.Fgetxattr(fd, name, value); err == nil {
			all[name] = value[:size]
		}
	}
	return all
}

// setXattrs gives an open file its extended attributes.
func setXattrs(f *os.File, all map[string][]byte) (dropped []string) {
	for name, value := range all {
		if name == "security.capability" {
			dropped = append(dropped, "capabilities")
		} else if unix.Fsetxattr(int(f.Fd()), name, value, 0) != nil {
			dropped = append(dropped, "xattr:"+name)
		}
	}
	slices.Sort(dropped)
	return dropped
}

// pseudo is for the tests that run this file on Linux.
func pseudo(root *os.Root) bool {
	var s unix.Statfs_t
	d, err := root.Open(".")
	if err != nil {
		return false
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	return unix.Fstatfs(int(d.Fd()), &s) == nil && uint32(s.Type) == 0x9fa0
}
