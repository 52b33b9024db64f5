package edit

import (
	"bytes"
	"hash/maphash"
	"math"
	"sort"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/edit/letters"
	"moltisfs/internal/edit/mend"
)

// hit says that a line of the text has something in common with a line of Old.
type hit struct {
	line, old int
	key       uint64
	weight    float64
}

const (
	maxHitsPerKey = 64 // a line or word that is more frequent says little about the place
	maxOldWords   = 4096
)

// nearest finds the stretch of the text that has most in common with Old: whole lines first,
// compared by skeleton and without case, and words where no line is the same. Each line and word of
// the text is looked up once; nothing is compared with everything.
func nearest(h *haystack, old []byte) (diagnosis, bool) {
	olds := diff.Lines(old)
	lines := diff.Lines(h.text)
	if len(olds) == 0 {
		return diagnosis{}, false
	}
	hits, total := lineHits(lines, olds)
	first, last, score := bestWindow(hits, len(olds))
	if score < total/4 || score == 0 {
		var most float64
		hits, most = wordHits(lines, olds)
		if first, last, score = bestWindow(hits, len(olds)); score < most/4 || score == 0 {
			return diagnosis{}, false
		}
	}
	// The first and the last line in common say where Old would begin and end.
	from := max(0, first.line-first.old)
	to := min(len(lines), last.line+len(olds)-last.old)
	from, to = min(from, len(lines)-1), max(to, from+1)
	d := diagnosis{cause: CauseUnknown, partial: true}
	for i, l := range lines[:to] {
		if i < from {
			d.start += len(l)
		}
		d.end += len(l)
	}
	content := func(l []byte) []byte { return bytes.TrimRight(l, "\r\n") }
	if !bytes.HasSuffix(old, []byte("\n")) || len(olds) == 0 {
		d.end = d.start + len(content(h.text[d.start:d.end]))
	}
	if d.end <= d.start {
		return diagnosis{}, false
	}
	// Old may begin or end inside a line.
	if stretch := h.text[d.start:d.end]; len(stretch) > longLine && len(stretch) > 4*len(old) {
		from, to, ok := mend.Thick(stretch, old)
		if !ok || len(olds) > 1 {
			d.start, d.end = d.start+from, d.start+to
			return d, ok
		}
		from, to = max(0, from-len(old)/4), min(len(stretch), to+len(old)/4)
		d.start, d.end = d.start+from, d.start+to
	}
	if len(olds) == 1 && !bytes.ContainsAny(old, "\r\n") {
		a, b := within(old, h.text[d.start:d.end])
		d.start, d.end = d.start+a, d.start+b
	} else if in := indentOf(h.text[d.start:d.end]); len(indentOf(old)) == 0 {
		d.start += len(in)
	}
	return d, d.end > d.start
}

var lineSeed = maphash.MakeSeed()

// lineKey is the same for lines that differ in blanks, typography or case; 0 for blank ones.
func lineKey(l []byte, buf []byte) (uint64, []byte) {
	buf = buf[:0]
	for at := 0; at < len(l); {
		if c := l[at]; c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			if c > ' ' {
				buf = append(buf, c)
			}
			at++
			continue
		}
		buf, at = letters.Bone(buf, l, at)
	}
	if len(buf) == 0 {
		return 0, buf
	}
	return maphash.Bytes(lineSeed, buf) | 1, buf
}

func lineHits(lines, olds [][]byte) (hits []hit, total float64) {
	var buf []byte
	type wanted struct {
		at   int // the first line of Old with the key
		size int
		seen int
	}
	want := make(map[uint64]*wanted, len(olds))
	for i, l := range olds {
		var k uint64
		k, buf = lineKey(l, buf)
		if k == 0 {
			continue
		}
		if want[k] == nil {
			want[k] = &wanted{at: i, size: len(buf)}
			total += weigh(len(buf), 1)
		}
	}
	for i, l := range lines {
		var k uint64
		k, buf = lineKey(l, buf)
		w := want[k]
		if k == 0 || w == nil {
			continue
		}
		if w.seen++; w.seen <= maxHitsPerKey {
			hits = append(hits, hit{i, w.at, k, 0})
		}
	}
	kept := hits[:0]
	for _, x := range hits {
		w := want[x.key]
		if w.seen > maxHitsPerKey {
			continue
		}
		x.weight = weigh(w.size, w.seen)
		kept = append(kept, x)
	}
	return kept, total
}

