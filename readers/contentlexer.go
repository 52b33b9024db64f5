package readers

import (
	"bytes"
	"strconv"
)

type tokenKind uint8

const (
	operatorToken tokenKind = iota
	numberToken
	stringToken
	nameToken
	otherToken
)

// operand is one token of a content stream. Arrays are flattened: no operator that matters here takes two.
type operand struct {
	kind tokenKind
	s    string
	n    float64
}

// contentLexer splits a content stream. It takes anything: what is no token is skipped.
type contentLexer struct {
	b []byte
	i int
}

func (l *contentLexer) next() (operand, bool) {
	for l.i < len(l.b) {
		c := l.b[l.i]
		switch {
		case blank(c), c == '[', c == ']', c == '{', c == '}', c == ')':
			l.i++
		case c == '%':
			for l.i < len(l.b) && l.b[l.i] != '\n' && l.b[l.i] != '\r' {
				l.i++
			}
		case c == '(':
			return operand{kind: stringToken, s: l.literal()}, true
		case c == '<':
			if l.i+1 < len(l.b) && l.b[l.i+1] == '<' {
				l.i += 2
				return operand{kind: otherToken}, true
			}
			return operand{kind: stringToken, s: l.hex()}, true
		case c == '>':
			l.i++
		case c == '/':
			l.i++
			return operand{kind: nameToken, s: unescapeName(l.word())}, true
		default:
			w := l.word()
			if len(w) == 0 {
				l.i++
				continue
			}
			if c <= '9' {
				if n, ok := number(w); ok {
					return operand{kind: numberToken, n: n}, true
				}
			}
			return operand{kind: operatorToken, s: string(w)}, true
		}
	}
	return operand{}, false
}

func blank(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func (l *contentLexer) word() []byte {
	start := l.i
	for l.i < len(l.b) {
		switch c := l.b[l.i]; {
		case blank(c), c == '[', c == ']', c == '(', c == ')', c == '<', c == '>', c == '/', c == '%', c == '{', c == '}':
			return l.b[start:l.i]
		}
		l.i++
	}
	return l.b[start:]
}

// number reads a number as viewers do, who take "--5" and "1.2.3" too.
func number(w []byte) (float64, bool) {
	if n, err := strconv.ParseFloat(string(w), 64); err == nil {
		return n, true
	}
	for len(w) > 1 && w[0] == '-' && w[1] == '-' {
		w = w[1:]
	}
	end := 0
	for end < len(w) && (w[end] >= '0' && w[end] <= '9' || w[end] == '.' || w[end] == '-' && end == 0) {
		end++
	}
	if end == 0 {
		return 0, false
	}
	if first := bytes.IndexByte(w[:end], '.'); first >= 0 {
		if second := bytes.IndexByte(w[first+1:end], '.'); second >= 0 {
			end = first + 1 + second
		}
	}
	n, err := strconv.ParseFloat(string(w[:end]), 64)
	return n, err == nil || end == 1
}

func (l *contentLexer) literal() string {
	var out []byte
	depth := 1
	for l.i++; l.i < len(l.b); l.i++ {
		c := l.b[l.i]
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				l.i++
				return string(out)
			}
		case '\\':
			if l.i++; l.i >= len(l.b) {
				return string(out)
			}
			switch e := l.b[l.i]; e {
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'f':
				c = '\f'
			case '\r':
				if l.i+1 < len(l.b) && l.b[l.i+1] == '\n' {
					l.i++
				}
				continue
			case '\n':
				continue
			case '0', '1', '2', '3', '4', '5', '6', '7':
				v := 0
				for k := 0; k < 3 && l.i < len(l.b) && l.b[l.i] >= '0' && l.b[l.i] <= '7'; k++ {
					v = v*8 + int(l.b[l.i]-'0')
					l.i++
				}
				l.i--
				c = byte(v)
			default:
				c = e
			}
		}
		out = append(out, c)
	}
	return string(out)
}

func (l *contentLexer) hex() string {
	var out []byte
	half, have := byte(0), false
	for l.i++; l.i < len(l.b); l.i++ {
		c := l.b[l.i]
		if c == '>' {
			l.i++
			break
		}
		v, ok := hexDigit(c)
		if !ok {
			continue
		}
		if have {
			out = append(out, half<<4|v)
		}
		half, have = v, !have
	}
	if have {
		out = append(out, half<<4)
	}
	return string(out)
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

func unescapeName(w []byte) string {
	if bytes.IndexByte(w, '#') < 0 {
		return string(w)
	}
	var out []byte
	for i := 0; i < len(w); i++ {
		if w[i] == '#' && i+2 < len(w) {
			a, ok1 := hexDigit(w[i+1])
			b, ok2 := hexDigit(w[i+2])
			if ok1 && ok2 {
				out = append(out, a<<4|b)
				i += 2
				continue
			}
		}
		out = append(out, w[i])
	}
	return string(out)
}

// skipInlineImage goes to the end of an image whose bytes stand in the stream: "EI" between blanks after "ID". Bytes that
// only look like it are told by what follows: text, not noise.
func (l *contentLexer) skipInlineImage() {
	id := bytes.Index(l.b[l.i:], []byte("ID"))
	if id < 0 {
		return
	}
	at := l.i + id + 2
	for {
		e := bytes.Index(l.b[at:], []byte("EI"))
		if e < 0 {
			l.i = len(l.b)
			return
		}
		at += e + 2
		if !blank(l.b[at-3]) || at < len(l.b) && !blank(l.b[at]) {
			continue
		}
		noise := false
		for _, c := range l.b[at:min(at+16, len(l.b))] {
			noise = noise || c > 126 || c < ' ' && !blank(c)
		}
		if !noise {
			l.i = at
			return
		}
	}
}
