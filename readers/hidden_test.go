package readers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"moltisfs/readers/pdf"
)

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
			"## Table: T (hidden)\n\nHidden columns: B-C\n\n| a |\n| --- |\n| (hidden) b |\n| (hidden) b |\n", "", 0},
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
