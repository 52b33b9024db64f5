package readers

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"
)

func isOutOfTime(err error) bool {
	var late *OutOfTime
	return errors.As(err, &late)
}

var everyPage = flag.Bool("readers.everypage", false, "follow the answers through long PDFs too, by the smallest pages")

// shown collects the content for a caller that follows each answer, piece by piece: a line, a page, a cell or an entry each.
type shown struct {
	t      *testing.T
	raw    []byte
	pieces map[int]string
	calls  int
}

func (s *shown) read(o Options) Content {
	s.t.Helper()
	if s.calls++; s.calls > 20_000 {
		s.t.Fatalf("going on as the answers say does not end: %+v", o)
	}
	c, err := readBytes(s.t, s.raw, o)
	if err != nil {
		s.t.Fatalf("%+v: %v", o, err)
	}
	return c
}

// add takes a piece from its beginning, or what follows of one that has begun.
func (s *shown) add(n int, piece string, begins bool) {
	s.t.Helper()
	if _, known := s.pieces[n]; known == begins {
		s.t.Fatalf("piece %d: shown twice, or not from its beginning: %.60q", n, piece)
	}
	s.pieces[n] += piece
}

// follow reads on until nothing is left.
func follow(t *testing.T, raw []byte, o Options) map[int]string {
	t.Helper()
	s := &shown{t: t, raw: raw, pieces: map[int]string{}}
	for {
		switch c := s.read(o).(type) {
		case *Text:
			next, more := s.text(c, o)
			if o = next; !more {
				return s.pieces
			}
		case *PDF:
			first := o.Column <= 1
			for _, page := range strings.Split("\n"+c.Text, "\n--- Page ")[1:] {
				number, text, _ := strings.Cut(page, " ---\n")
				text = strings.TrimSuffix(text, "\n")
				if c.NextColumn > 0 {
					text = strings.TrimSuffix(text, "…")
				}
				n, err := strconv.Atoi(number)
				must(t, err)
				s.add(n, text, first)
				first = true
			}
			for _, img := range c.Images {
				s.add(-img.Page, img.Base64, true)
			}
			if o.Pages, o.Column = c.NextPages, c.NextColumn; o.Pages == "" {
				return s.pieces
			}
		case *Notebook:
			next, more := s.notebook(c, o)
			if o = next; !more {
				return s.pieces
			}
		case *Binary:
			for i, l := range c.Listing {
				s.add(max(c.StartEntry, 1)+i, l, true)
			}
			if c.Base64 != "" {
				b, err := base64.StdEncoding.DecodeString(c.Base64)
				must(t, err)
				s.add(0, string(b), o.Offset == 0)
			}
			if o.Offset = int(c.NextOffset); o.Offset == 0 {
				return s.pieces
			}
		case *Image:
			return map[int]string{0: c.Base64}
		}
	}
}

func (s *shown) text(c *Text, o Options) (next Options, more bool) {
	lines := strings.SplitAfter(c.Content, "\n")
	for i, l := range lines[:len(lines)-1] {
		_, l, _ = strings.Cut(strings.TrimSuffix(l, "\n"), "→")
		n := c.StartLine + i
		cut := c.NextColumn > 0
		for _, k := range c.CutLines {
			cut = cut || k == n
		}
		if cut {
			l = strings.TrimSuffix(l, "…")
		}
		s.add(n, l, o.Column <= 1)
	}
	if len(c.CutLines) < c.LinesCut && c.NextColumn == 0 {
		s.t.Fatalf("%d lines are cut, of which %v are named", c.LinesCut, c.CutLines)
	}
	if o.Column == 0 {
		for _, n := range c.CutLines {
			line := o
			for line.Offset, line.Limit, line.Column = n, 0, c.CutColumn; line.Column > 0; {
				part := s.read(line).(*Text)
				s.text(part, line)
				if line.Column = part.NextColumn; line.Column > 0 && part.NextOffset != n {
					s.t.Fatalf("line %d goes on at column %d, and the next offset is %d", n, line.Column, part.NextOffset)
				}
			}
		}
	}
	if c.LinesCut > 0 && !c.Truncated {
		s.t.Fatalf("%d lines are cut, and the answer says that nothing was left out", c.LinesCut)
	}
	if c.NextOffset == 0 && (c.NextColumn > 0 || c.Truncated && c.LinesCut == 0) {
		s.t.Fatalf("truncated, and no way on: %+v", c.Note)
	}
	o.Offset, o.Column = c.NextOffset, c.NextColumn // one call
	return o, c.NextOffset > 0
}

