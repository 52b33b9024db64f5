package engine

import (
	"context"
	"fmt"
	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"path"
)

// object gives the object that a step makes.
func (s *Step) object() guardfs.NewObject {
	switch s.Action {
	case Put:
		t := s.file
		o := guardfs.NewObject{Kind: guardfs.KindFile, Content: t.After.Content, Meta: t.After.Meta}
		if o.Sync = true; kind(s.Before) == checkpoint.File && t.After.Meta == nil {
			o.Like = t.Before
		}
		return o
	case Link:
		return guardfs.NewObject{Kind: guardfs.KindSymlink, Content: []byte(s.After.Target)}
	case Mkdir:
		if s.Exact {
			return guardfs.NewObject{Kind: guardfs.KindDir, Meta: dirMetadata(s.After.State)}
		}
		mode := s.After.Mode
		if mode.Perm() == 0 { // nobody knows it
			mode = unopened
		}
		return guardfs.NewObject{Kind: guardfs.KindDir, Mode: mode}
	}
	return guardfs.NewObject{}
}

// stage makes what a step brings, complete, under a temporary name in the nearest directory above
// its path that is there and stays.
func (s *apply) stage(ctx context.Context, i int) error {
	st, m, tr := &s.p.Steps[i], &s.moves[i], &s.steps[i]
	tr.action, tr.path = st.Action, st.Path
	if st.Action == Rename {
		return s.parting(i)
	}
	if st.Action == Rmdir {
		if goes, err := s.leaving(i); err != nil || !goes {
			return err
		}
	}
	var at *guardfs.Place
	if t := st.file; t != nil {
		tr.hash = t.After.Hash
		if at = t.place; t.place != nil && kind(st.Before) != checkpoint.Absent {
			info, err := t.place.CopyUp()
			if err != nil {
				return err
			}
			t.Before.Info.ID = info.ID
			m.was, tr.before = guardfs.Found(t.Before), info.ID.Lasting()
		}
	}
	anchor := st.Path // in the directory that stays
	for dir := path.Dir(st.Path); len(dir) > 1; dir = path.Dir(dir) {
		if s.gone[dir] {
			anchor = dir
		}
	}
	if at == nil || anchor != st.Path {
		foreseen, _, name, err := s.e.fs.Foresee(anchor, nil)
		if err != nil {
			return err
		}
		defer foreseen.Close() //nolint:errcheck // nothing was written through it
		if name != anchor {
			return &guardfs.ConflictError{Path: st.Path,
				Why: guardfs.LinkInTheWay, Fact: name}
		}
		at = foreseen
	}
	what := st.object()
	what.Private = st.Action == Put && s.closed(path.Dir(st.Path))
	what.Open = s.p.single()
	var err error
	if st.file != nil && st.file.After.From != nil {
		if what.Source, err = s.e.source(st.file.After.From); err != nil {
			return err
		}
		defer what.Source.Close() //nolint:errcheck // nothing was written through it
		what.Size = st.file.After.From.size
	}
	if m.hold, m.made, err = at.Hold(ctx, s.tag, s.number(i), what); err != nil {
		return fmt.Errorf("writing beside %s: %w", st.Path, err)
	}
	tr.dir, tr.after = at.ParentTrue(), lasting(m.made.Info)
	if t := st.file; t != nil {
		if what.Source != nil {
			t.After.Hash, tr.hash = m.made.Hash, m.made.Hash
		}
		if t.fresh = m.made.Meta; t.place == nil {
			t.above = m.hold
		}
	}
	if what.Private {
		m.mode = st.file.metaAfter().Mode
	}
	if what.Kind == guardfs.KindDir && m.made.Dropped != nil {
		s.e.logger.Warn("a directory that came back did not get all that it had", "path", st.Path,
			"lost", m.made.Dropped)
	}
	return nil
}

// closed says that the plan makes the directory name and that not everybody may go there.
func (s *apply) closed(name string) bool {
	for i := range s.p.Steps {
		if st := &s.p.Steps[i]; st.Action == Mkdir && (st.Path == name || below(name, st.Path)) &&
			st.After.Mode&0o005 != 0o005 {
			return true
		}
	}
	return false
}

// leaving looks at a directory that goes. goes says that it makes room for something else; of the
// others nothing is to be done before the end.
func (s *apply) leaving(i int) (goes bool, err error) {
	st, m, tr := &s.p.Steps[i], &s.moves[i], &s.steps[i]
	if m.before, err = s.e.dirState(st.Path); err != nil {
		return false, err
	}
	if m.place, err = s.e.placeOf(st.Path); err != nil {
		return false, err
	}
	m.own = true
	switch there := m.place != nil && m.place.Object().Info.Kind == guardfs.KindDir; {
	case !there && st.Optional: // it is gone, or another thing by now
		return false, nil
	case !there:
		return false, &guardfs.ConflictError{Path: st.Path, Why: guardfs.Replaced}
	case st.Optional:
		tr.before = lasting(m.place.Object().Info)
		return false, nil
	}
	info, err := m.place.CopyUp()
	m.was, tr.before = guardfs.Expect{ID: info.ID}, info.ID.Lasting()
	return true, err
}

// parting readies a step that moves something: to the trash, back from there, or to another name.
func (s *apply) parting(i int) error {
	mv, m, tr := s.p.Steps[i].move, &s.moves[i], &s.steps[i]
	m.made = &guardfs.Made{}
	if mv.To != "" {
		info, err := mv.place.CopyUp()
		mv.info, m.place, m.hold = info, mv.place, mv.slot // which may have to be made
		tr.dir, tr.before = mv.To, info.ID.Lasting()
		m.was = guardfs.Expect{ID: info.ID}
		for _, from := range mv.pairs {
			if from.True == mv.Path {
				from.Before.Info.ID = info.ID
				m.was = guardfs.Found(from.Before)
			}
		}
		if err == nil && info.Kind == guardfs.KindDir {
			mv.mid, _, err = mv.place.Hold(context.Background(), s.tag, s.number(i), guardfs.NewObject{})
		}
		return err
	}
	if mv.Back {
		m.place, m.hold = mv.slot, mv.place // which may have to be made
		tr.path, tr.dir, tr.before = mv.Entry.Parked, mv.Path, mv.Entry.Identity
	} else {
		if err := s.e.readySlot(mv); err != nil {
			return err
		}
		m.place, m.hold = mv.place, mv.slot
		tr.path, tr.dir, tr.before = mv.Path, mv.Entry.Parked, mv.Entry.Identity
	}
	m.was = guardfs.Expect{ID: mv.info.ID}
	return nil
}
