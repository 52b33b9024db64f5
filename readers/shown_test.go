package readers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"moltisfs/readers/pdf"
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
			if m := readAs[*Image](t, raw[:len(raw)*3/4], Options{}); !strings.Contains(m.Note, "cut off") {
				t.Errorf("a part of %s: %q", name, m.Note)
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

// An overwrite rests on what a ReadRecord says: a part must never pass for the whole.
func TestSightOfAPart(t *testing.T) {
	docx := func(body string) []byte {
		return zipOf(t, "word/document.xml", `<w:document xmlns:w="u"><w:body>`+body+`</w:body></w:document>`, "word/media/image1.png", "\x89PNG")
	}
	notebook := []byte(`{"cells":[{"cell_type":"markdown","id":"a","source":"x"},{"cell_type":"markdown","id":"b","source":"y"},{"cell_type":"raw","id":"c","source":""}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	long := "one\n" + strings.Repeat("x", MaxLineChars+1) + "\nthree\n"
	raw := []byte{0, 1, 2, 3, 0xff, 0xfe, 6, 7, 8, 9}
	for _, c := range []struct {
		name    string
		content []byte
		o       Options
		want    string // whole, unit, total, spans
	}{
		{"text", []byte("1\n2\n3\n"), Options{}, "true line 3 [{1 3}]"},
		{"text in part", []byte("1\n2\n3\n"), Options{Offset: 2}, "false line 3 [{2 3}]"},
		{"empty file", nil, Options{}, "true line 0 []"},
		{"only a mark", []byte("\xef\xbb\xbf"), Options{}, "true line 0 []"},
		{"a long line", []byte(long), Options{}, "false line 3 [{1 1} {3 3}]"},
		{"the end of a line", []byte("abcdef"), Options{Column: 3}, "false line 1 []"},
		{"a line by column", []byte("abcdef"), Options{Column: 1}, "true line 1 [{1 1}]"},
		{"notebook", notebook, Options{}, "true cell 3 [{1 3}]"},
		{"notebook in part", notebook, Options{Offset: 2, Limit: 1}, "false cell 3 [{2 2}]"},
		{"binary", raw, Options{}, "false  0 []"},
		{"bytes in part", raw, Options{BinaryPolicy: "base64", Offset: 3, Limit: 4}, "false byte 10 [{3 6}]"},
		{"bytes", raw, Options{BinaryPolicy: "base64"}, "true byte 10 [{1 10}]"},
		{"document", docx(`<w:p><w:r><w:t>a</w:t></w:r></w:p><w:p><w:r><w:t>b</w:t></w:r></w:p>`), Options{Limit: 1}, "false docx line 3 [{1 1}]"},
		{"document without text", docx(`<w:p><w:r><w:drawing/></w:r></w:p>`), Options{}, "false  0 []"},
		{"page without text", []byte("<!doctype html><html><script>x</script></html>"), Options{Render: true}, "false source line -1 []"},
	} {
		got, err := readBytes(t, c.content, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		s := got.Seen()
		if is := fmt.Sprint(s.Whole, " ", s.Unit, " ", s.Total, " ", s.Shown); is != c.want {
			t.Errorf("%s: %s, want %s", c.name, is, c.want)
		}
		if m, ok := got.(*Text); ok && m.Empty != (len(c.content) == 0) {
			t.Errorf("%s: empty is %v for %d bytes", c.name, m.Empty, len(c.content))
		}
	}
	m := readAs[*Text](t, docx(`<w:p/>`), Options{})
	if !strings.Contains(m.Note, "No text in this docx; 1 image, ") {
		t.Errorf("the note is %q", m.Note)
	}
}

// TestHiddenPartsOfDocuments: hidden parts of a document are shown with a mark, or counted.
func TestHiddenPartsOfDocuments(t *testing.T) {
	slide := func(attr, text string) string {
		return `<p:sld ` + attr + `><p:sp><a:p><a:r><a:t>` + text + `</a:t></a:r></a:p></p:sp></p:sld>`
	}
	pptx := zipOf(t, "ppt/presentation.xml", `<p:presentation><p:sldId r:id="a"/><p:sldId r:id="b"/></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", `<Relationships><Relationship Id="a" Target="slides/a.xml"/><Relationship Id="b" Target="slides/b.xml"/></Relationships>`,
		"ppt/slides/a.xml", slide(`show="0"`, "secret"), "ppt/slides/b.xml", slide(`show="1"`, "open"))
	xlsx := zipOf(t, "xl/workbook.xml", `<workbook><sheets><sheet name="S" r:id="r1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>`,
		"xl/worksheets/s.xml", `<worksheet><cols><col min="1" max="1"/><col min="2" max="2" hidden="1"/><col min="4" max="6" hidden="1"/></cols><sheetData>`+
			`<row r="1"><c><v>7</v></c></row><row r="2" hidden="1"><c><v>8</v></c></row></sheetData></worksheet>`)
	odf := func(kind, styles, body string) []byte {
		return zipOf(t, "mimetype", "application/vnd.oasis.opendocument."+kind, "content.xml",
			`<office:document-content><office:automatic-styles>`+styles+`</office:automatic-styles><office:body>`+body+`</office:body></office:document-content>`)
	}
	const hide = `<style:style style:name="H"><style:text-properties text:display="none"/><style:table-properties table:display="false"/><style:drawing-page-properties presentation:visibility="hidden"/></style:style>`
	for _, c := range []struct {
		name     string
		raw      []byte
		has, not string // in the text
		count    int    // of hidden characters
	}{
		{"pptx", pptx, "## Slide 1 (hidden)\n\nsecret\n\n## Slide 2\n\nopen\n", "", 0},
		{"xlsx", xlsx, "Hidden columns: B, D-F\n\n1 | 7\n2 (hidden) | 8\n", "", 0},
		{"odt", odf("text", hide, `<text:p>in <text:span text:style-name="H">größe</text:span> out</text:p><text:section text:display="none"><text:p>ab</text:p></text:section>`), "in größe out\n\nab\n", "", 7},
		{"odp", odf("presentation", hide, `<draw:page draw:style-name="H"><text:p>secret</text:p></draw:page><draw:page><text:p>open</text:p></draw:page>`), "## Slide 1 (hidden)\n\nsecret\n\n## Slide 2\n\nopen\n", "", 0},
		{"ods", odf("spreadsheet", hide, `<table:table table:name="T" table:style-name="H"><table:table-column/><table:table-column table:number-columns-repeated="2" table:visibility="collapse"/>`+
			`<table:table-row><table:table-cell><text:p>a</text:p></table:table-cell></table:table-row><table:table-row table:visibility="filter" table:number-rows-repeated="2"><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>`),
			"## Sheet: T (hidden)\n\nHidden columns: B-C\n\n| a |\n| --- |\n| (hidden) b |\n| (hidden) b |\n", "", 0},
		{"html", []byte("<!doctype html><p>seen</p><div style='color: red; Display : None'>one <div>two</div> three</div><p hidden>four<p>five<span hidden>six</span></p>"), "five", "", 18},
		{"html without", []byte("<!doctype html><p>seen <br hidden> and <input hidden> more</p>"), "more", "", 0},
	} {
		m := readAs[*Text](t, c.raw, Options{Render: true})
		if !strings.Contains(plainLines(m), c.has) {
			t.Errorf("%s: %q, want %q", c.name, plainLines(m), c.has)
		}
		want := ""
		if c.count > 0 {
			want = fmt.Sprintf("Hidden in the document, but shown here: %d characters.", c.count)
		}
		if strings.Contains(m.Note, "Hidden in") != (c.count > 0) || !strings.Contains(m.Note, want) {
			t.Errorf("%s: %q, want %q", c.name, m.Note, want)
		}
		end := readAs[*Text](t, c.raw, Options{Render: true, Tail: true, Limit: 1})
		if strings.Contains(end.Note, "Hidden in") != (c.count > 0) {
			t.Errorf("%s: its last line says %q", c.name, end.Note)
		}
	}
}

// TestHTMLBlocks: each block of a page is a block in its text.
func TestHTMLBlocks(t *testing.T) {
	page := []byte("<!doctype html><details><summary>s</summary>inside</details>after<form>f</form>g<figure>h<figcaption>i</figcaption></figure>j")
	if got, want := plainLines(readAs[*Text](t, page, Options{Render: true})), "s\n\ninside\n\nafter\n\nf\n\ng\n\nh\n\ni\n\nj\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A binary file without a listing has no entries to count, and says so of no window.
func TestWindowOfABinaryWithoutEntries(t *testing.T) {
	b := readAs[*Binary](t, []byte("\x00\x01\x02\x03 nothing known"), Options{Offset: 3, Limit: 2})
	if b.StartEntry != 0 || strings.Contains(b.Note, "entry") || !strings.Contains(b.Note, "Ignored, because they mean nothing for this binary file: offset, limit.") {
		t.Errorf("%d, %q", b.StartEntry, b.Note)
	}
}

// TestHiddenLines: what can't be seen is counted, and the first lines that have it are named.
func TestHiddenLines(t *testing.T) {
	m := readAs[*Text](t, []byte("plain\na\u2028b\u007f\nplain\n\u202eend\n"), Options{})
	if m.HiddenChars != 3 || !slices.Equal(m.HiddenLines, []int{2, 4}) {
		t.Errorf("%d in %v", m.HiddenChars, m.HiddenLines)
	}
	if m = readAs[*Text](t, []byte(strings.Repeat("\u200b\n", 100)), Options{}); m.HiddenChars != 100 || len(m.HiddenLines) != 20 {
		t.Errorf("%d in %v", m.HiddenChars, m.HiddenLines)
	}
	if m = readAs[*Text](t, []byte("plain\n"), Options{}); m.HiddenChars != 0 || m.HiddenLines != nil {
		t.Errorf("%d in %v", m.HiddenChars, m.HiddenLines)
	}
	n := readAs[*Notebook](t, []byte(`{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[
		{"cell_type":"markdown","id":"a","metadata":{},"source":"plain"},
		{"cell_type":"code","id":"b","metadata":{},"source":"x\u202e","execution_count":1,
			"outputs":[{"output_type":"stream","name":"stdout","text":"\u200b\u200b"}]}]}`), Options{})
	if n.HiddenChars != 3 || !slices.Equal(n.HiddenCells, []int{2}) {
		t.Errorf("%d in cells %v", n.HiddenChars, n.HiddenCells)
	}
	var p PDF
	p.fill(&pdf.Pages{Total: 9, Asked: []int{3, 4, 5}, Pages: []pdf.Page{
		{Number: 3, Text: "a\u200b"}, {Number: 4, Text: "b"}, {Number: 5, Text: "\u2060c\u2060"}}},
		&Options{MaxBytes: 1000})
	if p.HiddenChars != 3 || !slices.Equal(p.HiddenPages, []int{3, 5}) {
		t.Errorf("%d on pages %v", p.HiddenChars, p.HiddenPages)
	}
}

// Arguments without effect are named, and so is a window beyond the end; what was used is not.
func TestRemarks(t *testing.T) {
	text, png := []byte("a\nb\n"), corpusFile(t, "image/rgb.png")
	nb := []byte(`{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","id":"c","source":"x","outputs":[]}]}`)
	elf := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 100)...)
	html := []byte("<!doctype html><p>x</p>")
	for name, c := range map[string]struct {
		raw  []byte
		o    Options
		want string // the note; "" for none
	}{
		"text":                {text, Options{Offset: 1, Limit: 1}, ""},
		"text with pages":     {text, Options{Pages: "1-2", Render: true}, "Ignored, because they mean nothing for this text: pages, render."},
		"empty pages":         {text, Options{Pages: " "}, ""},
		"text past its end":   {text, Options{Offset: 3}, "Nothing at line 3: there are 2 lines."},
		"column past its end": {text, Options{Offset: 2, Column: 2}, "Nothing at column 2: line 2 ends before it."},
		"column and a limit":  {text, Options{Column: 1, Limit: 2}, "limit (a column is of one line)"},
		"column":              {[]byte("abc\n"), Options{Offset: 1, Column: 3}, ""},
		"empty text":          {nil, Options{Offset: 3}, ""},
		"docx past its end":   {corpusFile(t, "document/letter.docx"), Options{Offset: 999}, "Nothing at line 999: there are "},
		"html rendered":       {html, Options{Render: true, Pages: "2"}, "mean nothing for this html: pages."},
		"image":               {png, Options{}, ""},
		"image with a window": {png, Options{Offset: 2, Limit: 3, Tail: false, Pages: "1", Render: true}, "this image: offset, limit, pages, render."},
		"PDF with a window":   {corpusFile(t, "pdf/qpdf_plain.pdf"), Options{Offset: 5, Limit: 3}, "this PDF: offset, limit."},
		"PDF past its end":    {corpusFile(t, "pdf/qpdf_plain.pdf"), Options{Pages: "1-99"}, "No page 99: there "},
		"PDF":                 {corpusFile(t, "pdf/qpdf_plain.pdf"), Options{Pages: "1"}, ""},
		"notebook":            {nb, Options{Offset: 1, Limit: 1}, ""},
		"notebook past end":   {nb, Options{Offset: 4, Pages: "1"}, "Nothing at cell 4: there is 1 cell. Ignored, because they mean nothing for this notebook: pages."},
		"notebook column":     {nb, Options{Column: 3}, "Nothing at column 3: cell 1 ends before it."},
		"binary":              {elf, Options{}, "readelf -a FILE"},
		"binary rejected":     {elf, Options{Offset: 3, Limit: 4}, "this binary file: offset, limit."},
		"binary shown":        {elf, Options{Offset: 3, Limit: 4, BinaryPolicy: "base64"}, ""},
		"binary past its end": {elf, Options{Offset: 300, BinaryPolicy: "base64"}, "Nothing at byte 300: there are 107 bytes."},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readBytes(t, c.raw, c.o)
			must(t, err)
			if note := *got.noted(); !strings.Contains(note, c.want) || c.want == "" && note != "" {
				t.Errorf("%q, want %q", note, c.want)
			}
		})
	}
}

