//go:build !rooted

package sandbox

import (
	"context"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is asked in the same breath as a rename is not told after another change, and what nobody
// comes for is read with the next answer.
func TestLooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "1", "b": "22"})
	s := begin(t, dir)
	c := calls{s}
	at, err := c.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const entry = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	size := func() (uint64, error) {
		x, err := c.Statx(at, "b", entry)
		return x.Size, err
	}
	rename := func() {
		t.Helper()
		if err := c.Renameat2(at, "a", at, "b", unix.RENAME_EXCHANGE); err != nil {
			t.Fatal(err)
		}
		if len(s.now.looks) != 2 {
			t.Fatalf("%d questions went with it", len(s.now.looks))
		}
	}
	rename()
	if n, err := size(); err != nil || n != 1 {
		t.Errorf("after a rename: %d, %v", n, err)
	}
	rename()
	if err := c.Unlinkat(at, "b", 0); err != nil {
		t.Fatal(err)
	}
	if n, err := size(); err != unix.ENOENT {
		t.Errorf("removed since: %d, %v", n, err)
	}
	if _, err := s.now.ask(&request{op: opPing}, nil, nil); err != nil || len(s.now.pending) != 0 {
		t.Errorf("%v; %d answers are out", err, len(s.now.pending))
	}
}

// A new file without a name has no attributes to take away until it was given some.
func TestNameless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := begin(t, dir)
	c := calls{s}
	at, err := c.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := c.Openat(at, ".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	if err := c.Fremovexattr(fd, "user.x"); err != unix.ENODATA {
		t.Error(err)
	}
	if err := c.Fsetxattr(fd, "user.x", []byte("1")); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	if err := c.Fremovexattr(fd, "user.x"); err != nil {
		t.Error(err)
	}
	if n, err := c.Flistxattr(fd, make([]byte, 64)); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// Who waits for changes keeps nobody else from a call, however many there are.
func TestManyWatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"f": "x"})
	s := begin(t, dir)
	c := s.Calls()
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer stop()
	for range mostSlow {
		q, err := c.Inotify()
		if err != nil {
			t.Skip("SKIPPED: no more watches here: ", err)
		}
		waiting.Go(func() { q.Wait(ctx) })
	}
	for asked := 0; asked < mostSlow; time.Sleep(time.Millisecond) {
		s.now.mu.Lock()
		asked = len(s.now.pending)
		s.now.mu.Unlock()
	}
	fd, err := c.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		fd, err = c.Openat(fd, "f", unix.O_RDWR|unix.O_NOFOLLOW, 0)
	}
	if err == nil {
		err = c.Fsync(fd)
	}
	if err != nil {
		t.Error(err)
	}
}
