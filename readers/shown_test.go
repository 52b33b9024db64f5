package readers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Some callers send encoding: "utf-8" with every call.
func TestUTF8DoesNotMakeTextOfPictures(t *testing.T) {
	utf8 := Options{Encoding: "UTF-8"}
	if m := readAs[*Image](t, corpusFile(t, "image/rgb.png"), utf8); !strings.Contains(m.Note, "Ignored") || !strings.Contains(m.Note, "encoding") {
		t.Errorf("nothing is said of the encoding: %q", m.Note)
	}
	if p := readAs[*PDF](t, corpusFile(t, "pdf/office_letter.pdf"), utf8); !strings.Contains(p.Note, "encoding") {
		t.Errorf("nothing is said of the encoding: %q", p.Note)
	}
	if d := readAs[*Text](t, corpusFile(t, "document/letter.docx"), utf8); d.Format != "docx" || !strings.Contains(d.Note, "encoding") {
		t.Errorf("%q: %q", d.Format, d.Note)
	}
	for name, say := range map[string]string{"image/rgb.png": "binary file", "pdf/office_letter.pdf": "bytes of a PDF"} {
		if m := readAs[*Text](t, corpusFile(t, name), Options{Encoding: "latin1"}); !strings.Contains(m.Note, say) {
			t.Errorf("%s as Latin-1 says nothing: %q", name, m.Note)
		}
	}
	if m := readAs[*Text](t, []byte("plain text\n"), utf8); m.Note != "" {
		t.Errorf("a text in the encoding said: %q", m.Note)
	}
}

func TestTextThatBeginsLikeAPDF(t *testing.T) {
	fake := []byte("%PDF-1.4 is what such files begin with.\nThis is a note on them.\n")
	var hint Hinter
	if _, err := readBytes(t, fake, Options{}); !errors.As(err, &hint) || !strings.Contains(hint.Hint(), `encoding: "utf-8"`) {
		t.Errorf("the way to read it is not named: %v", err)
	}
	if m := readAs[*Text](t, fake, Options{Encoding: "utf-8"}); m.TotalLines != 2 {
		t.Errorf("%+v", m)
	}
}

func TestShownAs(t *testing.T) {
	for name, want := range map[string]string{"image/rgb.png": "png image", "pdf/scan.pdf": "PDF", "document/sheet.xlsx": "xlsx", "document/letter.epub": "epub",
		"document/letter.html": "", "binary/one.db": "application/vnd.sqlite3", "encoding/russian.txt": "", "image/drawing.svg": ""} {
		if got := ShownAs(corpusFile(t, name), ""); got != want {
			t.Errorf("%s is shown as %q, want %q", name, got, want)
		}
	}
	if got := ShownAs(zipOf(t, "a.txt", "x"), ""); got != "zip archive" {
		t.Errorf("a zip is shown as %q", got)
	}
	if got := ShownAs([]byte("\x1f\x8b\x08rest"), "utf-8"); got != "gzip" {
		t.Errorf("a .gz is shown as %q", got)
	}
}

// No cell is left out, however far to the right it stands.
func TestSpreadsheetColumnsFarOut(t *testing.T) {
	sheet := func(cells string) []byte {
		return zipOf(t, "xl/workbook.xml", `<workbook xmlns:r="r"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>`,
			"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>`,
			"xl/worksheets/s.xml", `<worksheet><sheetData><row r="1">`+cells+`</row></sheetData></worksheet>`)
	}
	m := readAs[*Text](t, sheet(`<c r="A1"><v>7</v></c><c r="XFD1"><v>1</v></c>`), Options{})
	if !strings.Contains(m.Content, "1 | 7 | XFD: 1\n") || m.Truncated || !m.Whole || m.Note != "" {
		t.Errorf("%q: %q, truncated %v", m.Content, m.Note, m.Truncated)
	}
	if m := readAs[*Text](t, sheet(`<c r="A1"><v>7</v></c>`), Options{}); m.Truncated || m.Note != "" || !m.Whole {
		t.Errorf("all is shown: %q", m.Note)
	}
	ods := func(n string) []byte {
		return zipOf(t, "mimetype", "application/vnd.oasis.opendocument.spreadsheet", "content.xml",
			`<office:document-content><table:table table:name="S"><table:table-row><table:table-cell table:number-columns-repeated="`+n+`"/><table:table-cell table:number-columns-repeated="3"><text:p>v</text:p></table:table-cell></table:table-row></table:table></office:document-content>`)
	}
	if m := readAs[*Text](t, ods("499"), Options{Offset: 3, Column: 1}); m.LinesCut > 0 || m.Note != "" || !strings.HasSuffix(m.Content, "|  | v | SG-SH: v |\n") {
		t.Errorf("ods: %q: %q", m.Note, m.Content[max(len(m.Content)-40, 0):])
	}
	if m := readAs[*Text](t, ods("4"), Options{}); m.Truncated || m.Note != "" {
		t.Errorf("ods: %q", m.Note)
	}
}

