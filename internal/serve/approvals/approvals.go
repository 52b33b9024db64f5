// Package approvals lets operators answer the questions of the queue from afar: by JSON-RPC, and as
// a gateway does over a WebSocket in Moltis' wire form. It opens nothing: it is given a queue, and
// requests that a server has found to be an operator's.
//
// The methods, for JSON-RPC and for the WebSocket:
//
//	approvals.list    {all?}          → {approvals: […]} without their diffs, oldest first
//	approvals.show    {id}            → {approval, card}: with the diff; card has all of it, escaped
//	approvals.approve {id, reason?, unseen?} → {approval}
//	approvals.deny    {id, reason?}   → {approval}
//
// Their errors have the codes -32602 for wrong parameters, -32001 for who may not answer, -32005
// for an id that is not there and -32006 for a question that is over, or whose diff the operator was
// not shown whole.
//
// Only the queue decides: the first answer counts, wherever it comes from, nobody answers what
// their own principal has asked, and a diff that was not shown whole to an operator is approved by
// them only with unseen, which is on record. A gateway that goes away has answered nothing: the question waits
// until somebody else does, or until it expires.
package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/internal/serve"
)

// The codes.
const (
	codeParams   = serve.CodeParams
	codeDenied   = -32001
	codeNotFound = -32005
	codeOver     = -32006

	codeMethod   = -32601 // these three are for the WebSocket alone
	codeInternal = -32603
	codeProtocol = -32000
)

// Methods are approvals.* over a queue, by name.
func Methods(q *queue.Queue) map[string]serve.Method {
	type answer struct {
		ID     string `json:"id"`
		Reason string `json:"reason,omitempty"`
		Unseen bool   `json:"unseen,omitempty"`
	}
	answers := func(d approval.Decision) serve.Method {
		return taking(func(by string, p *answer) (any, error) {
			who := operator(by)
			who.Unseen = p.Unseen
			e, err := q.Answer(p.ID, d, who, p.Reason)
			e.Question.Diff = ""
			return map[string]any{"approval": e}, err
		})
	}
	return map[string]serve.Method{
		"approvals.list": taking(func(_ string, p *struct {
			All bool `json:"all,omitempty"`
		}) (any, error) {
			list, err := q.List(p.All)
			return map[string]any{"approvals": append([]queue.Entry{}, list...)}, err
		}),
		"approvals.show": taking(func(by string, p *struct {
			ID string `json:"id"`
		}) (any, error) {
			e, err := q.Get(p.ID)
			if err == nil && e.State == queue.Pending {
				err = q.Saw(e.ID, operator(by))
			}
			return map[string]any{"approval": e, "card": approval.Card(e.Question, math.MaxInt)}, err
		}),
		"approvals.approve": answers(approval.Approved),
		"approvals.deny":    answers(approval.Denied),
	}
}

// taking makes a method of a function that takes the parameters P.
func taking[P any](run func(by string, p *P) (any, error)) serve.Method {
	read := serve.Params[P]()
	return func(_ context.Context, by string, params json.RawMessage) (any, error) {
		p, err := read(params)
		if err != nil {
			return nil, err
		}
		result, err := run(by, p)
		if err != nil {
			return nil, asError(err)
		}
		return result, nil
	}
}

// operator gives the record of the answerer; a request without a principal is nobody's.
func operator(principal string) queue.By {
	if principal == "" {
		return queue.By{}
	}
	return queue.By{Name: "operator " + principal, Principal: principal}
}

// asError gives the error err of the queue as the operator hears it.
func asError(err error) error {
	over, late := errors.AsType[*queue.OverError](err)
	switch {
	case late:
		return serve.Wrong(codeOver, "too late: %s", over)
	case errors.Is(err, queue.ErrNotFound):
		return serve.Wrong(codeNotFound, "there is no such question")
	case errors.Is(err, queue.ErrOwn):
		return serve.Wrong(codeDenied, "who asks can't answer: use the token of another principal, or moltis-fs approvals")
	case errors.Is(err, queue.ErrUnseen):
		return serve.Wrong(codeOver, "the diff was not shown whole to you: see approvals.show, or say unseen: true, which is on record")
	case errors.Is(err, queue.ErrReason):
		return serve.Wrong(codeParams, "%s", err)
	}
	return err
}
