//go:build !linux || rooted

package guardfs

import "context"

// SameMount reports whether p and q are on one mount. Here that can't be told, so nothing can be moved from one to the other.
func (p *Place) SameMount(*Place) (bool, error) { return false, nil }

// CopyUp says what stands at p.
func (p *Place) CopyUp() (Info, error) { return p.object.Info, nil }

// RemoveTree removes what stands at p with all it holds, if it is the object that lasting
// (Identity.Lasting) names. The Judge is asked about the top only, so this is for what nobody else
// may touch any more. It follows no link. An error leaves a part.
func (p *Place) RemoveTree(_ context.Context, lasting string) error {
	if err := p.look(Remove); err != nil || p.object.Info.Kind == KindAbsent {
		return err
	}
	if p.object.Info.ID.Lasting() != lasting {
		return p.conflict(Replaced)
	}
	if err := p.root.RemoveAll(p.base); err != nil {
		return p.failed("remove tree", err)
	}
	return nil
}
