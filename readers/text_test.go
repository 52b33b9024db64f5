package readers

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	pictures "moltisfs/readers/image"
)

// modelLines is the law of lines, written as plainly as can be: split at newlines, no line after the last one.
func modelLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.Split(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// modelText renders a window of UTF-8 text as the rulings say, without regard to cost.
func modelText(s string, o Options) (content string, first, rendered, cut int, next int) {
	lines := modelLines(strings.TrimPrefix(s, "\ufeff"))
	limit := o.Limit
	if limit == 0 {
		limit = DefaultLines
	}
	first = max(o.Offset, 1)
	switch {
	case o.Offset < 0:
		first = max(len(lines)+max(o.Offset, -len(lines)-1)+1, 1)
	case o.Tail:
		first = max(len(lines)-limit+1, 1)
	}
	var b strings.Builder
	for n := first; n <= len(lines) && rendered < limit; n++ {
		l := strings.TrimSuffix(lines[n-1], "\r")
		l = string(bytes.ToValidUTF8([]byte(l), []byte("\uFFFD")))
		shown := l
		if r := []rune(l); len(r) > MaxLineChars {
			shown = string(r[:MaxLineChars]) + "…"
			cut++
		}
		fmt.Fprintf(&b, "%6d→%s\n", n, shown)
		rendered++
	}
	switch {
	case rendered == 1 && cut == 1:
		next = first // at a column
	case first+rendered <= len(lines) && rendered > 0:
		next = first + rendered
	}
	return b.String(), first, rendered, cut, next
}

// checkWindow compares a window with the model, read whole and read streaming.
func checkWindow(t *testing.T, s string, o Options) {
	t.Helper()
	if (Options{}) == o {
		o.Limit = DefaultLines
	}
	o.Encoding, o.MaxBytes = "utf-8", 1<<30
	content, first, rendered, cut, next := modelText(s, o)
	total := len(modelLines(strings.TrimPrefix(s, "\ufeff")))
	for _, streaming := range []bool{false, true} {
		if streaming {
			o.MaxFileBytes = 1 // above it a window is streamed
		}
		c, err := readBytes(t, []byte(s), o)
		if err != nil {
			t.Fatalf("%+v streaming %v: %v", o, streaming, err)
		}
		got := c.(*Text)
		if got.Content != content {
			t.Errorf("%+v streaming %v of %.200q:\n%.400q\nwant\n%.400q", o, streaming, s, got.Content, content)
		}
		if got.RenderedLines != rendered || got.LinesCut != cut || got.NextOffset != next || int(got.TotalLines) != total || rendered > 0 && got.StartLine != first {
			t.Errorf("%+v streaming %v of %.200q: start %d rendered %d cut %d next %d total %d, want %d %d %d %d %d", o, streaming, s,
				got.StartLine, got.RenderedLines, got.LinesCut, got.NextOffset, got.TotalLines, first, rendered, cut, next, total)
		}
		if want := next > 0 || cut > 0; rendered > 0 && got.Truncated != want || (got.NextColumn > 0) != (rendered == 1 && cut == 1) {
			t.Errorf("%+v streaming %v of %.200q: truncated %v", o, streaming, s, got.Truncated)
		}
		if got.Whole && (first != 1 || rendered != total || cut > 0) {
			t.Errorf("%+v streaming %v of %.200q: whole, but lines %d to %d of %d with %d cut", o, streaming, s, first, first+rendered-1, total, cut)
		}
	}
}

var windows = []Options{{}, {Limit: 1}, {Offset: 2}, {Offset: 2, Limit: 2}, {Offset: -1}, {Offset: -3, Limit: 2}, {Tail: true, Limit: 2}, {Offset: 99}, {Offset: 1, Limit: 3}}

func TestWindowsAgainstTheModel(t *testing.T) {
	for _, s := range []string{
		"a", "a\n", "\n", "\n\n", "a\nb", "a\r\nb\r\n", "a\rb\n", "é\n日本\n𝄞\n", "\ufeffa\n", "\xff\xfe\xfd x\xc3\n\xc3", "a\n\nb\n\n\n",
		strings.Repeat("x", 2000) + "\n" + strings.Repeat("é", 2001) + "\nend", strings.Repeat("line\n", 5000), strings.Repeat("日", 9000),
		strings.Repeat("y", 300_000) + "\nafter\n",
	} {
		for _, o := range windows {
			checkWindow(t, s, o)
		}
	}
	rng := rand.New(rand.NewPCG(8, 8))
	for range 300 {
		checkWindow(t, randomText(rng), windows[rng.IntN(len(windows))])
	}
}

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(40) {
		switch rng.IntN(8) {
		case 0:
			b.WriteString("\r\n")
		case 1:
			b.WriteString(strings.Repeat("日本é", rng.IntN(900)))
		case 2:
			b.WriteString(strings.Repeat("z", rng.IntN(5000)))
		case 3:
			b.WriteByte(byte(0x80 + rng.IntN(128)))
		case 4:
			b.WriteString("word\u200b ")
		default:
			b.WriteString("line\n")
		}
	}
	return b.String()
}

