//go:build unix

package guardfs

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func mkfifo(name string) error { return syscall.Mkfifo(name, 0o644) }

// openFDs counts the descriptors of this process; 0 where nothing tells.
func openFDs(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range names {
		// The runtime's own come when they like.
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(to, "anon_inode:") {
			n++
		}
	}
	return n
}

// noLeak fails the test if it ends with other descriptors open than it began with.
func noLeak(t testing.TB) {
	t.Helper()
	was := openFDs(t)
	t.Cleanup(func() {
		if now := openFDs(t); now != was {
			t.Errorf("%d descriptors open at the end, %d at the beginning", now, was)
		}
	})
}
