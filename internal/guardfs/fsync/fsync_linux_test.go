package fsync

import (
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The sizes of the kernel's structures are the same everywhere.
func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(request{}); n != 64 {
		t.Errorf("a request has %d bytes", n)
	}
	if n := unsafe.Sizeof(event{}); n != 32 {
		t.Errorf("an event has %d bytes", n)
	}
}

func TestByTheKernelAlone(t *testing.T) {
	var s Starter
	defer s.Close()
	q, err := s.take()
	if err != nil {
		t.Skip("SKIPPED: this system starts no syncs: ", err)
	}
	s.give(q)
	f := written(t)
	for range 2 * maxIdle {
		wait := s.Start(int(f.Fd()), func() error { return errors.New("not by the kernel") })
		if err := wait(); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.idle) != 1 {
		t.Errorf("%d queues are kept of one that was used at a time", len(s.idle))
	}
}

func TestFailedSync(t *testing.T) {
	if err := (&event{result: -int64(unix.EIO)}).err(); err != unix.EIO {
		t.Errorf("a failed sync says %v", err)
	}
}

// Without its queue the result can't be known: that is a failure, never a success.
func TestLostQueue(t *testing.T) {
	var s Starter
	q, err := s.take()
	if err != nil {
		t.Skip("SKIPPED: this system starts no syncs: ", err)
	}
	if err := q.close(); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(q); err == nil {
		t.Error("a sync of which nothing is known was taken for done")
	}
}
