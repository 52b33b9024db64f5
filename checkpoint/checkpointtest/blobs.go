package checkpointtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"moltisfs/checkpoint/blob"
)

// Blobs runs all that a store of large contents must do, each part on an empty one that open makes.
// Opened again with the same t it is the same store.
func Blobs(t *testing.T, open func(t *testing.T) blob.Store) {
	body := func(i int) []byte { return bytes.Repeat([]byte{byte(i), 0, 0xff}, 1000*(i+1)) }
	name := func(i int) string { return blob.NewName(sha256.Sum256(body(i))) }
	list := func(t *testing.T, s blob.Store) map[string]int64 {
		t.Helper()
		out := map[string]int64{}
		if err := s.List(ctx, func(name string, size int64) error { out[name] = size; return nil }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	t.Run("RoundTrip", func(t *testing.T) {
		s := open(t)
		if names := list(t, s); len(names) != 0 {
			t.Errorf("an empty store lists %v", names)
		}
		names := []string{}
		for i := range 5 {
			names = append(names, name(i))
			if err := s.Put(ctx, names[i], body(i)); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []blob.Store{s, open(t)} {
			all := list(t, s)
			for i, name := range names {
				got, err := s.Get(ctx, name, int64(len(body(i))))
				if err != nil || !bytes.Equal(got, body(i)) || all[name] != int64(len(body(i))) {
					t.Errorf("%d does not come back, or is listed with %d bytes: %v", i, all[name], err)
				}
			}
			if len(all) != 5 {
				t.Errorf("it lists %v", all)
			}
		}
	})
	t.Run("Refusals", func(t *testing.T) {
		s, there := open(t), name(1)
		if err := s.Put(ctx, there, body(1)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, name(2), 10); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what is not there is fs.ErrNotExist, not %v", err)
		}
		for _, size := range []int64{-1, 0, 1, int64(len(body(1))) - 1, int64(len(body(1))) + 1, 1 << 60} {
			if b, err := s.Get(ctx, there, size); err == nil {
				t.Errorf("%d bytes came of a content of another size", len(b))
			}
		}
		for _, bad := range []string{"", "..", "../x", "/etc/passwd", there + "/x", "zz" + there[2:], there[:len(there)-1], there + "0"} {
			if err := s.Put(ctx, bad, []byte("x")); err == nil {
				t.Errorf("%q is no name, and was written", bad)
			}
			if _, err := s.Get(ctx, bad, 1); err == nil {
				t.Errorf("%q is no name, and was read", bad)
			}
			if err := s.Delete(ctx, bad); err != nil {
				t.Errorf("%q is not there, and deleting it says %v", bad, err)
			}
		}
		if err := s.Put(ctx, there, body(2)); err == nil {
			t.Error("a name was given to a second content")
		}
		if got, err := s.Get(ctx, there, int64(len(body(1)))); err != nil || !bytes.Equal(got, body(1)) {
			t.Error("and the first is not what it was:", err)
		}
		stop := errors.New("stop")
		if err := s.List(ctx, func(string, int64) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("a list goes on: %v", err)
		}
	})
	t.Run("Delete", func(t *testing.T) {
		s, gone, stays := open(t), name(1), name(1)
		for _, name := range []string{gone, stays} {
			if err := s.Put(ctx, name, body(1)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // twice is no error
			if err := s.Delete(ctx, gone); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Get(ctx, gone, int64(len(body(1)))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
		if names := list(t, s); len(names) != 1 || names[stays] == 0 {
			t.Errorf("of the same content another name stays: %v", names)
		}
	})
	t.Run("Concurrent", func(t *testing.T) {
		s := open(t)
		var all sync.WaitGroup
		var mu sync.Mutex
		var names []string
		for w := range 8 {
			all.Go(func() {
				for i := range 5 {
					n := name(i)
					err := s.Put(ctx, n, body(i))
					if err == nil && w%2 == 1 {
						err = s.Delete(ctx, n)
					} else {
						mu.Lock()
						names = append(names, n)
						mu.Unlock()
					}
					if err == nil {
						err = s.List(ctx, func(string, int64) error { return nil })
					}
					if err != nil {
						t.Error(fmt.Errorf("worker %d: %w", w, err))
					}
				}
			})
		}
		all.Wait()
		got := []string{}
		for name := range list(t, s) {
			got = append(got, name)
		}
		slices.Sort(got)
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Errorf("%d are there, %d should", len(got), len(names))
		}
	})
}
