//go:build !linux || rooted

package guardfs

import (
	"context"
	"errors"
)

// SameMount reports whether p and q are on one mount. Here that can't be told, so nothing can be moved from one to the other.
func (p *Place) SameMount(*Place) (bool, error) { return false, nil }

// CopyUp says what stands at p.
func (p *Place) CopyUp() (Info, error) { return p.object.Info, nil }

// MoveTo is errors.ErrUnsupported: there is no rename between two handles here that replaces nothing.
func (p *Place) MoveTo(context.Context, *Place, string, bool) (moved bool, err error) {
	return false, p.failed("move", errors.ErrUnsupported)
}

// RemoveTree is errors.ErrUnsupported, as MoveTo is: there is nothing to remove.
func (p *Place) RemoveTree(context.Context, string) error {
	return p.failed("remove tree", errors.ErrUnsupported)
}
