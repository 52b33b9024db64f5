package tools_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestNextOfWhatRunsCode: a repaired edit of a file that runs code later is offered with the word that
// it is asked about; that of another file without.
func TestNextOfWhatRunsCode(t *testing.T) {
	t.Parallel()
	for name, exec := range map[string]string{".github/workflows/ci.yml": "ask", "ci.yml": "", ".github/workflows/a.yml": "allow"} {
		s, root := suite(t, func(fs *config.FS) { fs.ProtectExec = cmp.Or(exec, "ask") }, tools.Options{})
		write(t, root+"/"+name, "steps:\n  - run: make everything\n")
		r := call(t, s, "Edit", map[string]any{"file_path": root + "/" + name, "old_string": "- runs: make everything", "new_string": "- runs: make it"}).(*tools.Refusal)
		if r.Next == nil || r.Next.Tool != "Edit" || strings.Contains(r.Hint, "is asked about") != (exec == "ask") {
			t.Errorf("%s, %s: %s %v", name, exec, r.Hint, r.Next)
		}
	}
}

// TestNoReadOfWhatWasRead: where nothing is like old_string, a session that has read the file is not told
// to read it again; one that has not, has read a part, or whose file has changed since, is.
func TestNoReadOfWhatWasRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read   map[string]any
		change string
		next   bool
	}{
		"read":     {map[string]any{}, "", false},
		"not read": {nil, "", true},
		"in part":  {map[string]any{"limit": 1}, "", true},
		"changed":  {map[string]any{}, "x = 1\ny = 3\n", true},
	} {
		s, root := suite(t, func(fs *config.FS) { fs.TrackReads = true }, tools.Options{})
		f := root + "/a.py"
		write(t, f, "x = 1\ny = 2\n")
		if c.read != nil {
			c.read["file_path"] = f
			call(t, s, "Read", c.read)
		}
		if c.change != "" {
			write(t, f, c.change)
		}
		r := call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "(nothing ~ like ~ it)", "new_string": "z"}).(*tools.Refusal)
		if (r.Next != nil) != c.next || r.Hint == "" {
			t.Errorf("%s: %v, %s", name, r.Next, r.Hint)
		}
	}
}

// TestRefusalsStaySmall: what an edit is refused with stays within 4 KB, whatever was sent.
func TestRefusalsStaySmall(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "function \"f%d\"(a,b){return a.x>b.y?a:\"\\\"\"+g(b,%d)};", i, i*i)
	}
	lines := strings.ReplaceAll(b.String(), ";", ";\n")
	write(t, root+"/min.js", b.String())
	write(t, root+"/lines.js", lines)
	for _, name := range []string{"min.js", "lines.js"} {
		text := content(t, root+"/"+name)
		for _, n := range []int{60, 1500, 3000} {
			if name == "lines.js" && n == 3000 {
				continue
			}
			old := strings.ReplaceAll(text[5000:5000+n], "return", "retrun")
			for _, new := range []string{"x", old + "\n// more"} {
				for tool, args := range map[string]map[string]any{
					"Edit":      {"old_string": old, "new_string": new},
					"MultiEdit": {"edits": []any{map[string]any{"old_string": "\"f1\"", "new_string": "f1"}, map[string]any{"old_string": old, "new_string": new}}},
				} {
					args["file_path"] = root + "/" + name
					p := call(t, s, tool, args)
					if raw, _ := tools.Encode(p); p.Kind() != "no_match" || len(raw) > 4<<10 {
						t.Errorf("%s %s of %d bytes: %s, %d bytes", tool, name, n, p.Kind(), len(raw))
					}
				}
			}
		}
	}
}

// TestNamesThatLookAlike: a new file, or a new directory on the way to it, beside one whose name looks the same is
// warned of by what finds a file that is asked for.
func TestNamesThatLookAlike(t *testing.T) {
	t.Parallel()
	for there, made := range map[string]string{
		"Gro\u0308ße.txt":        "Größe.txt",
		"\u1112\u1161\u11ab.txt": "한.txt",
		"Shot 9.22\u202fPM.txt":  "Shot 9.22 PM.txt",
		"a\u00a0b.txt":           "a b.txt",
		"a\u200bb.txt":           "ab.txt",
		"notes.txt ":             "notes.txt",
		"it’s.txt":               "it's.txt",
		"2–3.txt":                "2-3.txt",
		"README.TXT":             "readme.txt",
		"Gro\u0308ße/a.txt":      "Größe/b.txt",
		"my docs/x/a.txt":        "my\u00a0docs/y/b.txt",
	} {
		s, root := suite(t, nil, tools.Options{})
		write(t, root+"/"+there, "a\n")
		got := payloadMap(t, call(t, s, "Write", map[string]any{"file_path": root + "/" + made, "content": "b\n", "create_parents": true}))
		if warning, _ := got["warning"].(string); !strings.Contains(warning, "there is ") || got["error"] != nil {
			t.Errorf("%q beside %q: %v", made, there, got)
		}
		if other := payloadMap(t, call(t, s, "Write", map[string]any{"file_path": root + "/other.txt", "content": "b\n"})); other["warning"] != nil {
			t.Errorf("beside %q: %v", there, other)
		}
	}
}

