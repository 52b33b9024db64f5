//go:build !linux || rooted

package guardfs

import "context"

// SameMount reports whether p and q are on one mount. Here that can't be told, so nothing can be moved from one to the other.
func (p *Place) SameMount(*Place) (bool, error) { return false, nil }

// CopyUp says what stands at p.
func (p *Place) CopyUp() (Info, error) { return p.object.Info, nil }

// removeAll is RemoveTree of what was looked at.
func (p *Place) removeAll(context.Context) error { return p.root.RemoveAll(p.base) }
