package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
)

// diffLines bounds the diff of a question: more than is read, too little to break a
// client.
const diffLines = 1000

// nobody is asked when the client can't ask its user: the refusal comes at once, with a hint.
func nobody() approval.Approver {
	return approval.Nobody([]string{
		"use an MCP client that supports elicitation",
		"have the operator start the server with --approve queue, terminal or yes",
		"have the operator set require_approval = false in [tools.fs]",
	})
}

// byItself bounds the time of an answer that no person has given: nobody reads a question in less.
const byItself = time.Second

// unasked is the answer of a client that can ask but has nobody to ask, and says no by itself.
var unasked = approval.Answer{Decision: approval.NobodyToAsk, Reason: "nobody was asked: the client " +
	"answered the question by itself, as clients do that run without a person (headless, in CI); " +
	"have the operator start the server with --approve yes, which leaves it to the client's own " +
	"permissions, or with --approve queue, or set require_approval = false in [tools.fs]"}

// granted answers a question that an earlier answer goes far enough for.
func (s *server) granted(q approval.Question) (approval.Answer, bool) {
	g, end := s.grants.Holds(q, time.Now())
	by := "elicitation, for " + g.Until(end)
	return approval.Answer{Decision: approval.Approved, By: by}, g != approval.Once
}

// form is a question as a client shows it: to accept it is to approve. The user may say how far that
// goes; and has to, if the diff is too long to be shown, that it is approved unseen.
func (s *server) form(q approval.Question, revision string) *sdk.ElicitParams {
	properties := map[string]any{}
	if len(q.Warnings) == 0 {
		properties["allow"] = choices(approval.Choices(q), revision)
	}
	if n := approval.Unseen(q, diffLines); n > 0 {
		properties["unseen"] = map[string]any{"type": "boolean", "default": false,
			"title": fmt.Sprintf("Allow it with %d lines of the diff unseen", n)}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		panic(err) // strings and maps of them
	}
	return &sdk.ElicitParams{Mode: "form", Message: message(q),
		RequestedSchema: json.RawMessage(schema)}
}

// choices as a field of a form. Before 2025-11-25 titles have their own list.
func choices(all []approval.Choice, revision string) map[string]any {
	field := map[string]any{"type": "string", "title": "Allow", "default": all[0].Word}
	if revision >= "2025-11-25" {
		var titled []map[string]string
		for _, c := range all {
			titled = append(titled, map[string]string{"const": c.Word, "title": c.Title})
		}
		field["oneOf"] = titled
		return field
	}
	var words, titles []string
	for _, c := range all {
		words, titles = append(words, c.Word), append(titles, c.Title)
	}
	field["enum"], field["enumNames"] = words, titles
	return field
}

// decision makes an answer of the filled form r. Only "accept" approves, and only with values that the form
// offered: nobody knows the meaning of a field that it did not have, or of a value that it did not
// name. A field that is left out has its default.
func (s *server) decision(q approval.Question, r *sdk.ElicitResult, took time.Duration) approval.Answer {
	const by = "elicitation"
	no := approval.Answer{By: by}
	if r == nil || r.Action != "accept" {
		switch {
		case took < byItself:
			return unasked
		case r != nil && r.Action == "cancel":
			no.Reason = "the question was dismissed; where no person did that, have the operator start the " +
				"server with --approve yes"
		}
		return no
	}
	offered, unseen, more := approval.Choices(q), approval.Unseen(q, diffLines), maps.Clone(r.Content)
	word, said := more["allow"]
	if !said {
		word = offered[0].Word
	}
	a := approval.Chosen(by, offered, word)
	_, isBool := more["unseen"].(bool)
	maps.DeleteFunc(more, func(field string, _ any) bool { return field == "allow" || field == "unseen" && isBool })
	switch {
	case a.Decision != approval.Approved:
		return a
	case len(more) > 0:
		return approval.Chosen(by, nil, more)
	case unseen > 0 && r.Content["unseen"] != true:
		no.Reason = "the diff is too long to be shown whole, and was not approved unseen; make smaller changes"
		return no
	case unseen > 0:
		a.By += approval.UnseenBy(unseen)
	}
	if a.Grant != approval.Once {
		a.By += s.grants.Note(q, a.Grant)
	}
	return a
}

// byElicitation asks a client of the revisions with a handshake: by a request, while its call
// waits.
type byElicitation struct {
	server  *server
	session *sdk.ServerSession
}

func (e *byElicitation) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	if a, ok := e.server.granted(q); ok {
		return a, nil
	}
	revision := ""
	if p := e.session.InitializeParams(); p != nil {
		revision = p.ProtocolVersion
	}
	asked, form := time.Now(), e.server.form(q, revision)
	r, err := e.session.Elicit(context.WithValue(ctx, formKey{}, form),
		&sdk.ElicitParams{Mode: form.Mode, Message: form.Message})
	if a, over := approval.ContextAnswer(ctx); over {
		return a, nil
	}
	if _, said := errors.AsType[*jsonrpc.Error](err); said {
		// A client that says it can ask and then fails is no better than one that can't.
		return nobody().Ask(ctx, q)
	}
	if err != nil {
		return approval.Answer{By: "elicitation", Reason: "the client's answer can't be read"}, nil
	}
	return e.server.decision(q, r, time.Since(asked)), nil
}

// formKey is the key of the form of a request, in its context.
type formKey struct{}