// The bytes of a compressed file are its own, whatever is in it.
func TestBase64OfCompressed(t *testing.T) {
	var packed bytes.Buffer
	g := gzip.NewWriter(&packed)
	w := tar.NewWriter(g)
	w.WriteHeader(&tar.Header{Name: "a", Mode: 0o644, Size: 1})
	w.Write([]byte("x"))
	w.Close()
	g.Close()
	var noise bytes.Buffer
	g = gzip.NewWriter(&noise)
	g.Write(corpusFile(t, "binary/one.db"))
	g.Close()
	for name, raw := range map[string][]byte{"tar": packed.Bytes(), "database": noise.Bytes()} {
		b := readAs[*Binary](t, raw, Options{BinaryPolicy: "base64"})
		if got, err := base64.StdEncoding.DecodeString(b.Base64); err != nil || !bytes.Equal(got, raw) || b.Summary == "" || !b.Whole {
			t.Errorf("%s: %d bytes of %d, %q", name, len(got), len(raw), b.Summary)
		}
		part := readAs[*Binary](t, raw, Options{BinaryPolicy: "base64", Offset: 3, Limit: 4})
		if got, _ := base64.StdEncoding.DecodeString(part.Base64); !bytes.Equal(got, raw[2:6]) || part.NextOffset != 7 || part.Note != "" {
			t.Errorf("%s: a part: % x, next %d, %q", name, got, part.NextOffset, part.Note)
		}
	}
}

func TestPDFBehindJunk(t *testing.T) {
	raw := append(bytes.Repeat([]byte("junk line\n"), 90), corpusFile(t, "pdf/office_letter.pdf")...)
	want := readAs[*PDF](t, raw[900:], Options{})
	if got := readAs[*PDF](t, raw, Options{}); got.Text != want.Text || got.Text == "" {
		t.Errorf("%.80q, want %.80q", got.Text, want.Text)
	}
}

// A page whose text is cut says where it goes on.
func TestPDFPageThatIsCut(t *testing.T) {
	p := readAs[*PDF](t, corpusFile(t, "pdf/latex_article.pdf"), Options{MaxBytes: 300})
	if len(p.PagesCut) != 1 || !strings.HasPrefix(p.NextPages, "1") || p.NextColumn < 200 {
		t.Errorf("cut %v, next %q from %d: %q", p.PagesCut, p.NextPages, p.NextColumn, p.Note)
	}
}

// TestDamageIsCounted: bytes that a decoder could not read are counted in every encoding, as in UTF-8.
func TestDamageIsCounted(t *testing.T) {
	const whole = "\xff\xfeg\x00o\x00o\x00d\x00\n\x00"
	for raw, want := range map[string]int{
		whole:                                 0,
		whole + "\x00\xd8a\x00\n\x00":         2, // half a surrogate pair
		whole + "a":                           2, // half a unit
		"\xfe\xff\x00g\x00o\xdc\x00\x00\n":    2,
		"\xff\xfe\x00\xd8\x00\xd8x\x00\n\x00": 4,
	} {
		if m := readAs[*Text](t, []byte(raw), Options{}); m.InvalidBytes != want {
			t.Errorf("%q: %d invalid bytes, want %d: %q in %s", raw, m.InvalidBytes, want, m.Content, m.Encoding)
		}
	}
	if m := readAs[*Text](t, []byte("a\x81\x00b\n"), Options{Encoding: "shift_jis"}); m.InvalidBytes == 0 {
		t.Errorf("Shift JIS: %q", m.Content)
	}
	if m := readAs[*Text](t, []byte("ok \uFFFD\n"), Options{}); m.InvalidBytes != 0 {
		t.Errorf("a replacement character that is written: %d", m.InvalidBytes)
	}
}

// Pictures are most of what an answer costs.
func TestTokenEstimateCountsImages(t *testing.T) {
	m := readAs[*Image](t, corpusFile(t, "image/rgb.png"), Options{})
	if want := (m.Width*m.Height + 749) / 750; m.TokenEstimate != want {
		t.Errorf("an image of %d x %d: %d tokens, want %d", m.Width, m.Height, m.TokenEstimate, want)
	}
	if p := readAs[*PDF](t, corpusFile(t, "pdf/scan.pdf"), Options{}); p.TokenEstimate < 1600 || p.TokenEstimate > 1700 {
		t.Errorf("a scanned page: %d tokens", p.TokenEstimate)
	}
	small := Options{Render: true, Pages: "1-2", ImageMaxEdge: 300}
	if p := readAs[*PDF](t, corpusFile(t, "pdf/latex_100pages.pdf"), small); len(p.Images) != 2 || p.TokenEstimate != tokensOf(p.Text)+2*imageTokens(p.Images[0].Width, p.Images[0].Height) {
		t.Errorf("two drawn pages: %d tokens", p.TokenEstimate)
	}
}

