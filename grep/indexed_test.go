//go:build linux

package grep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// Found and Named get the same of a search by the index as of one without it.
func TestFoundByIndex(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		name := fmt.Sprintf("%s/d%d/f%d", root, i%3, i)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, []byte(strings.Repeat("needle\n", i%2)+"hay\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	fs := testFS(t)
	defer fs.Close()
	x := NewIndex(IndexOptions{Open: GuardedOpen(fs), Watch: GuardedWatch(fs), MinFiles: 1})
	defer x.Close()
	warm(t, fs, x, root)
	search := func(x *Index) (got []string) {
		var mu sync.Mutex
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, what)
		}
		r := searchIn(t, fs, root, Walk{}, Query{Matcher: compile(t, "needle", match.Options{}),
			Mode: Content, Index: x, Named: func(p string) { note("named " + p) },
			Found: func(f FileHit, rows []Row) { note(fmt.Sprint("found ", f.Path, len(rows), f.Lines)) }})
		if r.Indexed != (x != nil) {
			t.Errorf("by the index: %v", r.Indexed)
		}
		slices.Sort(got)
		return got
	}
	if with, without := search(x), search(nil); !slices.Equal(with, without) || len(with) != 60 {
		t.Errorf("%q\n%q", with, without)
	}
}

// Binary files are named alike by the index and without it, and as many are told of which only the beginning was searched.
func TestBinariesByIndex(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("nothing\n", 40_000)
	for name, content := range map[string]string{
		"head": "needle\x00", "late": long + "needle\x00", "begins": "\x00needle" + long, "ends": "\x00" + long + "needle", "other": "\x00é", "block": long + strings.Repeat("\x00", 600) + "needle\n",
		"ff": "\x00\xff\xfe needle", "text": "a needle\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs := testFS(t)
	defer fs.Close()
	x := NewIndex(IndexOptions{Open: GuardedOpen(fs), Watch: GuardedWatch(fs), MinFiles: 1})
	defer x.Close()
	warm(t, fs, x, root)
	for pattern, want := range map[string]string{"needle": "begins ff head", "NEEDLE": "", "café|needle": "begins ff head", "nothing": "begins ends", "xyzzy": ""} {
		for _, mode := range []Mode{FilesWithMatches, Count, Content} {
			q := Query{Matcher: compile(t, pattern, match.Options{}), Mode: mode}
			plain := searchIn(t, fs, root, Walk{}, q)
			q.Index = x
			indexed := searchIn(t, fs, root, Walk{}, q)
			names := strings.ReplaceAll(strings.Join(indexed.Binary, " "), root+"/", "")
			if names != want || !indexed.Indexed || !slices.Equal(plain.Binary, indexed.Binary) || plain.Skipped != indexed.Skipped || plain.Totals != indexed.Totals {
				t.Errorf("%s, mode %d: %v %+v %+v, by the index (%v) %v %+v %+v", pattern, mode, plain.Binary, plain.Skipped, plain.Totals, indexed.Indexed, indexed.Binary, indexed.Skipped, indexed.Totals)
			}
		}
	}
}
