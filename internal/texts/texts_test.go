package texts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func made(s string, times *int) func() ([]byte, bool, error) {
	return func() ([]byte, bool, error) { *times++; return []byte(s), true, nil }
}

func TestCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "texts")
	times, ctx := 0, t.Context()
	get := func(c *Cache, key string, plain bool) string {
		t.Helper()
		b, err := c.Get(ctx, key, plain, made("text of "+key, &times))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	check := func(what, got string, want string, n int) {
		t.Helper()
		if got != want || times != n {
			t.Errorf("%s: %q, made %d times, want %q, %d", what, got, times, want, n)
		}
		times = 0
	}
	c := &Cache{Dir: dir}
	check("new", get(c, "a", true), "text of a", 1)
	check("kept", get(c, "a", true), "text of a", 0)
	check("of another process", get(&Cache{Dir: dir}, "a", true), "text of a", 0)
	get(c, "secret", false)
	times = 0
	check("not in plain", get(&Cache{Dir: dir}, "secret", false), "text of secret", 1)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	name := c.file("a")
	if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Error(info, err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	for what, b := range map[string][]byte{"cut": whole[:len(whole)-3], "flipped": flipped, "empty": {}, "of another key": coders().EncodeAll([]byte("b\nx"), nil)} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		check(what, get(&Cache{Dir: dir}, "a", true), "text of a", 1)
		check(what+", later", get(&Cache{Dir: dir}, "a", true), "text of a", 0)
	}
	old := time.Now().Add(-keepFor - time.Minute)
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	check("a day old", get(&Cache{Dir: dir}, "a", true), "text of a", 1)
	if err := errors.Join(os.Remove(name), os.Symlink("/etc/hostname", name)); err != nil {
		t.Fatal(err)
	}
	check("a link", get(&Cache{Dir: dir}, "a", true), "text of a", 1)
	if _, err := c.Get(ctx, "bad", true, func() ([]byte, bool, error) { return nil, true, errors.New("no") }); err == nil {
		t.Error("an error is gone")
	}
	check("after an error", get(c, "bad", true), "text of bad", 1)
	if err := Purge(dir); err != nil {
		t.Error(err)
	}
	check("purged", get(&Cache{Dir: dir}, "a", true), "text of a", 1)
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	check("a file in place of the directory", get(&Cache{Dir: file}, "a", true), "text of a", 1)
}

// TestSweep: what is old goes, and of the rest the oldest ones beyond the bound.
func TestSweep(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	put := func(name string, size int64, age time.Duration) {
		f := filepath.Join(dir, name)
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		os.Truncate(f, size)
		os.Chtimes(f, now.Add(-age), now.Add(-age))
	}
	put("old", 1, 25*time.Hour)
	for i := range 10 {
		put(fmt.Sprint(i), maxDir/8, time.Duration(i+1)*time.Hour)
	}
	sweep(dir, now)
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if got := strings.Join(left, " "); got != "0 1 2 3 4 5 6" {
		t.Errorf("left: %s", got)
	}
}

func TestFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Flights[string, int]
		var times atomic.Int64
		var wg sync.WaitGroup
		first, cancel := context.WithCancel(t.Context())
		for i := range 10 {
			ctx := t.Context()
			if i == 0 {
				ctx = first
			}
			wg.Go(func() {
				v, err := f.Do(ctx, "k", false, func() (int, error) {
					times.Add(1)
					if <-first.Done(); ctx == first {
						return 0, ctx.Err()
					}
					time.Sleep(time.Second)
					return 7, nil
				})
				if i == 0 && err == nil || i > 0 && (v != 7 || err != nil) {
					t.Errorf("%d: %d %v", i, v, err)
				}
			})
			synctest.Wait()
		}
		cancel() // the next one in line makes it
		wg.Wait()
		if times.Load() != 2 {
			t.Errorf("made %d times", times.Load())
		}
		go func() {
			defer func() { recover() }()
			f.Do(t.Context(), "panics", false, func() (int, error) { time.Sleep(time.Second); panic("no") })
		}()
		synctest.Wait()
		if _, err := f.Do(t.Context(), "panics", false, func() (int, error) { return 0, nil }); err == nil {
			t.Error("a panic is no error")
		}
		over, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		long := func() (int, error) { time.Sleep(time.Minute); return int(times.Add(1)), nil }
		if _, err := f.Do(over, "long", true, long); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a long one: %v", err)
		}
		if v, err := f.Do(t.Context(), "long", true, long); v != 3 || err != nil {
			t.Errorf("a long one, asked for again: %d %v", v, err)
		}
		f.under.Wait()
		if len(f.now) != 0 {
			t.Errorf("left: %v", f.now)
		}
	})
}
