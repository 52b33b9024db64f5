package readers

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"moltisfs/internal/text"
)

// FuzzRead: whatever the bytes, there is an answer within its bounds, or an error with a next move.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"image/palette.png", "refused/animated.webp", "image/lossy.webp", "image/animated.gif", "image/group4.tiff", "image/cmyk.jpg", "image/rgba32.bmp",
		"document/letter.docx", "document/sheet.xlsx", "document/talk.odp", "document/letter.epub", "document/letter.html"} {
		f.Add(corpusFile(f, name), false, 0)
	}
	f.Add([]byte("From: a@b\nTo: c@d\nSubject: e\n\nx"), true, 1)
	f.Add([]byte(`{"nbformat":4,"cells":[{"source":["a"],"outputs":[{"data":{"text/plain":1}}]}]}`), false, -1)
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04\x00\x43\xbe\xb7\xe8\x01\x00\x00\x00"), false, 2)
	f.Add(append([]byte("SQLite format 3\x00\x10\x00"), make([]byte, 4096)...), false, 0)
	r, err := New(Config{})
	must(f, err)
	f.Fuzz(func(t *testing.T, b []byte, render bool, offset int) {
		if len(b) > 1<<20 || strings.Contains(string(b[:min(len(b), 1024)]), "%PDF-") {
			return // PDFs have their own engine, which is no pure part
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		o := Options{Render: render, Offset: offset, MaxBytes: 20_000, ImageMaxEdge: 64, BinaryPolicy: "base64"}
		c, err := r.Read(ctx, sourceOf(b), o)
		var ours Hinter
		if err != nil {
			if !errors.As(err, &ours) || ours.Hint() == "" || strings.Contains(err.Error(), gaveUp) {
				t.Fatalf("an error without a next move, or a panic: %v", err)
			}
			return
		}
		switch c := c.(type) {
		case *Text:
			if len(c.Content) > 20_000 || !utf8.ValidString(c.Content) {
				t.Errorf("%d bytes, valid %v", len(c.Content), utf8.ValidString(c.Content))
			}
		case *Image:
			if max(c.Width, c.Height) > 64 {
				t.Errorf("%d x %d", c.Width, c.Height)
			}
		case *Binary:
			if len(c.Listing) > 100 || len(c.Base64) > 20_000 {
				t.Errorf("%d listed, %d bytes", len(c.Listing), len(c.Base64))
			}
		}
	})
}

// TestMutatedFiles: of each format some files with mistakes are answered, or refused with a next move, soon and within memory.
func TestMutatedFiles(t *testing.T) {
	t.Parallel()
	var files [][]byte
	for _, dir := range []string{"image", "document", "binary"} {
		names, _ := filepath.Glob(filepath.Join(corpusDir, dir, "*"))
		for _, name := range names {
			if raw := corpusFile(t, dir+"/"+filepath.Base(name)); !strings.HasSuffix(name, ".avif") && !strings.HasSuffix(name, ".heic") { // those have a process each
				files = append(files, raw)
			}
		}
	}
	files = append(files, pagesTIFF(1, 2, 3), gzipOf([]byte(strings.Repeat("a line\n", 5000))))
	rng := rand.New(rand.NewPCG(21, 12))
	shown := 0
	for i := range *mutations * 3 {
		o := Options{Render: i%2 == 0, ImageMaxEdge: 300, MaxBytes: 20_000, AllowLarge: i%3 == 0}
		if i%5 == 0 {
			o.Pages = "2"
		}
		_, err := guarded(t, testReaders(t), mutate(rng, files[i%len(files)]), o, 15*time.Second)
		if err == nil {
			shown++
		} else if strings.Contains(err.Error(), gaveUp) {
			t.Errorf("a panic: %v", err)
		}
	}
	if t.Logf("%d of %d shown", shown, *mutations*3); shown < *mutations {
		t.Errorf("only %d of %d were shown", shown, *mutations*3)
	}
	if kb, err := strconv.Atoi(peakMemory(false)); err == nil && *mutations >= 1000 && kb > 512<<10 { // alone in its process
		t.Errorf("a peak of %d KB", kb)
	}
}

func FuzzPages(f *testing.F) {
	for _, s := range []string{"3", "1-5", "1-3,7", "7,3", "", "0", "1-", "-1", "1-99999999999999999999", " 2 , 4 - 6 ", "1,1,1"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, list string, total int) {
		pages, err := parsePages(list, total)
		if err != nil {
			var bad *BadPages
			if !errors.As(err, &bad) || bad.Hint() == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		seen := map[int]bool{}
		for _, p := range pages {
			if p < 1 || total > 0 && p > total || seen[p] {
				t.Fatalf("%q of %d gives %v", list, total, pages)
			}
			seen[p] = true
		}
		if len(pages) > MaxPages {
			t.Fatalf("%q gives %d pages", list, len(pages))
		}
		if total > 0 && len(pages) > 0 {
			again, err := parsePages(pageList(pages), total)
			if err != nil || !slices.Equal(again, pages) {
				t.Fatalf("%v written as %q is read as %v, %v", pages, pageList(pages), again, err)
			}
		}
	})
}

