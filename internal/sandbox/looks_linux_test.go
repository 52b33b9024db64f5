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

// A small file comes with its descriptor: to read it asks nothing more. A file that we may have changed since, or is large, is asked for.
func TestContentComesWithTheDescriptor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a": "old", "large": strings.Repeat("x", ahead+1)})
	s := begin(t, dir)
	f := over(t, s)
	read := func(name string, between func()) (content string, asked uint32) {
		t.Helper()
		h, err := f.Resolve(dir+"/"+name, guardfs.Read)
		must(t, err)
		defer h.Close()
		file, err := h.Open()
		must(t, err)
		defer file.Close()
		between()
		before := s.now.next
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
	at, err := s.Calls().Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	change := func() {
		os.WriteFile(dir+"/a", []byte("another"), 0o600)
		must(t, s.Calls().Mkdirat(at, "d", 0o700))
	}
	if content, _ := read("a", change); content != "another" {
		t.Errorf("changed by others before we changed something: %q", content)
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