// TestPatchIsBounded: however long the lines and many the places of a change are, its answer stays small and says what it leaves out.
func TestPatchIsBounded(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	for _, c := range []struct {
		name, line   string
		lines, hunks int
		truncated    bool
	}{
		{"long lines", strings.Repeat("y", 100<<10), 20, 0, true},
		{"escaped bytes", strings.Repeat("\x01", 10<<10), 1, 0, true},
		{"many lines", "", 401, 0, true},
		{"some lines", "", 150, 1, false},
		{"one long line", strings.Repeat("y", 10<<10), 1, 1, false},
	} {
		text := strings.Repeat("x"+c.line+"\n", c.lines)
		file := write(t, filepath.Join(root, strings.ReplaceAll(c.name, " ", "_")), text)
		call(t, s, "Read", map[string]any{"file_path": file, "limit": 1})
		p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "x", "new_string": "z", "replace_all": true})
		e, ok := p.(*tools.Edit)
		if !ok {
			t.Fatalf("%s: %s", c.name, p.Text())
		}
		if e.PatchTruncated != c.truncated || len(e.Patch) != c.hunks || e.Added != c.lines || e.Removed != c.lines {
			t.Errorf("%s: truncated %v, %d hunks, +%d -%d; want %v, %d, %d lines", c.name, e.PatchTruncated, len(e.Patch), e.Added, e.Removed, c.truncated, c.hunks, c.lines)
		}
		if n := len(mustEncode(t, p)); n > 64<<10 {
			t.Errorf("%s: the answer has %d bytes", c.name, n)
		}
		if strings.Contains(p.Text(), "patch") != c.truncated {
			t.Errorf("%s: the text is %.300s", c.name, p.Text())
		}
	}
}

// noTexts are files that are no text, by their names.
func noTexts(t *testing.T) map[string]string {
	t.Helper()
	corpus := func(name string) string { return content(t, filepath.Join("../testdata/readers", name)) }
	unhex := func(s string) string {
		b, err := hex.DecodeString(s)
		must(t, err)
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
			if kept("Write", p); !strings.Contains(p.Text(), "acknowledge: true") || mode == "must read" && name != "n.ipynb" && p.Kind() != tools.KindMustRead {
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
					p := call(t, s, "Edit", args)
					if kept("Edit", p); p.Kind() != tools.KindUnsupported || !strings.Contains(p.Text(), "converted from its bytes") {
						t.Errorf("%s, %s, Edit: %s", mode, name, p.Text())
					}
				}
			}
			if p := call(t, s, "Write", map[string]any{"file_path": file, "content": "a,c\n", "acknowledge": true}); tools.Refused(p) || content(t, file) != "a,c\n" {
				t.Errorf("%s, %s, acknowledged: %s", mode, name, p.Text())
			}
			does(t, s, "Write", map[string]any{"file_path": file, "content": "a,d\n"})
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
		does(t, s, "Write", args)
	}
	nul := write(t, filepath.Join(root, "nul.md"), "# Title\nline \x00 two\n")
	if p := call(t, s, "Write", map[string]any{"file_path": nul, "content": "# Title\n"}); !tools.Refused(p) {
		t.Error("what Read does not show was replaced without a word")
	}
	does(t, s, "Edit", map[string]any{"file_path": nul, "old_string": "Title", "new_string": "Name"})
	wide := write(t, filepath.Join(root, "wide"), "\x48\x51\x01\x4e\x00\x01\x48\x51\n\x00")
	does(t, s, "Write", map[string]any{"file_path": wide, "content": "x\n", "encoding": "utf-16le"})
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

const fourCells = `{"cells":[
{"cell_type":"markdown","id":"c1","metadata":{},"source":["one"]},
{"cell_type":"code","id":"c2","metadata":{},"execution_count":1,"outputs":[{"output_type":"display_data","data":{"application/x-chart":{}},"metadata":{}}],"source":["two"]},
{"cell_type":"markdown","id":"c3","metadata":{},"source":["three"]},
{"cell_type":"markdown","id":"c4","metadata":{},"source":["four"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}
`

func mustRead(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true }