func FuzzWindow(f *testing.F) {
	f.Add("a\nb\r\n\xffc", 1, 0, false)
	f.Add("\ufeff\n\n", -1, 2, false)
	f.Add(strings.Repeat("é", 2100)+"\nx", 0, 5, true)
	f.Fuzz(func(t *testing.T, s string, offset, limit int, tail bool) {
		if len(s) == 0 || limit < 0 || tail && offset > 0 || strings.HasPrefix(s, "\xff\xfe") || strings.HasPrefix(s, "\xfe\xff") || strings.HasPrefix(s, "\x00\x00\xfe\xff") {
			return
		}
		if pictures.FormatOf([]byte(s)) != nil || packingOf([]byte(s)) != nil {
			return
		}
		checkWindow(t, s, Options{Offset: offset, Limit: limit, Tail: tail})
	})
}

func TestTextCaps(t *testing.T) {
	log := strings.Repeat("0123456789012345678901234567890123456789\n", 50_000)
	m := readAs[*Text](t, []byte(log), Options{})
	if m.RenderedLines != 2000 || m.NextOffset != 2001 || m.TotalLines != 50_000 || !m.Truncated || m.Whole || m.Sum == "" {
		t.Errorf("the default window: %d lines, next %d of %d", m.RenderedLines, m.NextOffset, m.TotalLines)
	}
	m = readAs[*Text](t, []byte(log), Options{MaxBytes: 50 << 10, Offset: 100})
	if len(m.Content) > 50<<10 || len(m.Content) < 49<<10 || m.NextOffset != 100+m.RenderedLines {
		t.Errorf("the byte cap: %d bytes, %d lines, next %d", len(m.Content), m.RenderedLines, m.NextOffset)
	}
	if !slices.Equal(m.Shown, []Span{{100, 99 + m.RenderedLines}}) {
		t.Errorf("seen %v", m.Shown)
	}
	m = readAs[*Text](t, []byte(log), Options{MaxBytes: 1000, Tail: true})
	if !strings.Contains(m.Content, " 50000→") || len(m.Content) > 1000 || m.Truncated && m.NextOffset != 0 {
		t.Errorf("the tail within 1000 bytes: %q", m.Content)
	}
	for tokens, want := range map[int]int64{0: 256 << 10, 1000: 5 << 10, 8000: 6400, 40_000: 32_000, 128_000: 102_400, 200_000: 160_000, 500_000: 400_000, 10_000_000: 512 << 10} {
		if got := WindowBytes(tokens); got != want {
			t.Errorf("%d tokens give %d bytes, want %d", tokens, got, want)
		}
	}
	var large *TooLarge
	if _, err := readBytes(t, []byte(log), Options{MaxFileBytes: 1 << 20}); !errors.As(err, &large) || !large.Windowed {
		t.Errorf("over max_read_bytes: %v", err)
	}
	for _, o := range []Options{{Limit: 5}, {Offset: 9}, {Tail: true}, {AllowLarge: true}} {
		o.MaxFileBytes = 1 << 20
		if _, err := readBytes(t, []byte(log), o); err != nil {
			t.Errorf("%+v over max_read_bytes: %v", o, err)
		}
	}
	empty := readAs[*Text](t, nil, Options{})
	if !empty.Empty || empty.TotalLines != 0 || empty.RenderedLines != 0 || !empty.Whole || empty.Content != "" {
		t.Errorf("an empty file: %+v", empty)
	}
	hidden := readAs[*Text](t, []byte("a\u200bb\u202ec\x1b[31m\u00ad\U000e0041 plain\n"), Options{ANSI: true})
	if hidden.HiddenChars != 5 {
		t.Errorf("%d hidden characters", hidden.HiddenChars)
	}
	if bad := readAs[*Text](t, []byte("fine \xff\xfe\xfd é è à\nmore "+strings.Repeat("é", 30)+"\n"), Options{}); bad.InvalidBytes != 3 || !strings.Contains(bad.Content, "fine \uFFFD é") {
		t.Errorf("invalid bytes: %d in %q", bad.InvalidBytes, bad.Content)
	}
	for _, bad := range []Options{{Limit: -1}, {Column: -1}, {Tail: true, Offset: 3}, {Column: 5, Tail: true}, {Encoding: "klingon"}, {LineNumbers: "roman"}, {BinaryPolicy: "x"}} {
		var h Hinter
		if _, err := readBytes(t, []byte("x"), bad); !errors.As(err, &h) || h.Hint() == "" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if tab := readAs[*Text](t, []byte("a\nb"), Options{LineNumbers: "tab"}); tab.Content != "1\ta\n2\tb\n" {
		t.Errorf("tab: %q", tab.Content)
	}
	if c := readAs[*Text](t, []byte("a\nb"), Options{LineNumbers: "compact"}); c.Content != "1:a\n2:b\n" {
		t.Errorf("compact: %q", c.Content)
	}
}

// One giant line comes in pages of columns, which put together are the line.
func TestColumns(t *testing.T) {
	for _, line := range []string{strings.Repeat("abcdé日𝄞", 20_000), strings.Repeat("x", 500_000)} {
		for _, streaming := range []bool{false, true} {
			file := "first\n" + line + "\r\nlast\n"
			o := Options{Offset: 2, Column: 1, MaxBytes: 60_000}
			src := Source{R: strings.NewReader(file), Size: int64(len(file))}
			if streaming {
				o.MaxFileBytes = 1
			}
			var all strings.Builder
			pages := 0
			for o.Column > 0 {
				c, err := testReaders(t).Read(context.Background(), src, o)
				must(t, err)
				text := c.(*Text)
				part := strings.TrimSuffix(strings.TrimPrefix(text.Content, "     2→"), "\n")
				if text.NextColumn > 0 {
					part = strings.TrimSuffix(part, "…")
				}
				if text.StartColumn != o.Column || utf8.RuneCountInString(all.String())+1 != o.Column {
					t.Fatalf("streaming %v: column %d, asked for %d after %d characters", streaming, text.StartColumn, o.Column, utf8.RuneCountInString(all.String()))
				}
				all.WriteString(part)
				o.Column = text.NextColumn
				if pages++; pages > 50 {
					t.Fatal("no end")
				}
			}
			if all.String() != line {
				t.Errorf("streaming %v: %d bytes came together, want %d", streaming, all.Len(), len(line))
			}
		}
	}
	first := readAs[*Text](t, []byte(strings.Repeat("w", 5000)), Options{})
	if first.LinesCut != 1 || first.NextColumn != 2001 {
		t.Errorf("a long line: cut %d, next column %d", first.LinesCut, first.NextColumn)
	}
}

// readCounter counts the bytes that are asked of a file which is too large to hold: its lines are made when they are read.
type madeLog struct {
	line  string
	lines int64
	read  int64
}

func (m *madeLog) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= m.size() {
			return n, io.EOF
		}
		c := copy(p[n:], m.line[at%int64(len(m.line)):])
		if left := m.size() - at; int64(c) > left {
			c = int(left)
		}
		n += c
	}
	m.read += int64(n)
	return n, nil
}

