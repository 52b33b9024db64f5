package readers

import (
	"bytes"
	"strings"
	"unicode"

	"moltisfs/internal/text"
)

// asShown is a line of text as a terminal leaves it: without the codes that colour it and move the cursor, and of a line of progress, which
// is written over itself after each carriage return, the last state. "\x1b[32mok\x1b[0m" is "ok", and "fetch 10%\rfetch 99%" is "fetch 99%".
// progress false leaves carriage returns alone: they may be all the line ends that a file has.
func asShown(line []byte, progress bool) []byte {
	line = text.WithoutCodes(line)
	if !progress || bytes.IndexByte(line, '\r') < 0 {
		return line
	}
	last := ""
	for state := range strings.SplitSeq(string(line), "\r") {
		if state == "" {
			continue
		}
		if !continues(last, state) {
			return line
		}
		last = state
	}
	if last == "" {
		return line
	}
	return []byte(last)
}

// continues says that a line of progress may go on as next: it has the same letters, or begins with them, and speaks of something.
func continues(was, next string) bool {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return -1
		}, s)
	}
	a, b := letters(was), letters(next)
	return (b != "" || strings.ContainsAny(next, "%#=")) && (strings.HasPrefix(b, a) || strings.HasPrefix(a, b))
}

// InPlain says that content holds the text s only as Read shows it, without terminal codes.
func InPlain(content []byte, s string) bool {
	return !bytes.Contains(content, []byte(s)) && bytes.Contains(text.WithoutCodes(content), []byte(s))
}
