package index

import (
	"cmp"
	"math/bits"
	"slices"

	"moltisfs/grep/match/frequency"
)

// trigrams is a set of three-byte sequences, ASCII letters without case, that may hold more than
// was put in: one bit for each, at a place that its hash gives, and five bits of room for each
// sequence.
type trigrams []uint64

const (
	bitsEach     = 5
	maxFiltered  = 64 << 20 // bytes; a larger file has no filter
	maxWhole     = 4 << 20  // bytes; lines beyond, and texts for Multiline, may be searched in pieces, which a result counts
	maxDistinct  = 1 << 18  // sequences; a file with more is no text that anybody searches
	trigramSpace = 1 << 24
)

// fold maps ASCII capitals to small letters.
var fold = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

func (t trigrams) place(h uint32) (word uint32, bit uint64) {
	n, _ := bits.Mul32(h, uint32(len(t))*64)
	return n / 64, 1 << (n % 64)
}

func (t trigrams) has(h uint32) bool {
	w, b := t.place(h)
	return t[w]&b != 0
}

func hashTrigram(x uint32) uint32 { return x * 0x9e3779b1 }

// trigramSet gathers the sequences of one text. It is reused: 2 MiB.
type trigramSet struct {
	seen [trigramSpace / 64]uint64
	list []uint32
	last uint32 // the bytes before, for a text that comes in parts
	have int    // how many of them there are, at most 2
}

func (s *trigramSet) reset() {
	for _, x := range s.list {
		s.seen[x/64] = 0
	}
	s.list, s.last, s.have = s.list[:0], 0, 0
}

func (s *trigramSet) add(b []byte) {
	for len(b) > 0 && s.have < 2 {
		s.last = s.last<<8 | uint32(fold[b[0]])
		s.have++
		b = b[1:]
	}
	x := s.last
	for _, c := range b {
		x = (x<<8 | uint32(fold[c])) & (trigramSpace - 1)
		if w := &s.seen[x/64]; *w&(1<<(x%64)) == 0 {
			*w |= 1 << (x % 64)
			s.list = append(s.list, x)
		}
	}
	s.last = x
}

// filter is nil for a text that is no text.
func (s *trigramSet) filter() trigrams {
	if len(s.list) > maxDistinct {
		return nil
	}
	t := make(trigrams, 1+len(s.list)*bitsEach/64)
	for _, x := range s.list {
		w, b := t.place(hashTrigram(x))
		t[w] |= b
	}
	return t
}

// clauses is what a match needs: of each clause one alternative, of an alternative all sequences,
// the rarest first.
type clauses [][][]uint32

// A Question is a pattern as an index can answer it.
type Question struct {
	clauses
	NonASCII  bool // the pattern names characters outside ASCII
	Multiline bool
}

// Ask is for a pattern of which one literal of each list occurs in every match, in either case. It
// is nil when they say nothing that a filter could answer.
func Ask(literals [][]string) *Question {
	var q clauses
	for _, c := range literals {
		var any [][]uint32
		for _, l := range c {
			if len(l) < 3 {
				any = nil
				break
			}
			any = append(any, trigramsOf(l))
		}
		if any != nil {
			q = append(q, any)
		}
	}
	// The clause that says most comes first: few alternatives, long ones.
	slices.SortStableFunc(q, func(a, b [][]uint32) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(len(b[0]), len(a[0])))
	})
	if q == nil {
		return nil
	}
	return &Question{clauses: q}
}

func trigramsOf(l string) []uint32 {
	type rated struct {
		hash uint32
		rare float64
	}
	var all []rated
	for i := 0; i+3 <= len(l); i++ {
		a, b, c := fold[l[i]], fold[l[i+1]], fold[l[i+2]]
		r := rated{hashTrigram(uint32(a)<<16 | uint32(b)<<8 | uint32(c)), frequency.Of(a) * frequency.Of(b) * frequency.Of(c)}
		if !slices.ContainsFunc(all, func(o rated) bool { return o.hash == r.hash }) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b rated) int {
		switch {
		case a.rare < b.rare:
			return -1
		case a.rare > b.rare:
			return 1
		}
		return 0
	})
	out := make([]uint32, len(all))
	for i, r := range all {
		out[i] = r.hash
	}
	return out
}

// mayMatch says whether a text with the sequences t can hold a match.
func (q clauses) mayMatch(t trigrams) bool {
clauses:
	for _, clause := range q {
	alternatives:
		for _, alternative := range clause {
			for _, h := range alternative {
				if !t.has(h) {
					continue alternatives
				}
			}
			continue clauses
		}
		return false
	}
	return true
}

// MayMatch says whether the file may hold what q asks for. A file that was not read, or that no
// filter speaks for, always may.
func (f *File) MayMatch(q *Question) bool {
	switch {
	case !f.known, q.NonASCII && !f.plain, q.Multiline && f.stamp.size > maxWhole:
		return true
	case f.filter == nil:
		return !f.Empty
	}
	return q.mayMatch(f.filter)
}
