//go:build !rooted

package guardfs

import (
	"context"

	"golang.org/x/sys/unix"
)

// Remove removes the file or symlink there, only if it still is what the caller saw. It takes the name away first,
// then looks at what it has taken, and gives the name back if that is something else: *ConflictError. An error from
// syncing the directory comes when it is removed already.
func (p *Place) Remove(ctx context.Context, before *Before, sync bool) error {
	if err := ctx.Err(); err != nil {
		return p.failed("remove", err)
	}
	dir, err := p.fd.use()
	if err != nil {
		return p.failed("remove", err)
	}
	defer p.fd.done() //nolint:errcheck // Close reports it
	if err := p.look(dir, Remove); err != nil {
		return err
	}
	k := p.fs.kernel
	switch {
	case p.object.Info.Kind == KindAbsent && before != nil && before.Exists:
		return p.conflict(WasRemoved)
	case p.object.Info.Kind == KindAbsent:
		return p.failed("remove", unix.ENOENT)
	case p.object.Info.Kind == KindDir || p.object.Info.Kind == KindOther:
		return &NotRegularError{Path: p.object.Spelled, Kind: k.specialAt(dir, p.base, &p.object.Info)}
	case before == nil || !before.Exists:
		return p.conflict(Appeared)
	}
	trade, err := p.trade(0, before.Hash)
	if err != nil {
		return err
	}
	w := swap{p: p, hold: p.beside(trade), dir: dir, other: dir, out: Found(before), fd: -1}
	if err := w.run(&Published{}); err != nil {
		return err
	}
	if err := p.drop(dir, trade, w.gone.info.ID); err != nil {
		if left := w.backOut(); left != "" {
			return &ConflictError{Path: p.object.Spelled, Why: NotRemoved, Left: left, Err: err}
		}
		return p.failed("remove", err)
	}
	if sync {
		if err := k.syncDir(dir); err != nil {
			return p.failed("sync the removal of", err)
		}
	}
	return nil
}

// RemoveEmptyDir removes the directory there. One that is not empty is ENOTEMPTY.
func (p *Place) RemoveEmptyDir(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return p.failed("rmdir", err)
	}
	return p.change("rmdir", Remove, func(dir int) error {
		return unix.Unlinkat(dir, p.base, unix.AT_REMOVEDIR)
	})
}
