package readers

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"moltisfs/internal/text"
	"moltisfs/readers/office"
	"moltisfs/readers/unreadable"
)

// Text is a window of numbered lines. A final newline makes no extra line; a "\r" before a newline and a byte order mark
// are not shown.
type Text struct {
	ReadRecord `json:"-"`

	Content string `json:"content"`
	// TotalLines is exact. Where counting was cut it is left out, and TotalLinesAtLeast is the number that is known.
	TotalLines        Count `json:"total_lines,omitzero"`
	TotalLinesAtLeast int   `json:"total_lines_at_least,omitempty"`
	RenderedLines     int   `json:"rendered_lines"`
	// StartLine is negative when the end of a file too long to count was asked for: -1 is the last line.
	StartLine int `json:"start_line"`
	// Truncated: lines follow, or a line is shown without its end. NextOffset and NextColumn are the offset and the
	// column of one call, the next one: a line that fills the answer goes on at NextColumn of itself before the line
	// after it is told. CutLines are others without their end: each goes on at CutColumn, in a call of its own.
	Truncated   bool  `json:"truncated"`
	NextOffset  int   `json:"next_offset,omitempty"`
	NextColumn  int   `json:"next_column,omitempty"`
	LinesCut    int   `json:"lines_cut,omitempty"`
	CutLines    []int `json:"cut_lines,omitempty"`
	CutColumn   int   `json:"cut_column,omitempty"`
	StartColumn int   `json:"start_column,omitempty"`
	// Format is set when the lines are not the file's own bytes ("docx", "gzip", …), or when another view of them can be
	// had by Render ("html", "email").
	Format   string `json:"format,omitempty"`
	Encoding string `json:"encoding"`
	// EncodingGuess: statistics chose it. RunnerUp is then the likeliest encoding that shows other letters.
	EncodingGuess bool   `json:"encoding_guess,omitempty"`
	RunnerUp      string `json:"encoding_runner_up,omitempty"`
	Empty         bool   `json:"empty,omitempty"`
	// InvalidBytes were shown as U+FFFD; in UTF-16 and UTF-32 a whole unit each. HiddenChars are in the text but cannot be seen: zero width, direction overrides,
	// control characters, tags. HiddenLines are the first lines that have any.
	InvalidBytes int   `json:"invalid_bytes,omitempty"`
	HiddenChars  int   `json:"hidden_chars,omitempty"`
	HiddenLines  []int `json:"hidden_lines,omitempty"`
	// ANSILines are shown without the codes that a program has sent to a terminal, or without what it has written over.
	ANSILines     int    `json:"ansi_lines,omitempty"`
	TokenEstimate int    `json:"token_estimate"`
	ChangedBelow  bool   `json:"changed_while_reading,omitempty"`
	Note          string `json:"note,omitempty"`
}

// Kind is "text".
func (*Text) Kind() string     { return "text" }
func (c *Text) noted() *string { return &c.Note }

func knowsText(f *file, o *Options) bool {
	return o.Encoding != "" || !isBinary(f.head)
}

// readText reads a file that is not binary and that no other reader claimed. A file that fits in memory is read whole, so that
// its lines can be counted; a longer one gives a window.
func readText(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	if err := f.fits(o); err != nil {
		return nil, err
	}
	limit := int64(memoryLimit)
	if f.Size > limit || f.Size > o.MaxFileBytes {
		return r.readWindow(ctx, f, o)
	}
	if f.Size < 0 {
		limit = min(limit, o.MaxFileBytes)
	}
	raw, more, err := f.upTo(ctx, limit)
	if err != nil {
		return nil, err
	}
	if more && !o.window() {
		return nil, &TooLarge{Max: limit, What: "file", Windowed: true}
	}
	if more && o.fromEnd() {
		return nil, endUnreachable(o, "the file goes on beyond what can be read of a file without a size")
	}
	enc, mark, content, err := decodeWhole(raw, o.Encoding)
	if err != nil {
		return nil, err
	}
	t := renderText(content, o)
	t.readAs(enc, mark)
	if len(content) == 0 && !more {
		t.Empty, t.Whole = len(raw) == 0, t.StartLine == 1
	}
	switch {
	case office.LooksHTML(raw):
		t.Format = "html"
	case office.LooksEmail(raw):
		t.Format = "email"
	}
	if t.Format != "" && t.StartLine == 1 {
		t.Note = "This is the source; render: true gives the text."
	}
	if more {
		t.unknownTotal("The file goes on beyond what can be read of a file without a size.")
	} else {
		t.Sum = sum(raw)
	}
	return t, nil
}