func FuzzNotebookReader(f *testing.F) {
	f.Add([]byte(`{"nbformat":4,"nbformat_minor":5,"cells":[{"cell_type":"code","id":"a","source":["x"],"outputs":[{"output_type":"stream","text":"y"}]}]}`), 1, 1)
	f.Add([]byte(`{"nbformat":4,"cells":[{},{"source":1},{"outputs":[1,null,{"data":{"image/png":"AAAA"}}]}]}`), -1, 0)
	r, err := New(Config{})
	must(f, err)
	f.Fuzz(func(t *testing.T, b []byte, offset, limit int) {
		if limit < 0 {
			return
		}
		fl := &file{Source: sourceOf(b)}
		must(t, fl.begin())
		defer fl.release()
		o := Options{Offset: offset, Limit: limit, MaxBytes: 10_000}
		o.fill()
		c, err := readNotebook(context.Background(), r, fl, &o)
		var ours Hinter
		if err != nil {
			if !errors.Is(err, errNotMine) && !errors.As(err, &ours) {
				t.Fatalf("%v", err)
			}
			return
		}
		n := c.(*Notebook)
		size := 0
		for _, cell := range n.Cells {
			size += len(cell.Source)
			for _, out := range cell.Outputs {
				size += len(out.Text)
			}
		}
		if size > 25_000 || limit > 0 && len(n.Cells) > limit || n.StartCell < 1 {
			t.Errorf("%d bytes, %d cells from %d, limit %d", size, len(n.Cells), n.StartCell, limit)
		}
	})
}

func FuzzDetectText(f *testing.F) {
	f.Add([]byte("a\x00b\x00\n\x00"))
	f.Add([]byte("\xef\xbb\xbfx"))
	f.Add([]byte("caf\xe9"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := text.Detect(b)
		name := e.Name
		if text.ByMark(b) != nil {
			return // the mark says it
		}
		decoded, err := e.Decode(b)
		if err != nil || name != "utf-8" && !utf8.Valid(decoded) {
			t.Fatalf("%s: %v", name, err)
		}
		if utf8.Valid(b) && !strings.Contains(string(b), "\x00") && name != "utf-8" && name != "iso-2022-jp" {
			t.Fatalf("valid UTF-8 is taken for %s", name)
		}
	})
}

// FuzzDocument puts the bytes where the words of a document stand.
func FuzzDocument(f *testing.F) {
	f.Add(`<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>a</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`, byte(0))
	f.Add(`<row r="2"><c r="B2" t="s"><v>0</v></c><c r="AAA2" t="inlineStr"><is><t>x</t></is></c></row>`, byte(1))
	f.Add(`<text:h text:outline-level="2">a</text:h><table:table><table:table-row table:number-rows-repeated="99999999"><table:table-cell table:number-columns-repeated="99999999"><text:p>b</text:p></table:table-cell></table:table-row></table:table>`, byte(2))
	f.Add(`<p:sp><p:txBody><a:p><a:r><a:t>a</a:t></a:r></a:p></p:txBody></p:sp>`, byte(3))
	r, err := New(Config{})
	must(f, err)
	f.Fuzz(func(t *testing.T, body string, kind byte) {
		var raw []byte
		switch kind % 4 {
		case 0:
			raw = docxOf(t, body)
		case 1:
			raw = zipOf(t, "xl/workbook.xml", `<workbook><sheets><sheet name="s" r:id="r1"/></sheets></workbook>`,
				"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>`,
				"xl/sharedStrings.xml", "<sst><si><t>shared</t></si></sst>", "xl/worksheets/s.xml", "<worksheet><sheetData>"+body+"</sheetData></worksheet>")
		case 2:
			raw = zipOf(t, "mimetype", "application/vnd.oasis.opendocument.text", "content.xml", "<office:document-content><office:body><office:text>"+body+"</office:text></office:body></office:document-content>")
		case 3:
			raw = zipOf(t, "ppt/presentation.xml", `<p:presentation><p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>`,
				"ppt/_rels/presentation.xml.rels", `<Relationships><Relationship Id="r1" Target="slides/s.xml"/></Relationships>`, "ppt/slides/s.xml", "<p:sld>"+body+"</p:sld>")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		c, err := r.Read(ctx, sourceOf(raw), Options{MaxBytes: 50_000})
		var ours Hinter
		if err != nil && (!errors.As(err, &ours) || strings.Contains(err.Error(), gaveUp)) {
			t.Fatalf("%v", err)
		}
		if m, ok := c.(*Text); ok && len(m.Content) > 50_000 {
			t.Errorf("%d bytes", len(m.Content))
		}
	})
}
