// Package acp stands between an editor and an agent that speak the Agent Client Protocol, version
// 1, one JSON-RPC message a line. It passes on every message as it came, byte for byte, but for
// these:
//
//   - initialize: the agent is offered the file methods, also by an editor that has none;
//   - session/new, session/load and whatever else names a cwd: the policy judges it;
//   - fs/read_text_file and fs/write_text_file of the agent: the dialect carries them out, and the
//     editor's text is read and written where the editor has the methods;
//   - terminal/*: as Options.Terminal says;
//   - answers to requests of our own, whose ids nobody else has.
//
// A line of the agent that readers may take apart in different ways is not passed on: it could be a
// write to one of them. The agent gets an error for it, or the editor if it was an answer.
//
// A line may have any length: it is held in memory while it passes, that of a file call while the call
// runs. At most [most] calls run at a time. Calls that name the same path run in the order in which they
// came.
//
// When the editor goes away, or the agent, requests to it end, calls under way end unchanged or
// complete, and Serve returns. It starts and ends no process: that is [Child].
package acp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/ndjson"
)

// Files is the dialect that carries calls out.
type Files interface {
	Call(context.Context, dialect.Call) (dialect.Answer, error)
	// Enter judges the working directory of a session.
	Enter(ctx context.Context, c dialect.Call, cwd string) (name string, no dialect.Answer, err error)
	Offers(method string) bool
}

// Options says how to serve.
type Options struct {
	// Principal and Session are whose calls these are; without Session each session of the protocol
	// has its own history, under its own id.
	Principal, Session string
	Run                string            // names this run: what prompts are called
	Approver           approval.Approver // nil: the editor asks its user
	Grants             *approval.Grants  // of that user's answers; nil: each session has its own
	Terminal           string            // "pass", "refuse" or "ask"
	// Confine, where set, holds each session to its working directory and the directories that it
	// adds, and says what is wrong with one of them; "" is nothing.
	Confine func(dir string) string
	// Server is the MCP server that each session of the agent gets too, for a key that tells whose
	// calls they are, see [Proxy.Fill]; nil: none.
	Server func(key string) Server
	Tell   func(format string, a ...any) // says what is so, to the operator
}

// Server is a stdio server as the protocol's mcpServers has it.
type Server struct {
	Name    string     `json:"name"`
	Command string     `json:"command"`
	Args    []string   `json:"args"`
	Env     []struct{} `json:"env"`
}

// The methods that are more to us than bytes.
const (
	readFile   = "fs/read_text_file"
	writeFile  = "fs/write_text_file"
	runProgram = "terminal/create"
	cancelCall = "$/cancel_request"
	askLeave   = "session/request_permission"
	terminals  = "terminal/"
)

// most bounds the calls of the agent that run at a time.
const most = 256

// Proxy stands between one editor and one agent.
type Proxy struct {
	o             Options
	files         Files
	editor, agent peer
	ours          string // how the ids of our own requests begin
	count         atomic.Int64
	room          chan struct{}
	calls         sync.WaitGroup
	gone          context.Context // ends when the editor can't answer any more
	deaf          context.CancelFunc

	open
}

// open holds the requests under way. Tables by id have the ids as they stand in messages.
type open struct {
	waiting  table[chan message]       // our requests
	opening  table[*session]           // requests that the agent answers with a session
	running  table[context.CancelFunc] // calls of the agent
	sessions table[*session]
	keys     table[*session] // by the key of our MCP server

	mu    sync.Mutex
	turns map[[2]string]<-chan struct{} // the last call of a path, by session and path

	hello        string // id of initialize
	client       string // the agent's program
	gives, takes bool   // the editor its texts, and texts
}

// A table keeps values by name, for several goroutines. A value that is not there is the zero one.
type table[V any] struct{ all sync.Map }

func (t *table[V]) put(name string, v V) { t.all.Store(name, v) }

func (t *table[V]) get(name string) (v V) {
	if found, ok := t.all.Load(name); ok {
		v = found.(V)
	}
	return v
}

func (t *table[V]) take(name string) (v V) {
	if found, ok := t.all.LoadAndDelete(name); ok {
		v = found.(V)
	}
	return v
}

// New is a proxy whose lines go to editor and agent.
func New(files Files, editor, agent io.Writer, o Options) *Proxy {
	p := &Proxy{o: o, files: files, ours: `"moltis-fs-` + strings.ToLower(rand.Text()) + `-`,
		room: make(chan struct{}, most),
		open: open{turns: map[[2]string]<-chan struct{}{}}}
	p.editor.out, p.agent.out = editor, agent
	p.gone, p.deaf = context.WithCancel(context.Background())
	return p
}