// unknownTotal takes back the certainty that the last line is the last.
func (t *Text) unknownTotal(note string) {
	t.TotalLinesAtLeast, t.TotalLines = int(max(t.TotalLines, 0)), -1
	t.Truncated, t.Whole, t.Total, t.Note = true, false, -1, note
}

// noText says that a file with bytes in it gave no text, which is not the same as an empty file.
func (t *Text) noText(size int64, pictures int) {
	what := unreadable.Bytes(size)
	if pictures > 0 {
		what = unreadable.Plural(pictures, "image") + ", " + what
	}
	t.Note, t.Unit = "No text in this "+t.Format+"; "+what+".", ""
}

// renderText shows the asked window of a text that is in memory, as UTF-8.
func renderText(content []byte, o *Options) *Text {
	total := countLines(content)
	t := &Text{TotalLines: Count(total)}
	t.Total = total
	first := o.Offset
	limit := o.lines()
	switch {
	case o.Tail:
		first = max(total-limit+1, 1)
	case first < 0:
		first = total + max(first, -total) + 1
		first = max(first, 1)
	case first == 0:
		first = 1
	}
	at := text.SkipLines(content, first-1)
	if o.Tail {
		dropped := fitTail(content[at:], o)
		at += text.SkipLines(content[at:], dropped)
		first += dropped
	}
	t.StartLine = first
	rest := content[at:]
	if o.Column > 0 {
		t.column(rest, o)
	} else {
		p := newPage(o, estimate(len(rest), total, first, limit))
		p.progress = total > 1
		for n := first; len(rest) > 0 && p.lines < limit; n++ {
			line := rest
			next := bytes.IndexByte(rest, '\n')
			if next >= 0 {
				line, rest = rest[:next], rest[next+1:]
			} else {
				rest = nil
			}
			if !p.add(n, line, false) {
				break
			}
		}
		t.finish(p, first)
	}
	next := first + t.RenderedLines
	t.goOn(next, t.RenderedLines > 0 && next <= total)
	t.Whole = t.all()
	return t
}

// goOn sets Truncated, NextOffset and NextColumn. more: the line next follows those that were shown.
func (t *Text) goOn(next int, more bool) {
	t.Truncated = more || t.LinesCut > 0
	switch {
	case t.NextColumn > 0:
		t.NextOffset = t.StartLine
	case more:
		t.NextOffset = next
	}
}

func (t *Text) finish(p *page, first int) {
	// The buffer is not touched again, so that it can become the string without a copy.
	t.Content = unsafe.String(unsafe.SliceData(p.buf), len(p.buf))
	t.RenderedLines, t.LinesCut = p.lines, len(p.cutLines)
	t.InvalidBytes, t.HiddenChars, t.TokenEstimate, t.ANSILines = p.invalid, len(p.hidden), p.tokens(), p.codes
	lines := slices.Compact(p.hidden)
	t.HiddenLines, t.Unit, t.Shown = lines[:min(len(lines), 20)], "line", p.seen.Shown
	if p.codes > 0 {
		t.Unit = "plain line" // not as the file has it
	}
	if t.StartColumn > 1 {
		t.Shown = nil // not from its beginning
	}
	if p.lines == 1 && p.lastCut > 0 {
		t.NextColumn = p.lastCut + 1
	} else if t.CutLines = p.cutLines; len(p.cutLines) > 0 {
		t.CutColumn = MaxLineChars + 1
	}
}