// send puts the form into its request, which the SDK has without it: it would throw away an answer
// that does not fit, and with it the user's words.
func send(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		form, _ := ctx.Value(formKey{}).(*sdk.ElicitParams)
		if r, ok := req.(*sdk.ServerRequest[sdk.Params]); ok && form != nil {
			req = &sdk.ServerRequest[sdk.Params]{Session: r.Session, Params: form}
		}
		return next(ctx, method, req)
	}
}

// message is a question for clients that show three lines of it, as Claude Code does: what happens,
// and the first lines that go and come. Other clients show all of it: the whole diff, the session and the principal.
func message(q approval.Question) string {
	var b strings.Builder
	paths := fmt.Sprintf("%d paths", len(q.Paths))
	if len(q.Paths) == 1 {
		paths = approval.Escape(q.Paths[0], false)
	}
	fmt.Fprintf(&b, "%s %s +%d −%d", approval.Escape(q.Tool, false), paths, q.Added, q.Removed)
	switch {
	case len(q.Warnings) > 0:
		b.WriteString(" (WARNING: " + approval.Escape(q.Warnings[0], false) + ")")
	case len(q.New) == 1:
		b.WriteString(" (NEW FILE)")
	case len(q.New) > 1:
		fmt.Fprintf(&b, " (%d NEW FILES)", len(q.New))
	}
	b.WriteByte('\n')
	for _, l := range firstLines(q.Diff) {
		b.WriteString(l + "\n")
	}
	b.WriteByte('\n')
	if len(q.Paths) > 1 {
		for _, p := range q.Paths {
			b.WriteString("  " + approval.Escape(p, false) + "\n")
		}
	}
	b.WriteString(approval.Details(q, diffLines))
	b.WriteString("Accept to allow this change.")
	if !q.Expires.IsZero() {
		fmt.Fprintf(&b, " The question expires at %s.", q.Expires.Local().Format("15:04:05"))
	}
	if q.Session != "" || q.Principal != "" {
		fmt.Fprintf(&b, "\nsession %s, principal %s", approval.Escape(q.Session, false),
			approval.Escape(q.Principal, false))
	}
	return b.String()
}

// firstLines are the first removed and the first added line of a diff, or two of a kind where there
// is no other. Each fits a line of a terminal.
func firstLines(diff string) (out []string) {
	var minus, plus []string
	for kind, l := range approval.DiffLines(diff) {
		switch kind {
		case '-':
			minus = append(minus, l)
		case '+':
			plus = append(plus, l)
		}
		if len(minus) > 0 && len(plus) > 0 {
			break
		}
	}
	switch {
	case len(minus) == 0:
		out = plus[:min(2, len(plus))]
	case len(plus) == 0:
		out = minus[:min(2, len(minus))]
	default:
		out = []string{minus[0], plus[0]}
	}
	const width = 76
	for i, l := range out {
		r := []rune(approval.Escape(strings.ReplaceAll(l, "\t", "    "), false))
		if len(r) > width {
			r = append(r[:width-1], '…')
		}
		out[i] = string(r)
	}
	return out
}

// From this revision on a server may not send requests. A call that needs an answer returns with
// the question instead, and the client sends the call again with the answer.
//
// The call itself is not made twice: it is held in the middle of its chain, where nothing is
// locked, and goes on when the answer comes. So there is one question, one record in the audit log,
// and the approved change runs. A held call ends with the approval timeout, even if its
// client never returns.
const statelessVersion = "2026-07-28"

// asked is the one input that we ever request.
const asked = "approval"

// held are the calls that wait for their client, by an unguessable handle good for one answer.
type held struct {
	calls sync.Map // of string to *heldCall
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
		select {
		case a := <-p.answer:
			return a, nil
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	a, _ := approval.ContextAnswer(ctx)
	return a, nil
}

// hold starts a call that can outlive its request.
func (s *server) hold(ctx context.Context, req *sdk.CallToolRequest, c dialect.Call) (*sdk.CallToolResult, error) {
	own, cancel := context.WithCancel(s.done)
	h := &heldCall{granted: s.granted, of: fingerprint(c), cancel: cancel,
		question: make(chan put), outcome: make(chan outcome, 1), progress: c.Progress}
	c.Approver = h
	s.held.group.Go(func() {
		defer cancel()
		h.outcome <- s.run(own, s.caller(req.Extra), c)
		s.held.calls.Range(func(handle, other any) bool {
			if other == h {
				s.held.calls.Delete(handle)
			}
			return true
		})
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
			form, handle := sdk.InputRequestMap{asked: s.form(p.Question, statelessVersion)}, rand.Text()
			s.held.calls.Store(handle, h)
			return &sdk.CallToolResult{InputRequests: form, Content: []sdk.Content{}, RequestState: handle}, nil
		case o := <-h.outcome:
			return s.answer(req, o)
		case <-ctx.Done():
			h.cancel()
			return s.answer(req, <-h.outcome)
		}
	}
}

// resume brings a held call its answer. A request of somebody else, or for something else, leaves it as it is.
func (s *server) resume(ctx context.Context, req *sdk.CallToolRequest, c dialect.Call) (*sdk.CallToolResult, error) {
	found, ok := s.held.calls.Load(req.Params.RequestState)
	if h, _ := found.(*heldCall); ok && h.of != fingerprint(c) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState belongs to another call; repeat the call that it came from, unchanged"}
	}
	if !s.held.calls.CompareAndDelete(req.Params.RequestState, found) {
		return s.answer(req, outcome{answer: newTooLate()})
	}
	h := found.(*heldCall)
	r, _ := req.Params.InputResponses[asked].(*sdk.ElicitResult)
	h.put.answer <- s.decision(h.put.Question, r, time.Since(h.at))
	return s.follow(ctx, req, h)
}
