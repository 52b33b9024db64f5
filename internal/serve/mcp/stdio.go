package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
	long  *longTexts
}

func (l *lines) Connect(context.Context) (sdk.Connection, error) {
	c := &connection{out: l.out, long: l.long, numbers: numbers{rand.Text()}, incoming: make(chan incoming), closed: make(chan struct{}), open: map[jsonrpc.ID]bool{}}
	c.answered.L = &c.mu
	// A read can't be interrupted, so it happens aside and may be left behind.
	go c.read(bufio.NewReaderSize(l.in, 64<<10), l.ended)
	return c, nil
}

type connection struct {
	incoming chan incoming
	closed   chan struct{}
	once     sync.Once

	long      *longTexts
	numbers   numbers
	handshake bool // there was an initialize; of the reading goroutine alone

	writing sync.Mutex // one line at a time
	out     io.Writer

	mu       sync.Mutex
	open     map[jsonrpc.ID]bool // requests without an answer yet, and whether it is waited for; nil when closed
	answered sync.Cond           // open has become smaller
}

type incoming struct {
	message jsonrpc.Message
	err     error
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

func (c *connection) Write(ctx context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Response); ok && r.Error != nil {
		r.Error = coded(r.Error)
	}
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if line, err = c.long.restored(line); err != nil {
		return err
	}
	r, _ := m.(*jsonrpc.Response)
	return c.write(line, r)
}

// expect notes that a request is to be answered. It is false where another one with this id is under
// way: the SDK would answer one of them alone.
func (c *connection) expect(m jsonrpc.Message) (id jsonrpc.ID, ok bool) {
	r, is := m.(*jsonrpc.Request)
	if !is || !r.IsCall() {
		return id, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.open[r.ID]; twice {
		return r.ID, false
	}
	if c.open != nil {
		c.open[r.ID] = r.Method != "subscriptions/listen" // which is answered when cancelled
	}
	return r.ID, true
}

// awaitAnswers waits until all that is waited for is written.
func (c *connection) awaitAnswers() {
	c.mu.Lock()
	for slices.Contains(slices.Collect(maps.Values(c.open)), true) {
		c.answered.Wait()
	}
	c.mu.Unlock()
	c.writing.Lock() // by who writes the last
	defer c.writing.Unlock()
}

// write writes one line. The id of the request that it answers, if any, may come again.
func (c *connection) write(line []byte, answer *jsonrpc.Response) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if answer != nil {
		c.mu.Lock()
		delete(c.open, answer.ID)
		c.answered.Broadcast()
		c.mu.Unlock()
	}
	_, err := c.out.Write(append(c.numbers.out(line), '\n'))
	return err
}

// read passes messages on until the input ends.
func (c *connection) read(r *bufio.Reader, ended func()) {
	if mark, _ := r.Peek(3); string(mark) == "\ufeff" { // some clients begin with it
		_, _ = r.Discard(3) // it was peeked
	}
	for {
		line, err := ndjson.ReadLine(r, maxLine)
		var in incoming
		switch {
		case errors.Is(err, ndjson.ErrTooLong):
			if c.reject(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than %d MiB; send less at once", maxLine>>20)) != nil {
				return
			}
			continue
		case err != nil:
			ended()
			c.awaitAnswers()
			in.err = err
		case len(bytes.TrimSpace(line)) == 0:
			continue
		default:
			if in.message, err = jsonrpc.DecodeMessage(c.numbers.in(line)); err != nil {
				if c.reject(reason(line, err)) != nil {
					return
				}
				continue
			}
			if id, ok := c.stray(in.message); ok {
				if c.refuse(id, jsonrpc.CodeInvalidParams, strayMessage) != nil {
					return
				}
				continue
			}
			if id, ok := c.expect(in.message); !ok {
				if c.refuse(id, jsonrpc.CodeInvalidRequest, "a request with this id is under way: give each its own") != nil {
					return
				}
				continue
			}
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

const (
	protocolKey  = "io.modelcontextprotocol/protocolVersion"
	strayMessage = "params._meta lacks " + protocolKey + "; send it with each request, or initialize first"
)

// stray says that a request belongs to no revision: it says none itself, and there was no
// handshake. The SDK answers some of them with code 0.
func (c *connection) stray(m jsonrpc.Message) (jsonrpc.ID, bool) {
	r, ok := m.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		return jsonrpc.ID{}, false
	}
	switch r.Method {
	case "initialize":
		c.handshake = true
		return r.ID, false
	case "ping":
		return r.ID, false
	case "server/discover":
	default:
		if c.handshake {
			return r.ID, false
		}
	}
	return r.ID, !bytes.Contains(r.Params, []byte(`"`+protocolKey+`"`))
}

// coded gives an error without a code one: 0 is not among those of JSON-RPC.
func coded(err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code != 0 {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
}

func reason(line []byte, err error) (code int64, message string) {
	switch {
	case !json.Valid(line):
		return jsonrpc.CodeParseError, "the line is not JSON, or is nested too deep: send one JSON-RPC message a line"
	case bytes.TrimSpace(line)[0] == '[':
		return jsonrpc.CodeInvalidRequest, "batches are not supported: send one JSON-RPC message a line"
	}
	return jsonrpc.CodeInvalidRequest, "not a JSON-RPC 2.0 message: " + err.Error()
}

// reject answers a line that has no id that could be trusted.
func (c *connection) reject(code int64, message string) error {
	return c.refuse(jsonrpc.ID{}, code, message)
}

func (c *connection) refuse(id jsonrpc.ID, code int64, message string) error {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id.Raw(), "error": map[string]any{"code": code, "message": message}})
	if err != nil {
		return err
	}
	return c.write(line, nil)
}