func (s *shown) notebook(c *Notebook, o Options) (next Options, more bool) {
	words := func(cell Cell) string {
		all := cell.Source
		for _, out := range cell.Outputs {
			all += out.Text + out.Base64
		}
		return all
	}
	for i, cell := range c.Cells {
		n := c.StartCell + i
		cut := false
		for _, k := range c.Incomplete {
			cut = cut || k == n
		}
		if !cut {
			s.add(n, words(cell), o.Column <= 1)
			continue
		}
		for one := (Options{Offset: n, Column: 1, MaxBytes: o.MaxBytes}); one.Column > 0; {
			part := s.read(one).(*Notebook)
			s.add(n, words(part.Cells[0]), one.Column == 1)
			if one.Column = part.NextColumn; one.Column > 0 && part.NextOffset != n {
				s.t.Fatalf("cell %d goes on at column %d, and the next offset is %d", n, one.Column, part.NextOffset)
			}
		}
	}
	if c.NextColumn > 0 {
		s.t.Fatal("it is asked for by cells, not by columns")
	}
	if c.NextOffset == 0 && c.Truncated && len(c.Incomplete) == 0 || len(c.Incomplete) > 0 && !c.Truncated {
		s.t.Fatal("truncated, and no way on, or not said")
	}
	o.Offset = c.NextOffset
	return o, c.NextOffset > 0
}

// TestFollowingTheAnswersShowsAll: a caller that follows each answer comes to an end, sees nothing twice, and has all that one answer without limits shows.
func TestFollowingTheAnswersShowsAll(t *testing.T) {
	files := map[string][]byte{}
	err := filepath.WalkDir(corpusDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, "/make/") && !strings.HasSuffix(path, "qpdf_password.pdf") && !strings.Contains(path, "/refused/") &&
			!strings.HasSuffix(path, ".heic") && !strings.HasSuffix(path, ".avif") && !(testing.Short() && strings.HasSuffix(path, ".pdf")) {
			files[strings.TrimPrefix(path, corpusDir+"/")], err = os.ReadFile(path)
		}
		return err
	})
	must(t, err)
	long := "short\n" + strings.Repeat("wide line ", 900) + "\n\n" + strings.Repeat("ü€𝄞", 1500) + "\nlast, with no end"
	files["made/long.txt"] = []byte(long)
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(long)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	files["made/wide.txt"] = wide
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, long)
	z.Close()
	files["made/long.gz"] = zipped.Bytes()
	files["made/long.docx"] = docxOf(t, "<w:p><w:r><w:t>"+strings.Repeat("word ", 2000)+"</w:t></w:r></w:p><w:p><w:r><w:t>end</w:t></w:r></w:p>")
	files["made/notebook.ipynb"] = madeNotebook(t)
	var entries []string
	for i := range 333 {
		entries = append(entries, fmt.Sprintf("dir/entry-%d", i), "x")
	}
	files["made/many.zip"] = zipOf(t, entries...)
	for name, raw := range files {
		for _, o := range []Options{{MaxBytes: 700}, {MaxBytes: 3000, Limit: 7}, {MaxBytes: 900, BinaryPolicy: "base64", Render: strings.HasSuffix(name, ".html")}} {
			if strings.HasPrefix(name, "pdf/") && (o.Limit > 0 || !*everyPage && (o.MaxBytes < 900 || strings.Contains(name, "100pages"))) {
				continue // a limit means nothing for it, and each call opens all of it
			}
			if strings.HasPrefix(name, "pdf/") && !*everyPage {
				o.MaxBytes *= 3
			}
			t.Run(fmt.Sprint(name, "/", o.MaxBytes), func(t *testing.T) {
				got := follow(t, raw, o)
				all := o
				all.MaxBytes, all.Limit = 64<<20, 1_000_000
				want := follow(t, raw, all)
				if len(got) != len(want) {
					t.Errorf("%d pieces, of %d", len(got), len(want))
				}
				for n, piece := range want {
					if got[n] != piece {
						t.Fatalf("piece %d:\n%.200q\nwant\n%.200q", n, got[n], piece)
					}
				}
			})
		}
	}
	if got := follow(t, []byte(long), Options{MaxBytes: 700}); got[2] != strings.Repeat("wide line ", 900) || got[4] != strings.Repeat("ü€𝄞", 1500) || got[5] != "last, with no end" {
		t.Error("following is no measure")
	}
}