// grace is the time that calls under way have when the editor has gone.
const grace = 5 * time.Second

// Serve passes messages on until the agent says no more, or nobody takes what it says. When the
// editor has gone and the calls under way have ended, or had their time, hangUp has to close the
// agent's input; ctx ends calls, and has to end the agent too.
func (p *Proxy) Serve(ctx context.Context, editor, agent io.Reader, hangUp func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	hangUp = sync.OnceFunc(hangUp)
	go func() {
		_ = p.pass(ctx, editor, p.fromEditor) // whatever ended it, there is nobody to tell
		p.deaf()
		p.awaitCalls(stop)
		hangUp()
	}()
	err := p.pass(ctx, agent, p.fromAgent)
	p.deaf()
	stop() // nobody takes the answers
	hangUp()
	p.calls.Wait()
	return err
}

// awaitCalls waits for the calls under way, and stops those that take too long. It does not wait for
// those then: an agent that reads nothing holds them until its input is closed.
func (p *Proxy) awaitCalls(stop func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range most {
			p.room <- struct{}{}
		}
		for range most {
			<-p.room
		}
	}()
	select {
	case <-ended:
	case <-time.After(grace):
		stop()
	}
}

// pass gives take line after line of from, each with its end; the last one gets an end if it has none.
func (p *Proxy) pass(ctx context.Context, from io.Reader,
	take func(context.Context, []byte) error) error {
	for r := bufio.NewReaderSize(from, 64<<10); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) > 0 {
			line, err = append(line, '\n'), nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = take(ctx, line)
		}
		if err != nil {
			return err
		}
	}
}

// fromEditor takes a line of the editor. A line that is no message is passed on too: the agent says so.
func (p *Proxy) fromEditor(ctx context.Context, line []byte) error {
	m, err := read(line)
	if err == nil && m.answers() && bytes.HasPrefix(m.id, []byte(p.ours)) {
		if got := p.waiting.take(string(m.id)); got != nil { // else nobody waits any more
			got <- m
		}
		return nil
	}
	if err == nil {
		switch {
		case m.method == "session/prompt":
			p.prompted(m)
		case m.method == "session/cancel":
			p.cancelled(m)
		case !m.asks():
		case m.method == "initialize" && json.Valid(line):
			line = p.offer(m)
		case strings.HasPrefix(m.method, "session/") && json.Valid(line):
			if line = p.opens(ctx, m); line == nil {
				return nil
			}
		}
	}
	return p.agent.send(line)
}

// fromAgent takes a line of the agent.
func (p *Proxy) fromAgent(ctx context.Context, line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	m, err := readStrictly(line)
	if err != nil {
		return p.reject(m, err)
	}
	switch {
	case m.answers():
		p.answered(m)
	case m.method == readFile, m.method == writeFile:
		p.carryOut(ctx, m)
		return nil
	case strings.HasPrefix(m.method, terminals) && p.o.Terminal == "refuse":
		return p.refuse(m, -32601, "Method not found: the operator refuses terminals (--terminal refuse)")
	case m.method == runProgram && p.o.Terminal == "ask":
		p.carryOut(ctx, m)
		return nil
	case m.method == cancelCall && p.cancels(m):
		return nil
	}
	return p.editor.send(line)
}

// reject answers a line that is not passed on: to the agent, or to the editor if it waits for it.
func (p *Proxy) reject(m message, why error) error {
	start := bytes.TrimSpace(m.line)
	p.o.Tell("a line of the agent is not passed on: %v: %s", why,
		approval.Escape(string(start[:min(len(start), 100)]), false))
	switch {
	case start[0] != '{' && start[0] != '[': // text that it prints, most likely
		return nil
	case !json.Valid(m.id):
		m.id = nil
	case m.answers():
		return p.editor.send(failure(m.id, -32603, "the agent's answer was not passed on: "+why.Error()))
	}
	code := -32600
	if errors.Is(why, errNoMessage) && !json.Valid(start) {
		code = -32700
	}
	return p.agent.send(failure(m.id, code, why.Error()+"; it was not passed on"))
}

// refuse answers a request of the agent with an error.
func (p *Proxy) refuse(m message, code int, why string) error {
	if m.id == nil {
		p.o.Tell("a notification %s of the agent is not passed on: %s", m.method, why)
		return nil
	}
	return p.agent.send(failure(m.id, code, why))
}

// kinds are the kinds of our refusals, by code.
var kinds = map[int]string{-32800: "deadline", -32603: "host_error", -32601: "unsupported"}

// failure is the line of an error with our refusal in its data.
func failure(id []byte, code int, why string) []byte {
	return reply(id, "error", encoded(map[string]any{"code": code, "message": why,
		"data": map[string]string{"kind": cmp.Or(kinds[code], "bad_request"), "error": why}}))
}

