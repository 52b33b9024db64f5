package fsync

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func written(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestManyAtOnce(t *testing.T) {
	var s Starter
	defer s.Close()
	var all sync.WaitGroup
	for range 16 {
		f := written(t)
		all.Go(func() {
			for range 20 {
				if err := s.Start(int(f.Fd()), f.Sync)(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// What the kernel can't sync alone is synced as it would be otherwise, and tells that error.
func TestNotByTheKernel(t *testing.T) {
	var s Starter
	defer s.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	asked := errors.New("asked")
	for range 8 { // the last with what the ones before gave back
		if err := s.Start(int(w.Fd()), func() error { return asked })(); err != asked {
			t.Fatalf("got %v", err)
		}
	}
}
