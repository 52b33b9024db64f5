package grep

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"moltisfs/grep/match"
)

func compile(t testing.TB, p string, o match.Options) *match.Matcher {
	t.Helper()
	m, err := match.Compile(p, o)
	must(t, err)
	return m
}

// searched gives the result of a search, by buffers of the given sizes, or else the usual ones.
func searched(t testing.TB, w Walk, q Query, size ...sizes) *Result {
	t.Helper()
	r, err := searchSized(t.Context(), w, q, append(size, defaultSizes())[0])
	must(t, err)
	return r
}

// treeFS makes a file system of "path: content" pairs; the n-th file is n minutes old.
func treeFS(files ...string) fstest.MapFS {
	m := fstest.MapFS{}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = &fstest.MapFile{Data: []byte(files[i+1]), Mode: 0o644, ModTime: now.Add(-time.Duration(i) * time.Minute)}
	}
	return m
}

// show writes a result as ripgrep would print it, for comparison.
func show(r *Result) string {
	var b strings.Builder
	for _, f := range r.Files {
		if f.Lines > 0 {
			fmt.Fprintf(&b, "%s:%d/%d\n", f.Path, f.Lines, f.Matches)
		} else {
			fmt.Fprintf(&b, "%s\n", f.Path)
		}
	}
	for _, row := range r.Rows {
		sep := ":"
		if row.Context {
			sep = "-"
		}
		fmt.Fprintf(&b, "%s%s%d%s%s\n", row.Path, sep, row.Line, sep, row.Text)
	}
	return b.String()
}

func TestSearch(t *testing.T) {
	fs := treeFS(
		"a.go", "package a\n\nfunc main() {\n\tfoo()\n\tfoo(); foo()\n}\n",
		"b/c.txt", "nothing\nfoo\r\nend",
		"b/d.go", "one\ntwo\nthree\nfoo\nfive\nsix\nseven\nfoo\n",
		"node_modules/x.js", "foo\n",
		".gitignore", "node_modules/\n",
		".git/HEAD", "ref: refs/heads/main\n",
		".git/config", "foo\n",
		"bin", "foo\x00foo\n",
		"late", "foo\n"+strings.Repeat("x\n", 900)+"\x00",
	)
	for _, c := range []struct {
		name, pattern string
		o             match.Options
		q             Query
		want          string
	}{
		{"files", "foo", match.Options{}, Query{}, "a.go\nb/c.txt\nb/d.go\n"},
		{"count", "foo", match.Options{}, Query{Mode: Count}, "a.go:2/3\nb/c.txt:1/1\nb/d.go:2/2\n"},
		{"content", "foo", match.Options{}, Query{Mode: Content},
			"a.go:4:\tfoo()\na.go:5:\tfoo(); foo()\nb/c.txt:2:foo\nb/d.go:4:foo\nb/d.go:8:foo\n"},
		{"context", "foo$", match.Options{CRLF: true}, Query{Mode: Content, Before: 1, After: 2},
			"b/c.txt-1-nothing\nb/c.txt:2:foo\nb/c.txt-3-end\nb/d.go-3-three\nb/d.go:4:foo\nb/d.go-5-five\nb/d.go-6-six\nb/d.go-7-seven\nb/d.go:8:foo\n"},
		{"overlap", "three|five", match.Options{}, Query{Mode: Content, Before: 3, After: 3},
			"b/d.go-1-one\nb/d.go-2-two\nb/d.go:3:three\nb/d.go-4-foo\nb/d.go:5:five\nb/d.go-6-six\nb/d.go-7-seven\nb/d.go-8-foo\n"},
		{"only", "fo+", match.Options{}, Query{Mode: Content, OnlyMatching: true, Glob: []string{"*.go"}},
			"a.go:4:foo\na.go:5:foo\na.go:5:foo\nb/d.go:4:foo\nb/d.go:8:foo\n"},
		{"limit", "foo", match.Options{}, Query{Mode: Content, Limit: 2, Offset: 1}, "a.go:5:\tfoo(); foo()\nb/c.txt:2:foo\n"},
		{"limit files", "foo", match.Options{}, Query{Limit: 1, Offset: 1}, "b/c.txt\n"},
		{"glob list", "foo", match.Options{}, Query{Glob: []string{"*.{go,txt}, !b/d.go"}}, "a.go\nb/c.txt\n"},
		{"glob path", "foo", match.Options{}, Query{Glob: []string{"b/**/*.go"}}, "b/d.go\n"},
		{"glob excludes a directory", "foo", match.Options{}, Query{Glob: []string{"!b"}}, "a.go\n"},
		{"glob excludes a directory, slash", "foo", match.Options{}, Query{Glob: []string{"!b/, *.go"}}, "a.go\n"},
		{"glob takes back", "foo", match.Options{}, Query{Glob: []string{"!*.go", "d.go"}}, "b/d.go\n"},
		{"glob untidy", "foo", match.Options{}, Query{Glob: []string{"./b//./*.go"}}, "b/d.go\n"},
		{"type", "foo", match.Options{}, Query{Type: []string{"go"}}, "a.go\nb/d.go\n"},
		{"multiline", `two\nthree`, match.Options{Multiline: true}, Query{Mode: Content, Multiline: true}, "b/d.go:2:two\nb/d.go:3:three\n"},
		{"multiline behind the last line", `\z`, match.Options{Multiline: true}, Query{Multiline: true}, "b/c.txt\n"}, // it has no final line end
		{"multiline behind the last line, count", `\z`, match.Options{Multiline: true}, Query{Mode: Count, Multiline: true}, "b/c.txt:1/1\n"},
		{"multiline count", `o\n`, match.Options{Multiline: true}, Query{Mode: Count, Multiline: true}, "b/d.go:3/3\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.Matcher = compile(t, c.pattern, c.o)
			for _, workers := range []int{1, 3} {
				r := searched(t, Walk{Dir: FS(fs), Workers: workers}, c.q)
				if got := show(r); got != c.want {
					t.Errorf("%d workers:\n%s\nwant\n%s", workers, got, c.want)
				}
			}
		})
	}
	q := Query{Matcher: compile(t, "foo", match.Options{}), Mode: Content, Limit: 1}
	r := searched(t, Walk{Dir: FS(fs)}, q)
	if want := (Totals{Files: 3, Lines: 5, Rows: 5, Scanned: 6}); r.Totals != want || !r.Truncated {
		t.Errorf("totals %+v truncated %v, want %+v", r.Totals, r.Truncated, want)
	}
	if want := (Skipped{Ignored: 1, VCS: 1}); r.Skipped != want || !slices.Equal(r.Binary, []string{"bin", "late"}) {
		t.Errorf("skipped %+v, want %+v; binary %v", r.Skipped, want, r.Binary)
	}
}

