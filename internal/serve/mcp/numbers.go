package mcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// numbers carries the numbers of a client through the SDK, which keeps them in a float64: the id
// 9007199254740993 goes in as the string "MARK9007199254740993", and comes out as it was. The mark is
// unguessable, so that no other string begins so.
type numbers struct{ mark string }

// given are the members of a request whose number the client gets back, or names a request by.
var given = []string{"id", "params.requestId", "params._meta.progressToken"}

// in is a line with these numbers as strings, if it is a request.
func (n numbers) in(line []byte) []byte {
	var out []byte
	var keys [4]string // of the objects that we are in, from 1 on
	depth, done, isRequest := 0, 0, false
	for i := 0; i < len(line); {
		shallow := depth > 0 && depth < len(keys)
		switch c := line[i]; {
		case c == '{' || c == '[':
			if depth++; depth < len(keys) {
				keys[depth] = ""
			}
			i++
		case c == '}' || c == ']':
			depth--
			i++
		case c == '"':
			end := stringEnd(line, i)
			if after := bytes.TrimLeft(line[end:], " \t\r\n"); shallow && len(after) > 0 && after[0] == ':' {
				keys[depth] = strings.Trim(string(line[i:end]), `"`)
				isRequest = isRequest || depth == 1 && keys[1] == "method"
			}
			i = end
		case c == '-' || '0' <= c && c <= '9':
			end := i + len(number(line[i:]))
			if shallow && slices.Contains(given, strings.Join(keys[1:depth+1], ".")) && json.Valid(line[i:end]) {
				out = append(append(append(append(out, line[done:i]...), '"'), n.mark...), line[i:end]...)
				out, done = append(out, '"'), end
			}
			i = end
		default:
			i++
		}
	}
	if !isRequest || done == 0 {
		return line
	}
	return append(out, line[done:]...)
}

// out is a line with the numbers as the client gave them.
func (n numbers) out(line []byte) []byte {
	quoted := []byte(`"` + n.mark)
	for from := 0; ; {
		at := bytes.Index(line[from:], quoted)
		if at < 0 {
			return line
		}
		from += at
		digits := number(line[from+len(quoted):])
		if rest, ok := bytes.CutPrefix(line[from+len(quoted)+len(digits):], []byte(`"`)); ok {
			line = slices.Concat(line[:from], digits, rest)
		}
		from++
	}
}

// number is the beginning of text that can be one.
func number(text []byte) []byte {
	return text[:len(text)-len(bytes.TrimLeft(text, "+-.eE0123456789"))]
}

// stringEnd is where the string ends that begins at i.
func stringEnd(line []byte, i int) int {
	for end := i + 1; ; {
		at := bytes.IndexByte(line[end:], '"')
		if at < 0 {
			return len(line)
		}
		end += at + 1
		if text := line[i+1 : end-1]; (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 0 {
			return end
		}
	}
}
