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

// RemoveTree is errors.ErrUnsupported: nothing comes to a trash here.
func (p *Place) RemoveTree(context.Context, string) error {
	return p.failed("remove tree", errors.ErrUnsupported)
}
