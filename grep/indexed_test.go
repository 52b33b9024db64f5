//go:build linux

package grep

import (
	"context"
	"testing"
	"time"

	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
)

func testFS(t testing.TB) *guardfs.FS {
	t.Helper()
	fs, err := guardfs.New(guardfs.Options{Judge: anything{}})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func searchIn(t testing.TB, fs *guardfs.FS, root string, w Walk, q Query) *Result {
	t.Helper()
	d, err := GuardedOpen(fs)(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w.Dir = d
	r, err := Search(context.Background(), w, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// warm searches until the index of root is there.
func warm(t testing.TB, fs *guardfs.FS, x *Index, root string) {
	t.Helper()
	q := Query{Matcher: compile(t, "nowhere to be found", match.Options{}), Index: x}
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if searchIn(t, fs, root, Walk{}, q).Indexed {
			return
		}
	}
	t.Fatal("no index was made")
}
