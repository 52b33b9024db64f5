//go:build !rooted

package guardfs

import (
	"context"

	"golang.org/x/sys/unix"
)

// RemoveEmptyDir removes the directory there. One that is not empty is ENOTEMPTY.
func (p *Place) RemoveEmptyDir(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return p.failed("rmdir", err)
	}
	return p.change("rmdir", Remove, func(dir int) error {
		return unix.Unlinkat(dir, p.base, unix.AT_REMOVEDIR)
	})
}
