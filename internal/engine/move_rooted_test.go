//go:build unix && (!linux || rooted)

package engine_test

import (
	"context"

	"moltisfs/internal/engine"
)

// mover is Move: here it goes by contents in any case.
func (x *tree) mover(bool) func(context.Context, *engine.Call, engine.MoveArgs) (*engine.Done, error) {
	return func(ctx context.Context, c *engine.Call, a engine.MoveArgs) (*engine.Done, error) {
		return c.Move(ctx, a)
	}
}
