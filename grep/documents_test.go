package grep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"moltisfs/grep/match"
)

// upper takes files that begin with "DOC" for documents: their text is what follows, in lower case, two lines a page.
type upper struct {
	made atomic.Int64
	stop func() // called by each Text
}

func (*upper) Is(_ File, head []byte, _ bool) bool { return bytes.HasPrefix(head, []byte("DOC")) }

func (u *upper) Text(ctx context.Context, name string, f File) (*DocumentText, error) {
	u.made.Add(1)
	if u.stop != nil {
		u.stop()
		return nil, ctx.Err()
	}
	b := make([]byte, f.Info().Size)
	if _, err := f.ReadAt(b, 0); err != nil && !strings.Contains(err.Error(), "EOF") {
		return nil, err
	}
	b = bytes.ToLower(b[3:])
	if bytes.Contains(b, []byte("broken")) {
		return nil, fmt.Errorf("%s is broken", name)
	}
	place := func(line int) Place {
		return Place{Name: fmt.Sprintf("page %d", (line+1)/2), Pages: fmt.Sprint((line + 1) / 2)}
	}
	return &DocumentText{Content: b, Place: place, Cut: bytes.Contains(b, []byte("cut")), Denied: bytes.Count(b, []byte("denied"))}, nil
}

func TestDocuments(t *testing.T) {
	doc := func(lines ...string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("DOC" + strings.Join(lines, "\n") + "\n")}
	}
	tree := fstest.MapFS{
		"a.doc": doc("ONE", "NEEDLE", "THREE"), "b.txt": {Data: []byte("needle\n")}, "sub/c.doc": doc("X", "Y", "NEEDLE NEEDLE", "Z", "NEEDLE"),
		"d.doc": doc("BROKEN needle"), "e.doc": doc("CUT", "NEEDLE", "DENIED"), ".gitignore": {Data: []byte("f.doc\n")}, "f.doc": doc("NEEDLE"), "z/none.doc": doc("NOTHING"),
	}
	find := func(q Query, w Walk) *Result {
		t.Helper()
		if q.Matcher == nil {
			q.Matcher = compile(t, "needle", match.Options{})
		}
		if w.Dir == nil && w.File == nil {
			w.Dir = FS(tree)
		}
		r, err := Search(t.Context(), w, q)
		must(t, err)
		return r
	}
	shown := func(r *Result) (out []string) {
		for _, row := range r.Rows {
			place := fmt.Sprint(row.Line)
			if row.Place != nil {
				place = row.Place.Name
			}
			out = append(out, row.Path+":"+place+":"+row.Text)
		}
		return out
	}
	all := []string{"a.doc:page 1:needle", "b.txt:1:needle", "d.doc:1:DOCBROKEN needle", "e.doc:page 1:needle", "sub/c.doc:page 2:needle needle", "sub/c.doc:page 3:needle"}
	for _, workers := range []int{1, 4} {
		w := Walk{Documents: &upper{}, Workers: workers}
		r := find(Query{Mode: Content}, w)
		if !slices.Equal(shown(r), all) {
			t.Errorf("rows %q", shown(r))
		}
		if want := (Skipped{Ignored: 1, Documents: 2, Denied: 1}); r.Skipped != want || r.Partial || r.Totals.Files != 5 || r.Totals.Scanned != 7 {
			t.Errorf("skipped %+v, totals %+v", r.Skipped, r.Totals)
		}
		if r := find(Query{Mode: Content, Offset: 3, Limit: 2}, w); !slices.Equal(shown(r), all[3:5]) || r.Totals.Rows != 6 {
			t.Errorf("a page: %q", shown(r))
		}
		if r := find(Query{Mode: Count, Glob: []string{"c.doc"}}, w); len(r.Files) != 1 || r.Files[0].Lines != 2 || r.Files[0].Matches != 3 {
			t.Errorf("count: %+v", r.Files)
		}
		if r := find(Query{}, w); len(r.Files) != 5 {
			t.Errorf("files: %+v", r.Files)
		}
		if r := find(Query{Mode: Content, Before: 1, Glob: []string{"a.doc"}}, w); !slices.Equal(shown(r), []string{"a.doc:page 1:one", "a.doc:page 1:needle"}) {
			t.Errorf("context: %q", shown(r))
		}
		many := Query{Mode: Content, Multiline: true, Glob: []string{"a.doc"}, Matcher: compile(t, "one.needle.three", match.Options{Multiline: true})}
		if r := find(many, w); !slices.Equal(shown(r), []string{"a.doc:page 1:one", "a.doc:page 1:needle", "a.doc:page 2:three"}) {
			t.Errorf("several lines: %q", shown(r))
		}
	}
	one := func(name string) Walk {
		f, err := FS(tree).OpenFile(name)
		must(t, err)
		return Walk{File: f, Name: "/" + name, Documents: &upper{}}
	}
	if r := find(Query{Mode: Content}, one("a.doc")); r.Why() != nil || !slices.Equal(shown(r), []string{"/a.doc:page 1:needle"}) {
		t.Errorf("one: %v %q", r.Why(), shown(r))
	}
	if r := find(Query{}, one("d.doc")); r.Why() == nil || r.Why().Error() != "/d.doc is broken" || len(r.Files) != 1 {
		t.Errorf("a broken one: %v", r.Why())
	}
	if r := find(Query{Mode: Content}, Walk{}); len(r.Rows) != 2 {
		t.Errorf("without: %q", shown(r))
	}
	u := &upper{}
	if find(Query{MaxFileBytes: 3}, Walk{Documents: u}); u.made.Load() != 0 {
		t.Error("long documents are converted")
	}
}

// TestDocumentsAreLast: what a deadline leaves of them is counted, and the other files are searched.
func TestDocumentsAreLast(t *testing.T) {
	tree := fstest.MapFS{"sub/z.txt": {Data: []byte("needle\n")}}
	for i := range 10_000 {
		tree[fmt.Sprintf("a%d.doc", i)] = &fstest.MapFile{Data: []byte("DOCNEEDLE\n"), Mode: fs.ModePerm}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := overdue{ctx}
	u := &upper{stop: func() { cancel(context.DeadlineExceeded) }}
	began := time.Now()
	r, err := Search(over, Walk{Dir: FS(tree), Documents: u}, Query{Matcher: compile(t, "needle", match.Options{})})
	must(t, err)
	if len(r.Files) != 1 || r.Skipped != (Skipped{LateDocuments: 10_000}) || !r.Partial || u.made.Load() == 10_000 {
		t.Errorf("%+v; %d were made in %s", r, u.made.Load(), time.Since(began))
	}
	ctx, cancel2 := context.WithCancel(t.Context())
	u = &upper{stop: cancel2}
	if _, err := Search(ctx, Walk{Dir: FS(tree), Documents: u}, Query{Matcher: compile(t, "needle", match.Options{})}); !errors.Is(err, context.Canceled) {
		t.Error("cancelled:", err)
	}
}

// overdue is a context whose end is its deadline.
type overdue struct{ context.Context }

func (o overdue) Err() error { return context.Cause(o.Context) }