// The end of a notebook is its last cells, not the last lines of its JSON.
func TestTailOfANotebook(t *testing.T) {
	var cells []string
	for i := range 30 {
		cells = append(cells, fmt.Sprintf(`{"cell_type":"code","id":"c%d","metadata":{},"outputs":[],"source":"%s"}`, i+1, strings.Repeat("x", 200)))
	}
	cells = append(cells, `{"attachments":{"a.png":{},"b.png":{}},"cell_type":"markdown","id":"last","metadata":{},"source":"end"}`, `{"attachments":7,"cell_type":"raw","id":"raw","metadata":{},"source":""}`)
	nb := []byte(`{"cells":[` + strings.Join(cells, ",") + `],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	for _, c := range []struct {
		o     Options
		first int
	}{{Options{Tail: true, Limit: 3}, 30}, {Options{Tail: true}, 1}, {Options{Tail: true, MaxBytes: 1500}, 27}, {Options{Tail: true, MaxBytes: 1500, Limit: 2}, 31}, {Options{Offset: -1}, 32}, {Options{Column: 5, Offset: 32}, 32}} {
		n := readAs[*Notebook](t, nb, c.o)
		if n.StartCell != c.first || n.Truncated || len(n.Cells) != 33-c.first || n.Cells[len(n.Cells)-1].ID != "raw" {
			t.Errorf("%+v: from %d, want %d; %d cells, truncated %v", c.o, n.StartCell, c.first, len(n.Cells), n.Truncated)
		}
		if strings.Contains(n.Note, "2 attached images") != (c.first < 32) || (n.StartColumn == 5) != (c.o.Column > 0) {
			t.Errorf("%+v: %q", c.o, n.Note)
		}
	}
}

// Words that a document hides, and images, which are not in its text, are mentioned.
func TestHiddenTextAndImagesOfDocuments(t *testing.T) {
	body := `<w:p><w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr><w:r><w:t>seen</w:t></w:r><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>too</w:t></w:r>%s</w:p>`
	hidden := `<w:r><w:rPr><w:b/><w:vanish/></w:rPr><w:t>größe</w:t></w:r><w:r><w:t>after</w:t></w:r>`
	if m := readAs[*Text](t, docxOf(t, fmt.Sprintf(body, "")), Options{}); m.Note != "" {
		t.Errorf("nothing is hidden: %q", m.Note)
	}
	m := readAs[*Text](t, docxOf(t, fmt.Sprintf(body, hidden)), Options{})
	if !strings.Contains(m.Note, "5 characters") || !strings.Contains(m.Content, "größe") || !m.Whole {
		t.Errorf("%q: %s", m.Note, m.Content)
	}
	pictured := zipOf(t, "word/document.xml", `<w:document><w:body>`+fmt.Sprintf(body, "")+`</w:body></w:document>`, "word/media/image1.png", "x", "word/media/image2.emf", "x", "docProps/thumbnail.jpeg", "x")
	if m := readAs[*Text](t, pictured, Options{}); !strings.Contains(m.Note, "Not shown: 2 images.") || !m.Whole {
		t.Errorf("%q", m.Note)
	}
}

// Only the first frame of an animation is decoded; that the rest is missing is said all the same.
func TestAnimationsCutOff(t *testing.T) {
	for _, name := range []string{"animated.gif", "still.gif", "lossy.webp"} {
		raw := corpusFile(t, "image/"+name)
		if m := readAs[*Image](t, raw, Options{}); strings.Contains(m.Note, "cut off") {
			t.Errorf("%s is whole: %q", name, m.Note)
		}
		if name == "lossy.webp" {
			if c, err := readBytes(t, raw[:len(raw)*3/4], Options{}); err == nil {
				t.Errorf("a part of %s is a picture: %v", name, c.Kind())
			}
		}
		if strings.HasPrefix(name, "animated") {
			for _, n := range []int{len(raw) * 3 / 4, len(raw) - 4} { // a GIF may end without its last byte
				if m := readAs[*Image](t, raw[:n], Options{}); !strings.Contains(m.Note, "cut off") {
					t.Errorf("%d bytes of %d of %s: %q", n, len(raw), name, m.Note)
				}
			}
		}
	}
}
