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
	s := Starter{before: warmUp}
	defer s.Close()
	q, err := s.take()
	if err != nil {
		t.Skip("SKIPPED: this system starts no syncs: ", err)
	}
	s.give(q)
	f := written(t)
	for range 2 * maxQueues {
		wait := s.Start(int(f.Fd()), func() error { return errors.New("not by the kernel") })
		if err := wait(); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.idle) != 1 || s.queues != 1 {
		t.Errorf("%d queues are kept of one that was used at a time", len(s.idle))
	}
}

// To let go of a queue takes the kernel longer than a few syncs gain by it: the first go without, and so do those of which too many are under way.
func TestFewQueues(t *testing.T) {
	var s Starter
	defer s.Close()
	f := written(t)
	goroutines := 0
	asked := func() error { goroutines++; return nil }
	for range warmUp {
		if err := s.Start(int(f.Fd()), asked)(); err != nil {
			t.Fatal(err)
		}
	}
	if goroutines != warmUp || s.queues != 0 {
		t.Errorf("%d of the first %d syncs went without a queue", goroutines, warmUp)
	}
	var waits []func() error
	for range maxQueues {
		q, err := s.take()
		if err != nil {
			t.Skip("SKIPPED: this system starts no syncs: ", err)
		}
		waits = append(waits, func() error { s.give(q); return nil })
	}
	if err := s.Start(int(f.Fd()), asked)(); err != nil || goroutines != warmUp+1 {
		t.Errorf("one sync too many: %v, %d in goroutines", err, goroutines)
	}
	for _, wait := range waits {
		wait()
	}
	if len(s.idle) != maxQueues || s.queues != maxQueues {
		t.Errorf("%d of %d queues are idle", len(s.idle), s.queues)
	}
}

func TestFailedSync(t *testing.T) {
	if err := (&event{result: -int64(unix.EIO)}).err(); err != unix.EIO {
		t.Errorf("a failed sync says %v", err)
	}
}

// Without its queue the result can't be known: that is a failure, never a success.
func TestLostQueue(t *testing.T) {
	s := Starter{before: warmUp}
	q, err := s.take()
	if err != nil {
		t.Skip("SKIPPED: this system starts no syncs: ", err)
	}
	if err := q.close(); err != nil {
		t.Fatal(err)
	}
	err = s.wait(q)
	if err == nil {
		t.Fatal("a sync of which nothing is known was taken for done")
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		t.Errorf("the number of the waiting is taken for the file's: %v", err)
	}
	if q, err := s.take(); err == nil {
		q.close()
		t.Error("another queue was made where one was lost")
	}
}
