package readers

import (
	"fmt"
	"strings"
	"testing"
)

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