// column shows one line from a character on, as much as the byte limit holds.
func (t *Text) column(rest []byte, o *Options) {
	t.StartColumn = o.Column
	if len(rest) == 0 {
		return
	}
	line := rest
	if next := bytes.IndexByte(rest, '\n'); next >= 0 {
		line = rest[:next]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	skip, _ := skipChars(line, o.Column-1)
	p := newPage(o, len(line)-skip+16)
	p.chars = math.MaxInt
	p.add(t.StartLine, line[skip:], false)
	t.finish(p, t.StartLine)
	if t.NextColumn > 0 {
		t.NextColumn += o.Column - 1
	}
}

// fitTail returns how many lines to leave out at the beginning of b so that its end fits the byte limit.
func fitTail(b []byte, o *Options) (drop int) {
	if int64(len(b))+int64(countLines(b))*12 <= o.MaxBytes {
		return 0
	}
	p := newPage(o, 0)
	p.max = math.MaxInt32
	var sizes []int
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, newline)
		p.buf = p.buf[:0]
		p.add(1_000_000, line, false)
		sizes = append(sizes, len(p.buf))
		b = rest
	}
	room := o.MaxBytes
	for i := len(sizes) - 1; i >= 0; i-- {
		if room -= int64(sizes[i]); room < 0 {
			return min(i+1, len(sizes)-1)
		}
	}
	return 0
}

// estimate guesses the bytes of a rendered window, to allocate once.
func estimate(size, total, first, limit int) int {
	lines := min(limit, max(total-first+1, 0))
	if lines == 0 {
		return 0
	}
	if left := max(total-first+1, 1); lines < left {
		size = int(int64(size)*int64(lines)/int64(left)) + 256
	}
	return size + lines*10
}

// countLines counts lines; a text that ends in a newline ends with that line.
func countLines(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	n := bytes.Count(b, newline)
	if b[len(b)-1] != '\n' {
		n++
	}
	return n
}

var newline = []byte{'\n'}

// Count is a number of lines; below zero it is not known, and then left out of JSON.
type Count int

// IsZero reports whether the count is unknown. (encoding/json asks by this name.)
func (c Count) IsZero() bool { return c < 0 }

// page renders numbered lines until it is full. Lines come in as UTF-8 without their newline.
type page struct {
	buf      []byte
	style    string
	max      int        // bytes
	chars    int        // of a line
	lines    int        // rendered
	cutLines []int      // cut at their end
	invalid  int        // byte sequences shown as U+FFFD
	hidden   []int      // the line of each
	weight   int        // of the token estimate, in twelfths
	lastCut  int        // characters shown of the last line when it was cut; else 0
	seen     ReadRecord // the lines shown whole
	ansi     bool       // codes of a terminal are shown
	progress bool       // a carriage return may be one of a line of progress
	codes    int        // lines shown without them
}

func newPage(o *Options, hint int) *page {
	p := &page{style: o.LineNumbers, max: int(min(o.MaxBytes, 1<<30)), chars: MaxLineChars, ansi: o.ANSI || o.Column > 0, progress: true}
	if o.all {
		p.style, p.chars = "none", math.MaxInt
	}
	p.buf = make([]byte, 0, min(hint, p.max)+64)
	return p
}

