// Package rank orders the lines that a search found so that the answer to "where is X?" comes
// first. It is pure: it takes lines and names, and touches nothing. It knows no language. What it
// goes by are shapes that most of them share.
//
// A hit has points, and the most points come first:
//
//	100  definition: a keyword stands before the name ("func", "class", "#define", "CREATE TABLE")
//	     at the top of the file, or the line has the shape of a function's head
//	 88  inner definition: the same further in, or with a receiver or an owner ("func (b *B) X",
//	     "def self.X", "void B::X(")
//	 80  assignment at the top ("X = …", "X := …", "X:", "X ?= …")
//	 75  heading in prose ("# X", "X" above "====")
//	 60  inner assignment: the name begins a line one level in ("  X = …")
//	 50  declaration without a body ("int X(int);")
//	 40  member: the name begins an indented line, as a field, a key or an enumerator does
//	  0  use
//	+40  the name is a whole word;  +16 a whole part of one, as Mux in ServeMux
//	+10  upper and lower case are as asked, where case does not count; +30 if capitals are asked for
//	+60  a qualified name, or one of several words, stands there as it was asked for
//	 +6  the directory of a definition is called as the owner in a qualified name; +6 its file is
//	+25  the file is called so;  +10 a part of its name is;  +12 its directory is
//	+20  at most, for definitions: by the share of uses that name its file or directory, as io.X does
//	+12  at most, 2 for each doubling of the lines that the file has of it
//	-40  tests, examples and their data;  -40 vendored code;  -25 generated code;  -12 prose
//	 -4  internal or private directories;  -2 for each directory below the root, at most -16
//	-12  for each better hit of the same file, at most -60
//
// A file that is called so is a hit by itself: 70, or 30 for a part of its name, 5 for less.
// A query that speaks of tests loses nothing to tests. Ties go to the file that was changed in a
// later hour, then to the shorter path, then by path and line: the order depends on nothing else.
//
// Hits whose context overlaps become one. Of uses with the same text one stays, and of definitions
// with the same text and the same lines around them: it says how many there were.
//
// What is too much is counted and left out: a [Search] keeps some thousand hits, the best.
package rank

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"sync"
	"time"
)

// A File is where lines were found.
type File struct {
	Path    string // from the root of the search, with slashes
	ModTime time.Time
	Named   [][2]int // where its name, the last part of Path, matches the needle
	Lines   int      // that hold the needle, where not all of them are handed in
	// Around gives the lines before and after the i-th that is handed in.
	Around func(i int) (before, after []string)
}

func (f *File) around(i int) (before, after []string) {
	if f.Around == nil {
		return nil, nil
	}
	return f.Around(i)
}

// A Line is one line that holds the needle.
type Line struct {
	Number int // from 1
	Text   string
	From   int      // the byte of the line that Text begins with
	Spans  [][2]int // of the needle in Text
}

// A Hit is one answer.
type Hit struct {
	Path    string
	Line    int // 0: the file is called so, and nothing in it was found
	Column  int // in bytes from 1
	Text    string
	Before  []string
	After   []string
	More    []int // other lines that were found, all within Before and After
	Copies  int   // hits with the same text that were left out for this one
	Score   int
	Reasons []string

	modified time.Time
	kind     kind
}

// Search gathers what is found. It is safe for concurrent use.
type Search struct {
	q Query

	mu    sync.Mutex
	best  hits // a heap with the worst on top, once it is full
	votes map[string]int

	lines, files, named, both int
	cut                       bool
}

const (
	maxKept  = 2000
	maxVotes = 1 << 16 // different names
)

// New begins to gather hits for q.
func New(q Query) *Search { return &Search{q: q, votes: map[string]int{}} }

