//go:build !rooted

package sandbox

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

func plant(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		err := os.MkdirAll(filepath.Dir(dir+"/"+name), 0o755)
		if err = errors.Join(err, os.WriteFile(dir+"/"+name, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// A worker finds the same as a search without one.
func TestSearchElsewhere(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{
		"a.go": "one needle\ntwo\n", "sub/b.go": "needle\nneedle \xff\n", "no/c.go": "needle\n",
		".gitignore": "skipped\n", "skipped": "needle\n", "n\xffme.txt": "needle", "big": strings.Repeat("needle\n", 1000),
	})
	rules := policy.Rules{Only: dir, Deny: []string{dir + "/no/**"}}
	here, err := guardfs.New(guardfs.Options{Judge: anything{}})
	must(t, err)
	defer here.Close()
	judge, err := rules.Policy(here)
	must(t, err)
	s := begin(t, dir)
	for _, mode := range []grep.Mode{grep.FilesWithMatches, grep.Content, grep.Count} {
		for _, file := range []string{"", "/sub/b.go"} {
			w, end := open(t, here.With(judge), dir+file)
			m, err := match.Compile("needle", match.Options{})
			must(t, err)
			q := grep.Query{Matcher: m, Mode: mode, Limit: 20, After: 1}
			want, err := grep.Search(t.Context(), w, q)
			must(t, err)
			w.Elsewhere = s.Calls().(calls).Elsewhere(rules, judge)
			got, err := grep.Search(t.Context(), w, q)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("mode %d of %q: %v\n%+v\nwant\n%+v", mode, file, err, got, want)
			}
			var names []string
			var mu sync.Mutex
			note := func(h grep.FileHit, _ []grep.Row) {
				mu.Lock()
				names = append(names, h.Path)
				mu.Unlock()
			}
			if q.Found = note; mode != grep.Content || file != "" {
				end()
				continue
			}
			if _, err = grep.Search(t.Context(), w, q); err != nil || len(names) == 0 {
				t.Error("file by file:", names, err)
			}
			found := slices.Sorted(slices.Values(names))
			names, w.Elsewhere = nil, nil
			if _, err = grep.Search(t.Context(), w, q); err != nil ||
				!slices.Equal(found, slices.Sorted(slices.Values(names))) {
				t.Errorf("file by file: %q, want %q; %v", found, names, err)
			}
			end()
		}
	}
	w, end := open(t, here.With(judge), dir)
	defer end()
	want, err := grep.Files(t.Context(), w, grep.GlobQuery{Pattern: "*.go"})
	w.Elsewhere = s.Calls().(calls).Elsewhere(rules, judge)
	got, gerr := grep.Files(t.Context(), w, grep.GlobQuery{Pattern: "*.go"})
	if err != nil || gerr != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("by name: %+v %v, want %+v", got, gerr, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := grep.Files(ctx, w, grep.GlobQuery{}); !errors.Is(err, context.Canceled) {
		t.Error("cancelled:", err)
	}
}

// open is the walk of what has that name.
func open(t *testing.T, f *guardfs.FS, name string) (w grep.Walk, end func()) {
	t.Helper()
	h, err := f.Resolve(name, guardfs.Read)
	must(t, err)
	if h.Object().Info.Kind == guardfs.KindDir {
		d, err := h.Dir()
		must(t, err)
		return grep.Walk{Dir: grep.Guarded(d)}, func() { d.Close(); h.Close() }
	}
	file, err := h.Open()
	must(t, err)
	return grep.Walk{File: grep.GuardedFile(file), Name: name}, func() { file.Close(); h.Close() }
}

// An answer that names what is not below the root ends the worker.
func TestSearchAnswersAreChecked(t *testing.T) {
	e := elsewhere{judge: anything{}}
	for name, good := range map[string]bool{
		"a": true, "sub/b": true, "../x": false, "a/../../x": false, "/etc/passwd": false, "a//b": false,
		"a\x00b": false, ".": false, "": false, "/r/a": true, "/r": false, "/rx": false, "./a": false,
	} {
		f := &found{Result: &grep.Result{Root: "/r", Rows: []grep.Row{{Path: name}}}}
		if ok := e.check(f, &walk{Root: "/r"}); ok != good {
			t.Errorf("%q: %v", name, ok)
		}
	}
}

// An answer that would take much more room here than it has bytes is not taken apart.
func TestSearchAnswersAreCounted(t *testing.T) {
	t.Parallel()
	type rows = []struct{ Context bool }
	type files = []struct{ ModTime time.Time }
	type lie struct {
		Result struct {
			Files files
			Rows  rows
		}
		Each []struct {
			File struct{ ModTime time.Time }
			Rows rows
		}
	}
	var many, byFile, named lie
	many.Result.Rows = make(rows, 1_400_000)
	byFile.Each = make([]struct {
		File struct{ ModTime time.Time }
		Rows rows
	}, 2)
	byFile.Each[0].Rows, byFile.Each[1].Rows = many.Result.Rows[:700_000], many.Result.Rows[700_000:]
	named.Result.Files = make(files, 1_400_000)
	for _, c := range []struct {
		name   string
		answer any
		fits   bool
	}{
		{"much", found{Result: &grep.Result{Rows: make([]grep.Row, 100_000), Files: make([]grep.FileHit, 9)}}, true},
		{"much by file", found{Each: []hit{{Rows: make([]grep.Row, 90_000)}, {}}, Named: make([]byte, 90_000)}, true},
		{"by name", found{Files: &grep.FilesResult{Files: make([]grep.FileHit, 90_000)}}, true},
		{"rows", many, false},
		{"rows by file", byFile, false},
		{"files", named, false},
		{"names", found{Named: make([]byte, 9_000_000)}, false},
	} {
		var b bytes.Buffer
		must(t, gob.NewEncoder(&b).Encode(c.answer))
		if fits(b.Bytes()) != c.fits {
			t.Errorf("%s, %d bytes: %v", c.name, b.Len(), !c.fits)
		}
	}
}

// Hits that are too many for one answer make that a part, and end no worker.
func TestMoreIsFoundThanFits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files, row := map[string]string{}, "needle "+strings.Repeat("x", 2000)+"\n"
	for i := range 35 {
		files[strconv.Itoa(i)] = strings.Repeat(row, 1000)
	}
	plant(t, dir, files)
	s := begin(t, dir)
	rules := policy.Rules{Only: dir}
	w, end := open(t, over(t, s), dir)
	defer end()
	w.Elsewhere = s.Calls().(calls).Elsewhere(rules, anything{})
	m, err := match.Compile("needle", match.Options{})
	must(t, err)
	var rows atomic.Int64
	r, err := grep.Search(t.Context(), w, grep.Query{Matcher: m, Mode: grep.Content, Limit: 1000, MaxColumns: 4000,
		Found: func(_ grep.FileHit, all []grep.Row) { rows.Add(int64(len(all))) }})
	if err != nil || !r.Partial || rows.Load() < 10_000 {
		t.Errorf("%d rows, partial %v: %v", rows.Load(), r != nil && r.Partial, err)
	}
}
