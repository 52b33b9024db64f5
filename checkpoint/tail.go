package checkpoint

import (
	"cmp"
	"crypto/sha256"

	"moltisfs/checkpoint/blob"
)

// RoleAppended is the role of a file too large to be stored that was only appended to, or cut off
// again where that began: of its two states the larger one begins with the smaller one.
const RoleAppended = "appended"

// SkipAppended is why the content before is not stored: nothing of it goes, or only the tail, which
// is stored.
const SkipAppended = "appended"

// larger is the state of an appended file that has the tail.
func (c *Change) larger() *State {
	if c.Before.Size > c.After.Size {
		return &c.Before
	}
	return &c.After
}

// tailSize is how long the tail is.
func (c *Change) tailSize() int64 {
	if n := c.After.Size - c.Before.Size; n > 0 {
		return n
	}
	return c.Before.Size - c.After.Size
}

// checkTail looks at a change of RoleAppended, and puts its tail where a content has its place: the
// store treats it as one, but for the state that says of it that it is none.
func (c *Change) checkTail(o *Options) (skips []Skip, why string) {
	if c.Role != RoleAppended {
		if c.Tail != nil {
			return nil, "only an appended file has a tail"
		}
		c.Before.Tail, c.After.Tail = "", "" // of a state that was read from the store
		return nil, ""
	}
	s := c.larger()
	switch {
	case c.Before.kind() != File || c.After.kind() != File:
		return nil, "only a file is appended to"
	case c.Before.Hash != "" || c.After.Hash != "" || c.Content != nil || c.AfterContent != nil:
		return nil, "nobody read the whole of an appended file"
	case int64(len(c.Tail)) != c.tailSize() || c.Tail == nil:
		return nil, "the sizes do not differ by the tail"
	}
	c.Before.Tail, c.After.Tail = "", ""
	s.Tail = blob.Hash(sha256.Sum256(c.Tail)).String()
	s.Hash, c.Skipped = s.Tail, SkipAppended
	skip := ""
	switch {
	case o.Exclude != nil && o.Exclude(c.Path):
		skip = SkipExcluded
	case int64(len(c.Tail)) > o.MaxFileBytes:
		skip = SkipTooLarge
	case s == &c.Before:
		c.Content = c.Tail
	default:
		c.AfterContent = c.Tail
	}
	if skip != "" {
		c.Skipped, skips = skip, []Skip{{c.Path, skip, c.tailSize()}}
	}
	return skips, cmp.Or(c.Before.check(nil), c.After.check(nil))
}
