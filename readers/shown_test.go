package readers

import (
	"errors"
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
		"document/letter.html": "", "binary/one.db": "", "encoding/russian.txt": "", "image/drawing.svg": ""} {
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

// A cell that is not shown is counted.
func TestSpreadsheetColumnsLeftOut(t *testing.T) {
	sheet := func(cells string) []byte {
		return zipOf(t, "xl/workbook.xml", `<workbook xmlns:r="r"><sheets><sheet name="S" r:id="r1"/></sheets></workbook>`,
			"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>`,
			"xl/worksheets/s.xml", `<worksheet><sheetData><row r="1">`+cells+`</row></sheetData></worksheet>`)
	}
	m := readAs[*Text](t, sheet(`<c r="A1"><v>7</v></c><c r="XFD1"><v>1</v></c>`), Options{})
	if !strings.Contains(m.Content, "1 | 7") || !m.Truncated || m.Whole || !strings.Contains(m.Note, "1 cell beyond column 500") {
		t.Errorf("%q: %q, truncated %v", m.Content, m.Note, m.Truncated)
	}
	if m := readAs[*Text](t, sheet(`<c r="A1"><v>7</v></c>`), Options{}); m.Truncated || m.Note != "" || !m.Whole {
		t.Errorf("all is shown: %q", m.Note)
	}
	ods := func(n string) []byte {
		return zipOf(t, "mimetype", "application/vnd.oasis.opendocument.spreadsheet", "content.xml",
			`<office:document-content><table:table table:name="S"><table:table-row><table:table-cell table:number-columns-repeated="`+n+`"/><table:table-cell table:number-columns-repeated="3"><text:p>v</text:p></table:table-cell></table:table-row></table:table></office:document-content>`)
	}
	if m := readAs[*Text](t, ods("499"), Options{}); !m.Truncated || !strings.Contains(m.Note, "2 cells beyond column 500") {
		t.Errorf("ods: %q", m.Note)
	}
	if m := readAs[*Text](t, ods("4"), Options{}); m.Truncated || m.Note != "" {
		t.Errorf("ods: %q", m.Note)
	}
}
