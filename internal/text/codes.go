package text

import (
	"bytes"
	"unicode/utf8"
)

// WithoutCodes takes out the codes of ECMA-48 that a program sends to a terminal: "\x1b[…m" and its like, titles and links, and the choice
// of a character set. Other escapes stay.
func WithoutCodes(line []byte) []byte {
	if bytes.IndexByte(line, 0x1b) < 0 {
		return line
	}
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); {
		if line[i] == 0x1b {
			if n := codeLen(line[i:]); n > 0 {
				i += n
				continue
			}
		}
		out = append(out, line[i])
		i++
	}
	return out
}

// codeLen is the length of the code with which b begins; 0 where it is none, or does not end.
func codeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch c := b[1]; {
	case c == '[':
		for i, c := range b[2:] {
			if c >= '@' && c <= '~' {
				return i + 3
			}
			if c < ' ' || c >= utf8.RuneSelf {
				return 0
			}
		}
	case c == ']':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
		}
	case bytes.IndexByte([]byte("()*+"), c) >= 0 && len(b) > 2:
		return 3
	case bytes.IndexByte([]byte("78=>cM"), c) >= 0:
		return 2
	}
	return 0
}
