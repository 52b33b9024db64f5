package engine

import (
	"path"
	"path/filepath"

	"moltisfs/internal/guardfs"
)

const (
	// Up to fewDescriptors nobody looks: to list what is open would cost an ordinary edit too much.
	fewDescriptors = 8
	// spareDescriptors stay free for the store, for what many writes open for a moment, and for
	// whatever else is going on.
	spareDescriptors = 64
)

// spareFor is how many descriptors are to stay free beside so many of our own.
func spareFor(files int) int { return min(16+files, spareDescriptors) }

// checkPlaces refuses paths so many that to open their directories alone takes all descriptors.
func checkPlaces(paths []string) error {
	if len(paths) <= fewDescriptors {
		return nil
	}
	n := guardfs.PlacesOpen(slashed(paths))
	if n <= fewDescriptors {
		return nil
	}
	if free := guardfs.Room(); n+spareFor(n) > free {
		return tooManyPaths(free)
	}
	return nil
}

// tooManyPaths is the refusal where this many more files may be opened.
func tooManyPaths(free int) error {
	if most := free - spareDescriptors - fewDescriptors; guardfs.SharedDirs && most > fewDescriptors {
		return Refuse(TooManyPaths, "", CountFacts{most, true})
	}
	const each = 3 // its directory, its lock, its new content
	most := fewDescriptors / each
	for n := most + 1; n*each+spareFor(n*(each-1)) <= free; n++ {
		most = n
	}
	return Refuse(TooManyPaths, "", CountFacts{Most: most})
}

// checkDescriptors refuses a plan that would run out of descriptors half-way. Then not even the
// steps that were made could be taken back.
func (e *Engine) checkDescriptors(p *Plan) error {
	var ts targets
	var tops []string // the topmost of those that have to be made
	made := map[string]bool{}
	for i := range p.Steps {
		switch s := &p.Steps[i]; {
		case s.Action == Mkdir:
			if made[s.Path] = true; !made[path.Dir(s.Path)] {
				tops = append(tops, s.Path)
			}
		case s.file != nil:
			ts = append(ts, s.file)
		}
	}
	return e.fitsDescriptors(ts, p.keys(), tops)
}

// fitsDescriptors refuses a change of ts that opens and holds more files than the system lets us.
// tops are the directories that it has to make in ones that exist.
func (e *Engine) fitsDescriptors(ts targets, keys, tops []string) error {
	files, places := e.opens(ts, keys, tops)
	if files+places <= fewDescriptors || places+spareFor(files+places) <= guardfs.Room() {
		return nil
	}
	return tooManyPaths(guardfs.Room() + guardfs.PlacesOpen(slashed(ts.paths())))
}

// opens is how many more files a change opens: new contents; and places with their locks, also
// those of directories to be made.
func (e *Engine) opens(ts targets, keys, tops []string) (files, places int) {
	for _, t := range ts {
		if t.place == nil && !t.Unchanged() {
			tops = append(tops, t.True)
		}
		if t.After.Kind == guardfs.KindFile && !t.Unchanged() {
			files++
		}
	}
	places = e.locks.Open(keys) + guardfs.PlacesOpen(slashed(tops))
	if !guardfs.SharedDirs { // then each hold has its directory open, and its content is closed
		return 0, places + files
	}
	return files, places
}

func slashed(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = path.Clean(filepath.ToSlash(name))
	}
	return out
}
