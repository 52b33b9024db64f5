package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
)

// From this revision on a server may not send requests. A call that needs an answer returns with
// the question instead, and the client sends the call again with the answer.
//
// The call itself is not made twice: it is held in the middle of its chain, where nothing is
// locked, and goes on when the answer comes. So there is one question, one record in the audit log,
// and what was approved is what runs. A held call ends with the approval timeout, even if its
// client never returns.
const statelessVersion = "2026-07-28"

// asked is the one input that we ever request.
const asked = "approval"

// held are the calls that wait for their client, by an unguessable handle good for one use.
type held struct {
	mu    sync.Mutex
	calls map[string]*heldCall
	group sync.WaitGroup
}

// heldCall is one call on its way. It is its own approver.
type heldCall struct {
	granted  func(approval.Question) (approval.Answer, bool)
	of       [sha256.Size]byte
	cancel   context.CancelFunc
	put      put          // the question that the client has
	at       time.Time    // since when
	question chan put     // unbuffered: taken by the request that is being answered
	outcome  chan outcome // buffered: one, at the end
	progress *dialect.Progress
}

// put is a question of a call, which may have several at the same time, and where its answer goes.
type put struct {
	approval.Question
	answer chan approval.Answer // buffered: nobody may wait for it any more
}

// Ask hands the question to the request under way and waits for the one that brings the answer.
func (h *heldCall) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	if a, ok := h.granted(q); ok {
		return a, nil
	}
	p := put{q, make(chan approval.Answer, 1)}
	select {
	case h.question <- p:
	case <-ctx.Done():
		return ended(ctx)
	}
	select {
	case a := <-p.answer:
		return a, nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func ended(ctx context.Context) (approval.Answer, error) {
	if ctx.Err() == context.DeadlineExceeded {
		return approval.Answer{Decision: approval.TimedOut}, nil
	}
	return approval.Answer{}, ctx.Err()
}

// hold starts a call that can outlive its request.
func (s *server) hold(ctx context.Context, req *sdk.CallToolRequest, c dialect.Call) (*sdk.CallToolResult, error) {
	own, cancel := context.WithCancel(s.done)
	h := &heldCall{granted: s.granted, of: fingerprint(c), cancel: cancel,
		question: make(chan put), outcome: make(chan outcome, 1), progress: c.Progress}
	c.Approver = h
	s.held.group.Go(func() {
		defer cancel()
		h.outcome <- s.run(own, c)
		s.held.drop(h)
	})
	return s.follow(ctx, req, h)
}

// follow waits for a question, the end of the call, or that of the request, which ends the call.
func (s *server) follow(ctx context.Context, req *sdk.CallToolRequest, h *heldCall) (*sdk.CallToolResult, error) {
	defer progress(ctx, req, h.progress)()
	for {
		select {
		case p := <-h.question:
			if a, ok := h.granted(p.Question); ok { // since it waits, by the answer to another one
				p.answer <- a
				continue
			}
			h.put, h.at = p, time.Now()
			form := sdk.InputRequestMap{asked: s.form(p.Question, statelessVersion)}
			return &sdk.CallToolResult{InputRequests: form, Content: []sdk.Content{}, RequestState: s.held.put(h)}, nil
		case o := <-h.outcome:
			return s.answer(req, o)
		case <-ctx.Done():
			h.cancel()
			return s.answer(req, <-h.outcome)
		}
	}
}

// resume brings a held call its answer.
func (s *server) resume(ctx context.Context, req *sdk.CallToolRequest, c dialect.Call) (*sdk.CallToolResult, error) {
	h := s.held.take(req.Params.RequestState)
	if h == nil {
		return s.answer(req, outcome{answer: tooLate{}})
	}
	if h.of != fingerprint(c) {
		h.cancel()
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState belongs to another call; repeat the call that it came from, unchanged"}
	}
	r, _ := req.Params.InputResponses[asked].(*sdk.ElicitResult)
	h.put.answer <- s.decision(h.put.Question, r, time.Since(h.at))
	return s.follow(ctx, req, h)
}

func (h *held) put(c *heldCall) (handle string) {
	handle = rand.Text()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == nil {
		h.calls = map[string]*heldCall{}
	}
	h.calls[handle] = c
	return handle
}

func (h *held) take(handle string) *heldCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.calls[handle]
	delete(h.calls, handle)
	return c
}

// drop forgets a call that has ended.
func (h *held) drop(c *heldCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.calls, func(_ string, other *heldCall) bool { return other == c })
}

// wait lets the calls that are held end.
func (h *held) wait() { h.group.Wait() }
