// Package ndjson reads newline-delimited JSON: the program's batch, MCP over stdio and the Agent Client
// Protocol. It finds lines, and the members of an object in one, and writes the answers of JSON-RPC; the reader of a line
// decodes it.
package ndjson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// ErrTooLong says that a line was longer than its limit. It was read to its end and forgotten; the
// next one can be read.
var ErrTooLong = errors.New("the line is too long")

// ReadLine reads one line, its end included, or the rest of the input. A line of more than limit
// bytes is ErrTooLong and never held. The end of the input is io.EOF, and only when nothing came
// before it.
func ReadLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > limit; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong && (err == nil || errors.Is(err, io.EOF)):
			return nil, ErrTooLong
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		}
		return nil, err
	}
}

// Fault says why a text, which is a "line" or a "body", is no message of JSON-RPC, and with which code; 0: it is an object in JSON.
func Fault(text []byte, is string) (code int, why string) {
	text = bytes.TrimSpace(text)
	switch {
	case !json.Valid(text):
		return -32700, "the " + is + " is not one JSON value, or is nested too deep"
	case text[0] == '[':
		return -32600, "batches are not supported: send one message a " + is
	case text[0] != '{':
		return -32600, "the " + is + " is not an object"
	}
	return 0, ""
}

// Reply is the answer to a request of JSON-RPC 2.0, without the end of its line, for which there is room: value has the parts of its
// result, or where as is "error" of its error. The id is null where it is nil.
func Reply(id []byte, as string, value ...[]byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	parts := slices.Concat([][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"` + as + `":`)}, value, [][]byte{[]byte("}\n")})
	line := slices.Concat(parts...)
	return line[:len(line)-1]
}

// Members calls f for each member of an object in valid JSON, with the key as it stands, and from where to
// where the value is: given {"a":1}, with "a", 5 and 6. Any other value has none.
func Members(object []byte, f func(key []byte, from, to int)) {
	if len(object) == 0 || object[0] != '{' {
		return
	}
	for at := space(object, 1); object[at] != '}'; {
		if object[at] == ',' {
			at = space(object, at+1)
		}
		end := skip(object, at)
		from := space(object, space(object, end)+1)
		to := skip(object, from)
		f(object[at:end], from, to)
		at = space(object, to)
	}
}

func space(b []byte, at int) int {
	for b[at] == ' ' || b[at] == '\t' || b[at] == '\n' || b[at] == '\r' {
		at++
	}
	return at
}

// skip is where the value at a place of valid JSON ends.
func skip(b []byte, at int) int {
	for depth := 0; ; at++ {
		switch c := b[at]; {
		case c == '"':
			if at = text(b, at); depth == 0 {
				return at
			}
			at--
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth < 0 { // of what a number stands in
				return at
			} else if depth == 0 {
				return at + 1
			}
		case depth == 0 && (c == ',' || c <= ' '):
			return at
		}
	}
}

// text is where the string at a place ends.
func text(b []byte, at int) int {
	for at++; ; at++ {
		at += bytes.IndexByte(b[at:], '"')
		back := 0
		for ; b[at-1-back] == '\\'; back++ { // the string begins with a quote
		}
		if back%2 == 0 {
			return at + 1
		}
	}
}