func (m *madeLog) size() int64 { return m.lines * int64(len(m.line)) }

// A window in a file of ten gigabytes costs the way there, and its end next to nothing.
func TestWindowOfAHugeLog(t *testing.T) {
	log := &madeLog{line: strings.Repeat("m", 99) + "\n", lines: 100_000_000}
	src := Source{R: log, Size: log.size()}
	r := opened(t, testConfig())
	read := func(o Options) *Text {
		t.Helper()
		log.read = 0
		c, err := r.Read(context.Background(), src, o)
		must(t, err)
		return c.(*Text)
	}
	first := read(Options{Limit: 1000})
	if first.RenderedLines != 1000 || first.NextOffset != 1001 || first.TotalLines >= 0 || first.TotalLinesAtLeast < 1000 || log.read > 4<<20 {
		t.Errorf("the first page read %d bytes: %d lines, next %d, total %d or %d", log.read, first.RenderedLines, first.NextOffset, first.TotalLines, first.TotalLinesAtLeast)
	}
	deep := read(Options{Offset: 2_000_001, Limit: 100})
	if !strings.HasPrefix(deep.Content, "2000001→") || log.read < 190<<20 || log.read > 240<<20 {
		t.Errorf("line 2,000,001 read %d bytes: %.20q", log.read, deep.Content)
	}
	end := read(Options{Tail: true, Limit: 5})
	if end.RenderedLines != 5 || end.StartLine != -5 || log.read > 16<<20 {
		t.Errorf("the end read %d bytes: %d lines from %d", log.read, end.RenderedLines, end.StartLine)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Read(ctx, src, Options{Offset: 90_000_000, Limit: 1}); !isOutOfTime(err) {
		t.Errorf("a deadline on the way: %v", err)
	}
}

// giantLine is a file of two short lines and one that takes all the rest.
type giantLine struct{ size int64 }

func (g giantLine) ReadAt(p []byte, off int64) (n int, err error) {
	if n = int(min(int64(len(p)), g.size-off)); n < len(p) {
		err = io.EOF
	}
	for i := range p[:n] {
		p[i] = 'x'
	}
	if head := "ab\ncd\n"; off < int64(len(head)) {
		copy(p[:n], head[off:])
	}
	return n, err
}

// Of a line without an end in sight nothing is said to follow, and it does not hold the call.
func TestLineWithoutAnEnd(t *testing.T) {
	type answer struct{ rendered, total, atLeast, next, column int }
	giant := giantLine{40 << 30}
	long := 40 << 20
	if testing.Short() {
		long = 18 << 20 // still more than is looked through
	}
	one := strings.Repeat("x", long)
	for _, c := range []struct {
		name string
		src  Source
		o    Options
		want answer
		note string
	}{
		{"40 GB in a line", Source{R: giant, Size: giant.size}, Options{Offset: 2, Limit: 3}, answer{2, -1, 3, 0, 0}, "Line 3 does not end within 16 MB"},
		{"up to it", Source{R: giant, Size: giant.size}, Options{Limit: 2}, answer{2, -1, 3, 3, 0}, ""},
		{"one line", Source{R: strings.NewReader(one), Size: int64(len(one))}, Options{Limit: 1}, answer{1, -1, 1, 1, 2001}, ""},
		{"its first columns", Source{R: strings.NewReader(one), Size: int64(len(one))}, Options{Column: 1, MaxBytes: 1000}, answer{1, -1, 1, 1, 988}, ""},
		{"its last columns", Source{R: strings.NewReader(one), Size: int64(len(one))}, Options{Column: long - 10}, answer{1, 1, 0, 0, 0}, ""},
		{"the last columns before a newline", Source{R: strings.NewReader(one + "\n"), Size: int64(len(one)) + 1}, Options{Column: long - 10}, answer{1, 1, 0, 0, 0}, ""},
		{"the last columns before a line", Source{R: strings.NewReader(one + "\nz"), Size: int64(len(one)) + 2}, Options{Column: long - 10}, answer{1, -1, 2, 2, 0}, ""},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		got, err := testReaders(t).Read(ctx, c.src, c.o)
		cancel()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		m := got.(*Text)
		if is := (answer{m.RenderedLines, int(m.TotalLines), m.TotalLinesAtLeast, m.NextOffset, m.NextColumn}); is != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, is, c.want)
		}
		if m.Truncated != (m.TotalLines < 0) || !strings.HasPrefix(m.Note, c.note) || c.note == "" && m.Note != "" {
			t.Errorf("%s: truncated %v, note %q", c.name, m.Truncated, m.Note)
		}
	}
}