func TestFiles(t *testing.T) {
	fs := treeFS("a.go", "", "b/c.go", "", "b/d/e.go", "", "b/f.txt", "", ".hidden.go", "", "x/y.go", "", ".svn/z.go", "")
	for _, c := range []struct {
		pattern string
		want    string
	}{
		{"*.go", "a.go b/c.go b/d/e.go .hidden.go x/y.go"},
		{"", "a.go b/c.go b/d/e.go b/f.txt .hidden.go x/y.go"},
		{"**/*.go", "a.go b/c.go b/d/e.go .hidden.go x/y.go"},
		{"b/*.go", "b/c.go"},
		{"b/**", "b/c.go b/d/e.go b/f.txt"},
		{"b/", "b/c.go b/d/e.go b/f.txt"},
		{"/*.go", "a.go .hidden.go"},
		{"{b,x}/*.go", "b/c.go x/y.go"},
		{"*.[gh]o", "a.go b/c.go b/d/e.go .hidden.go x/y.go"},
		{"**/d/**/*.go", "b/d/e.go"},
		{"y.go", "x/y.go"},
		{"c?go", "b/c.go"},
		{".", "a.go b/c.go b/d/e.go b/f.txt .hidden.go x/y.go"},
		{"./b//*.go", "b/c.go"},
		{"!*.go", "b/f.txt"},
		{"!b", "a.go .hidden.go x/y.go"},
	} {
		r, err := Files(context.Background(), Walk{Dir: FS(fs)}, GlobQuery{Pattern: c.pattern})
		if err != nil {
			t.Fatal(c.pattern, err)
		}
		var got []string
		for _, f := range r.Files {
			got = append(got, f.Path)
		}
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: %v, want %s", c.pattern, got, c.want)
		}
	}
	r, err := Files(context.Background(), Walk{Dir: FS(fs)}, GlobQuery{Pattern: "*.go", Limit: 2, Offset: 1})
	if err != nil || len(r.Files) != 2 || r.Files[0].Path != "b/c.go" || r.Total != 5 || !r.Truncated {
		t.Errorf("paged: %+v %v", r, err)
	}
	for _, bad := range []string{"[a", "{a", "a}", `a\`, "../x", "b/*/../c.go", "{b,..}/c.go", "{a,b}{c,d}{e,f}" + strings.Repeat("{a,b}", 9)} {
		if _, err := Files(context.Background(), Walk{Dir: FS(fs)}, GlobQuery{Pattern: bad}); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
