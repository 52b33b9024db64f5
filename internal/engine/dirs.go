package engine

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// The directories of a change. Those that it has to make are listed before its checkpoint is saved, which names them, and made after that, under the
// mark of a change under way. The mark's notes say of each that its making began, and which directory came of it: whoever takes the
// change back removes what is that very directory, and empty, and nothing else.

// newDirs are the directories that a change makes.
type newDirs struct {
	todo  []newDir                  // each after the one that holds it
	above map[string]*guardfs.Place // by the topmost missing directory: its place, in a directory that exists
	made  []ownDir
	doubt string // what may be there although its making failed
}

// newDir is one of them, and what it will be.
type newDir struct {
	path  string
	mode  fs.FileMode       // before the umask
	as    *guardfs.Metadata // it is to be as it was
	state checkpoint.State
}

// ownDir is a directory that a change made: this object, whatever is at its path by now.
type ownDir struct{ path, lasting string }

func (d *newDirs) close() {
	for _, p := range d.above {
		p.Close()
	}
}

// paths are those that were made, from the top down.
func (d *newDirs) paths() (out []string) {
	for _, own := range d.made {
		out = append(out, own.path)
	}
	return out
}

// directories is toMake, and has policy speak on those that go, too: nobody is asked about a change
// that would be refused.
func (e *Engine) directories(ts targets, m *Mutation) (made []NewDir, err error) {
	for _, d := range m.Drop {
		place, err := e.fs.PlaceLink(d)
		if err == nil {
			err = e.judge.Judge(place.Object(), guardfs.Remove)
			place.Close()
		}
		if _, no := errors.AsType[*policy.Denied](err); no {
			return nil, err
		}
	}
	return e.toMake(ts, m)
}

func dirNames(dirs []NewDir) (out []string) {
	for _, d := range dirs {
		out = append(out, d.Path)
	}
	return out
}