func TestGrowingAndUnsizedFiles(t *testing.T) {
	text := strings.Repeat("a line\n", 10_000)
	for _, c := range []struct {
		name string
		size int64
		grew bool
	}{{"as told", int64(len(text)), false}, {"unknown, as under /proc", 0, false}, {"longer meanwhile", int64(len(text)) - 700, true}, {"shorter meanwhile", int64(len(text)) + 700, true}} {
		got, err := testReaders(t).Read(context.Background(), Source{R: strings.NewReader(text), Size: c.size}, Options{Limit: 20_000})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if m := got.(*Text); m.ChangedBelow != c.grew || m.RenderedLines < 9_900 {
			t.Errorf("%s: %d lines, changed %v", c.name, m.RenderedLines, m.ChangedBelow)
		}
	}
	failing := Source{R: failAt{strings.NewReader(text), 20_000}, Size: int64(len(text))}
	if _, err := testReaders(t).Read(context.Background(), failing, Options{}); !errors.Is(err, errDisk) {
		t.Errorf("a failing disk: %v", err)
	}
}

var errDisk = errors.New("the disk failed")

type failAt struct {
	r  io.ReaderAt
	at int64
}

func (f failAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.at {
		return 0, errDisk
	}
	return f.r.ReadAt(p, off)
}

