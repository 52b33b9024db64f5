//go:build !rooted

package sandbox

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

// An answer that came with a rename is not told after another change, and one that nobody
// comes for is read with the next answer.
func TestLooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "1", "b": "22"})
	s := begin(t, dir)
	c := calls{s}
	at, err := c.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	const entry = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	size := func() (uint64, error) {
		x, err := c.Statx(at, "b", entry)
		return x.Size, err
	}
	rename := func() {
		t.Helper()
		must(t, c.Renameat2(at, "a", at, "b", unix.RENAME_EXCHANGE))
		if len(s.now.looks) != 2 {
			t.Fatalf("%d questions went with it", len(s.now.looks))
		}
	}
	rename()
	if n, err := size(); err != nil || n != 1 {
		t.Errorf("after a rename: %d, %v", n, err)
	}
	rename()
	must(t, c.Unlinkat(at, "b", 0))
	if n, err := size(); err != unix.ENOENT {
		t.Errorf("removed since: %d, %v", n, err)
	}
	if _, err := s.now.ask(&request{op: opPing}, nil, nil); err != nil || len(s.now.pending) != 0 {
		t.Errorf("%v; %d answers are out", err, len(s.now.pending))
	}
}

// A small file comes with the handle on it: to open and read it asks nothing more. A file that has changed since, or is large, is asked for,
// and with the handle goes the file that nobody came for.
func TestOpenedAhead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "old", "large": strings.Repeat("x", ahead+1)})
	s := begin(t, dir)
	c := calls{s}
	f := over(t, s)
	read := func(name string, between func()) (content string, asked uint32) {
		t.Helper()
		h, err := f.Resolve(dir+"/"+name, guardfs.Read)
		must(t, err)
		defer h.Close()
		between()
		before := s.now.next
		file, err := h.Open()
		must(t, err)
		defer file.Close()
		b, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<20))
		must(t, err)
		return string(b), s.now.next - before
	}
	for tries := 0; ; tries++ { // a busy machine may take longer than a moment
		content, asked := read("a", func() {})
		if asked == 0 && content == "old" {
			break
		}
		if content != "old" || tries > 1000 {
			t.Fatalf("%q, and %d more questions", content, asked)
		}
	}
	if content, asked := read("large", func() {}); len(content) != ahead+1 || asked == 0 {
		t.Error(len(content), asked)
	}
	at, err := c.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	change := func() {
		os.WriteFile(dir+"/a", []byte("another"), 0o600)
		must(t, c.Mkdirat(at, "d", 0o700))
	}
	if content, _ := read("a", change); content != "another" {
		t.Errorf("changed by others before we changed something: %q", content)
	}
	fd, err := c.Openat2(unix.AT_FDCWD, dir+"/a", unix.O_PATH, 0)
	must(t, err)
	_, own, _ := s.of(fd)
	again := s.now.known.open[own].again
	if again == 0 {
		t.Fatal("no file came with the handle")
	}
	c.Close(fd)
	kernel := begin(t, "/proc")
	if fd, err := kernel.Calls().Openat2(unix.AT_FDCWD, "/proc/version", unix.O_PATH, 0); err != nil {
		t.Error(err)
	} else if _, own, _ := kernel.of(fd); kernel.now.known.open[own].again != 0 {
		t.Error("a file of the kernel was read before anybody asked for that")
	}
	for _, n := range []int{own, again} {
		r, err := s.now.ask(&request{op: opPread, fd: n, b: 1}, nil, nil)
		if err != nil || unix.Errno(r.errno) != unix.EBADF || s.now.known.open[n] != nil {
			t.Errorf("%d is open after its handle was closed: %v %v", n, err, r.errno)
		}
	}
}

// Waiters for changes keep nobody else from a call, however many there are.
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
	testdir.Until(t, "all that wait", func() bool {
		s.now.mu.Lock()
		defer s.now.mu.Unlock()
		return len(s.now.pending) >= mostSlow
	})
	fd, err := c.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		fd, err = c.Openat(fd, "f", unix.O_RDWR|unix.O_NOFOLLOW, 0)
	}
	if err == nil {
		err = c.Fsync(fd)
	}
	must(t, err)
}
