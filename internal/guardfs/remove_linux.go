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
		return p.conflict("it was removed")
	case p.object.Info.Kind == KindAbsent:
		return p.failed("remove", unix.ENOENT)
	case p.object.Info.Kind == KindDir || p.object.Info.Kind == KindOther:
		return &NotRegularError{Path: p.object.Spelled, Kind: k.specialAt(dir, p.base, &p.object.Info)}
	case before == nil || !before.Exists:
		return p.conflict("something appeared there")
	}
	if err := p.still(dir); err != nil {
		return err
	}
	held, why, err := k.hold(dir, p.base, before) // right before the rename: what is swapped in after it has to be put back
	if err != nil {
		return p.failed("compare", err)
	}
	if why != "" {
		return p.conflict(why)
	}
	defer k.close(held)
	trade, err := p.trade(0, before.Hash)
	if err != nil {
		return err
	}
	err = k.rename(dir, p.base, trade, unix.RENAME_NOREPLACE)
	if noFlags(err) {
		err = k.rename(dir, p.base, trade, 0)
	}
	if err != nil {
		if _, lerr := k.lstat(dir, trade); lerr != nil {
			if err == unix.ENOENT {
				return p.conflict("it was removed")
			}
			return p.failed("remove", err)
		}
	}
	why, out, err := k.differs(dir, trade, before, held)
	if err == nil && why == "" {
		_, why = p.moved(dir)
	}
	if err != nil || why != "" {
		return p.restoreName(dir, trade, why, err)
	}
	if err := p.drop(dir, trade, out.info.ID); err != nil {
		return p.restoreName(dir, trade, "", err)
	}
	if sync {
		if err := k.syncDir(dir); err != nil {
			return p.failed("sync the removal of", err)
		}
	}
	return nil
}

// restoreName undoes the first step of a removal, and tells why.
func (p *Place) restoreName(dir int, trade, why string, cause error) error {
	k := p.fs.kernel
	var err error
	for range 3 {
		err = k.rename(dir, trade, p.base, unix.RENAME_NOREPLACE)
		if noFlags(err) {
			err = k.publishName(dir, trade, p.base)
		}
		if err == nil || err == unix.EEXIST || err == unix.ENOENT {
			break
		}
	}
	kept := ""
	if err != nil {
		if _, lerr := k.lstat(dir, trade); lerr == nil {
			kept = join(p.dir.True, p.keep(dir, trade))
		}
	}
	switch {
	case kept != "" && cause != nil:
		return p.conflict("it could not be removed (" + cause.Error() + ") and is kept as " + kept)
	case kept != "":
		return p.conflict(why + "; what could not be put back is kept as " + kept)
	case cause != nil:
		return p.failed("remove", cause)
	}
	return p.conflict(why)
}

// publishName is rename without replacing, for file systems that know it only as two steps.
func (k *kernel) publishName(dir int, from, to string) error {
	err := k.do("link", func() error { return unix.Linkat(dir, from, dir, to, 0) })
	if err == nil {
		return k.unlink(dir, from, 0)
	}
	return err
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