func TestEncodingArgument(t *testing.T) {
	raw, err := charmap.Windows1251.NewEncoder().Bytes([]byte("Привет, мир\nещё строка\n"))
	must(t, err)
	if m := readAs[*Text](t, raw, Options{Encoding: "CP1251"}); m.Encoding != "windows-1251" || m.Content != "     1→Привет, мир\n     2→ещё строка\n" {
		t.Errorf("%s %q", m.Encoding, m.Content)
	}
	if m := readAs[*Text](t, raw, Options{Encoding: "latin1"}); m.Encoding != "iso-8859-1" || strings.Contains(m.Content, "Привет") {
		t.Errorf("the argument does not overrule: %s %q", m.Encoding, m.Content)
	}
	// Text it is, because somebody says so.
	if m := readAs[*Text](t, corpusFile(t, "image/rgb.png"), Options{Encoding: "latin1"}); m.TotalLines == 0 {
		t.Errorf("a PNG as Latin-1: %+v", m)
	}
	for _, e := range Encodings() {
		if m := readAs[*Text](t, []byte("plain"), Options{Encoding: strings.ToUpper(e)}); m.Encoding != e {
			t.Errorf("%s is called %s", e, m.Encoding)
		}
	}
}

// Lines that are shown without their end are left out in part: the answer says so, and how each goes on.
func TestWideLines(t *testing.T) {
	var b strings.Builder
	for i := range 51 {
		fmt.Fprintf(&b, "%d;%s\n", i+1, strings.Repeat("x", 14_000))
	}
	raw := []byte(b.String())
	m := readAs[*Text](t, raw, Options{})
	if !m.Truncated || m.LinesCut != 51 || len(m.CutLines) != 51 || m.CutColumn != 2001 || m.NextOffset != 0 || m.Whole {
		t.Errorf("truncated %v, %d lines cut, at column %d, next %d", m.Truncated, m.LinesCut, m.CutColumn, m.NextOffset)
	}
	// One call goes on: the line's rest comes before the line after it.
	one := readAs[*Text](t, raw, Options{Offset: 1, Limit: 1})
	if !one.Truncated || one.NextOffset != 1 || one.NextColumn != 2001 {
		t.Errorf("truncated %v, next %d, %d", one.Truncated, one.NextOffset, one.NextColumn)
	}
	rest := readAs[*Text](t, raw, Options{Offset: one.NextOffset, Column: one.NextColumn})
	if !rest.Truncated || rest.NextOffset != 2 || rest.NextColumn != 0 {
		t.Errorf("truncated %v, next %d, %d", rest.Truncated, rest.NextOffset, rest.NextColumn)
	}
	last := readAs[*Text](t, raw, Options{Offset: 51, Column: 2001})
	if last.Truncated || last.NextOffset != 0 || last.NextColumn != 0 {
		t.Errorf("truncated %v, next %d, %d", last.Truncated, last.NextOffset, last.NextColumn)
	}
	if got := follow(t, raw, Options{}); len(got) != 51 || len(got[51]) != 14_003 {
		t.Errorf("%d lines, the last of %d", len(got), len(got[51]))
	}
}

