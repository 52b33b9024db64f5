package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// carryOut runs a request of the agent aside and answers it; one for a terminal that may run goes
// on to the editor, with what was approved of it alone.
func (p *Proxy) carryOut(ctx context.Context, m message) {
	if m.id == nil {
		_ = p.refuse(m, 0, "it has no id, so nobody could be told what came of it")
		return
	}
	m.line, m.id, m.params = nil, bytes.Clone(m.id), bytes.Clone(m.params)
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
	p.mu.Lock()
	p.running[string(m.id)] = cancel
	p.mu.Unlock()
	p.calls.Go(func() {
		defer func() {
			p.mu.Lock()
			delete(p.running, string(m.id))
			p.mu.Unlock()
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
	if err != nil {
		p.o.Tell("%s: %v", m.method, err)
		_ = p.agent.send(failure(m.id, -32603, "the guard is broken")) // else it has gone
		return
	}
	if a.Refused() && ctx.Err() != nil {
		_ = p.agent.send(failure(m.id, -32800, "Request cancelled")) // else it has gone
		return
	}
	as := "result"
	if a.Refused() {
		as = "error"
	}
	content, err := a.JSON(true)
	if err != nil {
		p.o.Tell("%s: %v", m.method, err)
		_ = p.agent.send(failure(m.id, -32603, "the guard is broken")) // else it has gone
		return
	}
	if m.method == runProgram && !a.Refused() {
		_ = p.editor.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}`+"\n", // else nobody waits for it
			m.id, runProgram, content))
		return
	}
	_ = p.agent.send(reply(m.id, as, content)) // else it has gone
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
	p.mu.Lock()
	defer p.mu.Unlock()
	cancel, ours := p.running[string(parts[0])]
	if ours {
		cancel()
	}
	return ours
}
