package readers

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"moltisfs/internal/text"
	"moltisfs/readers/office"
	"moltisfs/readers/unreadable"
)

// Text is a window of numbered lines. A final newline makes no extra line; a "\r" before a newline and a byte order mark
// are not shown.
type Text struct {
	Sight `json:"-"`

	Content string `json:"content"`
	// TotalLines is exact. Where counting was cut it is left out and TotalLinesAtLeast says what is known.
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
	Empty    bool   `json:"empty,omitempty"`
	// InvalidBytes were shown as U+FFFD; in UTF-16 and UTF-32 a whole unit each. HiddenChars are in the text but cannot be seen: zero width, direction overrides,
	// control characters, tags. HiddenLines are the first lines that have any.
	InvalidBytes  int    `json:"invalid_bytes,omitempty"`
	HiddenChars   int    `json:"hidden_chars,omitempty"`
	HiddenLines   []int  `json:"hidden_lines,omitempty"`
	TokenEstimate int    `json:"token_estimate"`
	ChangedBelow  bool   `json:"changed_while_reading,omitempty"`
	Note          string `json:"note,omitempty"`
}

// Kind is "text".
func (*Text) Kind() string { return "text" }
func (*Text) content()     {}

func knowsText(f *file, o *Options) bool {
	return o.Encoding != "" || !isBinary(f.head)
}

// readText reads what no other reader claimed and what is not binary. A file that fits in memory is read whole, so that
// its lines can be counted; a longer one gives a window.
func readText(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	if f.Size > o.MaxFileBytes && !o.window() && !o.AllowLarge {
		return nil, &TooLarge{Size: f.Size, Max: o.MaxFileBytes, What: "file", Windowed: true}
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
	enc, content, err := decodeWhole(raw, o.Encoding)
	if err != nil {
		return nil, err
	}
	t := renderText(content, o)
	t.Encoding = enc
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
	t.Changed, t.ChangedBelow = f.grown, f.grown
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
func renderText(content []byte, o *Options) *Text { return renderAfter(0, content, o) }

// renderAfter is renderText for a text of which the first lines, gone of them, are not in memory.
func renderAfter(gone int, content []byte, o *Options) *Text {
	total := gone + countLines(content)
	t := &Text{TotalLines: Count(total)}
	t.Total = total
	first := o.Offset
	limit := o.lines()
	switch {
	case o.Tail:
		first = max(total-limit+1, gone+1)
	case first < 0:
		first = total + max(first, -total) + 1
		first = max(first, 1)
	case first == 0:
		first = 1
	}
	if first <= gone { // only where the end was asked for
		t.Note = fmt.Sprintf("There are %d lines; those before line %d can be had with a positive offset.", total, gone+1)
		first = gone + 1
	}
	at := text.SkipLines(content, first-1-gone)
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

// goOn says what was left out and what the next call is. more says that the line next follows those that were shown.
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
	t.InvalidBytes, t.HiddenChars, t.TokenEstimate = p.invalid, len(p.hidden), p.tokens()
	lines := slices.Compact(p.hidden)
	t.HiddenLines, t.Unit, t.Shown = lines[:min(len(lines), 20)], "line", p.seen.Shown
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
