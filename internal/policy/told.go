package policy

import (
	"cmp"

	"moltisfs/internal/guardfs"
)

// Told holds the rules for another process, which applies them to a tree that holds nothing of
// ours.
type Told struct {
	Allow, Deny []string
	Only        string // Options.Root
	Work        string // where the work is, if not Only
	Holds       Holds
	Lifted      []string
}

// Over is the policy of t over the tree that free gives, which asks nobody.
func (t Told) Over(free *guardfs.FS) (*Policy, error) {
	classes, err := NewClasses(ClassOptions{Holds: t.Holds, Lifted: t.Lifted,
		Root: cmp.Or(t.Only, t.Work), Canonical: free.Canonical})
	if err != nil {
		return nil, err
	}
	return New(Options{Allow: t.Allow, Deny: t.Deny, Root: t.Only,
		Classes: classes, Canonical: free.Canonical, Identify: Identify(free), Census: Census(free)})
}
