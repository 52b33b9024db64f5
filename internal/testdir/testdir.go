// Package testdir puts the temporary directories of tests in memory. Those of the engine wait for
// the disk otherwise, a third of their time and more: each change is synced.
//
// Only tests use it. They play power cuts and failing disks themselves; a test that needs
// a disk asks for one by [Disk]: in memory no inode number is ever used again, and the engine
// remembers no hashes there. With TMPDIR set nothing moves: make soak runs on the disk so.
package testdir

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	memory = "/dev/shm"
	enough = 2 << 20 // KB that must be free
)

// disk is where the temporary directories were before InMemory.
var disk string

// InMemory is for TestMain: from now on temporary directories are in memory, those of children too,
// if there is room and TMPDIR says nothing else. The caller removes what it says.
func InMemory() (remove func()) {
	remove = func() {}
	if os.Getenv("TMPDIR") != "" || free() < enough {
		return remove
	}
	dir, err := os.MkdirTemp(memory, "mfs-") // short: the name of a socket has 107 bytes
	if err != nil {
		return remove
	}
	remove = func() { os.RemoveAll(dir) }
	if os.Chmod(dir, os.ModeSticky|0o777) != nil { // ordinary users go through it too
		return remove
	}
	disk = os.TempDir()
	os.Setenv("TMPDIR", dir)
	return remove
}

// InMemoryUnlessShort leaves the short form on the disk, which the race detector watches: so both
// file systems are tried.
func InMemoryUnlessShort() (remove func()) {
	if flag.Parse(); testing.Short() {
		return func() {}
	}
	return InMemory()
}

// free is how many KB there are.
func free() int {
	out, err := exec.Command("df", "-Pk", memory).Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 6 {
		return 0
	}
	n, _ := strconv.Atoi(fields[len(fields)-3])
	return n
}

// Disk is a temporary directory on the disk, wherever the others are.
func Disk(t testing.TB) string {
	t.Helper()
	return in(t, disk) // "": where they are by default
}

// Elsewhere is a temporary directory on another volume than the others, where there is one.
func Elsewhere(t testing.TB) string {
	t.Helper()
	if disk == "" && free() > 0 {
		return in(t, memory)
	}
	return Disk(t)
}

func in(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "mfs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// GoSource skips the test where there is no source tree of Go, and gives the one of the go command. A test program that was built with
// -trimpath does not know it by itself.
func GoSource(t testing.TB) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	src, serr := filepath.EvalSymlinks(filepath.Join(strings.TrimSpace(string(root)), "src"))
	if err != nil || serr != nil {
		t.Skip("SKIPPED: there is no source tree of Go here")
	}
	return src
}