// A text with NULs among its first 8,000 bytes is binary, as in git, and the note says which argument shows it. Later ones change nothing.
func TestTextWithNULs(t *testing.T) {
	const hint = `encoding: "utf-8" shows it as text.`
	code := strings.Repeat("int main(void) { return 0; } /* é */\n", 190)
	for _, n := range []int{1, 5, 600, 8000} {
		nuls := strings.Repeat("\x00", n)
		for _, content := range []string{nuls + code, code[:3515] + nuls + code[3515:], code + nuls, nuls + "# Title\n" + code} {
			b := readAs[*Binary](t, []byte(content), Options{})
			if !strings.Contains(b.Note, hint) || strings.Contains(b.Note, "operator") {
				t.Errorf("%d NULs: %+v", n, b)
			}
			m := readAs[*Text](t, []byte(content), Options{Encoding: "utf-8"})
			if !strings.Contains(m.Content, "/* é */") {
				t.Errorf("%d NULs: with encoding %.200q", n, m.Content)
			}
		}
		late := strings.Repeat(code, 2) + nuls + "\n"
		if m := readAs[*Text](t, []byte(late), Options{}); !strings.Contains(m.Content, "/* é */") {
			t.Errorf("%d NULs behind 8,000 bytes: %.200q", n, m.Content)
		}
	}
	for name, content := range map[string]string{
		"noise": "\x00\x01\x02\x03\x04\x05\x06\x07\x0e\x0f", "only NULs": "\x00\x00", "bytes": strings.Repeat("\x00\xfe\xc3\x28\x90", 50), "database": string(corpusFile(t, "binary/one.db")),
	} {
		if b := readAs[*Binary](t, []byte(content), Options{}); strings.Contains(b.Note, hint) {
			t.Errorf("%s: %s", name, b.Note)
		}
	}
}
