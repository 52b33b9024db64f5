package checkpoint

import "context"

// RoleTree is the role of a path that was moved as a whole, with all it holds. The store knows what
// it was, not its content.
const RoleTree = "tree"

// trace follows what became of the path from its first change on. Say the session left "b" there,
// and its next change found "c": then somebody else was at it. That is another session, whose
// changes are recorded, or somebody outside, of whom only the gap is. The same holds when the
// newest state of all is not what the session left last. What others changed and took back does not
// count.
func (it *Item) trace(ctx context.Context, h *history, seq int64, principal, session string) error {
	line, err := h.lineage(ctx, it.Path, seq)
	if err != nil {
		return err
	}
	var last *entry // of the session
	others := false // recorded since then
	for i := range line {
		e := &line[i]
		if e.seq != seq && (e.c.Kind == KindExternal ||
			e.c.Principal != principal || e.c.Session != session) {
			others = true
			continue
		}
		it.Own = append(it.Own, idOf(e.seq))
		if last != nil && !it.Foreign {
			if it.Foreign, err = gap(ctx, h, last, e, others); err != nil {
				return err
			}
		}
		last, others = e, false
		it.meta.note(&e.c.Changes[0])
	}
	if others && last != nil &&
		!line[len(line)-1].c.Changes[0].After.Same(last.c.Changes[0].After) {
		it.Foreign = true
	}
	return nil
}

// gap reports whether somebody else's change lies between two changes of one session. others says
// that one is recorded; then what can't be told counts as changed.
func gap(ctx context.Context, h *history, a, b *entry, others bool) (bool, error) {
	left, found := &a.c.Changes[0], &b.c.Changes[0]
	if left.After.Same(found.Before) {
		return false, nil
	}
	if pending(h, a) && left.Before.Same(found.Before) {
		return false, nil // it may never have taken place
	}
	if others {
		return true, nil
	}
	if left.After.maybe(found.Before) || found.Role == RoleTree {
		return false, nil // what is moved as a whole is in the trash: nothing of it is overwritten
	}
	if away, err := h.movedAway(ctx, left.Path, a.seq, b.seq); err != nil || away {
		return false, err
	}
	// The checkpoints that retention took may hold a change of this session.
	return h.whole(ctx, a.seq, b.seq)
}

// maybe reports whether s and o can be the same, as far as they are known. The store has no hash of
// what was purged or moved as a whole, and no target of such a link.
func (s State) maybe(o State) bool {
	if s.kind() != o.kind() {
		return false
	}
	switch s.kind() {
	case File:
		return (s.Hash == "" || o.Hash == "") && s.Size == o.Size
	case Symlink:
		return s.Target == "" || o.Target == ""
	}
	return true
}

// ours holds the changes that a session made to the metadata of a file.
type ours struct {
	mode, owner, xattrs bool
	left                State // by the last of them
}

func (o *ours) note(c *Recorded) {
	b, a := c.Before, c.After
	o.left = a
	if b.kind() != File || a.kind() != File { // it was made anew in between
		o.mode, o.owner, o.xattrs = true, true, true
		return
	}
	if a.bare() || b.bare() {
		return
	}
	o.mode = o.mode || a.Mode != b.Mode
	o.owner = o.owner || a.UID != b.UID || a.GID != b.GID
	o.xattrs = o.xattrs || !sameXattrs(a, b)
}

// SameMetadata compares mode, owner and extended attributes, and nothing else.
func (s State) SameMetadata(o State) bool {
	return s.Mode == o.Mode && s.UID == o.UID && s.GID == o.GID && sameXattrs(s, o)
}

func sameXattrs(s, o State) bool {
	return string(encodeXattrs(s.Xattrs)) == string(encodeXattrs(o.Xattrs))
}

// bare reports that nobody recorded the file's metadata.
func (s State) bare() bool {
	return s.Mode == 0 && s.UID == 0 && s.GID == 0 && len(s.Xattrs) == 0 && s.ModTime.IsZero()
}

// Recorded reports whether somebody recorded what metadata the file had.
func (it *Item) Recorded() bool { return it.Want.kind() == File && !it.Want.bare() }

// Metadata is what a restore makes of the mode, the owner and the extended attributes of the file
// that is there now. What the session's changes made different becomes what it was, unless somebody
// else set it since; the rest stays. A file that is made anew gets all it had. With known false
// nobody recorded what it had, and it gets what a new file gets.
func (it *Item) Metadata(now State) (meta State, known bool) {
	if now.kind() != File {
		return it.Want, !it.Want.bare()
	}
	meta = now
	if it.Want.bare() || it.Want.kind() != File {
		return meta, true
	}
	o := &it.meta
	if o.mode && now.Mode == o.left.Mode {
		meta.Mode = it.Want.Mode
	}
	if o.owner && now.UID == o.left.UID && now.GID == o.left.GID {
		meta.UID, meta.GID = it.Want.UID, it.Want.GID
	}
	if o.xattrs && sameXattrs(now, o.left) {
		meta.Xattrs = it.Want.Xattrs
	}
	return meta, true
}
