package edit

import (
	"bytes"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/edit/letters"
)

// isBlankByte leaves out CR: before the CR of a CRLF nothing could keep one.
func isBlankByte(c byte) bool { return c == ' ' || c == '\t' || c == '\f' || c == '\v' }

// trimBlanks cuts ASCII blanks off the end.
func trimBlanks(b []byte) []byte {
	n := len(b)
	for n > 0 && isBlankByte(b[n-1]) {
		n--
	}
	return b[:n]
}

// indentOf gives the blanks that a line starts with.
func indentOf(b []byte) []byte {
	n := 0
	for n < len(b) && (b[n] == ' ' || b[n] == '\t') {
		n++
	}
	return b[:n]
}

// tier is how loose a comparison had to be. The order is that of the package comment.
type tier int

const (
	tierExact tier = iota
	tierEndings
	tierTrailing
	tierQuotes
	tierUnicode
	tierIndent
	tierNone // not equal at all
)

func (t tier) String() string {
	return [...]string{StrategyExact, StrategyLineEndings, StrategyTrailingBlanks, StrategyQuotes, StrategyUnicode,
		StrategyIndentation, "none"}[t]
}

// compare tells by which tier two pieces of a line are equal, leading blanks included: tierNone if
// by none. atEnd: both run to the end of their lines, so trailing blanks do not count.
func compare(a, b []byte, atEnd bool) tier {
	if bytes.Equal(a, b) {
		return tierExact
	}
	if atEnd {
		a, b = trimBlanks(a), trimBlanks(b)
		if bytes.Equal(a, b) {
			return tierTrailing
		}
	}
	a, b = letters.Plain(a), letters.Plain(b)
	if atEnd {
		a, b = trimBlanks(a), trimBlanks(b)
	}
	if bytes.Equal(a, b) {
		return tierQuotes
	}
	if bytes.Equal(norm.NFC.Bytes(a), norm.NFC.Bytes(b)) {
		return tierUnicode
	}
	return tierNone
}
