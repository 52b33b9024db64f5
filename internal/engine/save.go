package engine

import (
	"context"
	"errors"
	"io/fs"
	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"slices"
	"syscall"
	"time"
)

// dirAfter is what a directory that the step makes will be.
func (m *movement) dirAfter(st *Step) checkpoint.State {
	got := m.made.Meta
	if st.Exact {
		as := *dirMetadata(st.After.State)
		got = m.hold.Expected(as)
		got.Mode |= as.Mode & (fs.ModeSetuid | fs.ModeSetgid)
	}
	return checkpoint.State{Kind: checkpoint.Dir, Mode: got.Mode, UID: got.UID, GID: got.GID,
		Xattrs: got.Xattrs}
}

// changes is what the checkpoint says of the steps: of each path what was there before all of them,
// and what is after.
func (s *apply) changes() (out []checkpoint.Change) {
	traded := map[string]*Target{}
	for i := range s.p.Steps {
		if t := s.p.Steps[i].file; t != nil && (t.givesWay() || t.becomesDir()) {
			traded[t.True] = t
		}
	}
	var made, gone []checkpoint.Change
	for i := range s.p.Steps {
		st, m := &s.p.Steps[i], &s.moves[i]
		t := traded[st.Path]
		switch {
		case st.Action == Mkdir && t != nil:
			t.After.Meta = dirMetadata(m.dirAfter(st))
		case st.Action == Mkdir:
			made = append(made, checkpoint.Change{Path: st.Path, Role: checkpoint.RoleParent,
				After: m.dirAfter(st)})
		case st.Action == Rmdir && t == nil && m.before.Kind == checkpoint.Dir:
			gone = append(gone, checkpoint.Change{Path: st.Path, Role: checkpoint.RoleParent,
				Before: m.before, Trash: s.p.trash[st.Path]})
		}
	}
	for _, t := range targets(s.done.Targets).changing() {
		ch := change(t)
		if t.After.Kind == guardfs.KindAbsent || t.becomesDir() {
			ch.Trash = s.p.trash[t.True]
		}
		out = append(out, ch)
	}
	for i := range s.p.Steps {
		switch mv := s.p.Steps[i].move; {
		case mv != nil && mv.To != "":
			made = append(made, mv.dirs...)
		case mv != nil:
			out = append(out, moveChange(mv))
		}
	}
	return append(append(out, made...), gone...)
}

// save puts the states before and after on record, with the steps: what is found half-way from here
// on can be taken back.
func (s *apply) save(ctx context.Context) error {
	e, c := s.e, s.c
	for i := range s.moves {
		h := s.moves[i].hold
		if mv := s.p.Steps[i].move; mv != nil {
			h = mv.mid
		}
		if h == nil {
			continue
		}
		_, process, _ := guardfs.ParseHold(h.Base())
		if s.process != "" && process != s.process { // another change has abandoned the record meanwhile
			return &guardfs.ConflictError{Path: s.p.first(), Why: guardfs.BeingTakenBack}
		}
		s.process = process
	}
	s.staged = true
	if s.p.single() && !s.p.Checkpoint && !e.cfg.CheckpointBeforeMutation {
		return nil
	}
	if s.process == "" { // it has no holds
		var err error
		if s.process, err = e.temps.Tag(); err != nil {
			return err
		}
	}
	if t := s.done.Targets; len(t) > 0 { // of what was not in memory it is known now
		c.Trace.After = t[0].After.Hash
	}
	op := s.p.Op
	op.Tool, op.Principal, op.Session, op.Turn, op.Time = c.Tool, c.Principal, c.Session, c.Turn,
		e.now()
	op.Run = c.Run
	op.Changes, op.Steps = s.changes(), s.encode()
	if op.Kind == checkpoint.KindDelete && !slices.ContainsFunc(op.Changes, trashes) {
		return &guardfs.ConflictError{Path: s.p.first(), Why: guardfs.DirMoved}
	}
	db, err := e.checkpoints.open()
	var saved checkpoint.Saved
	if err == nil {
		saved, err = db.Save(ctx, op)
	}
	if err != nil && s.p.single() && !s.p.Checkpoint && e.cfg.Checkpoint.OnError == "allow" {
		s.done.Skipped = err.Error()
		e.logger.Warn("a change went ahead without its checkpoint, as on_error allows", "err", err)
		return nil
	}
	if err != nil {
		return notSaved(err)
	}
	s.db, s.id = db, saved.ID
	missing := map[string]bool{}
	for _, skip := range saved.Skipped {
		missing[skip.Path] = true
		if skip.Why != checkpoint.SkipParked {
			s.done.Skipped = skip.Why
		}
	}
	for i := range s.p.Steps {
		for _, t := range saved.Trashed {
			if mv := s.p.Steps[i].move; mv != nil && mv.Path == t.Path {
				mv.Entry = t
			}
		}
	}
	s.stored = func(path string) bool { return !missing[path] }
	if s.p.Whole {
		if lost := unsaved(op.Changes, saved.Skipped); lost != nil {
			return Refuse(NotStored, lost.Path, Unstored.Of(lost.Why))
		}
	} else if s.done.Skipped == "" {
		s.done.Skipped = e.newNotBackedUp(s.done.Targets)
	}
	s.done.Checkpoint, c.Trace.Checkpoint = string(s.id), string(s.id)
	s.done.Trashed = saved.Trashed
	return nil
}

