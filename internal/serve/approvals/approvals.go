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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
)

// Error is a fault of a request.
type Error struct {
	code int
	what string
}

func (e *Error) Error() string { return e.what }

// RPCCode is the code of the error in JSON-RPC.
func (e *Error) RPCCode() int { return e.code }

// The codes.
const (
	codeParams   = -32602
	codeDenied   = -32001
	codeNotFound = -32005
	codeOver     = -32006

	codeMethod   = -32601 // these three are for the WebSocket alone
	codeInternal = -32603
	codeProtocol = -32000
)

// A Method carries out one request of an operator; by is their principal.
type Method = func(ctx context.Context, by string, params json.RawMessage) (any, error)

// Methods are approvals.* over a queue, by name.
func Methods(q *queue.Queue) map[string]Method {
	return map[string]Method{
		"approvals.list": func(_ context.Context, _ string, params json.RawMessage) (any, error) {
			var p struct {
				All bool `json:"all"`
			}
			if err := decode(params, &p); err != nil {
				return nil, err
			}
			list, err := q.List(p.All)
			if err != nil {
				return nil, asError(err)
			}
			return map[string]any{"approvals": append([]queue.Entry{}, list...)}, nil
		},
		"approvals.show": func(_ context.Context, by string, params json.RawMessage) (any, error) {
			var p struct {
				ID string `json:"id"`
			}
			if err := decode(params, &p); err != nil {
				return nil, err
			}
			e, err := q.Get(p.ID)
			if err == nil && e.State == queue.Pending {
				err = q.Saw(e.ID, operator(by))
			}
			if err != nil {
				return nil, asError(err)
			}
			return map[string]any{"approval": e, "card": approval.Card(e.Question, math.MaxInt)}, nil
		},
		"approvals.approve": answers(q, approval.Approved),
		"approvals.deny":    answers(q, approval.Denied),
	}
}

func answers(q *queue.Queue, d approval.Decision) Method {
	return func(_ context.Context, by string, params json.RawMessage) (any, error) {
		var p struct {
			ID     string `json:"id"`
			Reason string `json:"reason"`
			Unseen bool   `json:"unseen"`
		}
		if err := decode(params, &p); err != nil {
			return nil, err
		}
		who := operator(by)
		who.Unseen = p.Unseen
		e, err := q.Answer(p.ID, d, who, p.Reason)
		if err != nil {
			return nil, asError(err)
		}
		e.Question.Diff = ""
		return map[string]any{"approval": e}, nil
	}
}

// operator gives the record of the answerer; a request without a principal is nobody's.
func operator(principal string) queue.By {
	if principal == "" {
		return queue.By{}
	}
	return queue.By{Name: "operator " + principal, Principal: principal}
}

// decode takes parameters apart. It is strict: a misspelt one must not be thought to have an effect.
func decode(params json.RawMessage, v any) error {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(params))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is more after the object")
		}
	}
	if err != nil {
		return &Error{codeParams, "wrong parameters: " + err.Error()}
	}
	return nil
}

// asError gives the error err of the queue as the operator hears it.
func asError(err error) error {
	over, late := errors.AsType[*queue.OverError](err)
	switch {
	case late:
		return &Error{codeOver, "too late: " + over.Error()}
	case errors.Is(err, queue.ErrNotFound):
		return &Error{codeNotFound, "there is no such question"}
	case errors.Is(err, queue.ErrOwn):
		return &Error{codeDenied, "who asks can't answer: use the token of another principal, or " +
			"moltis-fs approvals"}
	case errors.Is(err, queue.ErrUnseen):
		return &Error{codeOver, "the diff was not shown whole to you: see approvals.show, or say unseen: true, " +
			"which is on record"}
	case errors.Is(err, queue.ErrReason):
		return &Error{codeParams, err.Error()}
	}
	return err
}
