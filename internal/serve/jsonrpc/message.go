package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"moltisfs/internal/ndjson"
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

	tooLarge = "the body is larger than 32 MiB"
)

// rpcError is a fault of a request, as its sender is told.
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
	if e == nil { // a result of a dialect is JSON already, and may be large
		return ndjson.Reply(id, "result", result)
	}
	b, _ := json.Marshal(e) // it never fails: the data are strings and numbers
	return ndjson.Reply(id, "error", b)
}

// answer carries out the requests of a body, one after the other. It is nil where nobody waits for an answer.
func (s *Server) answer(ctx context.Context, c *caller, body []byte) (answer []byte, status int) {
	items, batch, e := split(body)
	if e != nil {
		return response(nil, nil, e), http.StatusOK
	}
	start, size := time.Now(), 0
	var all [][]byte
	for _, item := range items {
		r, e := decode(item)
		var result json.RawMessage
		broken := e != nil
		switch {
		case broken:
		case size > maxAnswer:
			e = wrong(codeBusy, "the batch has too much to answer; send this one again, in another")
		default:
			result, e = s.call(ctx, c, r, !batch)
		}
		if r.id == nil && !broken { // a notification
			continue
		}
		one := response(r.id, result, e)
		all, size = append(all, one), size+len(one)
	}
	if (ctx.Err() != nil || time.Since(start) > tokenStale) && !s.holds(c) { // it was ended, or it waited, as for events
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

// split makes requests of a body: one, or those of a batch.
func split(body []byte) (items []json.RawMessage, batch bool, _ *rpcError) {
	switch body = bytes.TrimSpace(body); {
	case !utf8.Valid(body):
		return nil, false, wrong(codeParse, "the body is not UTF-8")
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

// decode is strict: with a key that is misspelt, or there twice, it would be another request than
// was meant.
func decode(raw json.RawMessage) (r request, _ *rpcError) {
	m, e := members(raw)
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

func validID(id json.RawMessage) bool { // a string, a number or null; it is valid JSON
	return len(id) <= 256 && bytes.IndexByte([]byte(`"-0123456789n`), id[0]) >= 0
}

// members are the values of a request by their keys, each of which is there once.
func members(raw json.RawMessage) (m map[string]json.RawMessage, e *rpcError) {
	m = map[string]json.RawMessage{}
	if raw[0] != '{' {
		return m, wrong(codeRequest, "it is not an object")
	}
	ndjson.Members(raw, func(quoted []byte, from, to int) {
		var key string
		_ = json.Unmarshal(quoted, &key) // the body is valid
		switch {
		case e != nil:
		case m[key] != nil:
			e = wrong(codeRequest, "%.60q is there twice", key)
		case !slices.Contains([]string{"jsonrpc", "id", "method", "params"}, key):
			e = wrong(codeRequest, "there is no %.60q in a request; there are jsonrpc, id, method and params", key)
		default:
			m[key] = raw[from:to]
		}
	})
	return m, e
}

// asRPCError is the error of an operator's method as its sender is told.
func asRPCError(err error) *rpcError {
	if coded, ok := errors.AsType[interface {
		error
		RPCCode() int
	}](err); ok {
		e := wrong(coded.RPCCode(), "%s", coded.Error())
		if more, ok := errors.AsType[interface {
			error
			RPCData() any
		}](err); ok {
			e.Data = more.RPCData()
		}
		return e
	}
	if e, ok := errors.AsType[*rpcError](err); ok {
		return e
	}
	return nil
}