// Found takes the lines of a file that hold the needle.
func (s *Search) Found(f File, lines []Line) {
	p := s.q.place(f)
	found := make([]judged, 0, len(lines))
	votes := map[string]int{}
	for i := range lines {
		if j, ok := s.q.judge(&f, &p, lines, i, votes); ok {
			found = append(found, j)
		}
	}
	if len(found) == 0 {
		return
	}
	often := 0
	for n := len(found); n > 1 && often < 12; n /= 2 {
		often += 2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files++
	s.lines += len(found)
	if left := f.Lines - len(lines); left > 0 {
		s.cut = true
		if len(s.q.words)+len(s.q.qualifiers) == 0 {
			s.lines += left
		}
	}
	if p.named > 0 {
		s.both++
	}
	for name, n := range votes {
		if len(s.votes) < maxVotes || s.votes[name] > 0 {
			s.votes[name] += n
		}
	}
	for i := range found {
		j := &found[i]
		if j.Score += often; !s.wants(&j.Hit) {
			continue
		}
		j.Before, j.After = f.around(j.at)
		j.Reasons = append(append(j.reasons(), p.more...), p.less...)
		if often > 4 {
			j.Reasons = append(j.Reasons, "often in this file")
		}
		s.keep(j.Hit)
	}
}

// Name takes a file whose name may match, whatever is in it.
func (s *Search) Name(f File) {
	p := s.q.place(f)
	if p.named == 0 {
		return
	}
	h := Hit{Path: f.Path, Score: p.named + p.penalty, kind: fileName, modified: f.ModTime,
		Reasons: append([]string{"file name"}, p.less...)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named++
	s.keep(h)
}

// Lines and Files are how many of them were found, kept or not. Of a file that was not handed in
// whole, what may not have counted is not among them.
func (s *Search) Lines() int { return s.lines }

// Files counts those that are only called so, too.
func (s *Search) Files() int { return s.files + s.named - s.both }

// Complete says that Best leaves nothing out.
func (s *Search) Complete() bool { return !s.cut && s.lines+s.named <= maxKept }

// wants says whether a hit is among the best so far.
func (s *Search) wants(h *Hit) bool { return len(s.best) < maxKept || order(h, &s.best[0]) < 0 }

func (s *Search) keep(h Hit) {
	switch {
	case len(s.best) < maxKept:
		s.best = append(s.best, h)
		if len(s.best) == maxKept {
			heap.Init(&s.best)
		}
	case s.wants(&h):
		s.best[0] = h
		heap.Fix(&s.best, 0)
	}
}

// order is total: no two hits are the same line of the same file.
func order(a, b *Hit) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	if c := b.modified.Truncate(time.Hour).Compare(a.modified.Truncate(time.Hour)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")),
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
}

// hits is a heap with the worst on top.
type hits []Hit

func (h hits) Len() int           { return len(h) }
func (h hits) Less(i, j int) bool { return order(&h[i], &h[j]) > 0 }
func (h hits) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *hits) Push(any)          { panic("rank: the heap is as large as it gets") }
func (h *hits) Pop() any          { panic("rank: the heap never shrinks") }

// Best gives the hits, the best first. The search must be over.
func (s *Search) Best() []Hit {
	list := slices.Clone([]Hit(s.best))
	for i := range list {
		s.elect(&list[i])
	}
	sortHits(list)
	list = distinct(merged(named(list)))
	nth := map[string]int{}
	for i := range list {
		h := &list[i]
		h.Score -= min(12*nth[h.Path], 60)
		nth[h.Path]++
	}
	sortHits(list)
	return list
}

func sortHits(list []Hit) {
	slices.SortFunc(list, func(a, b Hit) int { return order(&a, &b) })
}

// elect gives a definition its share of the uses that name its file or directory.
func (s *Search) elect(h *Hit) {
	if !h.kind.defines() {
		return
	}
	all := 0
	for _, n := range s.votes {
		all += n
	}
	dir, stem := namesOf(h.Path)
	n := s.votes[strings.ToLower(stem)]
	if dir != stem {
		n += s.votes[strings.ToLower(dir)]
	}
	if points := 20 * n / max(all, 3); points > 0 {
		h.Score += points
		h.Reasons = append(h.Reasons, "used by this name")
	}
}

// named drops hits that are only names of files where something in the file was found too.
func named(list []Hit) []Hit {
	in := map[string]bool{}
	for i := range list {
		if list[i].Line > 0 {
			in[list[i].Path] = true
		}
	}
	return slices.DeleteFunc(list, func(h Hit) bool { return h.Line == 0 && in[h.Path] })
}

// merged makes one of hits whose context overlaps. The better one shows the other.
func merged(list []Hit) []Hit {
	kept := list[:0]
	at := map[string][]int{} // by path: places in kept
next:
	for _, h := range list {
		for _, i := range at[h.Path] {
			k := &kept[i]
			if h.Line > 0 && h.Line >= k.Line-len(k.Before) && h.Line <= k.Line+len(k.After) {
				k.More = append(k.More, h.Line)
				continue next
			}
		}
		at[h.Path] = append(at[h.Path], len(kept))
		kept = append(kept, h)
	}
	for i := range kept {
		slices.Sort(kept[i].More)
	}
	return kept
}

// distinct leaves one of hits that say the same.
func distinct(list []Hit) []Hit {
	kept := list[:0]
	seen := map[string]int{}
	for _, h := range list {
		if h.Line == 0 {
			kept = append(kept, h)
			continue
		}
		key := strings.TrimSpace(h.Text)
		if h.kind.defines() {
			key = strings.Join(h.Before, "\n") + "\x00" + h.Text + "\x00" + strings.Join(h.After, "\n")
			if len(h.Before)+len(h.After) == 0 {
				key = h.Path + "\x00" + key // without context nobody can tell a copy
			}
		}
		if i, ok := seen[key]; ok {
			kept[i].Copies++
			continue
		}
		seen[key] = len(kept)
		kept = append(kept, h)
	}
	return kept
}
