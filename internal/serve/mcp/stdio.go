package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/args"
	"moltisfs/internal/ndjson"
)

// maxLine bounds a message in bytes: a Write of the largest file that the tools take, escaped.
const maxLine = 64 << 20

// lines is the transport: one JSON-RPC message a line. The SDK's own gives up the connection at the
// first line that is no message, and drops what is under way at the end of the input; this one
// answers the line with an error and reads on, and lets the end be seen when all has been answered.
type lines struct {
	in    io.Reader
	out   io.Writer
	ended func() // called at the end of the input
}

func (l *lines) Connect(context.Context) (sdk.Connection, error) {
	c := &connection{out: l.out, incoming: make(chan incoming), closed: make(chan struct{}), open: map[jsonrpc.ID]request{}}
	c.answered.L = &c.mu
	// A read can't be interrupted, so it happens aside and may be left behind.
	go c.read(bufio.NewReaderSize(l.in, 64<<10), l.ended)
	return c, nil
}

type connection struct {
	incoming chan incoming
	closed   chan struct{}
	once     sync.Once

	writing sync.Mutex // one line at a time
	out     io.Writer

	mu       sync.Mutex
	open     map[jsonrpc.ID]request // requests without an answer yet; nil when closed
	answered sync.Cond              // open has become smaller
}

type incoming struct {
	message jsonrpc.Message
	err     error
}

// request describes a request that has no answer yet.
type request struct {
	id      json.RawMessage // as the client wrote it
	awaited bool            // the end of the input waits for its answer
	aside   *aside
}

// aside takes the content of an answer past the SDK, which would go over its JSON three more times. It lies in the request that the
// handler gets; Write puts it into the result, which has none.
type aside struct {
	content []byte // JSON, without the brackets around it
	rest    []byte // JSON of the members that follow
}

const asideKey, noContent = "moltis-fs/aside", `"content":[]`

// take moves the content of r into the aside of its request, where there is one: a request over HTTP has none.
func take(r *sdk.CallToolResult, extra *sdk.RequestExtra) (err error) {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	a, ok := extra.TokenInfo.Extra[asideKey].(*aside)
	if !ok {
		return nil
	}
	parts := make([][]byte, len(r.Content))
	for i, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			parts[i], err = args.Encode(struct {
				Type string `json:"type"`
				Text string `json:"text"`
			}{"text", text.Text})
		} else {
			parts[i], err = c.MarshalJSON()
		}
		if err != nil {
			return err
		}
	}
	if body, ok := r.StructuredContent.(json.RawMessage); ok {
		a.rest = slices.Concat([]byte(`,"structuredContent":`), body)
	}
	if a.content = parts[0]; len(parts) > 1 {
		a.content = bytes.Join(parts, []byte(","))
	}
	r.Content, r.StructuredContent = []sdk.Content{}, nil
	return nil
}

func (c *connection) SessionID() string { return "" }

func (c *connection) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open = nil
		c.answered.Broadcast()
	})
	return nil
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case in := <-c.incoming:
		return in.message, in.err
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// read passes messages on until the input ends.
func (c *connection) read(r *bufio.Reader, ended func()) {
	if mark, _ := r.Peek(3); string(mark) == "\ufeff" { // some clients begin with it
		_, _ = r.Discard(3) // it was peeked
	}
	for {
		line, err := ndjson.ReadLine(r, maxLine)
		var in incoming
		var bad error
		switch {
		case errors.Is(err, ndjson.ErrTooLong):
			bad = c.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than %d MiB; send less at once", maxLine>>20))
		case err != nil:
			ended()
			c.awaitAnswers()
			in.err = err
		case len(bytes.TrimSpace(line)) > 0:
			in.message, bad = c.decode(line)
		}
		if bad != nil {
			return // nobody takes the answers
		}
		if in == (incoming{}) {
			continue
		}
		select {
		case c.incoming <- in:
		case <-c.closed:
			return
		}
		if in.err != nil {
			return
		}
	}
}

