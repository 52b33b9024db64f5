//go:build linux && !rooted

package engine_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

// A store through a memory mapping moves no time of a page that is dirty already. So as long as a
// mapping is there, no hash is remembered.
func TestNoHashIsRememberedUnderAMapping(t *testing.T) {
	x := growIn(t, testdir.Disk(t), nil)
	path := x.write("f", strings.Repeat("0123456789", engine.InMemory/5))
	x.SetClock(func() time.Time { return time.Now().Add(time.Hour) })
	if x.hashOf(path); x.Sums() != 1 {
		t.Skip("SKIPPED: no hash is remembered on this file system")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(m) //nolint:errcheck // the test is over
	f.Close()
	for i := range 50 {
		time.Sleep(time.Duration(i%3) * 5 * time.Millisecond)
		m[7] = byte(i)
		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if x.hashOf(path) != engine.HashOf(now) {
			t.Fatalf("an old hash after %d stores", i+1)
		}
	}
}
