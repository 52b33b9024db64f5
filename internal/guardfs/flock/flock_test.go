package flock

import (
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

func TestLocks(t *testing.T) {
	name := t.TempDir() + "/f"
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	a, b, c, waiting := open(), open(), open(), open()
	expect := func(why string, want bool, lock func(*os.File) (bool, error), f *os.File) {
		t.Helper()
		if held, err := lock(f); err != nil || held != want {
			t.Errorf("%s: %v %v", why, held, err)
		}
	}
	expect("the first", true, TryLockShared, a)
	expect("beside it", true, TryLockShared, b)
	expect("not beside others", false, TryLock, c)
	a.Close()
	b.Close()
	expect("when they have closed theirs", true, TryLock, c)
	expect("not beside one who has it alone", false, TryLockShared, open())
	got := make(chan error)
	go func() { got <- Lock(waiting) }()
	select {
	case err := <-got:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	c.Close()
	if err := <-got; err != nil {
		t.Errorf("after the wait: %v", err)
	}
	if err := Unlock(waiting); err != nil {
		t.Error(err)
	}
	expect("when it is given back", true, TryLock, open())
	if _, err := open().Read(make([]byte, 1)); err != nil && err.Error() != "EOF" {
		t.Errorf("who does not ask is not kept from the file: %v", err)
	}
}

// A process that is started at the moment of a Close has a copy of the file until it executes its program. The lock is free all the same.
func TestCloseBesideForks(t *testing.T) {
	name, done := t.TempDir()+"/f", make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					exec.Command(os.Args[0], "-test.run=^$").Run() //nolint:errcheck // it need not run long
				}
			}
		})
	}
	defer wg.Wait()
	defer close(done)
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if free, err := TryLock(f); err != nil || !free {
			t.Fatal("the one before has closed it, and it is locked: ", err)
		}
		Close(f) //nolint:errcheck // the next round looks
	}
}
