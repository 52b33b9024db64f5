package grep

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

// Found has the rows of a Content search, and Named all the files that it looked at.
func TestFoundAndNamed(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{".gitignore": {Data: []byte("*.out\n")}, "x.out": {Data: []byte("hit\n")},
		"empty": {}, "skip.md": {Data: []byte("hit\n")}}
	for i := range 300 {
		text := strings.Repeat("no\n", i) + "a hit\nno\n" + strings.Repeat("hits\n", i%3)
		files[fmt.Sprintf("d%d/f%03d.go", i%7, i)] = &fstest.MapFile{Data: []byte(text)}
	}
	m := compile(t, "hit", match.Options{})
	q := Query{Matcher: m, Mode: Content, Before: 1, After: 1, Glob: []string{"!*.md"}}
	want := searched(t, Walk{Dir: FS(files)}, q)
	var mu sync.Mutex
	var got []Row
	var names []string
	q.Found = func(f FileHit, rows []Row) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range rows {
			r.Path = f.Path
			got = append(got, r)
		}
	}
	q.Named = func(path string) {
		mu.Lock()
		defer mu.Unlock()
		names = append(names, path)
	}
	r := searched(t, Walk{Dir: FS(files)}, q)
	slices.SortFunc(got, func(a, b Row) int {
		if c := comparePaths(a.Path, b.Path); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	if !reflect.DeepEqual(got, want.Rows) || r.Rows != nil || r.Totals != want.Totals {
		t.Errorf("%d rows, want %d; %+v, want %+v", len(got), len(want.Rows), r.Totals, want.Totals)
	}
	if len(names) != 302 || !slices.Contains(names, "empty") || slices.Contains(names, "x.out") ||
		slices.Contains(names, "skip.md") {
		t.Errorf("%d names", len(names))
	}
	got, q.Limit = nil, 2
	if _, err := Search(context.Background(), Walk{Dir: FS(files)}, q); err != nil || len(got) != 600 {
		t.Errorf("%d rows within a limit of 2 a file, %v", len(got), err)
	}
}
