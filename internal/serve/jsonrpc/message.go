package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"moltisfs/internal/ndjson"
	"moltisfs/internal/serve"
)

// The codes of errors.
const (
	codeParse    = -32700
	codeRequest  = -32600
	codeMethod   = -32601
	codeInternal = -32603
	codeBusy     = -32000
	codeDenied   = -32001
	codeAuth     = -32003
	codeSession  = -32004

	tooLarge = "the body is larger than 32 MiB"
	notOne   = "the body is not one JSON value, or is nested too deep"
)

// request is one of them. A notification has no id, and nobody waits for its answer.
type request struct {
	id     json.RawMessage
	method string
	params json.RawMessage
}

// response is the answer to a request; without an id it is null.
func response(id, result json.RawMessage, e *serve.Error) []byte {
	if e == nil { // a result of a dialect is JSON already, and may be large
		return ndjson.Reply(id, "result", result)
	}
	b, _ := json.Marshal(e) // it never fails: the data are strings and numbers
	return ndjson.Reply(id, "error", b)
}

// answer carries out the request of a body, or those of its batch one after the other. It is nil where nobody waits for an answer.
func (s *Server) answer(ctx context.Context, c *caller, body []byte) (answer []byte, status int) {
	begun := time.Now()
	items, batch, e := split(bytes.TrimSpace(body))
	if e != nil {
		return response(nil, nil, e), http.StatusOK
	}
	by := *c
	by.batch = batch
	var all [][]byte
	size := 0
	for _, item := range items {
		r, e := decode(item)
		note := e == nil && r.id == nil
		var result json.RawMessage
		switch {
		case e != nil:
		case size > maxAnswer:
			e = serve.Wrong(codeBusy, "the batch has too much to answer; send this one again, in another")
		default:
			result, e = s.call(ctx, &by, r)
		}
		if !note {
			one := response(r.id, result, e)
			all, size = append(all, one), size+len(one)
		}
	}
	switch {
	case (ctx.Err() != nil || time.Since(begun) > tokenStale) && !s.holds(c): // it was ended, or it waited, as for events
		return response(nil, nil, serve.Wrong(codeAuth, "the token holds no more")), http.StatusUnauthorized
	case len(all) == 0:
		return nil, 0
	case !batch:
		return all[0], http.StatusOK
	}
	return slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]")), http.StatusOK
}

// split gives the requests of a body: the one that it is, or those of the batch, no more of which are looked at than it may have.
func split(body []byte) (items []json.RawMessage, batch bool, _ *serve.Error) {
	if !utf8.Valid(body) {
		return nil, false, serve.Wrong(codeParse, "the body is not UTF-8")
	}
	if batch = len(body) > 0 && body[0] == '[' && json.Valid(body); !batch {
		return []json.RawMessage{body}, false, nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	_, _ = d.Token() // it is valid
	for d.More() {
		var one json.RawMessage
		if len(items) == maxBatch {
			return nil, true, serve.Wrong(codeRequest, "a batch has at most %d requests", maxBatch)
		}
		if err := d.Decode(&one); err != nil {
			return nil, true, serve.Wrong(codeParse, "%s", notOne)
		}
		items = append(items, one)
	}
	if len(items) == 0 {
		return nil, true, serve.Wrong(codeRequest, "the batch is empty")
	}
	return items, true, nil
}

// decode is strict: with a key that is misspelt, or there twice, it would be another request than
// was meant.
func decode(raw json.RawMessage) (r request, _ *serve.Error) {
	switch raw = bytes.TrimSpace(raw); {
	case !json.Valid(raw):
		return r, serve.Wrong(codeParse, "%s", notOne)
	case raw[0] != '{':
		return r, serve.Wrong(codeRequest, "a request is an object")
	}
	m, e := members(raw)
	if id, given := m["id"]; given && e == nil {
		if !validID(id) {
			return r, serve.Wrong(codeRequest, "the id is a string or a number, of at most 256 bytes")
		}
		r.id = id
	}
	if e != nil {
		return r, e
	}
	var version string
	if json.Unmarshal(m["jsonrpc"], &version) != nil || version != "2.0" {
		return r, serve.Wrong(codeRequest, `"jsonrpc" has to be "2.0"`)
	}
	if json.Unmarshal(m["method"], &r.method) != nil || r.method == "" {
		return r, serve.Wrong(codeRequest, `"method" has to be a string`)
	}
	r.params = m["params"]
	return r, nil
}

func validID(id json.RawMessage) bool { // a string, a number or null; it is valid JSON
	return len(id) <= 256 && bytes.IndexByte([]byte(`"-0123456789n`), id[0]) >= 0
}

// members are the values of a request by their keys, each of which is there once.
func members(raw json.RawMessage) (m map[string]json.RawMessage, e *serve.Error) {
	m = map[string]json.RawMessage{}
	ndjson.Members(raw, func(quoted []byte, from, to int) {
		var key string
		_ = json.Unmarshal(quoted, &key) // the body is valid
		switch {
		case e != nil:
		case m[key] != nil:
			e = serve.Wrong(codeRequest, "%.60q is there twice", key)
		case !slices.Contains([]string{"jsonrpc", "id", "method", "params"}, key):
			e = serve.Wrong(codeRequest, "there is no %.60q in a request; there are jsonrpc, id, method and params", key)
		default:
			m[key] = raw[from:to]
		}
	})
	return m, e
}
