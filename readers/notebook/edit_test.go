package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// look is one way in which a program writes notebooks.
type look struct {
	name                     string
	indent, newline          string // no newline: all on one line
	comma, colon             string
	ascii, strings, unsorted bool
	head, tail               string
}

var looks = []look{
	{name: "jupyter", indent: " ", newline: "\n", colon: ": ", tail: "\n"},
	{name: "two spaces, no final newline", indent: "  ", newline: "\n", colon: ": "},
	{name: "tabs, CRLF", indent: "\t", newline: "\r\n", colon: ": ", tail: "\r\n"},
	{name: "four spaces, escapes", indent: "    ", newline: "\n", colon: ": ", ascii: true, tail: "\n"},
	{name: "one line", comma: " ", colon: ": "},
	{name: "dense", colon: ":", tail: "\n"},
	{name: "sources as text, keys unsorted, BOM", indent: " ", newline: "\n", colon: ": ", strings: true, unsorted: true, head: "\ufeff"},
}

type testCell struct {
	id, kind, source string
	outputs          int
	count            int // 0: null
}

// write renders a notebook in a look. It is the naive model of what an edit must leave.
func (l look) write(minor int, cells []testCell) string {
	var b strings.Builder
	line := func(depth int) string {
		if l.newline == "" {
			return ""
		}
		return l.newline + strings.Repeat(l.indent, depth)
	}
	list := func(depth int, open, end string, items []string) string {
		if len(items) == 0 {
			return open + end
		}
		sep := "," + l.comma
		if l.newline != "" {
			sep = "," + line(depth+1)
		}
		return open + line(depth+1) + strings.Join(items, sep) + line(depth) + end
	}
	q := func(s string) string { return quoteJSON(s, l.ascii) }
	kv := func(k, v string) string { return q(k) + l.colon + v }
	var all []string
	for _, c := range cells {
		src := q(c.source)
		if !l.strings {
			var lines []string
			for _, s := range splitSource(c.source) {
				lines = append(lines, q(s))
			}
			src = list(3, "[", "]", lines)
		}
		m := []string{kv("cell_type", q(c.kind))}
		if c.kind == "code" {
			n := "null"
			if c.count > 0 {
				n = fmt.Sprint(c.count)
			}
			m = append(m, kv("execution_count", n))
		}
		if minor >= 5 {
			m = append(m, kv("id", q(c.id)))
		}
		m = append(m, kv("metadata", "{}"))
		if c.kind == "code" {
			var outs []string
			for range c.outputs {
				outs = append(outs, list(4, "{", "}", []string{kv("name", q("stdout")), kv("output_type", q("stream")), kv("text", q("a]}\"\\,"))}))
			}
			m = append(m, kv("outputs", list(3, "[", "]", outs)))
		}
		m = append(m, kv("source", src))
		if l.unsorted {
			slices.Reverse(m)
		}
		all = append(all, list(2, "{", "}", m))
	}
	top := []string{
		kv("cells", list(1, "[", "]", all)),
		kv("metadata", list(1, "{", "}", []string{kv("x", q("é ☃ 𝄞\u0001"))})),
		kv("nbformat", "4"), kv("nbformat_minor", fmt.Sprint(minor)),
	}
	b.WriteString(l.head + list(0, "{", "}", top) + l.tail)
	return b.String()
}

func testCells() []testCell {
	return []testCell{
		{id: "a1", kind: "markdown", source: "# Title\n\nwords é"},
		{id: "b2", kind: "code", source: "print(\"1\\n\")\n\nx = '𝄞'\n", outputs: 2, count: 7},
		{id: "c3", kind: "code", source: "y = 2", count: 8},
		{id: "d4", kind: "raw", source: "raw\ttext"},
	}
}

