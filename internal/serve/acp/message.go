package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// A message is one line, and what of it decides where it goes. All are parts of the line.
type message struct {
	line               []byte
	id, params, result []byte // raw; nil where there is none
	failed             []byte // its error
	method             string
}

// asks says that a message is a request, which has an answer.
func (m *message) asks() bool { return m.method != "" && m.id != nil }

// answers says that it is the answer of a request.
func (m *message) answers() bool { return m.method == "" && m.id != nil }

var (
	errNoMessage = errors.New("the line is not one JSON-RPC message")
	errTwice     = errors.New("a member stands there twice, or in another spelling beside its own")
	errHidden    = errors.New("the line holds another line, which could pass for a message")
)

var members = []string{"id", "method", "params", "result", "error"}

// read takes a line apart as far as it can be.
func read(line []byte) (m message, err error) {
	m.line = line
	body := bytes.TrimSpace(line)
	if len(body) == 0 || body[0] != '{' {
		return m, errNoMessage
	}
	parts, err := pick(body, members)
	m.id, m.params, m.result, m.failed = parts[0], parts[2], parts[3], parts[4]
	if parts[1] != nil && json.Unmarshal(parts[1], &m.method) != nil {
		m.method, err = string(parts[1]), errNoMessage
	}
	return m, err
}

// readStrictly takes apart a line that every reader takes apart in the same way: what passes here
// as one thing must not be another to the editor.
func readStrictly(line []byte) (message, error) {
	m, err := read(line)
	body := bytes.TrimSpace(line)
	switch {
	case !utf8.Valid(body) || !json.Valid(body):
		return m, errNoMessage
	case err != nil:
		return m, err
	case hides(body):
		return m, errHidden
	case (m.method == "") != (m.result != nil || m.failed != nil): // both, or neither
		return m, errNoMessage
	}
	return m, nil
}

// hides says that a reader that ends lines at more than "\n", as some do, finds a message of its
// own in a line. In JSON that is valid these can only be white space or stand in a string.
func hides(body []byte) bool {
	if bytes.IndexByte(body, '\r') >= 0 {
		return true
	}
	for _, end := range []string{"\u2028", "\u2029", "\u0085"} {
		if !bytes.Contains(body, []byte(end)) {
			continue
		}
		for part := range bytes.SplitSeq(body, []byte(end)) {
			if part = bytes.TrimSpace(part); len(part) > 0 && part[0] == '{' && json.Valid(part) {
				return true
			}
		}
	}
	return false
}

// pick finds the values of an object's members. errTwice: one of them may be two.
func pick(object []byte, names []string) ([][]byte, error) {
	parts := make([][]byte, len(names))
	twice := false
	ok := walk(object, func(key []byte, from, to int) {
		name := string(key[1 : len(key)-1])
		if bytes.IndexByte(key, '\\') >= 0 && json.Unmarshal(key, &name) != nil {
			name = ""
		}
		for i, n := range names {
			if !strings.EqualFold(name, n) {
				continue
			}
			twice = twice || name != n || parts[i] != nil
			parts[i] = object[from:to:to]
		}
	})
	switch {
	case !ok:
		return parts, errNoMessage
	case twice:
		return parts, errTwice
	}
	return parts, nil
}

// walk goes through the members of an object: the key as it stands, and from where to where the
// value is. false: it has no end.
func walk(object []byte, each func(key []byte, from, to int)) bool {
	at := space(object, 1)
	for at < len(object) && object[at] != '}' {
		if object[at] == ',' {
			at = space(object, at+1)
			continue
		}
		end := skip(object, at)
		if object[at] != '"' || end < 0 {
			return false
		}
		key := object[at:end]
		if at = space(object, end); at >= len(object) || object[at] != ':' {
			return false
		}
		at = space(object, at+1)
		if end = skip(object, at); end < 0 {
			return false
		}
		each(key, at, end)
		at = space(object, end)
	}
	return at < len(object)
}

func space(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t' || b[at] == '\n' || b[at] == '\r') {
		at++
	}
	return at
}

// skip is where the value at a place ends, -1 where it does not.
func skip(b []byte, at int) int {
	for depth := 0; at < len(b); {
		switch b[at] {
		case '"':
			if at = text(b, at); at < 0 {
				return -1
			}
		case '{', '[':
			depth++
			at++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return -1
			}
			at++
		case ',', ':', ' ', '\t', '\n', '\r':
			at++
			if depth == 0 {
				return -1
			}
			continue
		default:
			for at++; at < len(b) && !ends(b[at]); at++ {
			}
		}
		if depth == 0 {
			return at
		}
	}
	return -1
}

// ends says that a number or a word ends here.
func ends(c byte) bool {
	return c == ',' || c == ':' || c == ']' || c == '}' || c == '"' || c <= ' '
}

// text is where the string at a place ends.
func text(b []byte, at int) int {
	for at++; ; at++ {
		next := bytes.IndexByte(b[at:], '"')
		if next < 0 {
			return -1
		}
		back := 0
		for at += next; b[at-1-back] == '\\'; back++ { // the string begins with a quote
		}
		if back%2 == 0 {
			return at + 1
		}
	}
}

// with is an object with a member set, and all else as it stands. What is no object becomes one.
func with(object []byte, name string, value []byte) []byte {
	if object = bytes.TrimSpace(object); len(object) < 2 || object[0] != '{' {
		object = []byte("{}")
	}
	var out []byte
	walk(object, func(key []byte, from, to int) {
		if out == nil && string(key) == `"`+name+`"` {
			out = slices.Concat(object[:from], value, object[to:])
		}
	})
	if out != nil {
		return out
	}
	member := append([]byte(`{"`+name+`":`), value...)
	if object[space(object, 1)] != '}' {
		member = append(member, ',')
	}
	return append(member, object[1:]...)
}
