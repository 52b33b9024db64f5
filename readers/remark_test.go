package readers

import (
	"strings"
	"testing"
)

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
		"binary":              {elf, Options{}, `ask the operator for binary_policy = "base64"`},
		"binary rejected":     {elf, Options{Offset: 3, Limit: 4}, "this binary file: offset, limit."},
		"binary shown":        {elf, Options{Offset: 3, Limit: 4, BinaryPolicy: "base64"}, ""},
		"binary past its end": {elf, Options{Offset: 300, BinaryPolicy: "base64"}, "Nothing at byte 300: there are 107 bytes."},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readBytes(t, c.raw, c.o)
			must(t, err)
			if note := *noteOf(got); !strings.Contains(note, c.want) || c.want == "" && note != "" {
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
