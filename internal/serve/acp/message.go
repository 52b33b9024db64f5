package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"moltisfs/internal/ndjson"
)

// A message is one line, and the parts of it that decide where it goes.
type message struct {
	line               []byte
	id, params, result []byte // raw; nil where there is none
	failed             []byte // its error
	method             string
}

// asks reports whether a message is a request, which has an answer.
func (m *message) asks() bool { return m.method != "" && m.id != nil }

// answers reports whether a message is the answer of a request.
func (m *message) answers() bool { return m.method == "" && m.id != nil }

var (
	errNoMessage = errors.New("the line is not one JSON-RPC message")
	errTwice     = errors.New("a member stands there twice, or in another spelling beside its own")
	errHidden    = errors.New("the line holds another line, which could pass for a message")
)

var members = []string{"id", "method", "params", "result", "error"}

// read takes a line apart, if it is an object; of a broken one it gives id and method, if they stand before
// the break.
func read(line []byte) (m message, err error) {
	m.line = line
	body := bytes.TrimSpace(line)
	if !json.Valid(body) || body[0] != '{' {
		var value json.RawMessage
		d := json.NewDecoder(bytes.NewReader(body))
		_, err := d.Token()
		for name := json.Token(nil); err == nil; err = d.Decode(&value) {
			switch name {
			case "id":
				m.id = bytes.Clone(value)
			case "method":
				m.method = string(value)
			}
			if name, err = d.Token(); err != nil {
				break
			}
		}
		return m, errNoMessage
	}
	parts, err := pick(body, members)
	m.id, m.params, m.result, m.failed = parts[0], parts[2], parts[3], parts[4]
	if parts[1] != nil && json.Unmarshal(parts[1], &m.method) != nil {
		m.method, err = string(parts[1]), errNoMessage
	}
	return m, err
}

// readStrictly takes apart a line that every reader takes apart in the same way: a line that passes here
// as one thing must not be another to the editor.
func readStrictly(line []byte) (message, error) {
	m, err := read(line)
	body := bytes.TrimSpace(line)
	switch {
	case err != nil:
		return m, err
	case !utf8.Valid(body):
		return m, errNoMessage
	case hides(body):
		return m, errHidden
	case (m.method == "") != (m.result != nil || m.failed != nil): // both, or neither
		return m, errNoMessage
	}
	return m, nil
}

// hides reports whether a reader that ends lines at more than "\n", as some do, finds a message of its
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

// pick finds the values of the members of an object, or of any other value, which has none. errTwice: one
// of them may be two.
func pick(object []byte, names []string) (parts [][]byte, err error) {
	parts = make([][]byte, len(names))
	ndjson.Members(object, func(key []byte, from, to int) {
		name := string(key[1 : len(key)-1])
		if bytes.IndexByte(key, '\\') >= 0 {
			_ = json.Unmarshal(key, &name) // it is valid
		}
		for i, n := range names {
			if !strings.EqualFold(name, n) {
				continue
			}
			if name != n || parts[i] != nil {
				err = errTwice
			}
			parts[i] = object[from:to:to]
		}
	})
	return parts, err
}

// with sets a member of an object, and leaves all else as it stands: given {"a":1}, "b" and 2, it gives {"b":2,"a":1}.
// Any other value becomes an object.
func with(object []byte, name string, value []byte) []byte {
	if object = bytes.TrimSpace(object); len(object) == 0 || object[0] != '{' {
		object = []byte("{}")
	}
	var out []byte
	others := false
	ndjson.Members(object, func(key []byte, from, to int) {
		if others = true; out == nil && string(key) == `"`+name+`"` {
			out = slices.Concat(object[:from], value, object[to:])
		}
	})
	if out != nil {
		return out
	}
	member := append([]byte(`{"`+name+`":`), value...)
	if others {
		member = append(member, ',')
	}
	return append(member, object[1:]...)
}

// peer is where lines go.
type peer struct {
	mu  sync.Mutex
	out io.Writer
	err error // of the first write that failed; nothing is written after it
}

// send writes whole lines.
func (p *peer) send(line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		_, p.err = p.out.Write(line)
	}
	return p.err
}
