package grep

import (
	"errors"
	"io/fs"

	"moltisfs/grep/ignore"
)

// sift moves the wanted files to the front of entries, and gives the names of the directories to
// enter. Those with Entry.Way are given apart.
func (w *walker) sift(
	p *worker, n *node, entries []Entry, rules *ignore.Set,
) (files []Entry, dirs, ways []string) {
	idle, rel := rules.Idle(), n.rel()
	k := 0
	for i := range entries {
		e := &entries[i]
		isDir := e.Kind == KindDir
		if e.Way {
			passes := w.passes(rel, e.Name, n.depth)
			if passes && (idle || !rules.Ignored(n.full, e.Name, true, &p.scratch)) {
				ways = append(ways, e.Name)
			}
			continue
		}
		if l, ok := w.visitor.(*lister); isDir && ok && l.dirs && l.wants(rel, e.Name, p) && (idle || !rules.Ignored(n.full, e.Name, true, &p.scratch)) {
			l.hit(p, n, e.Name, KindDir)
		}
		if isDir && !w.enters(p, rel, e.Name, n.depth) || !isDir && !w.searches(p, rel, e) {
			continue
		}
		if !idle && rules.Ignored(n.full, e.Name, isDir, &p.scratch) {
			p.skipped.Ignored++
			continue
		}
		if isDir {
			dirs = append(dirs, e.Name)
			continue
		}
		entries[k] = *e
		k++
	}
	return entries[:k], dirs, ways
}

// passes is enters for a directory with Entry.Way. It counts nothing: a count would give away
// that policy hides something.
func (w *walker) passes(rel, name string, depth int) bool {
	uncounted := worker{walk: w}
	return w.enters(&uncounted, rel, name, depth)
}

// searches says whether an entry other than a directory is a file to search, ignore rules apart. It
// counts the others, by reason.
func (w *walker) searches(p *worker, rel string, e *Entry) bool {
	if e.Kind == KindFile {
		p.seen++
		if w.Come != nil {
			w.Come.Add(1)
		}
	}
	switch {
	case e.Name == ".git" && !w.vcs: // of a worktree or a submodule
		if w.wants(rel, e.Name, p) {
			p.skipped.VCS++
		}
		return false
	case e.Kind == KindLink:
		if w.wants(rel, e.Name, p) {
			p.skipped.Links++
			if l, ok := w.visitor.(*lister); ok {
				f := &l.found[p.id]
				f.link = first(f.link, rel+e.Name)
			}
		} else if w.leads(rel + e.Name + "/") {
			p.skipped.Links++
		}
		return false
	case !w.wants(rel, e.Name, p):
		return false
	case e.Kind != KindFile:
		p.skipped.Special++
	}
	return e.Kind == KindFile
}

// enters says whether to enter a directory, ignore rules apart. It counts the others, by reason.
func (w *walker) enters(p *worker, rel, name string, depth int) bool {
	switch {
	case !w.descend(rel + name + "/"):
	case ignore.IsVCS(name) && !w.vcs:
		p.skipped.VCS++
	case w.MaxDepth > 0 && depth >= w.MaxDepth:
		p.skipped.Deep++
	default:
		return true
	}
	return false
}

// failed counts an object that could not be opened or read.
//
// A second name of a hidden file is denied because of the file, not of the name. It counts only when
// everything is asked for: with a glob, the change of the count would tell which name it is.
func (p *worker) failed(err error) {
	if p.walk.picks() && errors.Is(err, ErrDenied) {
		return
	}
	p.skipped.failed(err)
}

// failed counts an object that could not be opened or read. One that vanished meanwhile counts as
// never there.
func (s *Skipped) failed(err error) {
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, ErrMount):
		s.Mounts++
	case errors.Is(err, ErrDenied):
		s.Denied++
	default:
		s.Unreadable++
	}
}