// madeNotebook has cells and outputs longer than an answer, more outputs and images than are shown at once.
func madeNotebook(t *testing.T) []byte {
	pic := base64.StdEncoding.EncodeToString(corpusFile(t, "image/rgb.png"))
	var many, pictures []any
	for i := range 120 {
		many = append(many, map[string]any{"output_type": "stream", "text": fmt.Sprintf("output %d\n", i)})
	}
	for range outputImages + 3 {
		pictures = append(pictures, map[string]any{"output_type": "display_data", "data": map[string]any{"image/png": pic}})
	}
	cell := func(source string, outputs ...any) any {
		return map[string]any{"cell_type": "code", "source": source, "metadata": map[string]any{}, "outputs": append([]any{}, outputs...)}
	}
	raw, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": 4, "metadata": map[string]any{}, "cells": []any{
		cell("first"), cell(strings.Repeat("größer ", 1200)), cell("many", many...), cell("pictures", pictures...), cell("one more", pictures[0]),
		cell("long", map[string]any{"output_type": "stream", "text": strings.Repeat("näher\n", 5000)}, map[string]any{"output_type": "stream", "text": "after"}), cell("last"),
	}})
	must(t, err)
	return raw
}

// Of a text that is too long to hold unpacked the first part is shown, and said to be a part.
func TestLongCompressedText(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: what is long enough takes the race detector a minute")
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	const lines, reach = 700_000, 500_000
	for i := range lines {
		fmt.Fprintf(z, "%d %x %s\n", i+1, uint32(i)*2654435761, strings.Repeat("pad ", 10))
	}
	z.Close()
	raw := packed.Bytes()
	for _, first := range []int{1, reach} {
		m := readAs[*Text](t, raw, Options{Offset: first, Limit: 2})
		if !strings.Contains(m.Content, fmt.Sprintf("%d→%d ", first, first)) || m.RenderedLines != 2 || m.TotalLines >= 0 || m.Format != "gzip" || m.Whole || m.NextOffset != first+2 {
			t.Errorf("%d: %d lines of %d, next %d: %.100q", first, m.RenderedLines, m.TotalLines, m.NextOffset, m.Content)
		}
	}
	m := readAs[*Text](t, raw, Options{Offset: lines - 1, Limit: 20})
	if m.RenderedLines != 0 || !m.Truncated || m.NextOffset != 0 || m.TotalLinesAtLeast < reach || !strings.Contains(m.Note, "Only the first 32 MB") {
		t.Errorf("beyond that: %d lines, next %d, %q", m.RenderedLines, m.NextOffset, m.Note)
	}
	var no *Unsupported
	if _, err := readBytes(t, raw, Options{Tail: true}); !errors.As(err, &no) {
		t.Errorf("its end: %v", err)
	}
}

// Of a document of very much text the first part is shown, and said to be a part.
func TestLongDocument(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: what is long enough takes the race detector a minute")
	}
	var b strings.Builder
	const rows, reach = 120_000, 100_000 // 36 MB
	for i := range rows {
		fmt.Fprintf(&b, `<row r="%d"><c><v>%d.%x</v></c><c t="str"><v>%s</v></c></row>`, i+1, i+1, uint32(i)*2654435761, strings.Repeat("0", 280))
	}
	raw := zipOf(t, "xl/workbook.xml", `<workbook xmlns:r="r"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>`,
		"xl/worksheets/s.xml", `<worksheet><sheetData>`+b.String()+`</sheetData></worksheet>`)
	m := readAs[*Text](t, raw, Options{Offset: reach + 2, Limit: 2}) // below a heading
	if !strings.Contains(m.Content, fmt.Sprintf("→%d | %d.", reach, reach)) || !m.Truncated || m.TotalLines >= 0 || m.NextOffset != reach+4 || !strings.Contains(m.Note, "Only the first 32 MB") {
		t.Errorf("%d of %d, next %d: %.100q, %q", m.StartLine, m.TotalLines, m.NextOffset, m.Content, m.Note)
	}
	if m := readAs[*Text](t, raw, Options{Offset: rows}); m.RenderedLines != 0 || m.NextOffset != 0 || m.TotalLinesAtLeast < reach {
		t.Errorf("beyond that: %d lines, next %d of %d", m.RenderedLines, m.NextOffset, m.TotalLinesAtLeast)
	}
	var bad *BadRequest
	if _, err := readBytes(t, raw, Options{Tail: true}); !errors.As(err, &bad) {
		t.Errorf("its end: %v", err)
	}
}

// slow is a source that takes time, by the clock of synctest.
type slow struct {
	io.ReaderAt
	read int64
}

