package refusal

import (
	gocontext "context"
	"encoding/json"
	"errors"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// Do carries out op for a dialect whose answers are one JSON object each. run gives the object, and refuse the one of a refusal. run may still
// write after the call was left behind, so refuse must not read its results. Hooks see the answers unless op has an Answer of its own.
func Do(ctx gocontext.Context, e *engine.Engine, c *engine.Call, op engine.Operation, run func(gocontext.Context) (any, error),
	refuse func(*engine.Refusal) any) (dialect.Answer, error) {
	out := &dialect.Object{Of: c.Tool}
	op.Run = func(ctx gocontext.Context) error {
		v, err := run(ctx)
		if err == nil {
			out.Content, err = args.Encode(v)
		}
		return err
	}
	op.Refuse = func(_ gocontext.Context, err error) string {
		r := engine.Reason(err)
		if r == nil {
			return ""
		}
		out.Of, out.No = string(r.Code), true
		if out.Content, err = args.Encode(refuse(r)); err != nil {
			return ""
		}
		return out.Of
	}
	if op.Answer == nil {
		op.Answer = func() (json.RawMessage, error) { return out.Content, nil }
		op.Replace = func(raw json.RawMessage) error { out.Content = raw; return nil }
	}
	err := e.Do(ctx, c, op)
	if left, ok := errors.AsType[*engine.LeftBehind](err); ok { // run may still write to out
		content, err := args.Encode(refuse(left.Refusal))
		return &dialect.Object{Of: string(left.Refusal.Code), No: true, Content: content}, err
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
