package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// The codes of errors.
const (
	codeParse    = -32700
	codeRequest  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeInternal = -32603
	codeBusy     = -32000
	codeDenied   = -32001
	codeAuth     = -32003
	codeSession  = -32004
)

// rpcError is what is wrong with a request, as its sender is told.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

func wrong(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// request is one of them. A notification has no id, and nobody waits for its answer.
type request struct {
	id     json.RawMessage
	method string
	params json.RawMessage
}

// response is the answer to a request; without an id it is null.
func response(id, result json.RawMessage, e *rpcError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	if e == nil { // what comes from a dialect is JSON already, and may be large
		return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), result,
			[]byte("}"))
	}
	b, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *rpcError       `json:"error"`
	}{"2.0", id, e})
	if err != nil { // the data can't be JSON
		return response(id, nil, wrong(codeInternal, "internal error"))
	}
	return b
}

// answer carries out what a body asks for, one after the other. nil: nobody waits for an answer.
func (s *Server) answer(ctx context.Context, c *caller, body []byte) (answer []byte, status int) {
	items, batch, e := split(body)
	if e != nil {
		return response(nil, nil, e), http.StatusOK
	}
	start, size := time.Now(), 0
	var all [][]byte
	for _, item := range items {
		one := s.one(ctx, c, item, !batch, size > maxAnswer)
		if one != nil {
			all, size = append(all, one), size+len(one)
		}
	}
	if time.Since(start) > guessDelay && !s.holds(c) { // it waited, as for events
		return response(nil, nil, wrong(codeAuth, "the token holds no more")), http.StatusUnauthorized
	}
	switch {
	case len(all) == 0:
		return nil, 0
	case !batch:
		return all[0], http.StatusOK
	}
	return slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]")), http.StatusOK
}

// one answers one request; nil for a notification.
func (s *Server) one(ctx context.Context, c *caller, raw json.RawMessage,
	alone, full bool) (answer []byte) {
	r, e := decode(raw)
	if e != nil {
		return response(r.id, nil, e)
	}
	var result json.RawMessage
	if full {
		e = wrong(codeBusy, "the batch has too much to answer; send this one again, in another")
	} else {
		result, e = s.call(ctx, c, r, alone)
	}
	if r.id == nil {
		return nil
	}
	return response(r.id, result, e)
}

// split makes requests of a body: one, or those of a batch.
func split(body []byte) (items []json.RawMessage, batch bool, _ *rpcError) {
	switch body = bytes.TrimSpace(body); {
	case !utf8.Valid(body):
		return nil, false, wrong(codeParse, "the body is not UTF-8")
	case deep(body):
		return nil, false, wrong(codeRequest, "the body is nested deeper than %d", maxDepth)
	case !json.Valid(body):
		return nil, false, wrong(codeParse, "the body is not one JSON value")
	case body[0] != '[':
		return []json.RawMessage{body}, false, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	_, _ = d.Token() // it is valid
	for d.More() {
		if len(items) == maxBatch {
			return nil, true, wrong(codeRequest, "a batch has at most %d requests", maxBatch)
		}
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return nil, true, wrong(codeParse, "the body is not one JSON value")
		}
		items = append(items, one)
	}
	if len(items) == 0 {
		return nil, true, wrong(codeRequest, "the batch is empty")
	}
	return items, true, nil
}

// deep says whether text, which need not be JSON, is nested too deep to be looked at.
func deep(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// decode is strict: with a key that is misspelt, or there twice, it would be another request than
// was meant.
func decode(raw json.RawMessage) (r request, _ *rpcError) {
	m, e := membersOf(raw, "jsonrpc", "id", "method", "params")
	if id, given := m["id"]; given && e == nil {
		if !validID(id) {
			return r, wrong(codeRequest, "the id is a string or a number, of at most 256 bytes")
		}
		r.id = id
	}
	if e != nil {
		return r, e
	}
	var version string
	if json.Unmarshal(m["jsonrpc"], &version) != nil || version != "2.0" {
		return r, wrong(codeRequest, `"jsonrpc" has to be "2.0"`)
	}
	if json.Unmarshal(m["method"], &r.method) != nil || r.method == "" {
		return r, wrong(codeRequest, `"method" has to be a string`)
	}
	r.params = m["params"]
	return r, nil
}

func validID(id json.RawMessage) bool {
	if len(id) > 256 {
		return false
	}
	c := id[0]
	return c == '"' || c == '-' || c >= '0' && c <= '9' || string(id) == "null"
}

// members are the values of an object by their keys.
type members map[string]json.RawMessage

// membersOf takes an object apart that has no keys but the known ones, each once.
func membersOf(raw json.RawMessage, known ...string) (members, *rpcError) {
	m := members{}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return m, wrong(codeRequest, "it is not an object")
	}
	for d.More() {
		t, err := d.Token()
		key, _ := t.(string)
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		switch {
		case err != nil:
			return m, wrong(codeRequest, "it is not an object")
		case m[key] != nil:
			return m, wrong(codeRequest, "%.60q is there twice", key)
		case !slices.Contains(known, key):
			return m, wrong(codeRequest, "there is no %.60q here; there are %q", key, known)
		}
		m[key] = value
	}
	return m, nil
}

// paramsOf are the named parameters of a request; null is one that is left out.
func paramsOf(raw json.RawMessage, known ...string) (members, error) {
	if raw == nil {
		return nil, nil
	}
	m, e := membersOf(raw, known...)
	if e != nil {
		return nil, wrong(codeParams, "params: %s", e.Message)
	}
	maps.DeleteFunc(m, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return m, nil
}

// query is what a caller asks a method. err is what is wrong with the first bad parameter.
type query struct {
	caller  *caller
	alone   bool // not one of a batch
	members members
	err     error
}

func (q *query) bad(format string, args ...any) {
	if q.err == nil {
		q.err = wrong(codeParams, "params: "+format, args...)
	}
}

// text is a string, "" where it is left out, unless it is needed.
func (q *query) text(key string, needed bool) (s string) {
	raw, given := q.members[key]
	if !given && needed {
		q.bad("%q is missing", key)
	}
	if given && (json.Unmarshal(raw, &s) != nil || s == "" || len(s) > 256) {
		q.bad("%q has to be a string of 1 to 256 bytes", key)
	}
	return s
}

// number is a whole number from 0 to most, or else where it is left out.
func (q *query) number(key string, otherwise, most int64) int64 {
	raw, given := q.members[key]
	if !given {
		return otherwise
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 || n > most {
		q.bad("%q has to be a whole number from 0 to %d", key, most)
	}
	return n
}

// toldAs is the error of an operator's method as its sender is told.
func toldAs(err error) *rpcError {
	if coded, ok := errors.AsType[interface {
		error
		RPCCode() int
	}](err); ok {
		return wrong(coded.RPCCode(), "%s", coded.Error())
	}
	if e, ok := errors.AsType[*rpcError](err); ok {
		return e
	}
	return nil
}
