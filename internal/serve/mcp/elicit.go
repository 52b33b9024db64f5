package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/approval"
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

// question is the form that a client shows: the card with the diff, and nothing to fill in. To
// accept it is to approve. If the diff is too long, the user has to say that it is approved unseen.
func question(q approval.Question) *sdk.ElicitParams {
	schema := `{"type":"object","properties":{}}`
	if n := approval.Unseen(q, diffLines); n > 0 {
		schema = fmt.Sprintf(`{"type":"object","properties":{"unseen":{"type":"boolean","title":"Allow it with %d lines of the diff unseen","default":false}}}`, n)
	}
	return &sdk.ElicitParams{
		Mode:            "form",
		Message:         approval.Card(q, diffLines) + "Accept to allow this change.",
		RequestedSchema: json.RawMessage(schema),
	}
}

// decision is what the user did with the form. Only accept approves.
func decision(q approval.Question, r *sdk.ElicitResult) approval.Answer {
	unseen := approval.Unseen(q, diffLines)
	switch {
	case r == nil:
	case r.Action == "accept" && unseen > 0 && r.Content["unseen"] != true:
		return approval.Answer{Decision: approval.Denied, By: "elicitation", Reason: "the diff is too long to be shown whole, and was not approved unseen; make smaller changes"}
	case r.Action == "accept" && unseen > 0:
		return approval.Answer{Decision: approval.Approved, By: fmt.Sprintf("elicitation, with %d lines unseen", unseen)}
	case r.Action == "accept":
		return approval.Answer{Decision: approval.Approved, By: "elicitation"}
	case r.Action == "cancel":
		return approval.Answer{Decision: approval.Denied, By: "elicitation", Reason: "the question was dismissed"}
	}
	return approval.Answer{Decision: approval.Denied, By: "elicitation"}
}

// byElicitation asks a client of the revisions with a handshake: by a request, while its call
// waits.
type byElicitation struct {
	session *sdk.ServerSession
	heard   context.Context // ends when the client can't answer any more
}

func (e *byElicitation) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.heard, cancel)()
	r, err := e.session.Elicit(asking, question(q))
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return approval.Answer{Decision: approval.TimedOut}, nil
	case ctx.Err() != nil:
		return approval.Answer{}, ctx.Err()
	case err != nil:
		// A client that says it can ask and then fails is no better than one that can't.
		return nobody().Ask(ctx, q)
	}
	return decision(q, r), nil
}
