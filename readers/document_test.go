package readers

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// plainLines is a Text without its line numbers.
func plainLines(t *Text) string {
	var b strings.Builder
	for _, l := range strings.SplitAfter(t.Content, "\n") {
		if _, rest, ok := strings.Cut(l, "→"); ok {
			b.WriteString(rest)
		}
	}
	return b.String()
}

func TestOfficeDocuments(t *testing.T) {
	letter := []string{"# Quarterly report", "umlaut in Größe", "## Figures of the year", "| Region | Units | Price |", "| North | 120 | 3.50 |",
		`| South \| East | 75 | 4.25 |`, "- first point", "  - a point below", "Привет, мир. 日本語も読める。"}
	sheet := []string{"Stock", "| Item | Count | Since |", "| Lantern | 12 | ", "Copper wire | 2.5", "| Sum | 14.5 |", "Second sheet", "Größe"}
	numbered := []string{"Stock", "1 | Item | Count | Since", "2 | Lantern | 12 | ", "4 | Sum | 14.5", "Second sheet", "Größe"}
	talk := []string{"Opening the harbour", "The first slide speaks of ships.", "A second line follows.", "Closing the ledger"}
	for file, want := range map[string][]string{
		"letter.docx": letter, "letter.odt": letter, "letter.epub": {"Quarterly report", "umlaut in Größe", "North", "first point", "Привет, мир."},
		"sheet.xlsx": numbered, "sheet.ods": sheet, "talk.pptx": talk, "talk.odp": talk,
	} {
		t.Run(file, func(t *testing.T) {
			raw := corpusFile(t, "document/"+file)
			m := readAs[*Text](t, raw, Options{})
			text := plainLines(m)
			at := 0
			for _, w := range want {
				i := strings.Index(text[at:], w)
				if i < 0 {
					t.Errorf("%q is missing or out of order in\n%s", w, text)
					continue
				}
				at += i
			}
			if m.Format != file[strings.LastIndexByte(file, '.')+1:] || m.Sum == "" || m.TotalLines < 3 || m.Encoding != "utf-8" {
				t.Errorf("format %s, %d lines", m.Format, m.TotalLines)
			}
			if strings.ContainsAny(text, "<>") && file != "letter.epub" {
				t.Errorf("tags in the text:\n%s", text)
			}
			second := readAs[*Text](t, raw, Options{Offset: 2, Limit: 1})
			if second.StartLine != 2 || second.RenderedLines != 1 || second.TotalLines != m.TotalLines {
				t.Errorf("a window: %+v", second)
			}
		})
	}
	html := corpusFile(t, "document/letter.html")
	if m := readAs[*Text](t, html, Options{}); m.Format != "html" || !strings.Contains(m.Content, "<h1>Quarterly report</h1>") || !strings.Contains(m.Note, "render: true") {
		t.Errorf("HTML is its source unless asked: %.200q", m.Content)
	}
	seen := plainLines(readAs[*Text](t, html, Options{Render: true}))
	for _, w := range append(letter[:5:5], "[link](https://example.org/x)", "1. one", "2. two") {
		if !strings.Contains(seen, w) {
			t.Errorf("%q is not in\n%s", w, seen)
		}
	}
	hidden := `<html><head><title>T</title><script>var secret=1</script><style>p{}</style></head><body><p>shown &amp; <b>bold</b></p><!-- comment --><script>steal()</script></body></html>`
	if s := plainLines(readAs[*Text](t, []byte(hidden), Options{Render: true})); strings.Contains(s, "secret") || strings.Contains(s, "steal") || !strings.Contains(s, "shown & bold") {
		t.Errorf("rendered: %q", s)
	}
}

// zipOf stores long parts as they are: to pack them would take longer than the test.
func zipOf(t testing.TB, parts ...string) []byte { return zipPacked(t, 1<<20, parts...) }

// zipPacked packs the parts of at most so many bytes.
func zipPacked(t testing.TB, most int, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		h := &zip.FileHeader{Name: parts[i], Method: zip.Deflate}
		if len(parts[i+1]) > most {
			h.Method = zip.Store
		}
		f, err := w.CreateHeader(h)
		must(t, err)
		f.Write([]byte(parts[i+1]))
	}
	must(t, w.Close())
	return b.Bytes()
}

func docxOf(t testing.TB, body string) []byte {
	return zipOf(t, "[Content_Types].xml", "<Types/>", "word/document.xml", `<w:document xmlns:w="x"><w:body>`+body+`</w:body></w:document>`)
}