// halfMade is the error of a change that failed with cause and of which these paths could not be
// taken back. again says that recovery tries again.
func halfMade(cause error, left []string, id checkpoint.ID, again bool) error {
	left = slices.Clone(left)
	slices.Sort(left)
	r := &Refusal{Code: HalfMade.Code, Cause: HalfMade, Facts: HalfFacts{cause, slices.Compact(left),
		string(id), again}}
	if of := Reason(cause); of != nil {
		r.Code = of.Code
	}
	return r // its cause is no Err of it: who tells of that alone says that nothing was changed
}

// Why a checkpoint lacks the new content of a change, though it has the old one. As long as that
// new content is in place no restore overwrites it, because it could not be brought back.
const (
	SkippedNewTooLarge = "new_content_too_large" // above max_file_bytes
	SkippedNewExcluded = "new_content_excluded"
)

// newNotBackedUp finds a new content that the store can't or must not hold; "" when there is none.
func (e *Engine) newNotBackedUp(ts targets) string {
	for _, t := range ts.changing() {
		switch {
		case t.After.Kind != guardfs.KindFile ||
			t.After.From == nil && e.storable(t.True, t.After.size()):
		case e.excluded(t.True):
			return SkippedNewExcluded
		default:
			return SkippedNewTooLarge
		}
	}
	return ""
}

// unsaved finds a content that the change destroys: it is neither in the checkpoint nor in the
// trash. nil when there is none.
func unsaved(changes []checkpoint.Change, skipped []checkpoint.Skip) *checkpoint.Skip {
	for i := range skipped {
		for _, c := range changes {
			if c.Path == skipped[i].Path && c.Skipped != checkpoint.SkipParked && !c.Before.Same(c.After) {
				return &skipped[i]
			}
		}
	}
	return nil
}

// dirState is the state of a directory that is to go. It is recorded, because it may have to come
// back.
func (e *Engine) dirState(dir string) (checkpoint.State, error) {
	gone := checkpoint.State{Kind: checkpoint.Absent}
	place, err := e.fs.PlaceLink(dir)
	if _, missing := errors.AsType[*guardfs.MissingParentError](err); missing ||
		errors.Is(err, syscall.ENOTDIR) {
		return gone, nil
	}
	if err != nil {
		return gone, err
	}
	defer place.Close()
	if place.Object().Info.Kind != guardfs.KindDir {
		return gone, nil
	}
	m, err := place.DirMetadata()
	return checkpoint.State{Kind: checkpoint.Dir, Mode: m.Mode, UID: m.UID, GID: m.GID,
		Xattrs: m.Xattrs}, err
}

