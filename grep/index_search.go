package grep

import "sync/atomic"

// candidate is a file that may hold a match.
type candidate struct {
	name string
	// known: it was read, and holds no match as long as its stamp is the same.
	known bool
	file  indexFile
}

// search does by the index what the walk does by listing: it counts what is skipped, and has the files searched that may match.
// t.mu is held; it is given back when the tree was looked through.
func (t *indexTree) search(p *worker, s *search, ask trigramQuery) {
	w := p.walk
	p.skipped.Rules += t.unread
	var dirs []*indexDir
	t.collect(p, t.root, &dirs)
	parts := max(1, min(4*len(s.states), len(dirs)/16))
	left := new(atomic.Int64)
	left.Store(int64(parts))
	missing := new(atomic.Int64)
	jobs := make([]job, parts)
	for i := range jobs {
		part := dirs[len(dirs)*i/parts : len(dirs)*(i+1)/parts]
		jobs[i].run = func(p *worker) {
			for _, d := range part {
				missing.Add(t.look(p, s, d, ask))
			}
			if left.Add(-1) == 0 {
				t.release(missing.Load())
			}
		}
	}
	w.push(p.id, jobs...)
}

// release ends the use of t and has what changed read again.
func (t *indexTree) release(missing int64) {
	x := t.index
	if missing > 0 && !t.filling {
		x.mu.Lock()
		if !x.closed {
			t.filling = true
			x.wg.Go(t.refill)
		}
		x.mu.Unlock()
	}
	t.mu.Unlock()
}

// collect gives d and the directories below it that the walk would enter, and counts those that it would not.
func (t *indexTree) collect(p *worker, d *indexDir, out *[]*indexDir) {
	*out = append(*out, d)
	if !d.way {
		p.failed(d.err)
		p.skipped.Denied += d.denied
	}
	p.skipped.Rules += d.unread
	for i := range d.dirs {
		sub := &d.dirs[i]
		if sub.way {
			if !sub.ignored && p.walk.passes(d.rel, sub.name, d.depth) {
				t.collect(p, sub.dir, out)
			}
			continue
		}
		if !p.walk.enters(p, d.rel, sub.name, d.depth) {
			continue
		}
		if sub.ignored {
			p.skipped.Ignored++
			continue
		}
		t.collect(p, sub.dir, out)
	}
}

// look finds the candidates of one directory and has them searched. It gives the number of files without a filter.
func (t *indexTree) look(p *worker, s *search, d *indexDir, ask trigramQuery) (missing int64) {
	var found []candidate
	st := &s.states[p.id]
	for i := range d.files {
		f := &d.files[i]
		if !p.walk.searches(p, d.rel, &Entry{Name: f.name, Kind: f.kind}) {
			continue
		}
		if f.ignored {
			p.skipped.Ignored++
			continue
		}
		if f.missing() {
			missing++
		}
		hit := !f.known || f.filter == nil && !f.empty && !f.binary || s.nonASCII && !f.plain || s.q.Multiline && f.stamp.size > maxWhole ||
			f.filter != nil && ask.mayMatch(f.filter)
		switch {
		case hit:
			found = append(found, candidate{name: f.name})
		case f.verify:
			found = append(found, candidate{f.name, true, *f})
		default:
			s.passOver(p, st, f)
		}
	}
	for len(found) > 0 {
		k := min(len(found), batchFiles)
		part := found[:k]
		found = found[k:]
		p.walk.push(p.id, job{run: func(p *worker) { s.visit(p, d.rel, part) }})
	}
	return missing
}

// passOver counts a file that needs no look as one that was looked at.
func (s *search) passOver(p *worker, st *state, f *indexFile) {
	if s.q.MaxFileBytes > 0 && f.stamp.size > s.q.MaxFileBytes {
		p.skipped.TooLarge++
		return
	}
	if f.empty {
		return
	}
	st.totals.Scanned++
	if f.binary {
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
		d, err := openBelow(w.root.dir, rel, false)
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
			if now, err := n.dir.Stat(c.name); err == nil && stampOf(now) == c.file.stamp {
				s.passOver(p, &s.states[p.id], &c.file)
				continue
			}
		}
		s.file(p, n, c.name)
	}
}
