package engine

import "context"

// lock takes the locks of some places for one change. Who waits longer than lockWait behind a process that does not let go is told who it
// is, and changes nothing. holder is what others are told of us meanwhile: the tool, never whose session.
func (e *Engine) lock(ctx context.Context, holder string, keys []string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, e.lockWait)
	defer cancel()
	return e.locks.For(holder).Lock(ctx, keys...)
}
