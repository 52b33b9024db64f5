package acp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
)

// A session is one of the protocol's.
type session struct {
	p         *Proxy
	cwd, true string         // its working directory, as the editor names it and by its true name
	scope     *dialect.Scope // nil: what the policy opens
	approver  approval.Approver
	known     chan struct{} // closed when the agent has named it

	mu      sync.Mutex
	id      string
	prompts int
	asking  context.Context // ends with the prompt that is cancelled
	drop    context.CancelFunc
}

func (p *Proxy) newSession() *session {
	s := &session{p: p, known: make(chan struct{}), approver: p.o.Approver}
	if s.approver == nil {
		s.approver = approval.RememberIn(&leave{s}, cmp.Or(p.o.Grants, &approval.Grants{}))
	}
	s.asking, s.drop = context.WithCancel(p.gone)
	return s
}

// named gives a session its id.
func (p *Proxy) named(s *session, id string) {
	s.mu.Lock()
	if s.id == "" {
		s.id = id
		close(s.known)
	}
	s.mu.Unlock()
	p.sessions.put(id, s)
}

// of is the session that a message names. One that nobody opened is held by the policy alone, and
// where sessions are confined there is none.
func (p *Proxy) of(params []byte) (*session, error) {
	var is struct {
		ID string `json:"sessionId"`
	}
	if json.Unmarshal(params, &is) != nil || is.ID == "" {
		return nil, errors.New("missing: sessionId")
	}
	if s := p.sessions.get(is.ID); s != nil {
		return s, nil
	}
	if p.o.Confine != nil {
		return nil, errors.New("there is no session " + approval.Escape(is.ID, false))
	}
	s := p.newSession()
	p.named(s, is.ID)
	return s, nil
}

// history names the session whose reads and checkpoints count. An id that can't be a name is told by its hash.
func (s *session) history() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p.o.Session != "" {
		return s.p.o.Session
	}
	name := "acp-" + s.id
	if len(name) > 100 || name != approval.Escape(name, false) {
		sum := sha256.Sum256([]byte(s.id))
		name = "acp-" + hex.EncodeToString(sum[:16])
	}
	return name
}

// call is a call of the session.
func (s *session) call(method string, params []byte) dialect.Call {
	p := s.p
	p.mu.Lock()
	client := p.client
	p.mu.Unlock()
	c := dialect.Call{Principal: p.o.Principal, Session: s.history(), Tool: method, Args: params,
		Approver: s.approver, Scope: s.scope, Client: client}
	s.mu.Lock()
	if s.prompts > 0 {
		c.Turn = fmt.Sprintf("%s-%s-%d", p.o.Run, s.id, s.prompts)
		if len(c.Turn) > 200 {
			c.Turn = fmt.Sprintf("%s-%d", p.o.Run, s.prompts)
		}
	}
	s.mu.Unlock()
	if t := s.texts(); t != nil {
		c.Overlay = t
	}
	return c
}

// opens looks at a request of the editor that may open a session: one that names a working
// directory. It gives the line for the agent, or answers itself.
func (p *Proxy) opens(ctx context.Context, m message) (line []byte) {
	var is struct {
		ID   string   `json:"sessionId"`
		Cwd  *string  `json:"cwd"`
		More []string `json:"additionalDirectories"`
	}
	if json.Unmarshal(m.params, &is) != nil || is.Cwd == nil {
		return m.line // the agent says what is wrong with it
	}
	s := p.newSession()
	s.cwd = *is.Cwd
	if p.o.Confine != nil {
		dirs := append([]string{s.cwd}, is.More...)
		for _, dir := range dirs {
			if why := p.o.Confine(dir); why != "" {
				_ = p.editor.send(failure(m.id, -32602, why)) // else it has gone
				return nil
			}
		}
		s.scope = &dialect.Scope{Readable: dirs, Writable: dirs}
	}
	if p.files.Offers(readFile) {
		c := s.call(readFile, nil)
		c.Overlay = nil
		name, no, err := p.files.Enter(ctx, c, s.cwd)
		if s.true = name; err != nil || no != nil {
			why := encoded(map[string]any{"code": -32603, "message": "the guard is broken"})
			if err != nil {
				p.o.Tell("a session could not be opened: %v", err)
			} else if why, err = no.JSON(true); err != nil {
				return m.line
			}
			_ = p.editor.send(reply(m.id, "error", why)) // else it has gone
			return nil
		}
	}
	line = m.line
	if p.o.Server != nil {
		line = p.lend(m, s)
	}
	if is.ID != "" {
		p.named(s, is.ID)
		return line
	}
	p.opening.put(string(m.id), s)
	return line
}

// lend gives the agent our MCP server for a session, after those of the editor.
func (p *Proxy) lend(m message, s *session) []byte {
	key := rand.Text()
	p.keys.put(key, s)
	parts, _ := pick(m.params, []string{"mcpServers"})
	list := bytes.TrimSpace(parts[0])
	if len(list) < 2 || list[0] != '[' {
		list = []byte("[]")
	}
	ours := encoded(p.o.Server(key))
	if head := bytes.TrimSpace(list[1 : len(list)-1]); len(head) > 0 {
		ours = bytes.Join([][]byte{head, ours}, []byte(","))
	}
	list = []byte("[" + string(ours) + "]")
	return append(with(m.line, "params", with(m.params, "mcpServers", list)), '\n')
}

// Fill makes a call of our MCP server one of the session that the key was given to. It waits until
// the agent has named that.
func (p *Proxy) Fill(ctx context.Context, key string, c *dialect.Call) error {
	s := p.keys.get(key)
	if s == nil {
		return errors.New("there is no such session")
	}
	select {
	case <-s.known:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.gone.Done():
		return errGone
	}
	is := s.call(c.Tool, c.Args)
	c.Principal, c.Session, c.Turn, c.Approver = is.Principal, is.Session, is.Turn, is.Approver
	c.Scope, c.Overlay, c.Client = is.Scope, is.Overlay, is.Client
	return nil
}

// Knows reports whether a key was given to a session.
func (p *Proxy) Knows(key string) bool { return p.keys.get(key) != nil }

// answered looks at an answer of the agent: it may name a session, or itself.
func (p *Proxy) answered(m message) {
	s := p.opening.take(string(m.id))
	p.mu.Lock()
	hello := p.hello == string(m.id)
	if hello {
		p.hello = ""
	}
	p.mu.Unlock()
	if s == nil && !hello {
		return
	}
	var is struct {
		Session string `json:"sessionId"`
		Agent   struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"agentInfo"`
	}
	_ = json.Unmarshal(m.result, &is) // a result of another form names nothing
	if s != nil && is.Session != "" {
		p.named(s, is.Session)
	}
	if hello {
		name := strings.TrimSpace(is.Agent.Name + " " + is.Agent.Version)
		p.mu.Lock()
		p.client = approval.Escape(name[:min(len(name), 100)], false)
		p.mu.Unlock()
	}
}

// prompted begins a turn.
func (p *Proxy) prompted(m message) {
	if s, err := p.of(m.params); err == nil {
		s.mu.Lock()
		s.prompts++
		s.mu.Unlock()
	}
}

// cancelled takes back the questions of a session: its prompt was cancelled.
func (p *Proxy) cancelled(m message) {
	if s, err := p.of(m.params); err == nil {
		s.mu.Lock()
		s.drop()
		s.asking, s.drop = context.WithCancel(p.gone)
		s.mu.Unlock()
	}
}
