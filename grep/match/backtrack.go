package match

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2"

	"moltisfs/grep/match/syntax"
)

// ErrFallbackTime is wrapped by Scanner.Err when the backtracking engine has used up its time.
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

func newBacktrack(root *syntax.Node, o Options) (*backtrack, error) {
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

func (w *backtrackWriter) node(n *syntax.Node) {
	if w.Len() > maxBacktrack {
		return
	}
	switch n.Op {
	case syntax.OpNever:
		w.WriteString("(?!)")
	case syntax.OpClass, syntax.OpBytes:
		w.class(n.Ranges)
	case syntax.OpLook:
		w.look(n.Look)
	case syntax.OpConcat, syntax.OpAlt:
		w.WriteString("(?:")
		for i, s := range n.Subs {
			if n.Op == syntax.OpAlt && i > 0 {
				w.WriteByte('|')
			}
			w.node(s)
		}
		w.WriteByte(')')
	case syntax.OpRepeat:
		w.WriteString("(?:")
		w.node(n.Subs[0])
		w.WriteString("){" + strconv.Itoa(n.Min) + ",")
		if n.Max >= 0 {
			w.WriteString(strconv.Itoa(n.Max))
		}
		w.WriteByte('}')
		if n.Lazy {
			w.WriteByte('?')
		}
	case syntax.OpGroup:
		w.enclose("(", n)
	case syntax.OpAtomic:
		w.enclose("(?>", n)
	case syntax.OpAround:
		open := "(?"
		if n.Behind {
			open += "<"
		}
		if n.Negated {
			w.enclose(open+"!", n)
		} else {
			w.enclose(open+"=", n)
		}
	case syntax.OpBackref:
		flag := "(?:"
		if n.Fold {
			flag = "(?i:"
		}
		w.WriteString(flag + `\` + strconv.Itoa(n.Min) + ")")
	}
}

func (w *backtrackWriter) enclose(open string, n *syntax.Node) {
	w.WriteString(open)
	w.node(n.Subs[0])
	w.WriteByte(')')
}

func (w *backtrackWriter) look(l syntax.Look) {
	word := func(r []rune) {
		var c backtrackWriter
		c.class(r)
		set := c.String()
		before, after := "(?<="+set+")", "(?="+set+")"
		notBefore, notAfter := "(?<!"+set+")", "(?!"+set+")"
		switch l {
		case syntax.LookWord:
			w.WriteString("(?:" + before + notAfter + "|" + notBefore + after + ")")
		case syntax.LookNotWord:
			w.WriteString("(?:" + before + after + "|" + notBefore + notAfter + ")")
		case syntax.LookWordStart:
			w.WriteString(notBefore + after)
		case syntax.LookWordEnd:
			w.WriteString(before + notAfter)
		case syntax.LookWordStartHalf:
			w.WriteString(notBefore)
		case syntax.LookWordEndHalf:
			w.WriteString(notAfter)
		}
	}
	switch l {
	case syntax.LookTextStart:
		w.WriteString(`\A`)
	case syntax.LookTextEnd:
		w.WriteString(`\z`)
	case syntax.LookLineStart:
		w.WriteString(`(?<![^\n])`)
	case syntax.LookLineEnd:
		if w.crlf && !w.lines {
			w.WriteString(`(?:(?=\r\n)|(?<!\r)(?=\n)|\z)`)
		} else {
			w.WriteString(`(?![^\n])`)
		}
	default:
		if l.UnicodeWord() {
			word(syntax.WordRanges())
		} else {
			l -= syntax.LookWordASCII - syntax.LookWord
			word(syntax.WordASCII)
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
	case r < 0x80 && !syntax.IsWordByte(byte(r)) || r == '_':
		fmt.Fprintf(w, `\x%02x`, r)
	case r >= 0xd800 && r < 0xe000: // no code point: its neighbour does
		w.WriteRune(0xe000)
	default:
		w.WriteRune(r)
	}
}
