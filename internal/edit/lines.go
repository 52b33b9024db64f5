package edit

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// line is the content text[start:end] and the line break text[end:next], empty at the end.
type line struct{ start, end, next int }

// lineFrom gives the rest of the line that holds offset at, from at on.
func lineFrom(text []byte, at int) line {
	i := bytes.IndexByte(text[at:], '\n')
	if i < 0 {
		return line{at, len(text), len(text)}
	}
	l := line{at, at + i, at + i + 1}
	if i > 0 && text[l.end-1] == '\r' {
		l.end--
	}
	return l
}

// lineStart gives the start of the line that holds offset at.
func lineStart(text []byte, at int) int {
	return bytes.LastIndexByte(text[:at], '\n') + 1
}

// splitLines cuts text at its line breaks. A final break makes an empty last line, and so does no
// text.
func splitLines(text []byte) []line {
	lines := make([]line, 0, 16)
	for at := 0; ; {
		l := lineFrom(text, at)
		lines = append(lines, l)
		if l.next == l.end {
			return lines
		}
		at = l.next
	}
}

// lineAt numbers the line that holds offset at, from 1.
func lineAt(text []byte, at int) int {
	return 1 + bytes.Count(text[:at], []byte{'\n'})
}

// lineEnding names the line breaks of a text.
func lineEnding(text []byte) string {
	lf, crlf := bytes.Count(text, []byte("\n")), 0
	if bytes.IndexByte(text, '\r') >= 0 {
		crlf = bytes.Count(text, []byte("\r\n"))
	}
	switch {
	case lf == 0:
		return "none"
	case crlf == 0:
		return "lf"
	case crlf == lf:
		return "crlf"
	}
	return "mixed"
}

// fitter writes New with the line breaks of the places it goes to. It remembers the uniform
// answers, so that a replacement in a million places does not make a million copies.
type fitter struct {
	text     []byte
	old, new string // old as sent
	plain    bool   // new has no line break: nothing to do
	memo     map[string]string
}

func newFitter(text []byte, old, new string) *fitter {
	return &fitter{text: text, old: old, new: new,
		plain: !strings.Contains(new, "\n"), memo: make(map[string]string)}
}

// fit gives new for text[start:end].
func (f *fitter) fit(start, end int) string {
	if f.plain {
		return f.new
	}
	region := f.text[start:end]
	breaks := breaksOf(region)
	style, uniform := "", true
	if len(breaks) == 0 {
		style = f.neighbour(start, end)
	} else {
		style = breaks[0]
		for _, b := range breaks {
			uniform = uniform && b == style
		}
	}
	var out string
	if uniform {
		s, ok := f.memo[style]
		if !ok {
			s = withBreaks(f.new, func(int) string { return style })
			f.memo[style] = s
		}
		out = s
	} else {
		out = f.mixed(breaks)
	}
	if out == string(region) {
		// With the neighbours' breaks nothing would change: the edit is about the breaks themselves.
		return f.new
	}
	return out
}

// mixed lines up the lines that old and new share at either end with those of the region; a line
// between takes the break of the line in its place, or of the last one before the shared end.
func (f *fitter) mixed(breaks []string) string {
	a, b := strings.Split(lf(f.old), "\n"), strings.Split(lf(f.new), "\n")
	k, m := len(breaks), len(b)-1
	head := 0
	for head < min(k, m) && head < len(a) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(k, m)-head && tail < len(a) && a[len(a)-1-tail] == b[m-tail] {
		tail++
	}
	return withBreaks(f.new, func(j int) string {
		switch {
		case j < head:
			return breaks[j]
		case m-1-j < tail:
			return breaks[k-(m-j)]
		}
		return breaks[max(0, min(j, k-1-tail))]
	})
}

// neighbour is the line break of a place inside one line: its own, or at the end the one before.
func (f *fitter) neighbour(start, end int) string {
	if i := bytes.IndexByte(f.text[end:], '\n'); i >= 0 {
		if at := end + i; at > 0 && f.text[at-1] == '\r' {
			return "\r\n"
		}
		return "\n"
	}
	if i := bytes.LastIndexByte(f.text[:start], '\n'); i > 0 && f.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func breaksOf(region []byte) (breaks []string) {
	for at := 0; ; {
		l := lineFrom(region, at)
		if l.next == l.end {
			return breaks
		}
		breaks = append(breaks, string(region[l.end:l.next]))
		at = l.next
	}
}

// withBreaks writes s with brk(i) in place of its i-th line break, LF or CRLF.
func withBreaks(s string, brk func(int) string) string {
	var b strings.Builder
	b.Grow(len(s) + strings.Count(s, "\n"))
	for i := 0; ; i++ {
		at := strings.IndexByte(s, '\n')
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(strings.TrimSuffix(s[:at], "\r"))
		b.WriteString(brk(i))
		s = s[at+1:]
	}
}

// lf writes all CRLF as LF.
func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// trim takes off what the replacement leaves as it is at either end, in whole characters.
func (d *document) trim(r replacement) replacement {
	n, m := commonEnds(d.text[r.start:r.end], r.with)
	r.start, r.end, r.with = r.start+n, r.end-m, r.with[n:len(r.with)-m]
	if d.enc.Mapped() && (r.start < r.end || r.with != "") {
		if start, end := d.whole(r.start, r.end); start != r.start || end != r.end {
			r.with = string(d.text[start:r.start]) + r.with + string(d.text[r.end:end])
			r.start, r.end = start, end
		}
	}
	return r
}

// unencodable places a character that could not be encoded in the new string as it was sent. with is the part of it that was encoded,
// perhaps with other indentation or repaired, and bad the offset there.
func (d *document) unencodable(index int, sent, with string, bad int) error {
	r, n := utf8.DecodeRuneInString(with[bad:])
	at := strings.Index(sent, with) + bad
	if at < bad { // the first such character then
		at = max(0, strings.Index(sent, with[bad:bad+n]))
	}
	head := lf(sent[:at])
	last := head[strings.LastIndexByte(head, '\n')+1:]
	return &UnencodableError{Index: index, Char: r, Line: 1 + strings.Count(head, "\n"), Column: 1 + utf8.RuneCountInString(last),
		Encoding: d.enc.Name, Guessed: d.guessed, Refuted: d.refuted()}
}