func TestHostileDocuments(t *testing.T) {
	word := func(s string) string { return "<w:p><w:r><w:t>" + s + "</w:t></w:r></w:p>" }
	for name, c := range map[string]struct {
		raw  []byte
		want string // in the text; or of the refusal, with a leading "!"
	}{
		"plain":             {docxOf(t, word("hello")), "hello"},
		"bomb":              {zipPacked(t, 1<<30, "word/document.xml", "<w:document>"+word(strings.Repeat("0", 20<<20))+"</w:document>"), "!300 times its size"},
		"depth":             {docxOf(t, strings.Repeat("<w:p>", 100_000)), "!depth"},
		"entities":          {zipOf(t, "word/document.xml", `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><w:document><w:p><w:r><w:t>safe &b; text</w:t></w:r></w:p></w:document>`), "safe"},
		"external entity":   {zipOf(t, "word/document.xml", `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:document><w:p><w:r><w:t>safe &a; text</w:t></w:r></w:p></w:document>`), "safe"},
		"cut XML":           {docxOf(t, "<w:p><w:r><w:t>half"), ""},
		"other main part":   {zipOf(t, "_rels/.rels", `<Relationships><Relationship Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="/word/document2.xml"/></Relationships>`, "word/document.xml", "<w:document>"+word("a decoy")+"</w:document>", "word/document2.xml", "<w:document>"+word("written online")+"</w:document>"), "written online"},
		"no document":       {zipOf(t, "word/styles.xml", "<x/>"), "zip archive"},
		"escaping names":    {zipOf(t, "../../etc/passwd", "x", "a\x1b[31mb", "y"), `a\x1b[31mb`},
		"many small sheets": {zipOf(t, "xl/workbook.xml", "<workbook><sheets>"+strings.Repeat(`<sheet name="s" r:id="r1"/>`, 5000)+"</sheets></workbook>", "xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>`, "xl/worksheets/s.xml", `<worksheet><sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData></worksheet>`), ""},
		"far cell":          {zipOf(t, "xl/workbook.xml", `<workbook><sheets><sheet name="s" r:id="r1"/></sheets></workbook>`, "xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>`, "xl/worksheets/s.xml", `<worksheet><sheetData><row r="99999999"><c r="ZZZZZZ99999999"><v>7</v></c></row></sheetData></worksheet>`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readBytes(t, c.raw, Options{})
			var ours Hinter
			if err != nil && !errors.As(err, &ours) {
				t.Fatalf("an error without a next move: %v", err)
			}
			shown := fmt.Sprint(err)
			switch m := got.(type) {
			case *Text:
				shown = plainLines(m)
				if strings.Contains(shown, "root:") {
					t.Error("a file from outside was read")
				}
			case *Binary:
				shown = m.Summary + "\n" + strings.Join(m.Listing, "\n")
			}
			if want, refused := strings.CutPrefix(c.want, "!"); !strings.Contains(shown, want) || refused != (err != nil) && c.want != "" {
				t.Errorf("%.300q, want %q", shown, c.want)
			}
		})
	}
	// Cut and mutated documents: an answer or an error of ours, never a panic.
	for _, file := range []string{"letter.docx", "letter.odt", "letter.epub", "sheet.xlsx", "talk.pptx"} {
		raw := corpusFile(t, "document/"+file)
		for i := range 60 {
			bad := bytes.Clone(raw)
			if i%2 == 0 {
				bad = bad[:len(bad)*i/60]
			}
			for j := i * 37 % 101; j < len(bad); j += 997 {
				bad[j] ^= byte(i + 1)
			}
			var ours Hinter
			if _, err := readBytes(t, bad, Options{}); err != nil && !errors.As(err, &ours) {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func TestCompressed(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a line of the log\n", 3000) + "the last line é\n"
	var gz, zs, lz bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write([]byte(text))
	g.Close()
	z, _ := zstd.NewWriter(&zs)
	z.Write([]byte(text))
	z.Close()
	x, err := xz.NewWriter(&lz)
	must(t, err)
	x.Write([]byte(text))
	x.Close()
	packed := map[string][]byte{"gzip": gz.Bytes(), "zstd": zs.Bytes(), "xz": lz.Bytes()}
	if program, err := exec.LookPath("bzip2"); err == nil {
		cmd := exec.Command(program, "-c")
		cmd.Stdin = strings.NewReader(text)
		if packed["bzip2"], err = cmd.Output(); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("SKIPPED: bzip2 is not installed")
	}
	for name, raw := range packed {
		m := readAs[*Text](t, raw, Options{Offset: -1})
		if m.Format != name || m.TotalLines != 3001 || !strings.Contains(m.Content, "3001→the last line é") || m.Sum == "" {
			t.Errorf("%s: %s, %d lines, %.60q", name, m.Format, m.TotalLines, m.Content)
		}
		// Half of it, and all of it with junk behind: what unpacks is shown, and said to be a part.
		for cut, bad := range map[string][]byte{"half": raw[:len(raw)/2], "junk": append(bytes.Clone(raw), "8 bytes."...)} {
			var damaged *Damaged
			c, err := readBytes(t, bad, Options{Limit: 2})
			if errors.As(err, &damaged) && (cut == "half" || name == "zstd") {
				continue // nothing came out before the damage
			}
			if err != nil {
				t.Errorf("%s of %s: %v", cut, name, err)
			} else if m := c.(*Text); !strings.Contains(m.Content, "     2→a line of the log\n") || !m.Truncated || m.Whole || m.TotalLinesAtLeast == 0 || !strings.Contains(m.Note, "damaged") {
				t.Errorf("%s of %s: %+v", cut, name, m)
			}
			var un *Unsupported
			if _, err := readBytes(t, bad, Options{Tail: true}); !errors.As(err, &un) {
				t.Errorf("%s of %s has an end: %v", cut, name, err)
			}
		}
	}
	bomb := func(n int) []byte {
		var b bytes.Buffer
		g, _ := gzip.NewWriterLevel(&b, 9)
		zero := bytes.Repeat([]byte("x"), 1<<20)
		for range n {
			g.Write(zero)
		}
		g.Close()
		return b.Bytes()
	}
	if m := readAs[*Text](t, bomb(75), Options{}); m.TotalLinesAtLeast != 1 || !strings.Contains(m.Note, "unpacks to more than 300 times its size") || len(m.Content) > 2100 {
		t.Errorf("a bomb: %d lines, %q", m.TotalLinesAtLeast, m.Note)
	}
	repeated := bytes.Repeat([]byte("the same line of a log again and again\n"), 256<<10) // 10 MB
	var rb bytes.Buffer
	rg, _ := gzip.NewWriterLevel(&rb, 9)
	rg.Write(repeated)
	rg.Close()
	if m := readAs[*Text](t, rb.Bytes(), Options{Limit: 2, Offset: 100_000}); m.RenderedLines != 2 || m.NextOffset != 100_002 || !strings.Contains(m.Note, "Unpack it") {
		t.Errorf("a log that packs well: %+v", m)
	}
	if m, err := readBytes(t, bomb(4), Options{Column: 1, Offset: 1}); err != nil || m.(*Text).NextColumn == 0 {
		t.Errorf("a small one is read through: %v", err)
	}
	var archive bytes.Buffer
	gw := gzip.NewWriter(&archive)
	tw := tar.NewWriter(gw)
	for i := range 150 {
		tw.WriteHeader(&tar.Header{Name: fmt.Sprintf("dir/file%d", i), Mode: 0o644, Size: 3})
		tw.Write([]byte("abc"))
	}
	tw.Close()
	gw.Close()
	b := readAs[*Binary](t, archive.Bytes(), Options{})
	if b.Entries != 150 || len(b.Listing) != 100 || !b.EntriesCut || !strings.Contains(b.Summary, "gzip-compressed tar archive, 150 entries") || b.Listing[0] != "dir/file0 (3 bytes)" {
		t.Errorf("a tarball: %s, %d of %d listed, %q", b.Summary, len(b.Listing), b.Entries, b.Listing[0])
	}
}

func TestEmail(t *testing.T) {
	mail := "From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nTo: a@example.org\r\nSubject: =?iso-8859-1?B?R3L832U=?=\r\nDate: Mon, 1 Jan 2024 10:00:00 +0000\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n" +
		"--c\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nDie Gr=F6=DFe z=E4hlt.\r\n" +
		"--c\r\nContent-Type: text/html\r\n\r\n<p>other</p>\r\n--c--\r\n" +
		"--b\r\nContent-Type: application/pdf; name=x.pdf\r\nContent-Disposition: attachment; filename=\"report.pdf\"\r\nContent-Transfer-Encoding: base64\r\n\r\n" +
		base64.StdEncoding.EncodeToString([]byte("0123456789")) + "\r\n--b--\r\n"
	// Its text is encoded in the source, so the text is what is shown unless the source is asked for.
	if m := readAs[*Text](t, []byte(mail), Options{Source: true}); m.Format != "email" || !strings.Contains(m.Content, "Die Gr=F6=DFe") || !strings.Contains(m.Note, "render: true") || !m.Whole {
		t.Errorf("the source: %q, %v, %s", m.Note, m.Whole, m.Content)
	}
	text := readAs[*Text](t, []byte(mail), Options{})
	if !strings.Contains(text.Note, "render: false") || text.Whole || len(text.Shown) != 0 || text.Sum == "" {
		t.Errorf("the text counts as seen for what it is not: %q %+v", text.Note, text.ReadRecord)
	}
	plain := "From: a@example.org\r\nTo: b@example.org\r\nSubject: plain\r\nContent-Type: text/plain\r\n\r\nhello\r\n"
	if m := readAs[*Text](t, []byte(plain), Options{}); !strings.Contains(m.Content, "     4→Content-Type: text/plain") || !m.Whole {
		t.Errorf("a readable source is shown as it is: %s", m.Content)
	}
	seen := plainLines(text)
	if other := plainLines(readAs[*Text](t, []byte(mail), Options{Render: true})); other != seen {
		t.Errorf("with render:\n%s\nwithout:\n%s", other, seen)
	}
	for _, w := range []string{"From: Jürgen <j@example.org>", "Subject: Grüße", "Die Größe zählt.", "- report.pdf (10 bytes) application/pdf"} {
		if !strings.Contains(seen, w) {
			t.Errorf("%q is not in\n%s", w, seen)
		}
	}
	if strings.Contains(seen, "other") {
		t.Errorf("both alternatives are shown:\n%s", seen)
	}
	deep := strings.Replace(mail, "multipart/mixed; boundary=b", "multipart/mixed; boundary=b", 1)
	for i := range 20 {
		deep = fmt.Sprintf("From: a@b.c\r\nTo: d@e.f\r\nSubject: s\r\nContent-Type: multipart/mixed; boundary=x%d\r\n\r\n--x%d\r\n%s\r\n--x%d--\r\n", i, i, deep, i)
	}
	var ours Hinter
	if _, err := readBytes(t, []byte(deep), Options{Render: true}); err != nil && !errors.As(err, &ours) {
		t.Errorf("nested: %v", err)
	}
}

// A message that breaks the rules is shown as far as it goes, and its note says so.
func TestBrokenEmail(t *testing.T) {
	const head = "From: a@example.org\r\nTo: b@example.org\r\nMIME-Version: 1.0\r\n"
	part := "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
	for mail, want := range map[string][2]string{
		head + "Content-Type: multipart/mixed\r\n\r\n--q\r\n" + part + "f=C3=BCr\r\n--q--\r\n":                                                        {"für", "are not parted"},
		head + "Content-Type: multipart/mixed\r\n\r\nno parts at all\r\n":                                                                             {"no parts at all", "are not parted"},
		head + "Content-Type: multipart/mixed; boundary=x\r\n\r\na line with --x in it\r\n":                                                           {"a line with --x in it", ""},
		head + "Content-Type: multipart/mixed; boundary=q\r\n\r\n--q\r\n" + part + "half=20a":                                                         {"half a", "in the middle"},
		head + "Content-Type: multipart/alternative; boundary=q\r\n\r\n--q\r\n" + part + "\r\n--q\r\nContent-Type: text/html\r\n\r\n<p>html\r\n--q--": {"html", ""},
		head + "Subject: =?x-unknown?Q?gr=FC?= =?utf-8?Q?gut?=\r\n" + part + "x\r\n":                                                                  {"Subject: =?x-unknown?Q?gr=FC?= gut", "could not be decoded"},
		head + "Subject: =?utf-8?Q?zwei_W=C3=B6rter mit Luft?=\r\n" + part + "x\r\n":                                                                  {"Subject: ", ""},
		head + "Subject: Gr\xfc\xdfe aus K\xf6ln, sch\xf6ne Gr\xfc\xdfe\r\n" + part + "x\r\n":                                                         {"Subject: Grüße aus Köln", ""},
		head + "this is no header\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nbody\r\n":                         {"body", "Lines of its header"},
		head + part + "bad =ZZ code, 100=\r\n% and = \r\nmore =C3=A4=":                                                                                {"bad =ZZ code, 100% and more ä=", ""},
		head + "Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\nYWI=\r\n!!Y2Q=Z\r\n":                                             {"abcd", ""},
		head + "Content-Type: text/plain; charset=no-such\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC=DFe\r\n":                        {"Gr", ""},
	} {
		m := readAs[*Text](t, []byte(mail), Options{Render: true})
		if s := plainLines(m); m.Format != "email" || !strings.Contains(s, want[0]) || !strings.Contains(m.Note, want[1]) {
			t.Errorf("%q is shown as\n%s\nnote: %s", mail, s, m.Note)
		}
	}
}

func TestBinary(t *testing.T) {
	elf := append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00"), make([]byte, 100)...)
	b := readAs[*Binary](t, elf, Options{})
	if b.Summary != "" || b.MediaType != "application/x-executable" || b.Base64 != "" || b.Bytes != int64(len(elf)) || b.Kind() != "binary" {
		t.Errorf("%+v", b)
	}
	z := readAs[*Binary](t, zipOf(t, "a/b.txt", "hello", "c", "x"), Options{})
	if z.Entries != 2 || z.Listing[0] != "a/b.txt (5 bytes)" || z.MediaType != "application/zip" {
		t.Errorf("%+v", z)
	}
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	var all []byte
	o := Options{BinaryPolicy: "base64", MaxBytes: 40_000}
	for pages := 0; ; pages++ {
		b := readAs[*Binary](t, noise, o)
		part, err := base64.StdEncoding.DecodeString(b.Base64)
		if err != nil || len(b.Base64) > 40_000 || b.StartOffset != int64(len(all))+1 || pages > 9 {
			t.Fatalf("%v: %d bytes from %d", err, len(b.Base64), b.StartOffset)
		}
		all = append(all, part...)
		if o.Offset = int(b.NextOffset); o.Offset == 0 {
			break
		}
	}
	if !bytes.Equal(all, noise) {
		t.Error("the pages put together are not the file")
	}
	if b := readAs[*Binary](t, noise, Options{BinaryPolicy: "base64", Offset: -4}); b.StartOffset != 99_997 {
		t.Errorf("the end begins at %d", b.StartOffset)
	}
}

// Formats that are not read are binary files, whose note names the way out.
func TestFormatsThatAreNotRead(t *testing.T) {
	const images, documents = "WebP, BMP, TIFF, ICO, AVIF and HEIC are shown; convert it", "odt, ods, odp, epub and PDF are read; convert it"
	for media, c := range map[string]struct{ raw, note string }{
		"application/x-7z-compressed": {"7z\xbc\xaf\x27\x1c\x00\x04", "7z x FILE"},
		"application/vnd.rar":         {"Rar!\x1a\x07\x01\x00", "unrar x FILE"},
		"application/x-archive":       {"!<arch>\nx.o/\x00", "ar t FILE"},
		"application/x-executable":    {"\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\x3e\x00", "readelf"},
		"application/wasm":            {"\x00asm\x01\x00\x00\x00", "wasm-objdump"},
		"video/mp4":                   {"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "ffprobe"},
		"image/jxl":                   {"\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a", images},
		"application/vnd.ms-excel":    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 504) + "\x09\x08\x10\x00\x00\x06\x05\x00", documents},
		"application/vnd.sqlite3":     {string(corpusFile(t, "binary/one.db")), "SQLite"},
		"application/octet-stream":    {"\x00\x01\x02\x03 noise \x00\x00\x00", "binary_policy"},
	} {
		if b := readAs[*Binary](t, []byte(c.raw), Options{}); b.MediaType != media || !strings.Contains(b.Note, c.note) {
			t.Errorf("%s: %q, %q", media, b.MediaType, b.Note)
		}
		if b := readAs[*Binary](t, []byte(c.raw), Options{BinaryPolicy: "base64"}); b.Note != "" {
			t.Errorf("%s: %q", media, b.Note)
		}
	}
}

// Databases by SQLite itself: a schema of one page, one of many pages, one in UTF-16.
func TestSQLite(t *testing.T) {
	one := readAs[*Binary](t, corpusFile(t, "binary/one.db"), Options{})
	if one.MediaType != "application/vnd.sqlite3" || one.Entries != 3 || one.EntriesCut || one.Listing[0] != "table users: CREATE TABLE users(id integer primary key, name text); 0 rows" ||
		!strings.HasPrefix(one.Listing[2], "view adults: CREATE VIEW adults AS SELECT") || !strings.Contains(one.Summary, "SQLite database, 3 pages of 512 bytes, UTF-8, user_version 7") {
		t.Errorf("%s\n%q", one.Summary, one.Listing)
	}
	many := readAs[*Binary](t, corpusFile(t, "binary/many.db"), Options{})
	if many.Entries != 120 || len(many.Listing) != listed || !many.EntriesCut || many.Listing[99] != "view v99: CREATE VIEW v99 AS SELECT 99" {
		t.Errorf("%s: %d entries, %d listed, %q", many.Summary, many.Entries, len(many.Listing), many.Listing)
	}
	wide := readAs[*Binary](t, corpusFile(t, "binary/wide.db"), Options{})
	if len(wide.Listing) != 1 || wide.Listing[0] != "table größen: CREATE TABLE größen(größe text); 0 rows" {
		t.Errorf("%s: %q", wide.Summary, wide.Listing)
	}
	raw := corpusFile(t, "binary/many.db")
	if b := readAs[*Binary](t, raw[:len(raw)-600], Options{}); !b.EntriesCut || !strings.Contains(b.Summary, "it can't be read") {
		t.Errorf("without its end: %+v", b)
	}
}

func TestNotebook(t *testing.T) {
	pic := base64.StdEncoding.EncodeToString(corpusFile(t, "image/rgb.png"))
	long := strings.Repeat("y", 30_000)
	nb := map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{"language_info": map[string]any{"name": "python"}}, "cells": []any{
		map[string]any{"cell_type": "markdown", "id": "m", "source": "# T\nx", "metadata": map[string]any{}},
		map[string]any{"cell_type": "code", "id": "c", "execution_count": 3, "source": []any{"a\n", "b"}, "outputs": []any{
			map[string]any{"output_type": "stream", "name": "stdout", "text": []any{"\x1b[31mred\x1b[0m\n"}},
			map[string]any{"output_type": "display_data", "data": map[string]any{"image/png": pic, "text/plain": "<Figure>"}},
			map[string]any{"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": []any{"line 1"}},
			map[string]any{"output_type": "stream", "text": long},
		}},
		map[string]any{"cell_type": "code", "source": "no id", "outputs": []any{}},
	}}
	raw, err := json.Marshal(nb)
	must(t, err)
	n := readAs[*Notebook](t, raw, Options{})
	if n.TotalCells != 3 || n.Language != "python" || n.Format != "4.5" || !n.Truncated || n.NextOffset != 0 || n.Whole || !slices.Equal(n.Incomplete, []int{2}) || n.Cells[2].ID != "cell-2" || n.Cells[1].Source != "a\nb" || *n.Cells[1].ExecutionCount != 3 {
		t.Fatalf("%+v", n)
	}
	outs := n.Cells[1].Outputs
	if outs[0].Text != "red\n" || outs[1].MediaType != "image/png" || outs[1].Width != 60 || outs[2].Text != "ValueError: bad\nline 1" || len(outs[3].Text) > 11_000 || n.OutputsCut != 1 {
		t.Errorf("outputs: %q %s %d, %q, %d bytes, cut %d", outs[0].Text, outs[1].MediaType, outs[1].Width, outs[2].Text, len(outs[3].Text), n.OutputsCut)
	}
	checkQuarters(t, decodeImage(t, outs[1].Base64), asDrawn, 1)
	w := readAs[*Notebook](t, raw, Options{Offset: 2, Limit: 1})
	if w.StartCell != 2 || len(w.Cells) != 1 || w.NextOffset != 3 || !w.Truncated || w.Whole {
		t.Errorf("a window: %+v", w)
	}
	if m := readAs[*Text](t, raw, Options{Encoding: "utf-8"}); !strings.HasPrefix(m.Content, `     1→{"cells":[`) {
		t.Error("with an encoding given it is not shown as its text")
	}
	for _, other := range []string{`{"nbformat": 4}`, `{"nbformat": 3, "cells": []}`, `{"cells": [], "nbformat": "x"}`, `{"nbformat": 4, "cells": [`} {
		if c, err := readBytes(t, []byte(other), Options{}); err != nil || c.Kind() != "text" {
			t.Errorf("%s: %v %v", other, c, err)
		}
	}
}

// Lists keep their numbers and links their targets; comments, headers and footers are shown; one sheet of several can be chosen.
func TestDocumentParts(t *testing.T) {
	rels := func(pairs ...string) string {
		s := "<Relationships>"
		for i := 0; i < len(pairs); i += 2 {
			mode := ""
			if strings.Contains(pairs[i+1], ":") {
				mode = ` TargetMode="External"`
			}
			s += fmt.Sprintf(`<Relationship Id="%s" Target="%s"%s/>`, pairs[i], pairs[i+1], mode)
		}
		return s + "</Relationships>"
	}
	item := func(props, text string) string {
		return "<w:p><w:pPr>" + props + "</w:pPr><w:r><w:t>" + text + "</w:t></w:r></w:p>"
	}
	num := func(id, level int) string {
		return fmt.Sprintf(`<w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr>`, level, id)
	}
	word := zipOf(t, "word/document.xml", "<w:document><w:body>"+item(`<w:pStyle w:val="Titre1"/>`, "Head")+item(num(1, 0), "a")+item(num(1, 1), "b")+item(num(1, 1), "c")+
		item(num(1, 0), "d")+item(num(2, 0), "e")+item(num(3, 0), "f")+item(`<w:pStyle w:val="L"/>`, "g")+item(num(0, 0), "plain")+
		`<w:p><w:r><w:t>see </w:t></w:r><w:hyperlink r:id="r1"><w:r><w:t>the page</w:t></w:r></w:hyperlink></w:p></w:body></w:document>`,
		"word/_rels/document.xml.rels", rels("r1", "https://example.org/x"),
		"word/styles.xml", `<w:styles><w:style w:styleId="Titre1"><w:name w:val="heading 1"/></w:style><w:style w:styleId="L"><w:name w:val="List Number"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style></w:styles>`,
		"word/numbering.xml", `<w:numbering><w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>`+
			`<w:lvl w:ilvl="1"><w:start w:val="3"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum><w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>`+
			`<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num><w:num w:numId="3"><w:abstractNumId w:val="7"/><w:lvlOverride><w:startOverride w:val="1"/></w:lvlOverride></w:num></w:numbering>`,
		"word/header1.xml", "<w:hdr>"+item("", "Confidential")+"</w:hdr>", "word/header2.xml", "<w:hdr>"+item("", "Confidential")+"</w:hdr>", "word/footer1.xml", "<w:ftr>"+item("", "Page")+"</w:ftr>")
	open := func(kind, body, styles string) []byte {
		return zipOf(t, "mimetype", "application/vnd.oasis.opendocument."+kind, "content.xml", `<office:document-content><office:automatic-styles><text:list-style style:name="N">`+
			`<text:list-level-style-number text:level="1" style:num-format="1"/></text:list-style></office:automatic-styles><office:body>`+body+"</office:body></office:document-content>", "styles.xml", styles)
	}
	sheet := func(name, body string) string {
		return `<table:table table:name="` + name + `"><table:table-row><table:table-cell><text:p>` + body + `</text:p></table:table-cell></table:table-row></table:table>`
	}
	book := zipOf(t, "xl/workbook.xml", `<workbook><sheets><sheet name="One" r:id="r1"/><sheet name="Two" r:id="r2"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", rels("r1", "worksheets/s1.xml", "r2", "worksheets/s2.xml"),
		"xl/styles.xml", `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/><numFmt numFmtId="165" formatCode=";;;"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="10"/><xf numFmtId="165"/></cellXfs></styleSheet>`,
		"xl/worksheets/s1.xml", `<worksheet><sheetData><row r="1"><c r="A1" s="1"><v>1.25</v></c><c r="B1" s="2"><v>0.256</v></c><c r="C1" s="3"><v>77</v></c><c r="D1" t="b"><v>1</v></c></row></sheetData><hyperlinks><hyperlink ref="A1" r:id="r9"/><hyperlink ref="B1" location="Two!A1"/></hyperlinks></worksheet>`,
		"xl/worksheets/_rels/s1.xml.rels", rels("r9", "https://example.org/y", "r8", "../comments1.xml"),
		"xl/comments1.xml", `<comments><authors><author>Anna</author></authors><commentList><comment ref="B1" authorId="0"><text><r><t>check </t></r><r><t>this</t></r></text></comment></commentList></comments>`,
		"xl/worksheets/s2.xml", `<worksheet><sheetData><row r="1"><c r="A1"><v>0.30000000000000004</v></c></row></sheetData></worksheet>`)
	ods := open("spreadsheet", "<office:spreadsheet>"+sheet("One", "first")+sheet("Two", "second")+sheet("1", "third")+"</office:spreadsheet>", "<x/>")
	talk := zipOf(t, "ppt/presentation.xml", `<p:presentation><p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>`, "ppt/_rels/presentation.xml.rels", rels("r1", "slides/s.xml"),
		"ppt/slides/s.xml", `<p:sld><a:p><a:r><a:rPr><a:hlinkClick r:id="r2"/></a:rPr><a:t>our site</a:t></a:r><a:r><a:t> and more</a:t></a:r></a:p></p:sld>`, "ppt/slides/_rels/s.xml.rels", rels("r2", "https://example.org/z"))
	ole := make([]byte, 2048)
	copy(ole, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	ole[30], ole[48] = 9, 1
	copy(ole[1024+128:], "E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")
	for _, c := range []struct {
		raw         []byte
		pages, want string // with a leading "!" of a refusal
	}{
		{word, "", "# Head\n\n1. a\n  1.c) b\n  1.d) c\n2. d\n- e\n1. f\n2. g\n\nplain\n\nsee [the page](https://example.org/x)\n\n## Headers and footers\n\nPage\n\nConfidential\n"},
		{open("text", `<office:text><text:list text:style-name="N"><text:list-item><text:p>a</text:p><text:p>b</text:p></text:list-item><text:list-item><text:p>c <text:a xlink:href="https://example.org/o">d</text:a></text:p></text:list-item></text:list></office:text>`,
			"<office:document-styles><style:header><text:p>top</text:p></style:header></office:document-styles>"), "", "1. a\n  b\n2. c [d](https://example.org/o)\n\n## Headers and footers\n\ntop\n"},
		{book, "", "## Sheet: One\n\n1 | 30:00 | 25.60% | 77 | TRUE\n\nLinks:\n- A1: https://example.org/y\n- B1: Two!A1\n\nComments:\n- B1 (Anna): check this\n\n## Sheet: Two\n\n1 | 0.3\n"},
		{book, "two", "## Sheet: Two\n\n1 | 0.3\n"}, {book, " 2 ", "## Sheet: Two\n\n1 | 0.3\n"}, {book, "Three", "!no such sheet"}, {book, "3", `!"One", "Two"`},
		{ods, "Two", "## Sheet: Two\n\n| second |\n| --- |\n"}, {ods, "1", "## Sheet: One\n\n| first |\n| --- |\n"}, {ods, "None", `!"One", "Two"`},
		{talk, "", "## Slide 1\n\n[our site](https://example.org/z) and more\n"},
		{ole, "", "!needs a password"}, {ole[:600], "", ""}, {zipOf(t, "mimetype", "application/vnd.oasis.opendocument.text", "encrypted-package", "x"), "", "!needs a password"},
	} {
		m, err := readBytes(t, c.raw, Options{Pages: c.pages})
		want, refused := strings.CutPrefix(c.want, "!")
		var hinted Hinter
		if errors.As(err, &hinted) != refused || refused && !strings.Contains(err.Error()+" "+hinted.Hint(), want) {
			t.Errorf("%q: %v", c.want, err)
		}
		if m, ok := m.(*Text); ok && plainLines(m) != want {
			t.Errorf("%q is shown as\n%s", want, plainLines(m))
		}
	}
	if m := readAs[*Text](t, book, Options{}); !strings.Contains(m.Note, `"One", "Two"; pages:`) || !strings.Contains(m.Note, "Hidden in the document, but shown here: 2 characters") {
		t.Errorf("the note: %s", m.Note)
	}
}

// A long sheet is made as far as a page shows it; the pages together are all of it, and an end is the end.
func TestSheetByPages(t *testing.T) {
	var rows, all strings.Builder
	for i := 1; i <= 8000; i++ {
		fmt.Fprintf(&rows, `<row r="%d"><c r="A%d"><v>%d</v></c><c r="B%d" t="inlineStr"><is><t>row %d</t></is></c></row>`, i, i, i, i, i)
		fmt.Fprintf(&all, "%d | %d | row %d\n", i, i, i)
	}
	raw := zipPacked(t, 1<<30, "xl/workbook.xml", `<workbook><sheets><sheet name="s" r:id="r1"/></sheets></workbook>`, "xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Target="worksheets/s.xml"/></Relationships>`,
		"xl/worksheets/s.xml", "<worksheet><sheetData>"+rows.String()+"</sheetData></worksheet>")
	want := "## Sheet: s\n\n" + all.String()
	r := opened(t, testConfig())
	read := func(o Options) *Text {
		t.Helper()
		c, err := r.Read(t.Context(), sourceOf(raw), o)
		must(t, err)
		return c.(*Text)
	}
	first := read(Options{Limit: 10})
	if made := len(r.kept.doc.Text()); first.TotalLines >= 0 || first.TotalLinesAtLeast <= 10 || first.NextOffset != 11 || !first.Truncated || made > len(want)/2 {
		t.Errorf("ten lines: %+v, made %d of %d bytes", first, made, len(want))
	}
	var got strings.Builder
	for o := (Options{MaxBytes: 50_000}); ; {
		m := read(o)
		got.WriteString(plainLines(m))
		if o.Offset = m.NextOffset; o.Offset == 0 {
			if m.TotalLines != 8002 {
				t.Errorf("%d lines", m.TotalLines)
			}
			break
		}
	}
	if got.String() != want {
		t.Errorf("the pages together have %d bytes, not %d", got.Len(), len(want))
	}
	r.kept.doc = nil
	if m := read(Options{Tail: true, Limit: 2}); m.TotalLines != 8002 || plainLines(m) != "7999 | 7999 | row 7999\n8000 | 8000 | row 8000\n" {
		t.Errorf("the end: %+v", m)
	}
	if r.kept.doc == nil || r.kept.doc.Partial {
		t.Errorf("the whole is not kept: %+v", r.kept.doc)
	}
}
