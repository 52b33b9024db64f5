package readers

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"moltisfs/internal/text"
)

// Count is a number of lines; below zero it is not known, and then left out of JSON.
type Count int

// IsZero reports whether the count is unknown. (encoding/json asks by this name.)
func (c Count) IsZero() bool { return c < 0 }

// page renders numbered lines until it is full. Lines come in as UTF-8 without their newline.
type page struct {
	buf      []byte
	style    string
	max      int   // bytes
	chars    int   // of a line
	lines    int   // rendered
	cutLines []int // cut at their end
	invalid  int   // byte sequences shown as U+FFFD
	hidden   []int // the line of each
	weight   int   // of the token estimate, in twelfths
	lastCut  int   // characters shown of the last line when it was cut; else 0
	seen     Sight // the lines shown whole
}

func newPage(o *Options, hint int) *page {
	p := &page{style: o.LineNumbers, max: int(min(o.MaxBytes, 1<<30)), chars: MaxLineChars}
	p.buf = make([]byte, 0, min(hint, p.max)+64)
	return p
}

// add renders one line and reports whether there was room. more says that the line goes on beyond what was given. The
// first line always has room: it is cut to what there is.
func (p *page) add(number int, line []byte, more bool) bool {
	if n := len(line); n > 0 && line[n-1] == '\r' && !more {
		line = line[:n-1]
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
	if !cut {
		p.seen.shows(number)
	} else {
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

// measure walks a line that is long or not plain ASCII: how many of its bytes are shown, and what is in them.
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

// tokens estimates what the rendered text costs: four ASCII bytes or three others to the token.
func (p *page) tokens() int { return (len(p.buf)*3 + p.weight + 11) / 12 }

func appendNumber(b []byte, n int, style string) []byte {
	switch style {
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
