package approvals

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
)

// client is one connection.
type client struct {
	queue  *queue.Queue
	conn   *websocket.Conn
	by     string
	logger *slog.Logger
	// patience is how long it may take to take a message.
	patience time.Duration
	seq      int             // of the events
	known    map[string]bool // the questions that it was told of
	alerts   chan Alert      // that it is to be told of
}

// show makes a question one for the wire, with at most so many bytes of its diff.
func (c *client) show(e queue.Entry, most int) request {
	q := &e.Question
	r := request{
		RequestID: e.ID, Command: command(q), SessionKey: approval.Escape(q.Session, false),
		Tool: approval.Escape(q.Tool, false), Principal: approval.Escape(q.Principal, false),
		Warnings: escaped(q.Warnings), Expires: q.Expires,
	}
	// A list of paths is as long as a diff may be.
	size := 0
	for _, p := range q.Paths {
		if size += len(p); size > most {
			break
		}
		r.Paths = append(r.Paths, approval.Escape(p, false))
	}
	shown := q.Diff
	if len(shown) > most {
		shown = shown[:strings.LastIndexByte(shown[:most], '\n')+1]
		r.DiffCut = approval.Unseen(*q, strings.Count(shown, "\n"))
	}
	r.Diff = approval.Escape(shown, true)
	if r.DiffCut == 0 && len(r.Paths) == len(q.Paths) {
		_ = c.queue.Saw(e.ID, operator(c.by)) // else approvals.show has to show it
	}
	return r
}

// send writes one message. A client that does not take it in time is dropped.
func (c *client) send(ctx context.Context, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, text)
}

func (c *client) event(ctx context.Context, name string, payload any) error {
	c.seq++
	return c.send(ctx, event{"event", name, payload, c.seq})
}

// watch tells of questions that come, and sees to it that somebody is there.
func (c *client) watch(ctx context.Context) {
	look, ping := time.NewTicker(lookEvery), time.NewTicker(pingEvery)
	defer look.Stop()
	defer ping.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			err = c.look(ctx)
		case a := <-c.alerts:
			err = c.event(ctx, alerted, a)
		case <-ping.C:
			pong, cancel := context.WithTimeout(ctx, c.patience)
			err = c.conn.Ping(pong)
			cancel()
			if err == nil {
				err = c.event(ctx, "tick", map[string]any{"ts": time.Now().UnixMilli()})
			}
		}
		if err != nil {
			c.logger.Debug("a connection of approvals ends", "by", c.by, "err", err)
			return
		}
	}
}

// look sends what has come since the last look.
func (c *client) look(ctx context.Context) error {
	ids, err := c.queue.Unanswered()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, id := range ids {
		if known[id] = true; c.known[id] {
			continue
		}
		e, err := c.queue.Get(id)
		if err != nil {
			known[id] = e.State != queue.Pending // else it is being written
			continue
		}
		if e.State == queue.Pending {
			if err := c.event(ctx, requested, c.show(e, maxDiff)); err != nil {
				return err
			}
		}
	}
	c.known = known
	return nil
}

// read carries out requests, one after the other. The error is that of a client that speaks
// something else.
func (c *client) read(ctx context.Context) error {
	for {
		kind, text, err := c.conn.Read(ctx)
		if err != nil {
			return nil // it went away, or sent too much, which it was told
		}
		var f frame
		if kind != websocket.MessageText || json.Unmarshal(text, &f) != nil || f.Type == "" {
			return errors.New("a frame is a JSON object with a type")
		}
		if f.Type != "req" {
			continue // we ask nothing, and take no events
		}
		payload, err := c.call(ctx, f)
		r := response{Type: "res", ID: f.ID, OK: err == nil, Payload: payload}
		if err != nil {
			r.Payload, r.Error = nil, c.wireError(f.Method, err)
		}
		if c.send(ctx, r) != nil {
			return nil
		}
	}
}

