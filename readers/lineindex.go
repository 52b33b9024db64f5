package readers

import (
	"sync"
	"time"
)

// indexStride is how far apart remembered line beginnings are at first, in bytes. When an index has too many points every
// second one is dropped and the stride doubles, so that an index takes at most 64 KB.
const (
	indexStride = 256 << 10
	indexPoints = 4096
	// settled is how old a change must be before an index of the file is believed later: a second change within the
	// same tick of the file system's clock would not show.
	settled = 2 * time.Second
)

// lineIndex remembers where some lines of one file begin. Lines count from 0 here.
type lineIndex struct {
	size    int64
	changed time.Time
	points  []linePoint // ascending
	stride  int64
	total   int // lines in the file; -1 when nobody has seen the end
}

type linePoint struct {
	line   int
	offset int64
}

// before returns the last remembered beginning at or before the line.
func (x *lineIndex) before(line int) linePoint {
	lo, hi := 0, len(x.points)
	for lo < hi {
		mid := (lo + hi) / 2
		if x.points[mid].line <= line {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return linePoint{}
	}
	return x.points[lo-1]
}

// last is the furthest line beginning known.
func (x *lineIndex) last() linePoint {
	if len(x.points) == 0 {
		return linePoint{}
	}
	return x.points[len(x.points)-1]
}

// learn adds a beginning found while reading, if it is beyond the last one by a stride.
func (x *lineIndex) learn(p linePoint) {
	if p.offset < x.last().offset+x.stride {
		return
	}
	x.points = append(x.points, p)
	if len(x.points) > indexPoints {
		keep := x.points[:0]
		for i := 1; i < len(x.points); i += 2 {
			keep = append(keep, x.points[i])
		}
		x.points, x.stride = keep, x.stride*2
	}
}

// lineIndexes keeps the indexes of the files read last.
type lineIndexes struct {
	mu    sync.Mutex
	max   int
	known map[string]*lineIndex
	order []string // least recently used first
}

func newLineIndexes(max int) *lineIndexes {
	return &lineIndexes{max: max, known: map[string]*lineIndex{}}
}

// take returns the index of the source for one reader's use: nobody else has it until it is put back. It is new when
// the file is not known or has changed.
func (s *lineIndexes) take(f *file) *lineIndex {
	fresh := &lineIndex{size: f.Size, changed: f.Changed, stride: indexStride, total: -1}
	if f.ID == "" {
		return fresh
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.known[f.ID]
	if x == nil {
		return fresh
	}
	delete(s.known, f.ID)
	for i, id := range s.order {
		if id == f.ID {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	if x.size != f.Size || !x.changed.Equal(f.Changed) {
		return fresh
	}
	return x
}

// put remembers the index, but not where the file is so young that it may change without showing.
func (s *lineIndexes) put(f *file, x *lineIndex, now time.Time) {
	if f.ID == "" || f.grown || f.Changed.IsZero() || now.Sub(f.Changed) < settled {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[f.ID]; !ok {
		s.order = append(s.order, f.ID)
	}
	s.known[f.ID] = x
	for len(s.order) > s.max {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
}