// The end of a file is its end, also where the last line is longer than what is read from there.
func TestEndOfAGiantLine(t *testing.T) {
	t.Parallel()
	times := 9 << 20 // 45 MB, 36 M characters
	if testing.Short() {
		times /= 2 // above lineSearch still
	}
	line := strings.Repeat("ab·d", times)
	wide := []byte("\xff\xfe" + strings.Repeat("a\x00b\x00\xb7\x00d\x00", times/2) + "T\x00H\x00E\x00 \x00E\x00N\x00D\x00")
	for _, c := range []struct {
		name string
		raw  []byte
		last int
	}{
		{"one line", []byte(line + "THE END"), 1},
		{"with a newline", []byte("first\n" + line + "THE END\r\n"), 2},
		{"UTF-16", wide, 1},
		{"too far to count", []byte(strings.Repeat(line, tailCount/len(line)+1) + "THE END"), -1},
	} {
		m := readAs[*Text](t, c.raw, Options{Tail: true, AllowLarge: true})
		if !strings.HasSuffix(m.Content, "d"+"THE END\n") || m.StartLine != c.last || m.StartColumn != 0 || m.NextColumn != 0 || m.LinesCut != 0 || m.Whole || len(m.Shown) > 0 || !m.Truncated {
			t.Errorf("%s: …%q, line %d, column %d, next %d, %v", c.name, m.Content[max(len(m.Content)-20, 0):], m.StartLine, m.StartColumn, m.NextColumn, m.Shown)
		}
		if !strings.Contains(m.Note, "last 2,000 characters") {
			t.Errorf("%s: %q", c.name, m.Note)
		}
	}
	tiny := readAs[*Text](t, []byte(line+"THE END"), Options{Tail: true, MaxBytes: 60})
	if !strings.HasSuffix(tiny.Content, "THE END\n") || len(tiny.Content) > 60 {
		t.Errorf("within 60 bytes: %q", tiny.Content)
	}
}

// lateSource takes longer than any deadline of the test from a place of the file on. The clock is
// that of synctest.
type lateSource struct {
	*bytes.Reader
	from int64
}

func (s lateSource) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.from {
		time.Sleep(1500 * time.Millisecond)
	}
	return s.Reader.ReadAt(b, off)
}

// An answer says how far unpacking came when the time was over: at the beginning, and behind it.
func TestUnpackingOutOfTime(t *testing.T) { // not parallel: in a bubble of synctest nobody may wait for the memory that all decoders share
	noise := make([]byte, 8<<20)
	rand.NewChaCha8([32]byte{5}).Read(noise)
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.HuffmanOnly)
	lines := make([]byte, 0, len(noise)/32*65)
	for ; len(noise) > 0; noise = noise[32:] {
		lines = append(hex.AppendEncode(lines, noise[:32]), '\n')
	}
	z.Write(lines)
	z.Close()
	for _, part := range []int64{0, 8} { // sixteenths of the file
		synctest.Test(t, func(t *testing.T) {
			r := newReaders(t, time.Second)
			src := lateSource{bytes.NewReader(b.Bytes()), int64(b.Len()) * part / 16}
			_, err := r.Read(t.Context(), Source{R: src, Size: int64(b.Len())}, Options{Offset: 10_000_000, Limit: 2})
			var late *OutOfTime
			var limit *Limit
			if part == 0 && errors.As(err, &limit) && limit.Resource == "time" && strings.Contains(limit.Hint(), "Unpack it") {
				return
			}
			if !errors.As(err, &late) || late.Line < 2 || strings.Contains(late.Hint(), "tail") || !strings.Contains(late.Hint(), fmt.Sprint(late.Line)) {
				t.Errorf("%d sixteenths: %v", part, err)
			}
		})
	}
}

// newReaders are readers of their own, which give a file that much time.
func newReaders(t *testing.T, deadline time.Duration) *Readers {
	t.Helper()
	c := testConfig()
	c.Deadline = deadline
	return opened(t, c)
}

