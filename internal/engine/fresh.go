package engine

import "moltisfs/internal/session"

// Knowledge is the knowledge that the session has of a file that it is about to change.
type Knowledge struct {
	Tracked bool          // reads are tracked; the rest is meaningless without
	Seen    *session.Seen // nil: never read
	Stale   bool          // read, but the content is another one now
}

// know looks the file up. It judges nothing: fresh and the tools do.
func (e *Engine) know(c *Call, t *Target) (Knowledge, error) {
	b := t.Before
	if e.ledger == nil || t.none() {
		return Knowledge{Tracked: e.ledger != nil}, nil
	}
	s, ok, err := e.ledger.Look(c.key(), b.Info.ID.String(), t.True)
	if err != nil {
		return Knowledge{}, &hostError{"looking up what was read", err}
	}
	if !ok {
		return Knowledge{Tracked: true}, nil
	}
	same := s.Hash == b.Hash || s.Hash == t.twin
	if s.Hash == "" {
		same = s.Stamp == stamp(b.Info, "")
	}
	return Knowledge{Tracked: true, Seen: &s, Stale: !same}, nil
}

// fresh refuses what the session must not change blindly (docs/rulings.md, must
// read). A missing file is always fresh: there was nothing to read.
func (e *Engine) fresh(t *Target) error {
	r := &t.rules
	if want := r.Hash; want != "" && want != t.Before.Hash {
		return Refuse(Unexpected, t.True, HashFacts{Was: want, Hash: t.Before.Hash})
	}
	k := t.Known
	if !k.Tracked || t.none() || r.Read == ReadNone {
		return nil
	}
	switch {
	case k.Seen == nil && e.cfg.MustReadBeforeWrite:
		return Refuse(Unread, t.True, nil)
	case k.Seen == nil:
		return nil
	case k.Stale && r.Read == ReadStale && !e.cfg.MustReadBeforeWrite:
		return nil // an edit that others' changes do not touch says so itself
	case k.Stale:
		return e.Modified(t)
	case r.Read == ReadWhole && !k.Seen.Whole && e.cfg.MustReadBeforeWrite && !r.Meant:
		return Refuse(PartUnread, t.True, k.Seen)
	}
	return nil
}
