package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/tools"
)

// Of an encoded email and of a notebook another text is shown than the file's, which can be had and edited too.
func TestEditSaysHowToSeeTheSource(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	mail := write(t, filepath.Join(root, "mail.eml"), "From: a@b.c\nTo: d@e.f\nSubject: =?utf-8?q?Gr=C3=B6=C3=9Fe?=\nContent-Transfer-Encoding: quoted-printable\n\nGr=C3=B6=C3=9Fe der Welt\n")
	book := write(t, filepath.Join(root, "book.ipynb"), `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","id":"a","metadata":{},"outputs":[],"source":["x = 1\n","y = 2"]}]}`)
	for _, c := range []struct{ file, shown, source, way string }{
		{mail, "Größe der Welt", "Gr=C3=B6=C3=9Fe der Welt", "render: false"},
		{book, "x = 1\ny = 2", "y = 2", "NotebookEdit"},
	} {
		p := call(t, s, "Edit", map[string]any{"file_path": c.file, "old_string": c.shown, "new_string": "y"})
		if p.Kind() != tools.KindUnsupported || !strings.Contains(p.Text(), c.way) {
			t.Errorf("what is shown: %s: %s", p.Kind(), p.Text())
		}
		if p := call(t, s, "Edit", map[string]any{"file_path": c.file, "old_string": c.source, "new_string": "y"}); p.Kind() != "edit" {
			t.Errorf("what is in the file: %s: %s", p.Kind(), p.Text())
		}
	}
}

// What Read renders of a page is not its source, and a replacement character is no byte of the file: Edit says so, and offers no text that is merely alike.
func TestEditOfRenderedTextAndOfBadBytes(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	page := write(t, filepath.Join(root, "p.html"), "<!doctype html><html><body><!-- # comment instr --><h1>Hi</h1>\n<p>a &amp; b</p><table><tr><td>a</td><td>b</td></tr></table></body></html>\n")
	bad := write(t, filepath.Join(root, "bad.txt"), "good \xff\xfe bad\nand more text\n")
	for _, c := range []struct {
		file, old, encoding, kind, says, next string
	}{
		{page, "# Hi", "", tools.KindUnsupported, "render: false", "render"},
		{page, "| a | b |", "", tools.KindUnsupported, "render: false", "render"},
		{page, "nowhere at all", "", tools.KindNoMatch, "Read the file", ""},
		{bad, "good \ufffd\ufffd bad", "utf-8", tools.KindNoMatch, "U+FFFD", ""},
		{bad, "nowhere at all", "utf-8", tools.KindNoMatch, "Read the file", "encoding"},
	} {
		args := map[string]any{"file_path": c.file, "old_string": c.old, "new_string": "y"}
		if c.encoding != "" {
			args["encoding"] = c.encoding
		}
		r, ok := call(t, s, "Edit", args).(*tools.Refusal)
		if !ok || r.Kind() != c.kind || !strings.Contains(r.Text(), c.says) || r.Next == nil || strings.Contains(r.Text(), "instr") {
			t.Errorf("%q: %s", c.old, mustEncode(t, r))
			continue
		}
		if _, has := r.Next.Args[c.next]; c.next != "" && !has || c.next == "" && len(r.Next.Args) > 1 {
			t.Errorf("%q: next is %v", c.old, r.Next)
		}
	}
	// An entity is the file's own text in another spelling, and can be sent.
	if r := call(t, s, "Edit", map[string]any{"file_path": page, "old_string": "a & b", "new_string": "c"}); strings.Contains(string(mustEncode(t, r)), "render") {
		t.Error(string(mustEncode(t, r)))
	}
}

// What Read shows of a document cannot be found in its bytes. Edit says so; it does not send the model back to Read for a text that can never match.
func TestEditRefusesWhatIsShownFromOtherBytes(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	for _, name := range []string{"document/letter.docx", "document/sheet.ods", "pdf/office_letter.pdf", "image/rgb.png"} {
		raw, err := os.ReadFile("../testdata/readers/" + name)
		if err != nil {
			t.Fatal(err)
		}
		file := write(t, filepath.Join(root, filepath.Base(name)), string(raw))
		// The second one is in the bytes, by chance: to replace it would damage the file.
		for _, old := range []string{"any text that Read shows", string(raw[:4])} {
			for _, tool := range []string{"Edit", "MultiEdit"} {
				args := map[string]any{"file_path": file, "old_string": old, "new_string": "x", "replace_all": true}
				if tool == "MultiEdit" {
					args = map[string]any{"file_path": file, "edits": []any{map[string]any{"old_string": old, "new_string": "x"}}}
				}
				p := call(t, s, tool, args)
				if p.Kind() != tools.KindUnsupported || !strings.Contains(p.Text(), "not its bytes") || content(t, file) != string(raw) {
					t.Errorf("%s of %s: %s", tool, name, p.Text())
				}
			}
		}
	}
}