func TestEncryptedDocument(t *testing.T) {
	raw := docxOf(t, "<w:p><w:r><w:t>secret</w:t></w:r></w:p>")
	for mark, at := range map[string]int{"PK\x03\x04": 6, "PK\x01\x02": 8} {
		for i := 0; ; {
			k := bytes.Index(raw[i:], []byte(mark))
			if k < 0 {
				break
			}
			raw[i+k+at] |= 1
			i += k + 4
		}
	}
	var e *Encrypted
	if _, err := readBytes(t, raw, Options{}); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

// A notebook shows so many images, and says how many it does not.
func TestNotebookImages(t *testing.T) {
	var b bytes.Buffer
	must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))))
	out := map[string]any{"output_type": "display_data", "data": map[string]any{"image/png": base64.StdEncoding.EncodeToString(b.Bytes())}, "metadata": map[string]any{}}
	var outputs []any
	for range outputImages + 3 {
		outputs = append(outputs, out)
	}
	raw, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{},
		"cells": []any{map[string]any{"id": "c", "cell_type": "code", "source": "draw()", "metadata": map[string]any{}, "execution_count": 1, "outputs": outputs}}})
	must(t, err)
	n := readAs[*Notebook](t, raw, Options{})
	shown := 0
	for _, o := range n.Cells[0].Outputs {
		if o.Base64 != "" {
			shown++
		}
	}
	if shown != outputImages || n.OutputsCut != 3 {
		t.Errorf("%d images shown, %d outputs cut", shown, n.OutputsCut)
	}
}

// Of a text whose end is not known no window is the whole.
func TestPartIsNotTheWhole(t *testing.T) {
	text := strings.Repeat("a line\n", 30_000)
	unsized := Source{R: strings.NewReader(text), Size: -1}
	c, err := testReaders(t).Read(t.Context(), unsized, Options{MaxFileBytes: 105_000, Limit: 30_000, MaxBytes: 1 << 20})
	must(t, err)
	if m := c.(*Text); m.Whole || m.TotalLines >= 0 || !m.Truncated || m.RenderedLines != 15_000 {
		t.Errorf("whole %v, %d lines of %d", m.Whole, m.RenderedLines, m.TotalLines)
	}
}

// In a window of UTF-16 a line ends at U+000A and at no other character with a byte 0A in it.
func TestWindowOfUTF16(t *testing.T) {
	for _, big := range []bool{false, true} {
		raw := []byte("\xff\xfe")
		if big {
			raw = []byte("\xfe\xff")
		}
		for i := range 500 {
			for _, u := range utf16.Encode([]rune(fmt.Sprintf("line %d Ċ ਅ ਊ ఊ\n", i+1))) {
				if big {
					raw = append(raw, byte(u>>8), byte(u))
				} else {
					raw = append(raw, byte(u), byte(u>>8))
				}
			}
		}
		m := readAs[*Text](t, raw, Options{Offset: 400, Limit: 2, MaxFileBytes: 1000})
		if want := "line 400 Ċ ਅ ਊ ఊ\nline 401 Ċ ਅ ਊ ఊ\n"; plainLines(m) != want || m.TotalLines != 500 {
			t.Errorf("big-endian %v: %q of %d lines", big, plainLines(m), m.TotalLines)
		}
	}
}

// A line with bytes that are no characters, which take more room when they are shown, is shown whole
// by the pages that follow one another.
func TestColumnsOfADamagedLine(t *testing.T) {
	line := strings.Repeat("abcdefgh", 100) + "\xff" + strings.Repeat("ijklmnop", 60) + "\xfe\xfe" + strings.Repeat("é", 900)
	var shown strings.Builder
	for column, pages := 1, 0; column > 0; pages++ {
		m := readAs[*Text](t, []byte(line+"\n"), Options{Offset: 1, Column: column, MaxBytes: 301, MaxFileBytes: 1000, Encoding: "utf-8"})
		_, text, _ := strings.Cut(strings.TrimSuffix(m.Content, "\n"), "→")
		shown.WriteString(strings.TrimSuffix(text, "…"))
		if len(m.Content) > 301 || pages > 30 {
			t.Fatalf("%d bytes, page %d", len(m.Content), pages)
		}
		column = m.NextColumn
	}
	if want := strings.ToValidUTF8(line, "\uFFFD"); shown.String() != want {
		t.Errorf("%d bytes shown of %d", shown.Len(), len(want))
	}
}
