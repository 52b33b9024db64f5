package tools_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// noTexts are files that are no text, by their names.
func noTexts(t *testing.T) map[string]string {
	t.Helper()
	corpus := func(name string) string { return content(t, filepath.Join("../testdata/readers", name)) }
	unhex := func(s string) string {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	packed := func(s string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(s))
		z.Close()
		return b.String()
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	w.WriteHeader(&tar.Header{Name: "a.txt", Mode: 0o644, Size: 2})
	w.Write([]byte("a\n"))
	w.Close()
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		program = []byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 200))
	}
	return map[string]string{
		"letter.docx": corpus("document/letter.docx"), "sheet.xlsx": corpus("document/sheet.xlsx"), "letter.epub": corpus("document/letter.epub"),
		"letter.pdf": corpus("pdf/office_letter.pdf"), "rgb.png": corpus("image/rgb.png"), "one.db": corpus("binary/one.db"),
		"log.gz": packed("a,b\n"), "drawing.svgz": packed(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "src.tar.gz": packed(archive.String()), "src.tar": archive.String(),
		"x.csv.bz2": unhex("425a683931415926535903433ae000000151000010000430002000219a68334d173c5dc914e142400d0ceb80"),
		"x.csv.xz":  unhex("fd377a585a000004e6d6b4460200210116000000742fe5a3010003612c620a000f3f2aecc5dd331600011c046f2c9cc11fb6f37d010000000004595a"),
		"a.out":     string(program[:1<<12]), "a.exe": "MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff\x00\x00\xb8" + strings.Repeat("\x00", 100) + "PE\x00\x00",
		"A.class": "\xca\xfe\xba\xbe\x00\x00\x00\x41\x00\x1d\x0a\x00\x02\x00\x03", "a.macho": "\xcf\xfa\xed\xfe\x07\x00\x00\x01\x03\x00\x00\x00\x02\x00\x00\x00__TEXT",
		"a.7z": "7z\xbc\xaf\x27\x1c\x00\x04aaaaaaaa", "a.wasm": "\x00asm\x01\x00\x00\x00", "n.ipynb": fourCells,
		"a.dat": "\x01abc\x00\x02\x00\x00\xfe\x91\x03", "a.pyc": "\xcb\r\r\n\x00\x00\x00\x00abc\x00\x00",
	}
}

// exact are those of noTexts of which nobody knows the format, so that an edit of the bytes is done.
var exact = map[string]bool{"n.ipynb": true, "a.dat": true, "a.pyc": true}

