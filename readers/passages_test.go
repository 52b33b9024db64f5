package readers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func tarOf(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		must(t, w.WriteHeader(&tar.Header{Name: parts[i], Size: int64(len(parts[i+1])), Mode: 0o600}))
		w.Write([]byte(parts[i+1]))
	}
	must(t, w.Close())
	return b.Bytes()
}

func gzipOf(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func passages(t testing.TB, raw []byte) *Passages {
	t.Helper()
	p, err := testReaders(t).Passages(t.Context(), sourceOf(raw))
	must(t, err)
	return p
}

const mailSource = "From: a@x\nTo: b@x\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\nDate: now\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nSm9pbiB1cyBhdCBub29uLgo=\n"

// TestPassagesAreWhatReadShows: the options of each place show its line.
func TestPassagesAreWhatReadShows(t *testing.T) {
	enc, _ := zstd.NewWriter(nil)
	long := strings.Repeat("x", MaxLineChars) + " the end of a long line"
	for name, c := range map[string]struct {
		raw   []byte
		lines string // "place: line" for some lines, each on one
	}{
		"docx":     {corpusFile(t, "document/letter.docx"), "# Quarterly report"},
		"xlsx":     {corpusFile(t, "document/sheet.xlsx"), "Sheet: Stock: 4 | Sum | 14.5"},
		"ods":      {corpusFile(t, "document/sheet.ods"), "Lantern"},
		"pptx":     {corpusFile(t, "document/talk.pptx"), "Slide 2: Closing the ledger"},
		"epub":     {corpusFile(t, "document/letter.epub"), "first point"},
		"pdf":      {manyPages(45), "page 44: This is page 44."},
		"late pdf": {append([]byte("Sent by a printer\n"), manyPages(3)...), "page 2: This is page 2."},
		"mail":     {[]byte(mailSource), "Subject: Grüße\nJoin us at noon."},
		"gzip":     {gzipOf([]byte("a\r\nb\n" + long + "\n")), "the end of a long line"},
		"zstd":     {enc.EncodeAll([]byte("one\ntwo\n"), nil), "two"},
		"latin-1":  {gzipOf([]byte("Gr\xf6\xdfe der Stra\xdfe\n")), "Größe der Straße"},
		"notebook": {[]byte(`{"cells":[{"cell_type":"markdown","metadata":{},"source":["# A\n","b"]},{"cell_type":"code","metadata":{},"execution_count":1,"source":["x = 1"],"outputs":[{"output_type":"stream","name":"stdout","text":["out\n"]}]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`), "cell 1: # A\ncell 2: x = 1\ncell 2: out"},
		"zip":      {zipOf(t, "src/a.go", "package a\n\nfunc A() {}\n", "b.docx", string(docxOf(t, "<w:p><w:r><w:t>words</w:t></w:r></w:p>")), "c.bin", "\x00\x01nothing", "d.log", "tail"), "src/a.go: func A() {}\nb.docx: words\nd.log: tail"},
		"tar":      {tarOf(t, "./x/y.txt", "1\n2\n", "x/y.txt", "the second of a name\n", "../../etc/passwd", "root\n"), "x/y.txt: 2\netc/passwd: root"},
		"tar.gz":   {gzipOf(tarOf(t, "x.txt", "a\nb\nc\n", "mail.eml", mailSource)), "x.txt: c\nmail.eml: Join us at noon."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !IsDocument(c.raw, bytes.NewReader(c.raw), int64(len(c.raw)), isBinary(c.raw)) {
				t.Error("it is no document")
			}
			p := passages(t, c.raw)
			if p.Cut || p.Late {
				t.Errorf("cut: %v, late: %v", p.Cut, p.Late)
			}
			lines := strings.Split(string(p.Text), "\n")
			for _, want := range strings.Split(c.lines, "\n") {
				found := false
				for i, l := range lines {
					at, before, rest := p.Places[0], 0, strings.Join(lines[:i], "")
					for n, size := 0, len(rest)+i; n < len(p.Places) && before <= size; n++ {
						at = p.Places[n]
						before += at.Bytes
					}
					first := strings.Count(string(p.Text[:before-at.Bytes]), "\n")
					shown := strings.TrimPrefix(at.Name+": "+l, ": ")
					if !strings.Contains(shown, want) {
						continue
					}
					found = true
					o := Options{Pages: at.Pages, Offset: at.Offset}
					if at.Lines {
						o.Offset += i - first
						o.Limit = 1
					}
					if len(l) > MaxLineChars {
						o.Column = MaxLineChars
					}
					got, err := readBytes(t, c.raw, o)
					must(t, err)
					text := fmt.Sprintf("%+v", got)
					if o.Column > 0 {
						l = l[MaxLineChars:]
					}
					if !strings.Contains(text, l) || strings.Contains(*got.noted(), "Ignored") {
						t.Errorf("line %q is not in %+v: %.300s", l, o, text)
					}
				}
				if !found {
					t.Errorf("%q is not in\n%s\n%+v", want, p.Text, p.Places)
				}
			}
			if strings.Contains(string(p.Text), "second of a name") || strings.Contains(string(p.Text), "nothing") {
				t.Errorf("there is too much: %s", p.Text)
			}
		})
	}
}

