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

// numbers carries the numbers of a client through the SDK, which keeps them in a float64: the id
// 9007199254740993 goes in as the string "MARK9007199254740993", and comes out as it was. The mark is
// unguessable, so that no other string begins so.
type numbers struct{ mark string }

// in is a line with these numbers as strings, if it is a request: its id, the id that it names in
// params.requestId, and params._meta.progressToken.
func (n numbers) in(line []byte) []byte {
	if !json.Valid(line) {
		return line
	}
	var out []byte
	done, isRequest := 0, false
	mark := func(from, to int) {
		if c := line[from]; c == '-' || '0' <= c && c <= '9' {
			out = append(append(append(append(out, line[done:from]...), '"'), n.mark...), line[from:to]...)
			out, done = append(out, '"'), to
		}
	}
	at := len(line) - len(bytes.TrimLeft(line, " \t\r\n"))
	members(line, at, len(line), func(key string, from, to int) {
		switch key {
		case "method":
			isRequest = true
		case "id":
			mark(from, to)
		case "params":
			members(line, from, to, func(key string, from, to int) {
				switch key {
				case "requestId":
					mark(from, to)
				case "_meta":
					members(line, from, to, func(key string, from, to int) {
						if key == "progressToken" {
							mark(from, to)
						}
					})
				}
			})
		}
	})
	if !isRequest || done == 0 {
		return line
	}
	return append(out, line[done:]...)
}

// members goes through those of the object at line[from:to], with places in line.
func members(line []byte, from, to int, f func(key string, from, to int)) {
	ndjson.Members(line[from:to], func(key []byte, a, b int) { f(string(key[1:len(key)-1]), from+a, from+b) })
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

// The SDK encodes a result and then goes over all of its bytes three times more: of a long Read that
// is most of the time. So a long text travels through it as a mark, and stands in its place when the
// line is written.
type longTexts struct {
	mu     sync.Mutex
	prefix string // unguessable: no file holds a mark
	last   int
	texts  map[string]string // by mark
}

const (
	longText = 16 << 10 // bytes from which on a text is marked
	mostLong = 64       // marks under way; beyond them texts go as they are
)

// mark gives the text to send in the place of text: a mark for a long one.
func (l *longTexts) mark(text string) string {
	if len(text) < longText {
		return text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.texts) >= mostLong {
		return text
	}
	if l.texts == nil {
		l.prefix, l.texts = rand.Text(), map[string]string{}
	}
	l.last++
	mark := fmt.Sprintf("%s-%d.", l.prefix, l.last)
	l.texts[mark] = text
	return mark
}

// restored is a line with the text in the place of its mark.
func (l *longTexts) restored(line []byte) ([]byte, error) {
	l.mu.Lock()
	begin := -1
	if len(l.texts) > 0 {
		begin = bytes.Index(line, []byte(`"`+l.prefix))
	}
	if begin < 0 {
		l.mu.Unlock()
		return line, nil
	}
	end := begin + 1 + bytes.IndexByte(line[begin+1:], '"')
	mark := string(line[begin+1 : end])
	text, ok := l.texts[mark]
	delete(l.texts, mark)
	l.mu.Unlock()
	if !ok {
		return line, nil
	}
	var b bytes.Buffer
	b.Grow(len(line) + len(text) + len(text)/8)
	b.Write(line[:begin])
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return nil, fmt.Errorf("encoding a text: %w", err)
	}
	b.Truncate(b.Len() - 1) // its newline
	b.Write(line[end+1:])
	return b.Bytes(), nil
}