// TestTextOverWhatIsNone: a text replaces a file that is none only where the call says so, whatever is tracked and was read. Edit has nothing to
// quote in such a file, whatever encoding is named.
func TestTextOverWhatIsNone(t *testing.T) {
	for mode, set := range map[string]func(*config.FS){
		"default": nil, "untracked": func(fs *config.FS) { fs.TrackReads = false }, "must read": mustRead,
	} {
		s, root := suite(t, set, tools.Options{})
		for name, raw := range noTexts(t) {
			if mode == "must read" && name == "letter.pdf" { // it takes seconds to start what reads PDFs
				continue
			}
			file := write(t, filepath.Join(root, name), raw)
			kept := func(what string, p tools.Payload) {
				t.Helper()
				if !tools.Refused(p) || content(t, file) != raw {
					t.Errorf("%s, %s, %s: %.400s", mode, name, what, mustEncode(t, p))
				}
			}
			if mode == "must read" {
				call(t, s, "Read", map[string]any{"file_path": file})
			}
			for _, text := range []string{"a,c\n", "", "caf\u00e9\n", "no text\x00\n"} {
				kept("Write", call(t, s, "Write", map[string]any{"file_path": file, "content": text}))
			}
			p := call(t, s, "Write", map[string]any{"file_path": file, "content": "a,c\n"})
			if kept("Write", p); !strings.Contains(p.Text(), "acknowledge: true") {
				t.Errorf("%s, %s: the way out is not told: %s", mode, name, p.Text())
			}
			kept("Write", call(t, s, "Write", map[string]any{"file_path": file, "content": "a,c\n", "encoding": "utf-8"}))
			if !exact[name] {
				at := strings.IndexFunc(raw, func(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' })
				for _, encoding := range []any{nil, "utf-8", "latin1"} {
					args := map[string]any{"file_path": file, "old_string": raw[at : at+1], "new_string": "xyz", "replace_all": true}
					if encoding != nil {
						args["encoding"] = encoding
						kept("Write", call(t, s, "Write", map[string]any{"file_path": file, "content": "a,c\n", "encoding": encoding}))
					}
					kept("Edit", call(t, s, "Edit", args))
				}
			}
			if p := call(t, s, "Write", map[string]any{"file_path": file, "content": "a,c\n", "acknowledge": true}); tools.Refused(p) || content(t, file) != "a,c\n" {
				t.Errorf("%s, %s, acknowledged: %s", mode, name, p.Text())
			}
			if p := call(t, s, "Write", map[string]any{"file_path": file, "content": "a,d\n"}); tools.Refused(p) {
				t.Errorf("%s, %s, a text by now: %s", mode, name, p.Text())
			}
		}
	}
}

// TestSeenIsOfBytes: whoever has seen what was unpacked from a file, or a picture of it, has not seen the file.
func TestSeenIsOfBytes(t *testing.T) {
	s, root := suite(t, mustRead, tools.Options{})
	for name, raw := range noTexts(t) {
		if name == "n.ipynb" || name == "letter.pdf" { // it takes seconds to start what reads PDFs
			continue
		}
		file := write(t, filepath.Join(root, name), raw)
		call(t, s, "Read", map[string]any{"file_path": file})
		p := call(t, s, "Write", map[string]any{"file_path": file, "content": "x\n"})
		if r, ok := p.(*tools.Refusal); !ok || p.Kind() != tools.KindMustRead || content(t, file) != raw || !strings.Contains(r.Hint, "acknowledge: true") {
			t.Errorf("%s: %s", name, mustEncode(t, p))
		}
	}
}

// TestTextOverText: the guard is for what is no text. Texts in any encoding, markup, mail, drawings and a notebook in the place of a notebook are
// written as ever.
func TestTextOverText(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	for name, c := range map[string]struct{ raw, then string }{
		"latin1": {"caf\xe9 cr\xe8me br\xfbl\xe9e\n", "x\n"}, "utf16": {"\xff\xfea\x00\n\x00", "x\n"}, "utf16 without a mark": {strings.Repeat("a\x00b\x00\n\x00", 20), "x\n"},
		"a.svg": {`<svg xmlns="http://www.w3.org/2000/svg"/>` + "\n", "x\n"}, "a.html": {"<!doctype html><p>x\n", "x\n"}, "empty": {"", "x\n"},
		"a.eml": {"From: a\nTo: b\nSubject: =?utf-8?q?x?=\nContent-Transfer-Encoding: base64\n\neA==\n", "x\n"}, "pdf.txt": {"%PDF-1.4 is how such files begin.\n", "x\n"},
		"n.ipynb": {fourCells, `{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}` + "\n"},
	} {
		args := map[string]any{"file_path": write(t, filepath.Join(root, name), c.raw), "content": c.then}
		if name == "pdf.txt" {
			args["encoding"] = "utf-8" // as Read of it says
		}
		if p := call(t, s, "Write", args); tools.Refused(p) {
			t.Errorf("%s: %s", name, p.Text())
		}
	}
	nul := write(t, filepath.Join(root, "nul.md"), "# Title\nline \x00 two\n")
	if p := call(t, s, "Write", map[string]any{"file_path": nul, "content": "# Title\n"}); !tools.Refused(p) {
		t.Error("what Read does not show was replaced without a word")
	}
	if p := call(t, s, "Edit", map[string]any{"file_path": nul, "old_string": "Title", "new_string": "Name"}); tools.Refused(p) {
		t.Errorf("a text with a NUL is not edited: %s", p.Text())
	}
	wide := write(t, filepath.Join(root, "wide"), "\x48\x51\x01\x4e\x00\x01\x48\x51\n\x00")
	if p := call(t, s, "Write", map[string]any{"file_path": wide, "content": "x\n", "encoding": "utf-16le"}); tools.Refused(p) {
		t.Errorf("in the encoding that shows it: %s", p.Text())
	}
}

// TestLineEndsStay: what Read shows of a file, written back, changes nothing. Line ends that are all CRLF stay where the content has none, with mark and
// encoding. What has CRLF itself, and what replaces a mixture, is taken as it is.
func TestLineEndsStay(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	utf16 := func(s string) string {
		out := "\xff\xfe"
		for _, r := range s {
			out += string([]byte{byte(r), byte(r >> 8)})
		}
		return out
	}
	for name, c := range map[string]struct {
		was, content, is string
		kept, same       bool
	}{
		"same.bat":     {"@echo off\r\nset X=1\r\n", "@echo off\nset X=1\n", "@echo off\r\nset X=1\r\n", true, true},
		"other.bat":    {"@echo off\r\nset X=1\r\n", "@echo on\nset X=1\nset Y=2", "@echo on\r\nset X=1\r\nset Y=2", true, false},
		"mark.cs":      {"\xef\xbb\xbfusing A;\r\nclass B {}\r\n", "using A;\nclass C {}\n", "\xef\xbb\xbfusing A;\r\nclass C {}\r\n", true, false},
		"mark.sln":     {"\xef\xbb\xbf\r\nA\r\n", "\ufeff\nA\n", "\xef\xbb\xbf\r\nA\r\n", true, true},
		"a.reg":        {utf16("[A]\r\nx=1\r\n"), "[A]\nx=2\n", utf16("[A]\r\nx=2\r\n"), true, false},
		"same.reg":     {utf16("[A]\r\nx=1\r\n"), "[A]\nx=1\n", utf16("[A]\r\nx=1\r\n"), true, true},
		"crlf sent":    {"a\r\nb\r\n", "a\r\nc\r\n", "a\r\nc\r\n", false, false},
		"mixture sent": {"a\r\nb\r\n", "a\r\nc\n", "a\r\nc\n", false, false},
		"mixture":      {"a\r\nb\n", "a\nc\n", "a\nc\n", false, false},
		"lf":           {"a\nb\n", "a\r\nc\r\n", "a\r\nc\r\n", false, false},
		"one line":     {"a", "a\nc\n", "a\nc\n", false, false},
		"no end":       {"a\r\nb", "a\nc", "a\r\nc", true, false},
		"to one line":  {"a\r\nb\r\n", "c", "c", false, false},
		"cr in it":     {"a\r\nb\r\n", "a\rb\n", "a\rb\r\n", true, false},
	} {
		file := write(t, filepath.Join(root, name), c.was)
		p := call(t, s, "Write", map[string]any{"file_path": file, "content": c.content})
		w, ok := p.(*tools.Write)
		if !ok || content(t, file) != c.is || w.Unchanged != c.same || (w.LineEndings == "crlf") != c.kept || strings.Contains(p.Text(), "CRLF") != c.kept {
			t.Errorf("%s: %q, %s", name, content(t, file), mustEncode(t, p))
		}
	}
}
