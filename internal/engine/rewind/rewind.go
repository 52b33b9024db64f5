// Package rewind says what becomes of each path of a restore: what the store's plan wants, beside
// what is there now. It looks at no tree and changes nothing. States come in. Out comes what a path
// becomes, or why it is skipped. Only old contents are read, from the store.
//
// A Rewind may be used by one goroutine at a time.
package rewind

import (
	"context"
	"errors"

	"moltisfs/checkpoint"
)

// A Rule decides on a path that others changed since its checkpoint.
type Rule string

// The rules.
const (
	Refuse Rule = "refuse" // nothing at all is changed; so is "" meant
	Skip   Rule = "skip"   // that path is left alone
	Force  Rule = "force"  // it is overwritten; its content now is in the restore's own checkpoint
	Merge  Rule = "merge"  // three-way merge; what overlaps is a conflict still
)

// A Why is the reason why something is not done. The zero Why is none.
type Why struct {
	Name string
	Fact any // what there is to say beside the name; nil for most
}

// Of is the reason with its fact.
func (w Why) Of(fact any) Why { return Why{w.Name, fact} }

// The reasons that the history gives.
var (
	ChangedOutside  = Why{Name: "changed_outside"}
	ChangedByOthers = Why{Name: "changed_by_others"}
	LastPurged      = Why{Name: "last_purged"}  // its last content was purged: can't be compared
	LastRemoved     = Why{Name: "last_removed"} // the same, by retention
	SameLines       = Why{Name: "same_lines"}   // later changes touch the lines that are to come back
	Unstored        = Why{Name: "unstored"}     // string: the store's word for it
	JustRemoved     = Why{Name: "just_removed"} // from the store, since the plan was made
)

// A Store has old contents and what each operation did: a *checkpoint.DB.
type Store interface {
	Content(ctx context.Context, hash string) ([]byte, error)
	Get(ctx context.Context, id checkpoint.ID, who checkpoint.Scope) (*checkpoint.Checkpoint, error)
}

// A Rewind is one restore.
type Rewind struct {
	Store     Store
	Plan      *checkpoint.Plan
	Rule      Rule
	KeepTimes bool // files get the modification times that they had
}

// Now describes the object that is at a path.
type Now struct {
	State   checkpoint.State
	Content []byte // of a file
	// Can says what of this metadata the file that is there can be given; nil: all.
	Can func(checkpoint.State) checkpoint.State
}

// Becomes is the decision on a path. At most one of Stays, Blocked and Missing is set.
type Becomes struct {
	Stays   bool // it is as it should be
	Blocked Why  // it is a conflict, or left alone
	Missing Why  // the store does not have what it was

	State   checkpoint.State // kind and target; of a file with Exact its metadata too
	Exact   bool             // else it keeps the metadata that it has, or gets that of a new file
	Content []byte           // of a file
	Merged  bool             // Content is of both sides

	Metadata Metadata
}

// Decide gives the decision on a path. Of several reasons the first counts: it is as it should be;
// it was purged; others changed it, and it can't be merged; its content is not there.
func (r *Rewind) Decide(ctx context.Context, item *checkpoint.Item,
	now Now) (b Becomes, err error) {
	why := r.Why(item, now.State)
	meta, known := item.Metadata(now.State)
	if now.Can != nil && now.State.Kind == checkpoint.File && item.Want.Kind == checkpoint.File {
		can := now.Can(settable(meta))
		b.Metadata = metadataOf(item, now.State, meta, can)
		meta.Mode, meta.UID, meta.GID, meta.Xattrs = can.Mode, can.UID, can.GID, can.Xattrs
	}
	if now.State.Same(item.Want) &&
		(now.State.Kind != checkpoint.File || why != Why{} || SameMetadata(settable(meta), now.State)) {
		b.Stays = true
		b.Metadata.stays()
		return b, nil
	}
	if !item.Stored && item.Missing == checkpoint.SkipPurged && r.Rule != Skip {
		b.Missing = Unstored.Of(item.Missing)
		return b, nil
	}
	if why != (Why{}) &&
		(r.Rule == Merge || r.Plan.Mode == checkpoint.ModeInverse && !now.State.Same(item.Base)) {
		if b.Content, err = r.merge(ctx, item, now); err != nil {
			return b, err
		}
		if b.Merged = b.Content != nil; b.Merged {
			b.State.Kind = checkpoint.File
			b.Metadata.stays()
			return b, nil
		}
	}
	if why != (Why{}) && r.Rule != Force {
		b.Blocked = why
		return b, nil
	}
	if !item.Stored {
		b.Missing = Unstored.Of(item.Missing)
		return b, nil
	}
	b.State = item.Want
	if item.Want.Kind != checkpoint.File {
		return b, nil
	}
	b.Content, err = r.Store.Content(ctx, item.Want.Hash)
	if errors.Is(err, checkpoint.ErrNoContent) { // the plan is older than that
		b.Missing = JustRemoved
		return b, nil
	}
	b.Exact = known &&
		(now.State.Kind != checkpoint.File || r.KeepTimes || !meta.SameMetadata(now.State))
	b.State = settable(meta)
	if r.KeepTimes {
		b.State.ModTime = item.Want.ModTime
	}
	return b, err
}

// Why says why this session must not change a path, or not without a merge; none when it may.
func (r *Rewind) Why(item *checkpoint.Item, now checkpoint.State) Why {
	head, inverse := &item.Head, r.Plan.Mode == checkpoint.ModeInverse
	switch {
	// A path that a move left has no hash either, but a time, by which it is known.
	case !item.Expects(now) && now.Kind == checkpoint.File && head.Kind == checkpoint.File &&
		head.Hash == "" && head.ModTime.IsZero():
		return LastPurged
	case !item.Expects(now) && item.HeadLost:
		return LastRemoved
	case !item.Expects(now):
		return ChangedOutside
	case item.Foreign && !inverse:
		return ChangedByOthers
	case inverse && !now.Same(item.Base): // one operation is to be taken out of what was made since
		return SameLines
	}
	return Why{}
}

// MadeReadOnly says that the session's own last change, mostly a restore, made the file read-only,
// and that nobody touched it since. So nobody protected it from the session, which may take that
// change back.
func MadeReadOnly(item *checkpoint.Item, now checkpoint.State) bool {
	n := len(item.Own)
	return n > 0 && item.Own[n-1] == item.HeadID && now.Kind == checkpoint.File &&
		now.Same(item.Head) &&
		now.Mode.Perm() == item.Head.Mode.Perm() && now.Mode&0o222 == 0 &&
		(item.HeadBefore.Kind != checkpoint.File || item.HeadBefore.Mode&0o222 != 0)
}