// awaitAnswers waits until all that is waited for is written.
func (c *connection) awaitAnswers() {
	c.mu.Lock()
	for slices.ContainsFunc(slices.Collect(maps.Values(c.open)), func(r request) bool { return r.awaited }) {
		c.answered.Wait()
	}
	c.mu.Unlock()
	c.writing.Lock() // the last may still be being written
	defer c.writing.Unlock()
}

// decode takes a line apart. A line that the SDK would answer badly it answers itself, and gives no message; the
// error gives the error of the answer.
func (c *connection) decode(line []byte) (jsonrpc.Message, error) {
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		code, why := ndjson.Fault(line, "line")
		if code == 0 {
			code, why = jsonrpc.CodeInvalidRequest, "not a JSON-RPC 2.0 message: "+err.Error()
		}
		return nil, c.refuse(nil, int64(code), why)
	}
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return m, nil
	}
	if !r.IsCall() {
		exactCancel(r)
		return m, nil
	}
	var is struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(line, &is) // it was decoded just now
	if rounded(is.ID) {
		r.ID, _ = jsonrpc.MakeID(textOf(is.ID))
	}
	c.mu.Lock()
	_, twice := c.open[r.ID]
	if !twice && c.open != nil {
		a := &aside{}
		r.Extra = &sdk.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{asideKey: a}}}
		c.open[r.ID] = request{is.ID, r.Method != "subscriptions/listen", a} // which is answered when cancelled
	}
	c.mu.Unlock()
	if twice { // the SDK would answer one of them alone
		return nil, c.refuse(is.ID, jsonrpc.CodeInvalidRequest, "a request with this id is under way: give each its own")
	}
	return m, nil
}

// rounded reports whether the SDK would round an id, which it keeps in a float64 and then in an int64.
func rounded(id json.RawMessage) bool {
	if len(id) == 0 || id[0] != '-' && (id[0] < '0' || '9' < id[0]) {
		return false
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err != nil || n < -1<<53 || n > 1<<53
}

// textOf is the text by which the SDK knows a number that it would round: given 9007199254740993, these digits.
func textOf(id json.RawMessage) string { return "number " + string(id) }

// exactCancel has a notification that cancels a request name it as decode has named it to the SDK.
func exactCancel(r *jsonrpc.Request) {
	var p map[string]json.RawMessage
	if r.Method != "notifications/cancelled" || json.Unmarshal(r.Params, &p) != nil || !rounded(p["requestId"]) {
		return
	}
	p["requestId"] = strconv.AppendQuote(nil, textOf(p["requestId"]))
	r.Params, _ = json.Marshal(p) // it was decoded just now
}

// refuse answers a request itself; id is nil where the line has none that could be trusted.
func (c *connection) refuse(id json.RawMessage, code int64, message string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.answer(id, &jsonrpc.Error{Code: code, Message: message})
}

// Write writes a message of the SDK. An answer gets the id that the client gave, which may come again from here on.
func (c *connection) Write(_ context.Context, m jsonrpc.Message) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		of := c.open[r.ID]
		delete(c.open, r.ID)
		c.answered.Broadcast()
		c.mu.Unlock()
		if before, after, ok := bytes.Cut(r.Result, []byte(noContent)); ok && of.aside != nil && of.aside.content != nil {
			return c.answer(of.id, r.Error, before, []byte(noContent[:len(noContent)-1]), of.aside.content, []byte("]"), of.aside.rest, after)
		}
		return c.answer(of.id, r.Error, r.Result)
	}
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	_, err = c.out.Write(append(line, '\n'))
	return err
}

// answer writes an error, or else a result in parts, to the request with this id. An error without a code gets one: 0 is not
// among those of JSON-RPC. The caller has writing.
func (c *connection) answer(id json.RawMessage, failed error, result ...[]byte) error {
	member := "result"
	if failed != nil {
		e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: failed.Error()}
		if is, ok := errors.AsType[*jsonrpc.Error](failed); ok && is.Code != 0 {
			e.Code, e.Data = is.Code, is.Data
		}
		member = "error"
		text, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encoding an error: %w", err)
		}
		result = [][]byte{text}
	}
	_, err := c.out.Write(append(ndjson.Reply(id, member, result...), '\n'))
	return err
}