func change(t *Target) checkpoint.Change {
	ch := checkpoint.Change{Path: t.True, Role: "target", Before: state(t.Before)}
	if t.After.Tail || t.After.cut != nil {
		ch.Before.Hash = "" // there is none of what it becomes
		ch.Role, ch.After, ch.Tail = checkpoint.RoleAppended, ch.Before, t.After.Content
		ch.After.ModTime, ch.After.Size = time.Time{}, ch.Before.Size+int64(len(ch.Tail))
		if t.After.cut != nil {
			ch.Tail, ch.After.Size = t.After.cut, t.After.From.size
		}
		return ch
	}
	if t.Before.Exists && t.Before.Info.Kind == guardfs.KindFile {
		ch.Content = t.Before.Content
		if ch.Content == nil {
			ch.Content = []byte{} // an empty file is a content
		}
		if t.Unsaved() {
			ch.Role, ch.Content = roleBuffer, append([]byte{}, t.raw(ch.Content)...)
			ch.Before.Hash, ch.Before.Size = HashOf(ch.Content), int64(len(ch.Content))
		}
	}
	switch t.After.Kind {
	case guardfs.KindFile:
		meta := t.metaAfter()
		ch.After = checkpoint.State{Kind: checkpoint.File, Mode: meta.Mode, UID: meta.UID, GID: meta.GID,
			Xattrs: meta.Xattrs, Size: t.After.size(), Hash: t.After.Hash}
		ch.AfterContent = t.After.Content
		if ch.AfterContent == nil && t.After.From == nil {
			ch.AfterContent = []byte{}
		}
		if t.Unsaved() {
			ch.AfterContent = t.raw(ch.AfterContent)
			ch.After.Hash, ch.After.Size = HashOf(ch.AfterContent), int64(len(ch.AfterContent))
		}
	case guardfs.KindSymlink:
		ch.After = checkpoint.State{Kind: checkpoint.Symlink, Target: t.After.Target}
	case guardfs.KindDir:
		ch.After = checkpoint.State{Kind: checkpoint.Dir, Mode: t.After.Meta.Mode, UID: t.After.Meta.UID,
			GID: t.After.Meta.GID}
	default:
		ch.After = checkpoint.State{Kind: checkpoint.Absent}
	}
	return ch
}

// isNew says that the system, not we, chooses the metadata.
func (t *Target) isNew() bool {
	return t.After.Kind == guardfs.KindFile && t.After.Meta == nil && !t.Before.Exists
}

// metaAfter is the metadata that the file will have. It waits for the temporary file, not for its
// content.
func (t *Target) metaAfter() guardfs.Metadata {
	switch {
	case t.After.Meta != nil && t.place == nil:
		return t.above.Expected(*t.After.Meta)
	case t.After.Meta != nil:
		return t.place.Expected(*t.After.Meta)
	case t.isNew():
		return t.fresh
	case t.givesWay(): // nobody knows what the file had
		m, err := t.place.Fresh(0o666, false)
		if err == nil {
			return m
		}
	}
	return t.place.Expected(*metadata(state(t.Before)))
}

func state(b *guardfs.Before) checkpoint.State {
	if !b.Exists {
		return checkpoint.State{Kind: checkpoint.Absent}
	}
	s := checkpoint.State{
		Kind: checkpoint.File, Mode: b.Meta.Mode, UID: b.Meta.UID, GID: b.Meta.GID,
		ModTime: b.Meta.ModTime, Xattrs: b.Meta.Xattrs, Size: b.Info.Size, Hash: b.Hash,
	}
	switch b.Info.Kind {
	case guardfs.KindSymlink:
		s.Kind, s.Target, s.Hash, s.Size = checkpoint.Symlink, string(b.Content), "", 0
	case guardfs.KindDir:
		s.Kind, s.Hash, s.Size = checkpoint.Dir, "", 0
	}
	return s
}

// metadata is what a restored file gets. Not its old time: to builds and editors a restore is a
// change like any other.
func metadata(s checkpoint.State) *guardfs.Metadata {
	return &guardfs.Metadata{Mode: s.Mode & (fs.ModePerm | fs.ModeSticky), UID: s.UID, GID: s.GID,
		Xattrs: s.Xattrs}
}

// announced is what the target is to become.
func (t *Target) announced() checkpoint.State {
	switch t.After.Kind {
	case guardfs.KindFile:
		s := checkpoint.State{Kind: checkpoint.File, Hash: t.After.Hash}
		if t.After.Tail {
			s.Tail, s.Size = HashOf(t.After.Content), t.Before.Info.Size+int64(len(t.After.Content))
		}
		return s
	case guardfs.KindSymlink:
		return checkpoint.State{Kind: checkpoint.Symlink, Target: t.After.Target}
	case guardfs.KindDir:
		return checkpoint.State{Kind: checkpoint.Dir}
	}
	return checkpoint.State{Kind: checkpoint.Absent}
}

// trashes says that a change leaves an entry in the trash. A deletion without one is of something
// else than was planned: it was swapped meanwhile.
func trashes(ch checkpoint.Change) bool { return ch.Trash != nil }
