package engine

import (
	"context"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// Scope narrows the configuration for one call, to the paths that it may read and change: absolute
// paths, each with all that is below it. A list without a path is nothing at all. What may be
// changed must be readable too. Links in a path are followed anew for each call.
//
// It holds by handle, as the policy does: for links, for names that are not there yet, for what a
// search walks through, and for what a checkpoint's list, diff or restore would name.
type Scope struct{ Readable, Writable []string }

// under is the engine within a scope: the same tree and history, under a stricter judge.
func (e *Engine) under(s *Scope) (*Engine, error) {
	if s == nil || e.whole != e {
		return e, nil
	}
	limits, err := policy.NewScope(s.Readable, s.Writable, e.fs.Canonical)
	if err != nil {
		return nil, err
	}
	return e.judgedBy(limits.Within(e.judge)), nil
}

func (e *Engine) judgedBy(judge guardfs.Judge) *Engine {
	return &Engine{shared: e.shared, fs: e.fs.With(judge), judge: judge, whole: e.whole}
}

// chained is the engine under the scope of a call and the policy chain.
func (e *Engine) chained(ctx context.Context, c *Call) (*Engine, error) {
	in, err := e.under(c.Scope)
	if err != nil || e.chain == nil {
		return in, err
	}
	by := policy.Input{
		Headers: c.Headers, Principal: c.Principal, Session: c.Session, Dialect: c.Dialect,
	}
	c.in.chain = &consulted{chain: e.chain, ctx: ctx, known: map[consultation]error{}, by: by}
	return in.judgedBy(chained{consulted: c.in.chain, rules: in.judge}), nil
}
