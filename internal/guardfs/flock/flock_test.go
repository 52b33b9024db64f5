package flock

import (
	"os"
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