// add renders one line and reports whether there was room. more: the line goes on behind the bytes in line. The
// first line always has room: it is cut to the room that there is.
func (p *page) add(number int, line []byte, more bool) bool {
	if n := len(line); n > 0 && line[n-1] == '\r' && !more {
		line = line[:n-1]
	}
	codes := false
	if !p.ansi && (bytes.IndexByte(line, 0x1b) >= 0 || p.progress && bytes.IndexByte(line, '\r') >= 0) {
		is := asShown(line, p.progress)
		codes, line = len(is) < len(line), is
	}
	start := len(p.buf)
	p.buf = appendNumber(p.buf, number, p.style)
	room := p.max - len(p.buf) - 1
	bad, hidden, weight := 0, 0, 0
	shown := len(line)
	ascii := asciiPrefix(line)
	cut := more
	if ascii == shown && shown <= p.chars {
		// The common line: nothing to count.
	} else {
		shown, bad, hidden, weight, cut = p.measure(line, more)
	}
	body := valid(line[:shown], bad)
	if len(body) > room {
		if p.lines > 0 {
			p.buf = p.buf[:start]
			return false
		}
		cut = true
		for over := len(body) - max(room-3, 0); over > 0 && shown > 0; over = len(body) - max(room-3, 0) {
			if bad > 0 {
				over = (over + 2) / 3 // a bad byte is shown as three
			}
			for shown = max(shown-over, 0); shown > 0 && !utf8.RuneStart(line[shown]); shown-- {
			}
			body = valid(line[:shown], bad)
		}
	}
	p.buf = append(p.buf, body...)
	p.lastCut = 0
	if codes {
		p.codes++
	}
	if !cut && !codes {
		p.seen.shows(number)
	} else if cut {
		p.cutLines = append(p.cutLines, number)
		p.lastCut = utf8.RuneCount(line[:shown])
		p.buf = append(p.buf, "…"...)
	}
	p.buf = append(p.buf, '\n')
	hidden += controls(line[:shown])
	p.hidden = append(p.hidden, slices.Repeat([]int{number}, hidden)...)
	p.invalid, p.weight, p.lines = p.invalid+bad, p.weight+weight, p.lines+1
	return true
}

// valid is the text with its bad bytes, if it has any, as U+FFFD.
func valid(line []byte, bad int) []byte {
	if bad == 0 {
		return line
	}
	return bytes.ToValidUTF8(line, []byte("\uFFFD"))
}

// measure walks a line that is long or not plain ASCII. It returns how many of its bytes are shown, and how many bad bytes and hidden
// characters are among them.
func (p *page) measure(line []byte, more bool) (shown, bad, hidden, weight int, cut bool) {
	chars, i := 0, 0
	for i < len(line) {
		if chars == p.chars {
			return i, bad, hidden, weight, true
		}
		if line[i] < utf8.RuneSelf {
			i++
			chars++
			continue
		}
		r, n := utf8.DecodeRune(line[i:])
		if r == utf8.RuneError && n == 1 {
			// A run of bad bytes becomes one mark, as bytes.ToValidUTF8 makes it.
			for n < len(line)-i {
				if q, m := utf8.DecodeRune(line[i+n:]); q != utf8.RuneError || m != 1 {
					break
				}
				n++
			}
			bad += n
		} else if text.Invisible(r) {
			hidden++
		}
		// An ideograph is about a token; other scripts take fewer for a character of two bytes.
		weight += n
		i += n
		chars++
	}
	return len(line), bad, hidden, weight, more
}

// tokens estimates the tokens of the rendered text: four ASCII bytes or three others to the token.
func (p *page) tokens() int { return (len(p.buf)*3 + p.weight + 11) / 12 }

func appendNumber(b []byte, n int, style string) []byte {
	switch style {
	case "none":
		return b
	case "compact":
		return append(strconv.AppendInt(b, int64(n), 10), ':')
	case "tab":
		return append(strconv.AppendInt(b, int64(n), 10), '\t')
	}
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], int64(n), 10)
	const six = "      "
	if len(d) < len(six) {
		b = append(b, six[len(d):]...)
	}
	b = append(b, d...)
	return append(b, "→"...)
}

// asciiPrefix is the length of the part of b before its first byte above 127.
func asciiPrefix(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		c := b[i : i+8 : i+8]
		if (c[0]|c[1]|c[2]|c[3]|c[4]|c[5]|c[6]|c[7])&0x80 != 0 {
			break
		}
	}
	for i < len(b) && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// controls counts the ASCII characters that a reader of the text does not see and a terminal may obey.
func controls(b []byte) int {
	n := 0
	for _, c := range b {
		n += int(unseen[c])
	}
	return n
}

// unseen is 1 for ASCII control characters that are not blanks, else 0.
var unseen = func() (t [256]uint8) {
	for c := range 0x20 {
		t[c] = 1
	}
	t['\t'], t['\n'], t['\f'], t[0x7f] = 0, 0, 0, 1
	return t
}()
