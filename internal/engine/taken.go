package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
)

// Taken is a call as the engine takes it, in a dialect that has this name for the tool.
func Taken(in dialect.Call, of, tool string) *Call {
	return &Call{Principal: in.Principal, Session: in.Session, Turn: in.Turn, Dialect: of, Tool: tool,
		Client: Client{Program: in.Client, Approver: in.Approver, Heard: in.Heard, Overlay: in.Overlay,
			Progress: in.Progress, Headers: in.Headers, Unavailable: in.Unavailable},
		Tier: in.Tier, Scope: (*Scope)(in.Scope), ByUser: in.ByUser}
}

// TimeFor gives a call a minute to work in, and as long as an approver may take beside it.
func (e *Engine) TimeFor(changes bool, tier approval.Tier) time.Duration {
	if changes && (e.cfg.RequireApproval || tier == approval.TierAsk) {
		return time.Minute + time.Duration(e.cfg.ApprovalTimeout)
	}
	return time.Minute
}

// OwnTime is for a call that keeps its own time: a search, which has its deadline within, or a change
// that takes as long as it takes. It is what is left to it where nothing answers.
func (e *Engine) OwnTime(changes bool) time.Duration {
	if changes {
		return longest
	}
	return time.Minute + 2*time.Duration(e.cfg.SearchDeadline)
}

// Unknown puts a call on record of a tool that is not there or must not be called, which no tells
// its caller. follows are those of one that is there and denied: the record says so, and nobody else.
func (e *Engine) Unknown(ctx context.Context, c *Call, in dialect.Call, follows []string,
	no error) error {
	c.Tier = ""
	err := e.Do(ctx, c, Operation{
		Unknown: true, Args: in.Args, Follows: follows,
		Decode: func(json.RawMessage) (any, error) { return nil, no },
		Refuse: func(context.Context, error) string { return "unknown_tool" },
	})
	if errors.Is(err, ErrClosed) {
		return err
	}
	return errors.Join(no, err)
}