// reply is the line of an answer.
func reply(id []byte, as string, value []byte) []byte {
	return append(ndjson.Reply(id, as, value), '\n')
}

// request is the line of a request, or without an id of a notification.
func request(id []byte, method string, params []byte) []byte {
	if id != nil {
		id = fmt.Appendf(nil, `"id":%s,`, id)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0",%s"method":"%s","params":%s}`+"\n", id, method, params)
}

// encoded gives v as JSON, which can't fail for the values of this package.
func encoded(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // strings, numbers, and maps and lists of them
	}
	return bytes.TrimSpace(b.Bytes())
}

// offer is initialize with the file methods among the capabilities, and without terminals that are
// refused.
func (p *Proxy) offer(m message) []byte {
	var is struct {
		Capabilities struct {
			FS struct {
				Reads  json.RawMessage `json:"readTextFile"`
				Writes json.RawMessage `json:"writeTextFile"`
			} `json:"fs"`
		} `json:"clientCapabilities"`
	}
	_ = json.Unmarshal(m.params, &is) // params of another form offer nothing
	p.mu.Lock()
	p.hello = string(m.id)
	p.gives = string(is.Capabilities.FS.Reads) == "true"
	p.takes = string(is.Capabilities.FS.Writes) == "true"
	p.mu.Unlock()
	parts, _ := pick(m.params, []string{"clientCapabilities"})
	able := parts[0]
	parts, _ = pick(able, []string{"fs"})
	fs := parts[0]
	fs = with(fs, "writeTextFile", fmt.Appendf(nil, "%t", p.files.Offers(writeFile)))
	fs = with(fs, "readTextFile", fmt.Appendf(nil, "%t", p.files.Offers(readFile)))
	if able = with(able, "fs", fs); p.o.Terminal == "refuse" {
		able = with(able, "terminal", []byte("false"))
	}
	return append(with(m.line, "params", with(m.params, "clientCapabilities", able)), '\n')
}

// carryOut runs a request of the agent aside and answers it; one for a terminal that may run goes
// on to the editor, with its approved parts alone.
func (p *Proxy) carryOut(ctx context.Context, m message) {
	if m.id == nil {
		_ = p.refuse(m, 0, "it has no id, so nobody could be told what came of it")
		return
	}
	s, err := p.of(m.params)
	if err == nil { // the line counts as a hook, or the editor, would read it
		_, err = pick(m.params, []string{"path", "content", "line", "limit", "command", "args",
			"env", "cwd", "outputByteLimit", "sessionId"})
	}
	if err != nil {
		_ = p.refuse(m, -32602, err.Error()) // else it has gone
		return
	}
	p.room <- struct{}{}
	before, done := p.turn(m, s)
	ctx, cancel := context.WithCancel(ctx)
	p.running.put(string(m.id), cancel)
	p.calls.Go(func() {
		defer func() {
			p.running.take(string(m.id))
			cancel()
			done()
			<-p.room
		}()
		if before != nil {
			<-before
		}
		p.run(ctx, m, s)
	})
}

func (p *Proxy) run(ctx context.Context, m message, s *session) {
	a, err := p.files.Call(ctx, s.call(m.method, m.params))
	var content []byte
	if err == nil {
		content, err = a.JSON(true)
	}
	to, line := &p.agent, []byte(nil)
	switch {
	case err != nil:
		p.o.Tell("%s: %v", m.method, err)
		line = failure(m.id, -32603, "the guard is broken")
	case a.Refused() && ctx.Err() != nil:
		line = failure(m.id, -32800, "Request cancelled")
	case a.Refused():
		line = reply(m.id, "error", content)
	case m.method == runProgram:
		to, line = &p.editor, request(m.id, runProgram, content)
	default:
		line = reply(m.id, "result", content)
	}
	_ = to.send(line) // else it has gone
}

// turn has calls of one path follow each other. before ends when it is this one's turn; done ends
// it.
func (p *Proxy) turn(m message, s *session) (before <-chan struct{}, done func()) {
	var is struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal(m.params, &is) // the dialect says what is wrong with it
	key, mine := [2]string{s.history(), is.Path}, make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	before = p.turns[key]
	p.turns[key] = mine
	return before, func() {
		close(mine)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.turns[key] == mine {
			delete(p.turns, key)
		}
	}
}

// cancels ends the call that the agent takes back, if it is one that we carry out.
func (p *Proxy) cancels(m message) bool {
	parts, err := pick(m.params, []string{"requestId"})
	if err != nil || parts[0] == nil {
		return false
	}
	cancel := p.running.get(string(parts[0]))
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}