func TestNotebookEditKeepsEveryLook(t *testing.T) {
	edits := []struct {
		name  string
		edit  Edit
		model func([]testCell, string) []testCell
	}{
		{"replace code", Edit{CellID: "b2", Source: "print(\"1\\n\")\nz\n"}, func(c []testCell, _ string) []testCell {
			c[1].source, c[1].outputs, c[1].count = "print(\"1\\n\")\nz\n", 0, 0
			return c
		}},
		{"replace with nothing", Edit{CellID: "c3"}, func(c []testCell, _ string) []testCell {
			c[2].source, c[2].count = "", 0
			return c
		}},
		{"markdown to code", Edit{CellID: "a1", CellType: "code", Source: "é = 1"}, func(c []testCell, _ string) []testCell {
			c[0] = testCell{id: "a1", kind: "code", source: "é = 1"}
			return c
		}},
		{"code to markdown", Edit{CellID: "b2", CellType: "markdown", Source: "text\nmore"}, func(c []testCell, _ string) []testCell {
			c[1] = testCell{id: "b2", kind: "markdown", source: "text\nmore"}
			return c
		}},
		{"insert first", Edit{Mode: "insert", CellType: "markdown", Source: "new ☃\n"}, func(c []testCell, id string) []testCell {
			return slices.Insert(c, 0, testCell{id: id, kind: "markdown", source: "new ☃\n"})
		}},
		{"insert between", Edit{Mode: "insert", CellID: "b2", CellType: "code", Source: "a\nb"}, func(c []testCell, id string) []testCell {
			return slices.Insert(c, 2, testCell{id: id, kind: "code", source: "a\nb"})
		}},
		{"insert last", Edit{Mode: "insert", CellID: "d4", CellType: "code"}, func(c []testCell, id string) []testCell {
			return append(c, testCell{id: id, kind: "code"})
		}},
		{"delete first", Edit{Mode: "delete", CellID: "a1"}, func(c []testCell, _ string) []testCell { return c[1:] }},
		{"delete last", Edit{Mode: "delete", CellID: "d4"}, func(c []testCell, _ string) []testCell { return c[:3] }},
	}
	for _, l := range looks {
		for _, minor := range []int{5, 4} {
			for _, e := range edits {
				t.Run(fmt.Sprintf("%s/4.%d/%s", l.name, minor, e.name), func(t *testing.T) {
					in := e.edit
					if minor < 5 && in.CellID != "" {
						for i, c := range testCells() {
							if c.id == in.CellID {
								in.CellID = fmt.Sprintf("cell-%d", i)
							}
						}
					}
					before := []byte(l.write(minor, testCells()))
					kept := bytes.Clone(before)
					r, err := Apply(before, in)
					must(t, err)
					want := l.write(minor, e.model(testCells(), r.CellID))
					if l.unsorted && (e.name == "markdown to code" || in.Mode == "insert") {
						checkNotebookEdit(t, before, in) // new keys come last, where no order tells their place, and a new cell has the usual order
						return
					}
					if string(r.Content) != want {
						t.Errorf("got\n%s\nwant\n%s", r.Content, want)
					}
					if !bytes.Equal(before, kept) {
						t.Error("the caller's bytes were changed")
					}
				})
			}
		}
	}
}

