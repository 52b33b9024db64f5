package guardfs

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"moltisfs/internal/guardfs/flock"
)

// The last of several uses clears up, and no other does.
func TestUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	use := func() *Use {
		t.Helper()
		l, err := OpenLocks(dir) // each as another process has it
		must(t, err)
		u, err := l.Use(t.Context(), "k", []byte("what"))
		must(t, err)
		return u
	}
	cleared := 0
	last := func() error { cleared++; return nil }
	a, b := use(), use()
	if err := a.Last(last); err != nil || cleared != 0 {
		t.Errorf("the first of two: %d, %v", cleared, err)
	}
	l, err := OpenLocks(dir)
	must(t, err)
	err = b.Last(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := l.Use(ctx, "k", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it is cleared up: %v", err)
		}
		if _, err := l.Use(t.Context(), "other", nil); err != nil {
			t.Error(err)
		}
		return last()
	})
	if err != nil || cleared != 1 {
		t.Errorf("the last of two: %d, %v", cleared, err)
	}
	if _, err := os.Stat(b.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its file is left: %v", err)
	}
	if err := use().Last(last); err != nil || cleared != 2 {
		t.Errorf("one who came later: %d, %v", cleared, err)
	}
}

// A key whose users were all killed is told with their text, until it is cleared up.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := OpenLocks(dir)
	must(t, err)
	var alive []*Use // a file that nothing holds is closed by the collector, and its lock goes with it
	for _, key := range []string{"alive", "ended", "killed", "shared"} {
		for range 2 {
			u, err := l.Use(t.Context(), key, []byte(key))
			switch {
			case err != nil:
				t.Fatal(err)
			case key == "ended":
				err = u.Last(func() error { return nil })
			case key == "killed":
				err = flock.Close(u.file)
			default:
				alive = append(alive, u)
			}
			must(t, err)
			if key == "shared" {
				if u, err = l.Use(t.Context(), key, []byte(key)); err == nil {
					err = flock.Close(u.file) // one of its users was killed
				}
				must(t, err)
			}
		}
	}
	broken := errors.New("it can't be moved")
	for i, want := range []string{"killed", "killed", ""} {
		told := ""
		err := l.Abandoned(func(what []byte) error {
			told += string(what)
			if i == 0 {
				return broken
			}
			return nil
		})
		if told != want || errors.Is(err, broken) != (i == 0) {
			t.Errorf("%d: %q, %v", i, told, err)
		}
	}
	runtime.KeepAlive(alive)
}
