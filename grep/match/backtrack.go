package match

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// ErrFallbackTime is what Scanner.Err wraps when the backtracking engine has used up its time.
var ErrFallbackTime = errors.New("the backtracking engine ran out of time")

// backtrack is a pattern for the backtracking engine, written out of the tree, so that both engines read it alike.
type backtrack struct {
	text  string
	limit time.Duration
	seed  maphash.Seed
}

func newBacktrack(root *node, o Options) (*backtrack, error) {
	w := backtrackWriter{crlf: o.CRLF, lines: !o.Multiline}
	w.node(root)
	b := &backtrack{text: w.String(), limit: o.FallbackTime, seed: maphash.MakeSeed()}
	_, err := regexp2.Compile(b.text, regexp2.None)
	return b, err
}

type backtrackWriter struct {
	strings.Builder
	crlf, lines bool
}

func (w *backtrackWriter) node(n *node) {
	switch n.op {
	case opNever:
		w.WriteString("(?!)")
	case opClass, opBytes:
		w.class(n.ranges)
	case opLook:
		w.look(n.look)
	case opConcat, opAlt:
		w.WriteString("(?:")
		for i, s := range n.subs {
			if n.op == opAlt && i > 0 {
				w.WriteByte('|')
			}
			w.node(s)
		}
		w.WriteByte(')')
	case opRepeat:
		w.WriteString("(?:")
		w.node(n.subs[0])
		w.WriteString("){" + strconv.Itoa(n.min) + ",")
		if n.max >= 0 {
			w.WriteString(strconv.Itoa(n.max))
		}
		w.WriteByte('}')
		if n.lazy {
			w.WriteByte('?')
		}
	case opGroup:
		w.enclose("(", n)
	case opAtomic:
		w.enclose("(?>", n)
	case opAround:
		open := "(?"
		if n.behind {
			open += "<"
		}
		if n.negated {
			w.enclose(open+"!", n)
		} else {
			w.enclose(open+"=", n)
		}
	case opBackref:
		flag := "(?:"
		if n.fold {
			flag = "(?i:"
		}
		w.WriteString(flag + `\` + strconv.Itoa(n.min) + ")")
	}
}

func (w *backtrackWriter) enclose(open string, n *node) {
	w.WriteString(open)
	w.node(n.subs[0])
	w.WriteByte(')')
}

func (w *backtrackWriter) look(l look) {
	word := func(r []rune) {
		var c backtrackWriter
		c.class(r)
		set := c.String()
		before, after := "(?<="+set+")", "(?="+set+")"
		notBefore, notAfter := "(?<!"+set+")", "(?!"+set+")"
		switch l {
		case lookWord:
			w.WriteString("(?:" + before + notAfter + "|" + notBefore + after + ")")
		case lookNotWord:
			w.WriteString("(?:" + before + after + "|" + notBefore + notAfter + ")")
		case lookWordStart:
			w.WriteString(notBefore + after)
		case lookWordEnd:
			w.WriteString(before + notAfter)
		case lookWordStartHalf:
			w.WriteString(notBefore)
		case lookWordEndHalf:
			w.WriteString(notAfter)
		}
	}
	switch l {
	case lookTextStart:
		w.WriteString(`\A`)
	case lookTextEnd:
		w.WriteString(`\z`)
	case lookLineStart:
		w.WriteString(`(?<![^\n])`)
	case lookLineEnd:
		if w.crlf && !w.lines {
			w.WriteString(`(?:(?=\r\n)|(?<!\r)(?=\n)|\z)`)
		} else {
			w.WriteString(`(?![^\n])`)
		}
	default:
		if l.unicodeWord() {
			word(wordRanges())
		} else {
			l -= lookWordASCII - lookWord
			word(wordASCII)
		}
	}
}

func (w *backtrackWriter) class(r []rune) {
	if len(r) == 2 && r[0] == 0 && r[1] >= 0x10ffff {
		w.WriteString(`[\s\S]`)
		return
	}
	w.WriteByte('[')
	for i := 0; i < len(r); i += 2 {
		w.member(r[i])
		if r[i+1] > r[i] {
			w.WriteByte('-')
			w.member(r[i+1])
		}
	}
	w.WriteByte(']')
}

func (w *backtrackWriter) member(r rune) {
	switch {
	case r < 0x80 && !isWordByte(byte(r)) || r == '_':
		fmt.Fprintf(w, `\x%02x`, r)
	case r >= 0xd800 && r < 0xe000: // no code point: its neighbour does
		w.WriteRune(0xe000)
	default:
		w.WriteRune(r)
	}
}

// backtrackRun is one scanner's use of it.
type backtrackRun struct {
	b    *backtrack
	re   *regexp2.Regexp
	left time.Duration
	err  error

	// The text of the last call as code points: matches are asked for one by one.
	sum   uint64
	size  int
	runes []rune
	at    []int // byte offset of each code point, and of the end
}

func (s *Scanner) backtracking() *backtrackRun {
	if s.back == nil {
		b := s.m.backward
		re, err := regexp2.Compile(b.text, regexp2.None)
		s.back = &backtrackRun{b: b, re: re, left: b.limit, err: err, size: -1}
	}
	return s.back
}

func (r *backtrackRun) renew() { r.left, r.err = r.b.limit, nil }

// decode splits text into code points; a byte that is not UTF-8 becomes U+FFFD.
func (r *backtrackRun) decode(text []byte) {
	sum := maphash.Bytes(r.b.seed, text)
	if r.size == len(text) && r.sum == sum {
		return
	}
	r.size, r.sum = len(text), sum
	r.runes, r.at = r.runes[:0], r.at[:0]
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRune(text[i:])
		r.runes, r.at = append(r.runes, c), append(r.at, i)
		i += n
	}
	r.at = append(r.at, len(text))
}

// find gives the first match in text at or after at.
func (r *backtrackRun) find(text []byte, at int) (begin, end int, ok bool) {
	if r.err != nil {
		return 0, 0, false
	}
	if r.left <= 0 {
		r.err = fmt.Errorf("matching: %w (%v)", ErrFallbackTime, r.b.limit)
		return 0, 0, false
	}
	r.decode(text)
	from := 0
	for from < len(r.runes) && r.at[from] < at {
		from++
	}
	began := time.Now()
	r.re.MatchTimeout = r.left
	m, err := r.re.FindRunesMatchStartingAt(r.runes, from)
	r.left -= time.Since(began)
	if err != nil {
		r.err = fmt.Errorf("matching: %w: %v", ErrFallbackTime, err)
		return 0, 0, false
	}
	if m == nil {
		return 0, 0, false
	}
	return r.at[m.Index], r.at[m.Index+m.Length], true
}

func (s *Scanner) nextLineBacktracking(buf []byte, pos int) (start, end int, ok bool) {
	for pos < len(buf) {
		if start, end, ok = s.nextLine(buf, pos); !ok {
			return 0, 0, false
		}
		r := s.backtracking()
		if _, _, ok = r.find(buf[start:end], 0); ok {
			return start, end, true
		}
		if r.err != nil {
			return 0, 0, false
		}
		pos = afterLine(buf, end)
	}
	return 0, 0, false
}

// matchBacktracking is match by the backtracking engine; under Multiline the program may show that there is none.
func (s *Scanner) matchBacktracking(text []byte, at int) (begin, end int, ok bool) {
	if s.m.o.Multiline && s.m.find != nil && s.m.find.next(text, at) < 0 {
		return 0, 0, false
	}
	return s.backtracking().find(text, at)
}
