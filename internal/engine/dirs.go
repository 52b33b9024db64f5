package engine

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
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

// toMake lists, for a dry run, what missing would, and leaves no trace: missing may make files to see what new ones get.
func (e *Engine) toMake(ts targets, m *Mutation) ([]string, error) {
	if m.Parents == nil {
		return nil, nil
	}
	dirs, err := m.Parents(ts, m.Dirs)
	if err != nil {
		return nil, err
	}
	var out []string
	above := func(name string) {
		if ts.swapOver(m, name) != nil {
			return // what is there as yet is no directory
		}
		if missing, _, err := e.fs.Missing(name); err == nil { // else the change itself meets it
			out = append(out, missing...)
		}
	}
	for _, d := range dirs {
		above(d.Path)
		out = append(out, d.Path)
	}
	for _, t := range ts {
		if t.becomesDir() {
			out = append(out, t.True)
		}
	}
	for _, mv := range m.Moves {
		if mv.Back && mv.place == nil {
			above(mv.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// missing lists what a change has to make and changes nothing. Targets whose directory is among it get their true name, and what a new
// file there will have.
func (e *Engine) missing(ts targets, m *Mutation) (_ *newDirs, err error) {
	d := &newDirs{above: map[string]*guardfs.Place{}}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	listed := map[string]bool{}
	exact := map[string]NewDir{}
	for _, dir := range m.Dirs {
		exact[dir.Path] = dir
	}
	// list notes what is to be made, and what it will have: place tells.
	list := func(place *guardfs.Place, dirs ...string) error {
		for _, path := range dirs {
			if listed[path] {
				continue
			}
			dir, ok := exact[path]
			if !ok {
				dir.Mode = 0o777
			}
			var meta guardfs.Metadata
			if dir.As != nil {
				meta = place.Expected(*dir.As)
				meta.Mode |= dir.As.Mode & (fs.ModeSetuid | fs.ModeSetgid)
			} else {
				var err error
				if meta, err = place.Fresh(dir.Mode, true); err != nil {
					return err
				}
			}
			listed[path] = true
			state := checkpoint.State{Kind: checkpoint.Dir, Mode: meta.Mode, UID: meta.UID, GID: meta.GID, Xattrs: meta.Xattrs}
			d.todo = append(d.todo, newDir{path, dir.Mode, dir.As, state})
		}
		return nil
	}
	// add lists dirs, from the topmost missing one down.
	add := func(dirs ...string) (*guardfs.Place, error) {
		place := d.above[dirs[0]]
		if place == nil {
			var err error
			if place, err = e.fs.PlaceLink(dirs[0]); err != nil {
				return nil, err
			}
			d.above[dirs[0]] = place
			if o := place.Object(); o.True != dirs[0] || o.Info.Kind != guardfs.KindAbsent {
				return nil, &guardfs.ConflictError{Path: dirs[0], Why: "it appeared while it was to be made"}
			}
		}
		return place, list(place, dirs...)
	}
	for _, t := range ts {
		if !t.becomesDir() {
			continue
		}
		exact[t.True] = t.newDir()
		if err := list(t.place, t.True); err != nil {
			return d, err
		}
		made := d.todo[len(d.todo)-1].state
		t.After.Meta = dirMetadata(made)
	}
	for _, dir := range m.Dirs {
		if top := ts.swapOver(m, dir.Path); top != nil {
			dirs, err := e.missingBelow(m, top, dir.Path)
			if err == nil {
				err = list(top.place, dirs...)
			}
			if err != nil {
				return d, err
			}
			continue
		}
		dirs, name, err := e.fs.Missing(dir.Path)
		if err == nil && dirs == nil {
			dirs, name, err = e.absentDir(dir.Path)
		} else if err == nil {
			dirs = append(dirs, name)
		}
		if err == nil && name != dir.Path {
			err = &guardfs.SymlinkError{Path: dir.Path, Target: name}
		}
		if err == nil && dirs != nil {
			_, err = add(dirs...)
		}
		if err != nil {
			return d, err
		}
	}
	for _, mv := range m.Moves {
		if !mv.Back || mv.place != nil {
			continue
		}
		dirs, name, err := e.fs.Missing(mv.Path)
		if err == nil && dirs != nil {
			if _, err = add(dirs...); err == nil && name != mv.Path {
				err = &guardfs.SymlinkError{Path: mv.Path, Target: name}
			}
		} else if err == nil {
			err = e.openBack(mv) // it appeared just now
		}
		if err != nil {
			return d, err
		}
	}
	for _, t := range ts {
		if t.place != nil || t.Unchanged() {
			continue
		}
		if top := ts.swapOver(m, t.True); top != nil {
			dirs, err := e.missingBelow(m, top, path.Dir(t.True))
			if err == nil {
				err = list(top.place, dirs...)
			}
			if err == nil {
				t.above = top.place
				err = t.foretell(t.True)
			}
			if err != nil {
				return d, err
			}
			continue
		}
		dirs, name, err := e.fs.Missing(t.Path)
		if err == nil && dirs == nil {
			err = e.appeared(t)
		} else if err == nil && m.Blind && name != t.Path {
			err = &guardfs.SymlinkError{Path: t.Path, Target: name} // another place than the one that was recorded
		} else if err == nil {
			if t.above, err = add(dirs...); err == nil {
				err = t.foretell(name)
			}
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// absentDir looks at a directory that is to be made in one that exists: itself, nothing when it is there already.
func (e *Engine) absentDir(path string) (dirs []string, name string, err error) {
	place, err := e.fs.Place(path)
	if err != nil {
		return nil, "", err
	}
	defer place.Close()
	o := place.Object()
	switch o.Info.Kind {
	case guardfs.KindAbsent:
		return []string{o.True}, o.True, nil
	case guardfs.KindDir:
		return nil, o.True, nil
	}
	return nil, "", &guardfs.ConflictError{Path: path, Why: "it is not a directory any more"}
}

// foretell says what is known of a target before its directory is made.
func (t *Target) foretell(name string) (err error) {
	t.True, t.object = name, guardfs.Object{Spelled: t.Path, True: name}
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
	t.place, t.object, t.True = place, o, o.True
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