// TestIsDocument: source trees have none.
func TestIsDocument(t *testing.T) {
	for name, c := range map[string]string{
		"text": "plain text\n", "C": "/* a */\nint main;\n", "markup": "<html><p>x", "JSON": `{"a": 1, "b": [2]}`, "log": "2026-01-01 PDF made\n",
		"header": "From: a\nTo: b\nSubject: c\n\nplain mail is shown as it is\n", "empty": "", "picture": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "binary": "\x7fELF\x02\x01\x01\x00",
		"UTF-8": "Größe", "percent": "% TeX\n", "P": "Package: x\n", "B": "BUILD\n", "mark": "\ufeff{\"a\":1}",
	} {
		if IsDocument([]byte(c), strings.NewReader(c), int64(len(c)), isBinary([]byte(c))) {
			t.Error(name, "is a document")
		}
	}
}

// TestHostilePassages: a search gets what is there, knows that it is not all, and ends.
func TestHostilePassages(t *testing.T) {
	zeros := strings.Repeat("0", 33<<20)
	var many []string
	for i := range tarEntries + 5 {
		many = append(many, fmt.Sprintf("f%d", i), "x\n"[:max(2-i/100, 0)])
	}
	for name, c := range map[string]struct {
		raw  []byte
		want string // in the text; "" where there is none
		cut  bool
		err  any
	}{
		"bomb in a zip":      {zipPacked(t, 64<<20, "a", "words\n", "b", zeros, "d", "after\n"), "words\nafter\n", true, nil},
		"bomb in a tar.gz":   {gzipOf(tarOf(t, "a", "words\n", "b", zeros)), "words\n", true, nil},
		"names":              {zipOf(t, "a\nb", "x\n", "\xff", "x\n", "/", "x\n", "..", "x\n", strings.Repeat("n", 2000), "x\n", "good", "y\n"), "y\n", false, nil},
		"cut tar.gz":         {gzipOf(tarOf(t, "a", "words\n", "b", strings.Repeat("y", 4096)))[:90], "words\n", true, nil},
		"archive in archive": {zipOf(t, "a.zip", string(zipOf(t, "b", "deep\n"))), "", false, nil},
		"many":               {tarOf(t, many...), "x\n", true, nil},
		"scan":               {onePage("0 0 m 10 10 l S"), "", false, nil},
		"picture":            {[]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "", false, new(*Damaged)},
		"broken PDF":         {[]byte("%PDF-1.4\nobj\nstartxref %%EOF"), "", false, new(*Damaged)},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			p, err := testReaders(t).Passages(t.Context(), sourceOf(c.raw))
			if c.err != nil {
				if !errors.As(err, c.err) {
					t.Fatalf("%v", err)
				}
				return
			}
			must(t, err)
			if p.Cut != c.cut || !strings.HasPrefix(string(p.Text), c.want) || c.want == "" && len(p.Places) > 0 {
				t.Errorf("cut: %v, text %.60q", p.Cut, p.Text)
			}
			t.Log(time.Since(began))
		})
	}
	if _, err := testReaders(t).Passages(t.Context(), Source{R: strings.NewReader(""), Size: MaxDocument + 1}); !errors.As(err, new(*TooLarge)) {
		t.Error("a long file:", err)
	}
}

// TestMembers: Read shows a file of an archive, and only one that may be shown.
func TestMembers(t *testing.T) {
	raw := zipOf(t, "a/b.txt", "one\ntwo\n", "c.png", string(noisePNG(t, 2000)), ".env", "SECRET\n")
	text := readAs[*Text](t, raw, Options{Pages: "/a/../a/b.txt", Offset: 2})
	if !strings.Contains(text.Content, "two") || strings.Contains(text.Content, "one") || !text.Lossy || text.Whole || !strings.Contains(text.Note, "a/b.txt of the archive") {
		t.Errorf("%+v", text)
	}
	readAs[*Image](t, raw, Options{Pages: "c.png"})
	if b := readAs[*Binary](t, raw, Options{}); len(b.Listing) != 3 || !strings.Contains(b.Note, "pages") {
		t.Errorf("%+v", b)
	}
	if _, err := readBytes(t, raw, Options{Pages: "nope"}); !errors.As(err, new(*BadRequest)) {
		t.Error("none of the name:", err)
	}
	no := errors.New("no")
	s := sourceOf(raw)
	s.Denied = func(name string) error {
		if strings.HasSuffix(name, ".env") {
			return no
		}
		return nil
	}
	for _, name := range []string{"./.env", "not/there/.env"} {
		if _, err := testReaders(t).Read(t.Context(), s, Options{Pages: name}); err != no {
			t.Error("a denied one:", name, err)
		}
	}
	if c, err := testReaders(t).Read(t.Context(), s, Options{Pages: "a/b.txt"}); err != nil || c == nil {
		t.Error("another:", err)
	}
}

func BenchmarkIsDocument(b *testing.B) {
	for name, head := range map[string]string{"source": "/*\n * Copyright\n */\n", "words": "package main\n\nimport (\n", "json": `{"a":1}`} {
		raw := []byte(head + strings.Repeat("some words in a line\n", 400))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				IsDocument(raw, nil, int64(len(raw)), false)
			}
		})
	}
}

// TestLatePassages: a PDF that was cut by its size is cut the next time too, so only the time makes a text late.
func TestLatePassages(t *testing.T) {
	for late, c := range map[bool]*PDF{false: {Truncated: true}, true: {Truncated: true, late: true}} {
		p := &Passages{}
		if p.take(c, ""); !p.Cut || p.Late != late {
			t.Errorf("%+v of late %v", p, late)
		}
	}
}