// toMake lists the directories that a change has to make, from the top down, and leaves no trace.
// Policy speaks on each of them, so it is called before anybody is asked.
func (e *Engine) toMake(ts targets, m *Mutation) (made []NewDir, err error) {
	dirs := m.Dirs
	if m.Parents != nil {
		if dirs, err = m.Parents(ts, dirs); err != nil {
			return nil, err
		}
	}
	list := map[string]NewDir{}
	exact := map[string]NewDir{}
	for _, d := range dirs {
		exact[d.Path] = d
	}
	add := func(names ...string) {
		for _, name := range names {
			d, ok := exact[name]
			if !ok {
				d = NewDir{Path: name, Mode: 0o777}
			}
			list[name] = d
		}
	}
	// above adds what is missing above name, which has to be a true name: a link that was put in
	// its way leads elsewhere.
	above := func(spelled, name string) (missing bool, err error) {
		if top := ts.swapOver(m, name); top != nil {
			below, err := e.missingBelow(m, top, path.Dir(name))
			add(below...)
			return true, err
		}
		missingDirs, is, err := e.fs.Missing(spelled)
		switch {
		case err != nil || missingDirs == nil:
			return false, err
		case is != name:
			return false, &guardfs.SymlinkError{Path: name, Target: is}
		}
		add(missingDirs...)
		return true, nil
	}
	for _, t := range ts {
		if t.becomesDir() {
			list[t.True] = t.newDir()
		}
	}
	for _, d := range dirs {
		missing, err := above(d.Path, d.Path)
		if err == nil && !missing {
			missing, err = e.isAbsent(d.Path)
		}
		if err != nil {
			return nil, err
		}
		if missing {
			add(d.Path)
		}
	}
	for _, mv := range m.Moves {
		if mv.Back && mv.place == nil {
			if _, err := above(mv.Path, mv.Path); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range ts {
		if t.place == nil && !t.Unchanged() {
			if _, err := above(t.Path, t.True); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		made = append(made, list[name])
	}
	return made, nil
}

// missing looks what the directories of toMake will be, and changes nothing. Targets whose
// directory is among them learn what a new file there will have.
func (e *Engine) missing(ts targets, m *Mutation, made []NewDir) (_ *newDirs, err error) {
	d := &newDirs{above: map[string]*guardfs.Place{}}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	swapped := map[string]*Target{}
	for _, t := range ts {
		if t.becomesDir() {
			swapped[t.True] = t
		}
	}
	in := map[string]*guardfs.Place{} // by directory to be made: a place in the one above it that is there
	for _, dir := range made {
		place, t := in[path.Dir(dir.Path)], swapped[dir.Path]
		if t != nil {
			place = t.place
		}
		if place == nil {
			if place, err = e.fs.PlaceLink(dir.Path); err != nil {
				return nil, err
			}
			d.above[dir.Path] = place
			if o := place.Object(); o.True != dir.Path || o.Info.Kind != guardfs.KindAbsent {
				return nil, &guardfs.ConflictError{Path: dir.Path, Why: "it appeared while it was to be made"}
			}
		}
		in[dir.Path] = place
		var meta guardfs.Metadata
		if dir.As != nil {
			meta = place.Expected(*dir.As)
			meta.Mode |= dir.As.Mode & (fs.ModeSetuid | fs.ModeSetgid)
		} else if meta, err = place.Fresh(dir.Mode, true); err != nil {
			return nil, err
		}
		state := checkpoint.State{Kind: checkpoint.Dir, Mode: meta.Mode, UID: meta.UID, GID: meta.GID, Xattrs: meta.Xattrs}
		d.todo = append(d.todo, newDir{dir.Path, dir.Mode, dir.As, state})
		if t != nil {
			t.After.Meta = dirMetadata(state)
		}
	}
	for _, mv := range m.Moves {
		if mv.Back && mv.place == nil && in[path.Dir(mv.Path)] == nil {
			if err := e.openBack(mv); err != nil { // its directory appeared just now
				return nil, err
			}
		}
	}
	for _, t := range ts {
		if t.place != nil || t.Unchanged() {
			continue
		}
		if t.above = in[path.Dir(t.True)]; t.above == nil {
			err = e.appeared(t)
		} else {
			err = t.foretell(t.True)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// isAbsent looks whether nothing is at the path of a directory that is to be made in one that
// exists; no when it is there already.
func (e *Engine) isAbsent(path string) (bool, error) {
	place, err := e.fs.Place(path)
	if err != nil {
		return false, err
	}
	defer place.Close()
	switch o := place.Object(); {
	case o.Info.Kind == guardfs.KindDir:
		return false, nil
	case o.Info.Kind != guardfs.KindAbsent:
		return false, &guardfs.ConflictError{Path: path, Why: "it is not a directory any more"}
	case o.True != path:
		return false, &guardfs.SymlinkError{Path: path, Target: o.True}
	}
	return true, nil
}

// foretell says what is known of a target before its directory is made.
func (t *Target) foretell(name string) (err error) {
	t.True = name
	if t.isNew() {
		t.fresh, err = t.above.Fresh(0o666, false)
	}
	return err
}

// appeared opens the place of a target whose directory was missing and is there now.
func (e *Engine) appeared(t *Target) error {
	place, err := e.fs.Place(t.Path)
	if err != nil {
		return err
	}
	o := place.Object()
	switch {
	case t.above != nil && o.True != t.True:
		err = &guardfs.ConflictError{Path: t.True, Why: "a directory above it was moved while others were being made"}
	case o.Info.Kind != guardfs.KindAbsent:
		err = &guardfs.ConflictError{Path: o.True, Why: "it appeared while its directory was being made"}
	}
	if err != nil {
		place.Close()
		return err
	}
	t.place, t.True = place, o.True
	return nil
}

// makeDirs makes what was listed, and then opens the places of what goes into it.
func (e *Engine) makeDirs(p *point, ts targets, m *Mutation) error {
	for i := range p.dirs.todo {
		if err := e.makeDir(p, &p.dirs.todo[i]); err != nil {
			return err
		}
	}
	for _, mv := range m.Moves {
		if !mv.Back || mv.place != nil {
			continue
		}
		if err := e.openBack(mv); err != nil {
			return err
		}
	}
	for _, t := range ts {
		if t.place == nil && !t.Unchanged() {
			if err := e.appeared(t); err != nil {
				return err
			}
		}
	}
	p.label(ts)
	return nil
}

// unopened is the mode of a directory until it is given what it is to have: nobody but its owner looks in before.
const unopened = 0o700

// makeDir makes one. That somebody else has made it meanwhile is fine: then it is not ours.
func (e *Engine) makeDir(p *point, d *newDir) error {
	place, err := e.fs.PlaceLink(d.path)
	if err != nil {
		return err
	}
	defer place.Close()
	o := place.Object()
	switch {
	case o.True != d.path:
		return &guardfs.SymlinkError{Path: d.path, Target: o.True}
	case o.Info.Kind == guardfs.KindDir:
		return nil
	case o.Info.Kind != guardfs.KindAbsent:
		return &guardfs.ConflictError{Path: d.path, Why: "something else appeared there"}
	}
	if err := p.note(d.path, ""); err != nil {
		return err
	}
	mode := d.mode
	if d.as != nil {
		mode = unopened
	}
	if err := place.Mkdir(mode); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return &guardfs.ConflictError{Path: d.path, Why: "it appeared while it was to be made"}
		}
		p.dirs.doubt = d.path
		return err
	}
	own := ownDir{d.path, place.Object().Info.ID.Lasting()}
	p.dirs.made = append(p.dirs.made, own)
	if err := p.note(own.path, own.lasting); err != nil {
		return err
	}
	if d.as != nil {
		dropped, err := place.SetDir(*d.as)
		if err != nil {
			return err
		}
		if dropped != nil {
			e.logger.Warn("a directory that came back did not get all that it had", "path", d.path, "lost", dropped)
		}
	}
	if e.sync() {
		return place.SyncNames()
	}
	return nil
}