func (s *slow) ReadAt(p []byte, off int64) (int, error) {
	time.Sleep(2 * time.Millisecond)
	s.read += int64(len(p))
	return s.ReaderAt.ReadAt(p, off)
}

// A search that runs out of time says how far it came, and lines well before that can be had.
func TestDeadlineOnTheWayToALine(t *testing.T) {
	const lines = 1 << 20
	logOf := func(line string, n int64) *madeLog { return &madeLog{line: line, lines: n} }
	short := logOf(strings.Repeat("x", 63)+"\n", lines)
	giant := logOf("first\n"+strings.Repeat("x", 64<<20)+"\nthird\nfourth\n", 1)
	synctest.Test(t, func(t *testing.T) {
		r := newReaders(t, 59*time.Millisecond)
		read := func(log *madeLog, o Options) (*Text, *OutOfTime) {
			m, err := r.Read(t.Context(), Source{R: &slow{ReaderAt: log}, Size: log.size()}, o)
			var late *OutOfTime
			if err != nil && (!errors.As(err, &late) || late.Hint() == "" || strings.Contains(late.Hint(), "again")) {
				t.Fatalf("%+v: %v", o, err)
			}
			if err != nil {
				return nil, late
			}
			return m.(*Text), nil
		}
		_, late := read(short, Options{Offset: lines - 1, Limit: 1})
		if late == nil || late.Line < 2 {
			t.Fatalf("the last line: %+v", late)
		}
		if m, again := read(short, Options{Offset: late.Line / 2, Limit: 1}); again != nil || m.RenderedLines != 1 {
			t.Fatalf("line %d cannot be asked for: %v", late.Line/2, again)
		}
		for _, o := range []Options{{Offset: 4, Limit: 1}, {Offset: 2, Column: 64<<20 - 10}} {
			if _, late := read(giant, o); late == nil || late.Line != 2 || late.Byte == 0 || (late.Column > 0) != (o.Column > 0) {
				t.Errorf("%+v: %+v", o, late)
			}
		}
	})
}

// Lines of the end of a file that is too long to count have numbers from the end, and can be read whole by them.
func TestLongLinesFromTheEnd(t *testing.T) {
	log := &madeLog{line: strings.Repeat("0123456789", 300) + "\n", lines: 50_000}
	r := testReaders(t)
	read := func(o Options) *Text {
		t.Helper()
		c, err := r.Read(context.Background(), Source{R: log, Size: log.size()}, o)
		must(t, err)
		return c.(*Text)
	}
	end := read(Options{Tail: true, Limit: 2})
	if len(end.CutLines) != 2 || end.CutLines[0] != -2 || end.TotalLines >= 0 {
		t.Fatalf("lines cut: %v", end.CutLines)
	}
	rest := read(Options{Offset: -2, Column: MaxLineChars + 1})
	if len(plainLines(rest)) != 1001 || rest.StartLine != -2 || rest.NextOffset != -1 || rest.NextColumn != 0 || rest.LinesCut != 0 {
		t.Errorf("the rest of the last but one: %d bytes, next %d, %d", len(plainLines(rest)), rest.NextOffset, rest.NextColumn)
	}
	if one := read(Options{Tail: true, Limit: 1}); one.NextColumn != MaxLineChars+1 || one.StartLine != -1 {
		t.Errorf("one line: next column %d", one.NextColumn)
	}
	var bad *BadRequest
	if _, err := r.Read(context.Background(), Source{R: log, Size: log.size()}, Options{Offset: -5000, Column: 1}); !errors.As(err, &bad) {
		t.Errorf("a line far from the end: %v", err)
	}
}

// Pages without text are drawn, a few in an answer, which ends before the next one.
func TestPDFScansGoOn(t *testing.T) {
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [" + strings.Repeat("4 0 R ", 7) + "] /Count 7 >>",
		madeStream("", "9 w 0 0 m 90 90 l S"), "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 3 0 R >>"}
	raw := madePDF(objects...)
	first := readAs[*PDF](t, raw, Options{ImageMaxEdge: 64})
	if len(first.Images) != 5 || first.NextPages != "6-7" || !first.Truncated {
		t.Fatalf("%d images, next %q", len(first.Images), first.NextPages)
	}
	if rest := readAs[*PDF](t, raw, Options{ImageMaxEdge: 64, Pages: first.NextPages}); len(rest.Images) != 2 || rest.NextPages != "" || strings.Contains(rest.Note, "could not") {
		t.Errorf("the rest: %d images, next %q, %q", len(rest.Images), rest.NextPages, rest.Note)
	}
}