// wireError is an error as the client hears it.
func (c *client) wireError(method string, err error) *wireError {
	if e, ok := errors.AsType[*wireError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return &wireError{codes[e.code], e.what}
	}
	c.logger.Error("a request failed", "method", method, "by", c.by, "err", err)
	return &wireError{"INTERNAL", "internal error; the server's log says more"}
}

func (c *client) call(ctx context.Context, f frame) (any, error) {
	methods := Methods(c.queue)
	switch m := methods[f.Method]; {
	case m != nil:
		return m(ctx, c.by, f.Params)
	case f.Method == "exec.approval.request":
		return c.list(f.Params)
	case f.Method == "exec.approval.resolve":
		return c.resolve(f.Params)
	case f.Method == "connect":
		return c.hello(f.Params, slices.Sorted(maps.Keys(methods)))
	}
	return nil, &wireError{"UNKNOWN_METHOD", "there is no such method"}
}

func (c *client) list(params json.RawMessage) (any, error) {
	var p struct {
		SessionKey *string `json:"sessionKey"`
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		return nil, &wireError{invalidRequest, "sessionKey is a string"}
	}
	entries, err := c.queue.List(false)
	if err != nil {
		return nil, err
	}
	type listed struct {
		ID         string `json:"id"`
		SessionKey string `json:"session_key"` // spelled so there
		request
	}
	ids, requests := []string{}, []listed{}
	for _, e := range entries {
		if p.SessionKey == nil || *p.SessionKey == e.Question.Session {
			if e, err = c.queue.Get(e.ID); err != nil || e.State != queue.Pending {
				continue // it is over by now
			}
			r := c.show(e, maxListedDiff)
			ids, requests = append(ids, e.ID), append(requests, listed{e.ID, r.SessionKey, r})
		}
	}
	return map[string]any{"pending": ids, "requests": requests}, nil
}

func (c *client) resolve(params json.RawMessage) (any, error) {
	var p struct {
		RequestID string `json:"requestId"`
		Decision  string `json:"decision"`
		Reason    string `json:"reason"` // ours, as unseen; the command that Moltis would allow for good is ignored
		Unseen    bool   `json:"unseen"`
	}
	if json.Unmarshal(params, &p) != nil {
		return nil, &wireError{invalidRequest, "requestId and decision are strings, unseen is true or false"}
	}
	d, who := approval.Approved, operator(c.by)
	who.Unseen = p.Unseen
	switch {
	case p.Decision == "denied":
		d = approval.Denied
	case p.Decision != "approved":
		return nil, &wireError{invalidRequest, `decision is "approved" or "denied"`}
	}
	_, err := c.queue.Answer(p.RequestID, d, who, p.Reason)
	if errors.Is(err, queue.ErrNotFound) {
		c.logger.Warn("an answer to a question that is not there", "id", p.RequestID, "by", c.by)
		return map[string]any{"ok": true, "warning": "there is no such question"}, nil
	}
	if err != nil {
		return nil, told(err)
	}
	return map[string]any{"ok": true}, nil
}

// hello answers connect, in the older form and the newer one.
func (c *client) hello(params json.RawMessage, methods []string) (any, error) {
	var p struct {
		Protocol struct {
			Min, Max int
		}
		MinProtocol, MaxProtocol int
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		return nil, &wireError{invalidRequest, "connect names its protocols"}
	}
	low, high := max(p.Protocol.Min, p.MinProtocol), max(p.Protocol.Max, p.MaxProtocol)
	if low > newest || high < oldest {
		return nil, &wireError{"PROTOCOL_ERROR",
			fmt.Sprintf("the protocols are %d to %d", oldest, newest)}
	}
	return map[string]any{
		"type": "hello-ok", "protocol": min(high, newest),
		"server": map[string]any{"version": "moltis-fs", "connId": rand.Text()},
		"features": map[string]any{
			"methods": append(methods, "connect", "exec.approval.request", "exec.approval.resolve"),
			"events":  []string{requested, alerted, "tick"},
		},
		"snapshot": map[string]any{},
		"policy": map[string]any{"maxPayload": maxFrame, "maxBufferedBytes": maxFrame,
			"tickIntervalMs": pingEvery.Milliseconds()},
	}, nil
}
