package grep

import (
	"sync/atomic"

	"moltisfs/grep/index"
	"moltisfs/grep/tree"
)

// What an Index is made of; package index documents each. IndexOptions has Open and Watch, which a
// host gives, and MinFiles, MaxBytes and Sweep, which may be zero. An Event tells of a directory by
// the number of its Watch: Name or Names, or that it is Gone, or that events were Lost.
type (
	Index        = index.Index
	IndexOptions = index.Options
	Located      = index.Located
	Watcher      = index.Watcher
	Event        = index.Event
)

// NewIndex makes an empty index.
func NewIndex(o IndexOptions) *Index { return index.New(o) }

// candidate is a file that may hold a match.
type candidate struct {
	name string
	// known: it was read, and holds no match as long as its stamp is the same.
	known bool
	file  index.File
}

// byIndex gives the job that searches w by the index, nil when there is no index for it, or none
// that would help.
func (s *search) byIndex(w *Walk) func(*worker) {
	if s.q.Index == nil || w.CrossMounts {
		return nil
	}
	var literals [][]string
	for _, c := range s.q.Matcher.RequiredLiterals() {
		literals = append(literals, c.Any)
	}
	ask := index.Ask(literals)
	if ask == nil {
		return nil
	}
	ask.NonASCII, ask.Multiline = s.nonASCII, s.q.Multiline
	t := s.q.Index.Use(w.key(), w.Dir)
	if t == nil {
		return nil
	}
	return func(p *worker) { s.through(p, t, ask) }
}

// key is what the shape of the tree depends on.
func (w *Walk) key() index.Key {
	k := index.Key{Root: w.Dir.True(), NoIgnore: w.NoIgnore, Fold: -1}
	if !w.NoIgnore {
		k.Excludes, k.Home = string(w.Excludes), w.Home
		if w.IgnoreCase != nil {
			k.Fold = 0
			if *w.IgnoreCase {
				k.Fold = 1
			}
		}
	}
	return k
}

// through does by the index what the walk does by listing: it counts what is skipped, and has the
// files searched that may match. t is given back when it was looked through.
func (s *search) through(p *worker, t *index.Tree, ask *index.Question) {
	w := p.walk
	p.skipped.Rules += t.Unread
	var dirs []*index.Dir
	collect(p, t.Root, &dirs)
	parts := max(1, min(4*len(s.states), len(dirs)/16))
	left := new(atomic.Int64)
	left.Store(int64(parts))
	missing := new(atomic.Int64)
	jobs := make([]job, parts)
	for i := range jobs {
		part := dirs[len(dirs)*i/parts : len(dirs)*(i+1)/parts]
		jobs[i].run = func(p *worker) {
			for _, d := range part {
				missing.Add(s.lookIn(p, d, ask))
			}
			if left.Add(-1) == 0 {
				t.Release(missing.Load())
			}
		}
	}
	w.push(p.id, jobs...)
}

// collect gives d and the directories below it that the walk would enter, and counts those that it
// would not.
func collect(p *worker, d *index.Dir, out *[]*index.Dir) {
	*out = append(*out, d)
	if !d.Way {
		p.failed(d.Err)
		p.skipped.Denied += d.Denied
	}
	p.skipped.Rules += d.Unread
	for i := range d.Dirs {
		sub := &d.Dirs[i]
		if sub.Way {
			if !sub.Ignored && p.walk.passes(d.Rel, sub.Name, d.Depth) {
				collect(p, sub.Dir, out)
			}
			continue
		}
		if !p.walk.enters(p, d.Rel, sub.Name, d.Depth) {
			continue
		}
		if sub.Ignored {
			p.skipped.Ignored++
			continue
		}
		collect(p, sub.Dir, out)
	}
}

// lookIn finds the candidates of one directory and has them searched. It gives the number of files
// without a filter.
func (s *search) lookIn(p *worker, d *index.Dir, ask *index.Question) (missing int64) {
	var found []candidate
	st := &s.states[p.id]
	for i := range d.Files {
		f := &d.Files[i]
		if !p.walk.searches(p, d.Rel, &Entry{Name: f.Name, Kind: f.Kind}) {
			continue
		}
		if f.Ignored {
			p.skipped.Ignored++
			continue
		}
		if s.q.Named != nil {
			s.q.Named(d.Rel + f.Name)
		}
		if f.Missing() {
			missing++
		}
		switch {
		case f.MayMatch(ask):
			found = append(found, candidate{name: f.Name})
		case f.Verify:
			found = append(found, candidate{f.Name, true, *f})
		default:
			s.passOver(p, st, f)
		}
	}
	for len(found) > 0 {
		k := min(len(found), batchFiles)
		part := found[:k]
		found = found[k:]
		p.walk.push(p.id, job{run: func(p *worker) { s.visit(p, d.Rel, part) }})
	}
	return missing
}

// passOver counts a file that needs no look as one that was looked at.
func (s *search) passOver(p *worker, st *state, f *index.File) {
	if s.q.MaxFileBytes > 0 && f.Size() > s.q.MaxFileBytes {
		p.skipped.TooLarge++
		return
	}
	if f.Empty {
		return
	}
	st.totals.Scanned++
	if f.Binary && f.Size() > int64(s.size.buffer) {
		p.skipped.Binary++
	}
}

// visit searches candidates of one directory.
func (s *search) visit(p *worker, rel string, found []candidate) {
	w := p.walk
	if p.stopped() {
		p.skipped.Deadline += len(found)
		return
	}
	n := &node{dir: w.root.dir, full: rel}
	if rel != "" {
		d, err := tree.OpenBelow(w.root.dir, rel, false)
		if err != nil {
			p.failed(err)
			return
		}
		defer d.Close()
		n.dir = d
	}
	for i := range found {
		if p.stopped() {
			p.skipped.Deadline += len(found) - i
			return
		}
		c := &found[i]
		if c.known {
			if now, err := n.dir.Stat(c.name); err == nil && !c.file.Changed(now) {
				s.passOver(p, &s.states[p.id], &c.file)
				continue
			}
		}
		s.open(p, n, c.name)
	}
}
