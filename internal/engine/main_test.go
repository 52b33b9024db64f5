//go:build linux

package engine_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/internal/testdir"
)

// On a disk, the temporary directories of these tests lie apart. An ext4 without a journal looks,
// for each new inode, at all that were deleted in the last minute in the same group of the disk.
// These tests delete thousands of files: half of their system time was that, and the tests of other
// packages waited as well. A directory with the T attribute gives each of its own a group of its own.
func TestMain(m *testing.M) {
	remove := testdir.InMemoryUnlessShort()
	dir, err := os.MkdirTemp("", "moltis-fs-tests-")
	if err != nil {
		os.Exit(m.Run())
	}
	if os.Chmod(dir, os.ModeSticky|0o777) == nil && apart(dir) { // ordinary users go through it too
		os.Setenv("TMPDIR", dir) // for children too
	}
	status := m.Run()
	os.RemoveAll(dir)
	remove()
	os.Exit(status)
}

// apart sets the T attribute, where the file system has it.
func apart(dir string) bool {
	const topDirectory = 0x20000 // FS_TOPDIR_FL of linux/fs.h
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	return err == nil && unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|topDirectory)) == nil
}
