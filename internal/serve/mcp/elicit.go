package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/internal/approval"
)

// diffLines is how much of a diff a question carries: more than is read, too little to break a
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

// byItself is how soon an answer comes that no person has given: nobody reads a question in less.
const byItself = time.Second

// unasked is the answer of a client that can ask but has nobody to ask, and says no by itself.
var unasked = approval.Answer{Decision: approval.NobodyToAsk, Reason: "nobody was asked: the client " +
	"answered the question by itself, as clients do that run without a person (headless, in CI); " +
	"have the operator start the server with --approve yes, which leaves it to the client's own " +
	"permissions, or with --approve queue, or set require_approval = false in [tools.fs]"}

// How far an acceptance goes. A change with a warning is always asked about.
const (
	once        = "once"
	thisFile    = "file"
	thisSession = "session"
)

// granted answers a question that an earlier answer goes far enough for.
func (s *server) granted(q approval.Question) (approval.Answer, bool) {
	g, end := s.grants.Holds(q, time.Now())
	by := "elicitation, for " + g.Until(end)
	return approval.Answer{Decision: approval.Approved, By: by}, g != approval.Once
}

// A choice is one of the answers that a form offers.
type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// form is a question as a client shows it: to accept it is to approve. The user may say how far that
// goes; and has to, if the diff is too long to be shown, that it is approved unseen.
func (s *server) form(q approval.Question, revision string) *sdk.ElicitParams {
	now := time.Now()
	properties := map[string]any{}
	if len(q.Warnings) == 0 {
		properties["allow"] = choices(s.choices(q, now), revision)
	}
	if n := approval.Unseen(q, diffLines); n > 0 {
		properties["unseen"] = map[string]any{"type": "boolean", "default": false,
			"title": fmt.Sprintf("Allow it with %d lines of the diff unseen", n)}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		panic(err) // strings and maps of them
	}
	return &sdk.ElicitParams{Mode: "form", Message: message(q, s.o.Root, now),
		RequestedSchema: json.RawMessage(schema)}
}

// choices are how far a yes may go, each with its end.
func (s *server) choices(q approval.Question, now time.Time) []choice {
	until := fmt.Sprintf(" in this session, until %s (%s)", clock(now.Add(approval.GrantFor)),
		span(approval.GrantFor))
	file := "These files"
	if len(q.Paths) == 1 {
		file = approval.Escape(below(s.o.Root, q.Paths[0]), false)
	}
	return []choice{{once, "This change only"}, {thisFile, file + until},
		{thisSession, "Every change" + until}}
}

// choices as a field of a form. Before 2025-11-25 titles have their own list.
func choices(all []choice, revision string) map[string]any {
	field := map[string]any{"type": "string", "title": "Allow", "default": once}
	if revision >= "2025-11-25" {
		field["oneOf"] = all
		return field
	}
	var values, names []string
	for _, c := range all {
		values, names = append(values, c.Const), append(names, c.Title)
	}
	field["enum"], field["enumNames"] = values, names
	return field
}

// offered are the words that the field "allow" takes. What carries a warning is allowed once.
func offered(q approval.Question) map[string]approval.Grant {
	if len(q.Warnings) > 0 {
		return map[string]approval.Grant{once: approval.Once}
	}
	return map[string]approval.Grant{once: approval.Once, thisFile: approval.ThisFile,
		thisSession: approval.ThisSession}
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
	unseen, more := approval.Unseen(q, diffLines), maps.Clone(r.Content)
	word, said := more["allow"]
	if !said {
		word = once
	}
	a := approval.Chosen(by, offered(q), word)
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
		a.By += ", for " + a.Grant.Until(s.grants.Add(q, a.Grant, time.Now()))
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
// that does not fit, and with it what the user has said.
func send(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		form, _ := ctx.Value(formKey{}).(*sdk.ElicitParams)
		if r, ok := req.(*sdk.ServerRequest[sdk.Params]); ok && form != nil {
			req = &sdk.ServerRequest[sdk.Params]{Session: r.Session, Params: form}
		}
		return next(ctx, method, req)
	}
}