// TestWriteOverWhatCannotBeShown: bytes that were not shown are not overwritten unasked, though all that can be shown was.
func TestWriteOverWhatCannotBeShown(t *testing.T) {
	docx := func(parts ...string) string {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := 0; i < len(parts); i += 2 {
			w, err := z.CreateHeader(&zip.FileHeader{Name: parts[i], Method: zip.Store})
			must(t, err)
			w.Write([]byte(parts[i+1]))
		}
		z.Close()
		return b.String()
	}
	s, root := suite(t, mustRead, tools.Options{})
	for name, raw := range map[string]string{
		"cells twice":    `{"cells":[{"cell_type":"raw","source":"PRECIOUS"}],"metadata":{},"nbformat":4,"nbformat_minor":5,"cells":[]}`,
		"cells and more": `{"cells":[{"cell_type":"raw","source":"x"}],"metadata":{},"nbformat":4,"nbformat_minor":5,"worksheets":["PRECIOUS"]}`,
		"cells folded":   `{"cells":[{"cell_type":"raw","source":"PRECIOUS"}],"metadata":{},"nbformat":4,"nbformat_minor":5,"Cells":[]}`,
		"source folded":  `{"cells":[{"cell_type":"raw","source":"PRECIOUS","\u017fource":""}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
		"output twice":   `{"cells":[{"cell_type":"code","source":"x","outputs":[{"output_type":"stream","text":"PRECIOUS","text":""}]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
		"only metadata":  `{"cells":[],"metadata":{"a":"PRECIOUS"},"nbformat":4,"nbformat_minor":5}`,
	} {
		file := write(t, filepath.Join(root, name+".ipynb"), raw)
		if p := call(t, s, "Read", map[string]any{"file_path": file}); !strings.Contains(p.Text(), "PRECIOUS") {
			t.Errorf("%s: Read does not show it: %s", name, mustEncode(t, p))
		}
	}
	free, there := suite(t, func(fs *config.FS) { fs.TrackReads = true }, tools.Options{})
	letter := write(t, filepath.Join(there, "l.docx"), docx("word/document.xml", `<w:document><w:body><w:p><w:r><w:t>kept</w:t></w:r></w:p></w:body></w:document>`, "x", strings.Repeat("\n", 20)))
	call(t, free, "Read", map[string]any{"file_path": letter})
	if p := call(t, free, "Write", map[string]any{"file_path": letter, "content": "x"}); !tools.Refused(p) || (strings.Contains(p.Text(), "lines were read") || p.(*tools.Refusal).Next != nil) {
		t.Errorf("there is no more to read: %s", mustEncode(t, p))
	}
	for name, raw := range map[string]string{
		"odd.ipynb":    `{"cells":[{"cell_type":"raw","source":"x","notes":"PRECIOUS"}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
		"deleted.docx": docx("word/document.xml", `<w:document><w:body><w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:delText>PRECIOUS</w:delText></w:r></w:del></w:p></w:body></w:document>`),
		"macros.docx":  docx("word/document.xml", `<w:document><w:body><w:p><w:r><w:t>kept</w:t></w:r></w:p></w:body></w:document>`, "word/vbaProject.bin", "x"),
		"tracked.odt": docx("mimetype", "application/vnd.oasis.opendocument.text", "content.xml", `<office:document-content><office:body><office:text><text:tracked-changes><text:changed-region><text:deletion><office:change-info>`+
			`<dc:creator>me</dc:creator></office:change-info><text:p>PREC<text:s/>IOUS</text:p></text:deletion></text:changed-region></text:tracked-changes><text:p>kept</text:p></office:text></office:body></office:document-content>`),
	} {
		file := write(t, filepath.Join(root, name), raw)
		p := call(t, s, "Read", map[string]any{"file_path": file})
		if said := map[string]string{"deleted.docx": "8 characters of tracked deletions", "tracked.odt": "8 characters of tracked deletions", "macros.docx": "macros", "odd.ipynb": "What is not shown"}[name]; !strings.Contains(p.Text(), said) {
			t.Errorf("%s: Read does not say %q: %s", name, said, mustEncode(t, p))
		}
		over := map[string]any{"file_path": file, "content": "gone"}
		if p := call(t, s, "Write", over); p.Kind() != tools.KindMustRead || content(t, file) != raw || !strings.Contains(p.Text(), "acknowledge") {
			t.Errorf("%s: %s", name, mustEncode(t, p))
		}
		over["acknowledge"] = true
		does(t, s, "Write", over)
	}
}

// peak runs f with the garbage collector at work and gives the most memory that was in use at any moment, above what was before.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // what is dead goes at once: it is the live part that counts
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := before.HeapAlloc
	end, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(200 * time.Microsecond):
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
		}
	})
	f()
	close(end)
	done.Wait()
	return most - before.HeapAlloc
}

// TestMemoryOfAnEdit: an edit of one line in a file of 10 MB, from the call to the answer, holds about four times the file at any moment.
func TestMemoryOfAnEdit(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	text := strings.Repeat("some line of code that is about sixty-four bytes in its length\n", 80_000)
	for charset, raw := range map[string]string{
		"utf-8":      text + "counter = 1;\n" + text,
		"iso-8859-1": text + "counter = 1; // d\xe9j\xe0 vu\n" + text,
	} {
		file := filepath.Join(root, charset+".go")
		must(t, os.WriteFile(file, []byte(raw), 0o644))
		args := fmt.Sprintf(`{"file_path":%q,"old_string":"counter = 1;","new_string":"counter = 2;"}`, file)
		got := peak(func() {
			p, err := s.Call(context.Background(), tools.Call{Tool: "Edit", Args: json.RawMessage(args)})
			if err != nil || tools.Refused(p) {
				t.Fatal(err, p)
			}
		})
		times := float64(got) / float64(len(raw))
		t.Logf("%s: %.2f times the file of %d bytes", charset, times, len(raw))
		if times >= 4.5 {
			t.Errorf("%s: %.2f times the file", charset, times)
		}
	}
}