func TestNotebookEditAtTheEdges(t *testing.T) {
	jupyter := looks[0]
	empty := jupyter.write(5, nil)
	r, err := Apply([]byte(empty), Edit{Mode: "insert", CellType: "code", Source: "a\nb"})
	must(t, err)
	one := []testCell{{id: r.CellID, kind: "code", source: "a\nb"}}
	if want := jupyter.write(5, one); string(r.Content) != want {
		t.Errorf("the first cell:\n%s\nwant\n%s", r.Content, want)
	}
	again, _ := Apply([]byte(empty), Edit{Mode: "insert", CellType: "code", Source: "a\nb"})
	if !bytes.Equal(again.Content, r.Content) {
		t.Error("the same call on the same bytes gives other bytes")
	}
	r, err = Apply(r.Content, Edit{Mode: "delete", CellID: r.CellID})
	if err != nil || string(r.Content) != empty {
		t.Errorf("%v: the last cell deleted:\n%s", err, r.Content)
	}
	full := []byte(jupyter.write(5, testCells()))
	if r, err := Apply(full, Edit{CellID: "b2", Source: testCells()[1].source}); err != nil || !bytes.Equal(r.Content, full) {
		t.Errorf("%v: the same source changed the file", err)
	}
	var none *NoCellError
	if _, err := Apply(full, Edit{CellID: "B2"}); !errors.As(err, &none) || none.Nearest != "b2" || len(none.Cells) != 4 {
		t.Errorf("an unknown id: %v", err)
	}
	alike := []byte(`{"cells":[{"cell_type":"raw","id":"abcd1","metadata":{},"source":"x"},{"cell_type":"raw","id":"abcd2","metadata":{},"source":"y"}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	if _, err := Apply(alike, Edit{CellID: "abcd"}); !errors.As(err, &none) || none.Nearest != "" {
		t.Errorf("a call with the nearest id would change one of two cells by chance: %v", err)
	}
	twice := bytes.Replace(full, []byte(`"c3"`), []byte(`"b2"`), 1)
	if _, err := Apply(twice, Edit{CellID: "b2"}); !errors.As(err, &none) || none.Count != 2 {
		t.Errorf("an id that two cells have: %v", err)
	}
	for _, bad := range []string{"", "x", "[]", `"s"`, `{"nbformat":4}`, `{"cells":[],"nbformat":3}`, `{"cells":[1],"nbformat":4}`, `{"cells":{},"nbformat":4}`,
		`{"cells":[],"cells":[],"nbformat":4}`, `{"cells":[{"id":"a","id":"b"}],"nbformat":4}`, `{"cells":[{"id":"a","source":[1]}],"nbformat":4,"nbformat_minor":5}`} {
		var not *NotNotebookError
		if _, err := Apply([]byte(bad), Edit{CellID: "a", Source: "s"}); !errors.As(err, &not) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Hand-written layouts are no model's: only the meaning can be compared, and the bytes outside.
func TestNotebookEditOfOddLayouts(t *testing.T) {
	for _, src := range []string{
		`{"cells":[{}],"nbformat":4}`,
		`{"cells":[{"id":"x"}],"nbformat":4,"nbformat_minor":5}`,
		"{\"nbformat\":4,\"cells\" : [ { \"cell_type\" : \"code\" , \"source\" : [ \"a\\n\",\"b\" ] } ] }",
		"{\"nbformat\":4,\n\"cells\":\n[\n{\"source\":\n\"a\",\n\"cell_type\":\"code\"}\n]\n}",
	} {
		n, err := locate([]byte(src))
		must(t, err)
		id := n.cells[0].id
		for _, e := range []Edit{
			{CellID: id, Source: "q\nr"}, {CellID: id, Source: "q", CellType: "markdown"}, {CellID: id, CellType: "code", Source: "1"},
			{Mode: "insert", CellType: "code", Source: "n"}, {Mode: "insert", CellID: id, CellType: "markdown", Source: "n\nm"}, {Mode: "delete", CellID: id},
		} {
			checkNotebookEdit(t, []byte(src), e)
		}
	}
}

// checkNotebookEdit compares an edit with the same done on the decoded notebook.
func checkNotebookEdit(t *testing.T, src []byte, e Edit) {
	t.Helper()
	r, err := Apply(src, e)
	if err != nil {
		return
	}
	decode := func(b []byte) (top map[string]any, cells []any) {
		if err := json.Unmarshal(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), &top); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		cells, _ = top["cells"].([]any)
		delete(top, "cells")
		return top, cells
	}
	topBefore, before := decode(src)
	topAfter, after := decode(r.Content)
	if fmt.Sprint(topBefore) != fmt.Sprint(topAfter) {
		t.Errorf("the notebook's own keys changed: %v, were %v", topAfter, topBefore)
	}
	if len(after) != r.Cells {
		t.Errorf("%d cells, it says %d", len(after), r.Cells)
	}
	at := r.Cell - 1
	rest := slices.Clone(after)
	if e.Mode != "delete" {
		cell := after[at].(map[string]any)
		got, _ := cell["source"].(string)
		if list, ok := cell["source"].([]any); ok {
			for _, l := range list {
				s, _ := l.(string)
				got += s
			}
		}
		if want := strings.ToValidUTF8(e.Source, "\uFFFD"); got != want {
			t.Errorf("%+v: the source is %q", e, got)
		}
		if e.CellType != "" && cell["cell_type"] != e.CellType {
			t.Errorf("%+v: the type is %v", e, cell["cell_type"])
		}
		rest = slices.Delete(rest, at, at+1)
	}
	if e.Mode != "insert" {
		before = slices.Delete(slices.Clone(before), at, at+1)
	}
	if fmt.Sprint(before) != fmt.Sprint(rest) {
		t.Errorf("%+v: other cells changed", e)
	}
}

func FuzzNotebookEdit(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, l := range looks {
		src := l.write(5, testCells())
		f.Add([]byte(src), "b2", "code", "x\ny", byte(0))
		f.Add([]byte(src), "a1", "markdown", "\x00\u2028", byte(1))
		cut := []byte(src)
		cut[rng.IntN(len(cut))] ^= 1
		f.Add(cut, "a1", "", "", byte(2))
	}
	f.Add([]byte(`{"cells":[{"":0}],"nbformat":4}`), "cell-0", "code", "", byte(0))
	f.Fuzz(func(t *testing.T, src []byte, id, kind, text string, mode byte) {
		e := Edit{Mode: []string{"replace", "insert", "delete"}[mode%3], CellID: id, CellType: kind, Source: text}
		if e.Mode == "insert" && kind == "" {
			e.CellType = "code"
		}
		if !json.Valid([]byte(quoteJSON(kind, false))) {
			return
		}
		checkNotebookEdit(t, src, e)
	})
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// nbformat 4 gives attachments to markdown and raw cells only: one that becomes a code cell must lose them, and says so.
func TestACodeCellHasNoAttachments(t *testing.T) {
	const cell = `{"attachments":{"a.png":{"image/png":"iVBORw0KGgo="},"b.png":{}},"cell_type":"markdown","id":"m","metadata":{},"source":"![a](attachment:a.png)"}`
	nb := []byte(`{"cells":[` + cell + `],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	for kind, want := range map[string]int{"code": 2, "raw": 0, "markdown": 0, "": 0} {
		r, err := Apply(nb, Edit{CellID: "m", CellType: kind, Source: "x = 1"})
		must(t, err)
		if kept := strings.Contains(string(r.Content), "attachments"); kept == (want > 0) || r.AttachmentsRemoved != want {
			t.Errorf("as %q: %d removed, kept %v: %s", kind, r.AttachmentsRemoved, kept, r.Content)
		}
	}
	odd := []byte(strings.Replace(string(nb), `{"a.png":{"image/png":"iVBORw0KGgo="},"b.png":{}}`, "[]", 1))
	if r, err := Apply(odd, Edit{CellID: "m", CellType: "code", Source: "x"}); err != nil || strings.Contains(string(r.Content), "attachments") {
		t.Errorf("attachments that are no object: %v", err)
	}
}