// weigh favours long and rare.
func weigh(size, count int) float64 {
	return math.Log2(float64(size)+1) / math.Sqrt(float64(count))
}

// wordHits does the same by words.
func wordHits(lines, olds [][]byte) (hits []hit, total float64) {
	type wanted struct{ at, size, seen int }
	want := make(map[uint64]*wanted)
	for i, l := range olds {
		eachWord(l, func(k uint64, size int) {
			if want[k] == nil && len(want) < maxOldWords {
				want[k] = &wanted{at: i, size: size}
				total += weigh(size, 1)
			}
		})
	}
	last := make(map[uint64]int)
	for i, l := range lines {
		eachWord(l, func(k uint64, _ int) {
			w := want[k]
			if w == nil || last[k] == i+1 {
				return
			}
			last[k] = i + 1
			if w.seen++; w.seen <= 16*maxHitsPerKey {
				hits = append(hits, hit{i, w.at, k, 0})
			}
		})
	}
	kept := hits[:0]
	for _, x := range hits {
		w := want[x.key]
		if w.seen > 16*maxHitsPerKey {
			continue
		}
		x.weight = weigh(w.size, w.seen)
		kept = append(kept, x)
	}
	return kept, total
}

// eachWord calls f for the runs of letters and digits of l, and for each ideograph.
func eachWord(l []byte, f func(key uint64, size int)) {
	var buf [64]byte
	word := buf[:0]
	end := func() {
		if len(word) > 1 {
			f(maphash.Bytes(lineSeed, word), len(word))
		}
		word = word[:0]
	}
	for at := 0; at < len(l); {
		c := l[at]
		if c < utf8.RuneSelf {
			at++
			switch {
			case 'A' <= c && c <= 'Z':
				c += 'a' - 'A'
				fallthrough
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_':
				if len(word) < len(buf) {
					word = append(word, c)
				}
			default:
				end()
			}
			continue
		}
		r, n := utf8.DecodeRune(l[at:])
		switch {
		case unicode.Is(unicode.Han, r):
			end()
			f(maphash.Bytes(lineSeed, l[at:at+n]), 2)
		case unicode.IsLetter(r) || unicode.Is(unicode.Mn, r):
			if len(word)+n <= len(buf) {
				word = append(word, l[at:at+n]...)
			}
		default:
			end()
		}
		at += n
	}
	end()
}

// bestWindow slides a window somewhat longer than Old over the hits and gives the first and the
// last hit of the best one. What several hits say about one key counts once.
func bestWindow(hits []hit, size int) (first, last hit, score float64) {
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].line < hits[j].line })
	span := size + size/4
	if size > 1 {
		span++
	}
	inside := make(map[uint64]int)
	var sum, best float64
	bi, bj := -1, -1
	i := 0
	for j, x := range hits {
		if inside[x.key]++; inside[x.key] == 1 {
			sum += x.weight
		}
		for hits[i].line <= x.line-span {
			if inside[hits[i].key]--; inside[hits[i].key] == 0 {
				sum -= hits[i].weight
			}
			i++
		}
		if sum > best+1e-9 {
			best, bi, bj = sum, i, j
		}
	}
	if bi < 0 {
		return hit{}, hit{}, 0
	}
	// The ends are taken from the heaviest hits, those that place Old most surely.
	first, last = hits[bi], hits[bj]
	for _, x := range hits[bi : bj+1] {
		if x.line-x.old == first.line-first.old {
			continue
		}
		if x.weight > 2*first.weight {
			first = x
		}
		if x.weight > 2*last.weight {
			last = x
		}
	}
	if first.line-first.old > last.line+size-last.old {
		last = first
	}
	return first, last, best
}

// within finds the part of line that is most like old, in whole words; else all but its indentation.
func within(old, line []byte) (from, to int) {
	in := len(indentOf(line))
	if in > 0 && len(indentOf(old)) > 0 {
		in = 0
	}
	budget := mend.Budget
	l, ok := mend.Approx(line, old, &budget)
	if !ok {
		return in, len(line)
	}
	return mend.Whole(line, l.Start, l.End)
}
