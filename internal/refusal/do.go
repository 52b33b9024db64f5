package refusal

import (
	gocontext "context"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// Do carries out op for a dialect whose answers are one JSON object each: that of a success is made by run, that of a
// refusal by refuse. An operation that was left behind still runs, so refuse must not read what run writes.
func Do[In any](ctx gocontext.Context, e *engine.Engine, c *engine.Call, op engine.Operation[In, *dialect.Object],
	run func(gocontext.Context, In) (any, error), refuse func(*engine.Refusal) any) (dialect.Answer, error) {
	op.Run = func(ctx gocontext.Context, in In) (*dialect.Object, error) {
		v, err := run(ctx, in)
		if err != nil {
			return nil, err
		}
		content, err := args.Encode(v)
		return &dialect.Object{Of: c.Tool, Content: content}, err
	}
	op.Refuse = func(_ gocontext.Context, _ *engine.Call, _ In, no *engine.Refusal) (*dialect.Object, string) {
		content, err := args.Encode(refuse(no))
		if err != nil {
			return nil, ""
		}
		return &dialect.Object{Of: string(no.Code), No: true, Content: content}, string(no.Code)
	}
	out, err := engine.Do(ctx, e, c, op)
	if err != nil {
		return nil, err
	}
	return out, nil
}
