package match

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// ErrFallbackTime is what Scanner.Err wraps when the backtracking engine has used up its time.
var ErrFallbackTime = errors.New("the backtracking engine ran out of time")

// backtrack is a pattern for the backtracking engine. It is written out of the parsed tree and not
// copied from the source, so that both engines read it alike.
type backtrack struct {
	text  string
	limit time.Duration
}

// maxBacktrack bounds the text of a pattern in bytes. A Unicode \b takes 24 KiB, and the engine
// compiles three megabytes in a second.
const maxBacktrack = 1 << 20

func newBacktrack(root *node, o Options) (*backtrack, error) {
	w := backtrackWriter{crlf: o.CRLF, lines: !o.Multiline}
	if w.node(root); w.Len() > maxBacktrack {
		const why = "its classes are too large when they are written out; use fewer, or (?-u)"
		return nil, errors.New(why)
	}
	b := &backtrack{text: w.String(), limit: o.FallbackTime}
	_, err := regexp2.Compile(b.text, regexp2.None)
	return b, err
}

type backtrackWriter struct {
	strings.Builder
	crlf, lines bool
}

func (w *backtrackWriter) node(n *node) {
	if w.Len() > maxBacktrack {
		return
	}
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
