package edit

import (
	"bytes"
	"hash/maphash"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
)

// hit says that a line of the text has something in common with a line of Old.
type hit struct {
	line, old int
	key       uint64
	weight    float64
}

const (
	maxHitsPerKey = 64 // a line or word that is more frequent says little about the place
	maxOldKeys    = 4096
)

// nearest finds the stretch of the text that has most in common with Old: whole lines first,
// folded and without case, and words if no line is the same. Each line and word of
// the text is looked up once; only the few best windows are compared with Old.
func nearest(src *source, old []byte) (best diagnosis, ok bool) {
	olds := diff.Lines(old)
	lines := diff.Lines(src.text)
	if len(olds) == 0 {
		return best, false
	}
	hits, total := hitsOf(lines, olds, maxHitsPerKey, lineKeys())
	windows := bestWindows(hits, len(olds))
	if len(windows) == 0 || windows[0].score < total/4 {
		hits, total = hitsOf(lines, olds, 16*maxHitsPerKey, eachWord)
		windows = bestWindows(hits, len(olds))
	}
	least := math.MaxInt
	for _, w := range windows {
		for _, w := range []window{w, {w.first, w.first, w.score}, {w.last, w.last, w.score}} {
			d := w.region(src, lines, olds, old)
			if d.end <= d.start || w.score < total/4 && !alike(old, src.text[d.start:d.end]) {
				continue
			}
			n, other := distance(old, src.text[d.start:d.end]), d.end <= best.start || d.start >= best.end
			switch {
			case n < least:
				d.rival = ok && (other && least <= max(2*n, n+1) || !other && best.rival)
				best, least, ok = d, n, true
			case other && n <= max(2*least, least+1):
				best.rival = true
			}
		}
	}
	best.rival = best.rival || len(windows) == maxWindows
	return best, ok
}

// region is the stretch that a window places: the first and the last line in common say where Old would begin and end.
func (w *window) region(src *source, lines, olds [][]byte, old []byte) diagnosis {
	from := max(0, w.first.line-w.first.old)
	to := min(len(lines), w.last.line+len(olds)-w.last.old)
	from, to = min(from, len(lines)-1), max(to, from+1)
	from = firstLine(lines, olds, w.first.line, from)
	if end := lastLine(lines, olds, from); end > w.last.line {
		to = end
	}
	d := diagnosis{cause: CauseUnknown, partial: true}
	d.start, d.end = stretchOf(lines, from, to)
	// Old may begin or end inside a line.
	if stretch := src.text[d.start:d.end]; len(stretch) > longLine && len(stretch) > 4*len(old) {
		a, b, ok := closestPart(stretch, old)
		if !ok || len(olds) > 1 {
			d.start, d.end, d.open = d.start+a, d.start+b, true
			return d
		}
		a, b = wholeWords(stretch, max(0, a-len(old)/4), min(len(stretch), b+len(old)/4))
		d.start, d.end = d.start+a, d.start+b
	}
	d.alignEnds(src, old)
	return d
}

// distance says in how much two texts differ: in characters, or where they are long in bytes of words.
func distance(a, b []byte) (n int) {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if len(a) <= longLine && len(b) <= longLine {
		return differing([]rune(string(a)), []rune(string(b)))
	}
	x, y := tokens(a), tokens(b)
	for _, c := range diff.Changes(x, y) {
		n += max(len(bytes.Join(x[c.A0:c.A1], nil)), len(bytes.Join(y[c.B0:c.B1], nil)))
	}
	return n
}

// closestPart finds the part of a long line that has most in common with old, word by word.
func closestPart(line, old []byte) (from, to int, ok bool) {
	words, olds := tokens(line), tokens(old)
	hits, _ := hitsOf(words, olds, 16*maxHitsPerKey, lineKeys())
	windows := bestWindows(hits, len(olds))
	if len(windows) == 0 {
		return 0, 0, false
	}
	w := windows[0]
	from, to = stretchOf(words, w.first.line-w.first.old, w.last.line+len(olds)-w.last.old)
	return from, to, true
}

// stretchOf gives the offsets of some parts of a text.
func stretchOf(parts [][]byte, first, last int) (from, to int) {
	for i, p := range parts[:min(last, len(parts))] {
		if i < first {
			from += len(p)
		}
		to += len(p)
	}
	return from, to
}

// firstLine finds the line at which a region begins that has lines[hit]: the last one up to there that is the first line
// of olds, but for blanks and case. It gives from, where it would be by its distance, if there is none near.
func firstLine(lines, olds [][]byte, hit, from int) int {
	want, size, buf := lineKey(olds[0], nil)
	for i := hit; size > 0 && i >= max(0, from-len(olds)); i-- {
		var k uint64
		if k, _, buf = lineKey(lines[i], buf); k == want {
			return i
		}
	}
	return from
}

// lastLine finds the line at which a region ends that begins with lines[from]: the first that is the last line of
// olds, with the indentation that it has there if the first lines are one below the other. Where olds has that line
// several times, it is passed as often. It gives the number of the line after it; 0 if there is none near.
func lastLine(lines, olds [][]byte, from int) int {
	content := func(l []byte) string { return string(bytes.TrimRight(l, " \t\r\n")) }
	n := len(olds)
	for n > 1 && content(olds[n-1]) == "" {
		n--
	}
	if n < 2 {
		return 0
	}
	want, times := content(olds[n-1]), 0
	for _, l := range olds[1:n] {
		if content(l) == want {
			times++
		}
	}
	if rest, ok := strings.CutPrefix(want, string(indentOf(olds[0]))); ok {
		want = string(indentOf(lines[from])) + rest
	}
	for i := from + 1; i < min(len(lines), from+4*n+64); i++ {
		if content(lines[i]) == want {
			if times--; times == 0 {
				return i + 1 + len(olds) - n
			}
		}
	}
	return 0
}

// alignEnds moves the ends of a region that is merely alike to where Old begins and ends. If one of them is in doubt, d.open is set: the
// region is then whole lines, which can be looked at, but don't stand for Old.
func (d *diagnosis) alignEnds(src *source, old []byte) {
	if d.end <= d.start {
		return
	}
	from, to := lineStart(src.text, d.start), lineFrom(src.text, lineStart(src.text, d.end-1))
	lines := to.next-from <= longLine+4*len(old)
	if lines {
		d.start, d.end = from, to.end
	}
	trim := func(l []byte) []byte { return bytes.Trim(l, " \t\r\n") }
	region := src.text[d.start:d.end]
	olds, there := splitLines(old), splitLines(region)
	if len(trim(old[olds[len(olds)-1].start:])) == 0 && len(olds) > 1 { // Old ends with a line break
		olds = olds[:len(olds)-1]
		defer func() {
			if lines && d.end == to.end {
				d.end = to.next
			}
		}()
	}
	if len(indentOf(old)) == 0 {
		d.start += len(indentOf(src.text[d.start:d.end]))
	}
	if len(olds) == 1 && len(there) == 1 {
		from, to, ok := within(old[:olds[0].end], src.text[d.start:d.end], lines)
		d.start, d.end, d.open = d.start+from, d.start+to, !ok
		return
	}
	head, tail := trim(old[:olds[0].end]), trim(old[olds[len(olds)-1].start:olds[len(olds)-1].end])
	at := d.end - (there[len(there)-1].end - there[len(there)-1].start) // of the last line
	first, last := trim(src.text[d.start:lineFrom(src.text, d.start).end]), trim(src.text[at:d.end])
	below := 0 // lines that are like the one of Old with the same number
	for i := range min(len(olds), len(there)) {
		if a, b := trim(old[olds[i].start:olds[i].end]), trim(region[there[i].start:there[i].end]); alike(a, b) {
			below++
		}
	}
	aligned := len(olds) == len(there) && 2*below >= len(olds)
	switch {
	case bytes.Equal(head, first):
	case len(head) > 0 && bytes.HasSuffix(first, head):
		d.start += bytes.Index(src.text[d.start:], first) + len(first) - len(head)
	case !aligned && !alike(head, first):
		d.open = true
	}
	switch {
	case bytes.Equal(tail, last):
	case len(tail) > 0 && bytes.HasPrefix(last, tail):
		d.end = at + bytes.Index(src.text[at:], last) + len(tail)
	case !aligned && !alike(tail, last):
		d.open = true
	}
}

var lineSeed = maphash.MakeSeed()

// lineKey is the same for lines that differ in blanks, typography or case; size is how much text they have, 0 for blank ones. buf is
// memory to work in, and is given back.
func lineKey(l []byte, buf []byte) (key uint64, size int, _ []byte) {
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
		buf, at = appendFolded(buf, l, at)
	}
	return maphash.Bytes(lineSeed, buf), len(buf), buf
}

// lineKeys gives the keys of a part for hitsOf that is taken as a whole.
func lineKeys() func(part []byte, f func(key uint64, size int)) {
	var buf []byte
	return func(l []byte, f func(uint64, int)) {
		var k uint64
		var size int
		if k, size, buf = lineKey(l, buf); size > 0 {
			f(k, size)
		}
	}
}

// hitsOf finds the parts of a text that have a key in common with one of olds. keys calls f for each key of a part, with the bytes that it
// stands for: with lineKeys a part has one key, with eachWord one a word. Keys that are in more than most parts say little about the place and are left out. total is the weight of all keys of
// olds.
func hitsOf(parts, olds [][]byte, most int, keys func(part []byte, f func(key uint64, size int))) (hits []hit, total float64) {
	type wanted struct {
		old  int // the first part of olds with the key
		size int
		seen int // parts of the text that have it
		last int // number of the last of them, from 1
	}
	want := make(map[uint64]*wanted)
	i := 0 // number of the part
	note := func(k uint64, size int) {
		if want[k] == nil && len(want) < maxOldKeys {
			want[k] = &wanted{old: i, size: size}
			total += weigh(size, 1)
		}
	}
	look := func(k uint64, _ int) { // one function for all parts: one a part would be one in memory
		if w := want[k]; w != nil && w.last != i+1 {
			w.last = i + 1
			if w.seen++; w.seen <= most {
				hits = append(hits, hit{i, w.old, k, 0})
			}
		}
	}
	for i = range olds {
		keys(olds[i], note)
	}
	for i = range parts {
		keys(parts[i], look)
	}
	kept := hits[:0]
	for _, x := range hits {
		if w := want[x.key]; w.seen <= most {
			x.weight = weigh(w.size, w.seen)
			kept = append(kept, x)
		}
	}
	return kept, total
}

// weigh favours long and rare.
func weigh(size, count int) float64 {
	return math.Log2(float64(size)+1) / math.Sqrt(float64(count))
}

// eachWord calls f for the runs of letters and digits of l, and for each ideograph.
func eachWord(l []byte, f func(key uint64, size int)) {
	var buf [64]byte
	word := buf[:0]
	end := func() {
		if len(word) > 0 {
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

// window is a stretch of the text: its first and last hit, by which Old is placed.
type window struct {
	first, last hit
	score       float64
}

// maxWindows bounds how many places are compared with Old.
const maxWindows = 32

// bestWindows slides a window somewhat longer than Old over the hits and gives the best ones, which do not overlap. Several
// hits of one key count once.
func bestWindows(hits []hit, size int) (out []window) {
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].line < hits[j].line })
	span := size + size/4
	if size > 1 {
		span++
	}
	type stretch struct {
		i, j int
		sum  float64
	}
	inside := make(map[uint64]int)
	var all []stretch
	var sum float64
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
		all = append(all, stretch{i, j, sum})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].sum > all[j].sum })
	for _, s := range all {
		a, b := hits[s.i], hits[s.j]
		if len(out) == maxWindows || s.sum < all[0].sum/2 {
			break
		}
		if slices.ContainsFunc(out, func(n window) bool { return a.line <= n.last.line && b.line >= n.first.line }) {
			continue
		}
		// The ends are taken from the heaviest hits, those that place Old most surely.
		for _, x := range hits[s.i : s.j+1] {
			if x.line-x.old == hits[s.i].line-hits[s.i].old {
				continue
			}
			if x.weight > 2*a.weight {
				a = x
			}
			if x.weight > 2*b.weight {
				b = x
			}
		}
		if a.line-a.old > b.line+size-b.old {
			b = a
		}
		out = append(out, window{a, b, s.sum})
	}
	return out
}

// alike says that at most a third of the characters of a line are others than in another line.
func alike(a, b []byte) bool {
	x, y := []rune(string(a)), []rune(string(b))
	return 3*differing(x, y) <= min(len(x), len(y))
}

// differing counts the characters in which two texts differ.
func differing(x, y []rune) (n int) {
	if len(x) > longLine || len(y) > longLine {
		return max(len(x), len(y))
	}
	for _, c := range diff.Runes(x, y) {
		n += max(c.A1-c.A0, c.B1-c.B0)
	}
	return n
}

// within finds the part of a line that old stands for: from the first token of old to its last one, or the whole
// line if it is one, whichever is more like old. ok is false, and the part is all, if neither is much like it.
func within(old, line []byte, whole bool) (from, to int, ok bool) {
	trimmed := bytes.Trim(old, " \t")
	want := []rune(string(trimmed))
	from, to = 0, len(line)
	best := differing(want, []rune(string(bytes.Trim(line, " \t"))))
	if ok = whole && 3*best <= len(want); !whole {
		best = len(want)
	}
	tokens := tokenEnds(trimmed)
	if len(tokens) == 0 || len(line) > 4*longLine {
		return from, to, ok
	}
	begin, end := trimmed[:tokens[0]], trimmed
	if len(tokens) > 1 {
		end = trimmed[tokens[len(tokens)-2]:]
	}
	var begins, ends []int
	at := 0
	for _, next := range tokenEnds(line) {
		if sameToken(line[at:next], begin) {
			begins = append(begins, at)
		}
		if sameToken(line[at:next], end) {
			ends = append(ends, next)
		}
		at = next
	}
	for _, a := range begins[:min(len(begins), maxEnds)] {
		for _, b := range ends[:min(len(ends), maxEnds)] {
			if a >= b || b-a > 4*len(old)+64 {
				continue
			}
			have := []rune(string(line[a:b]))
			n := differing(want, have)
			lost := n - max(0, len(have)-len(want)) // what the file has more is no loss
			if (n < best || n == best && !ok) && 3*lost <= len(want) {
				from, to, best, ok = a, b, n, true
			}
		}
	}
	if len(indentOf(old)) > 0 && len(indentOf(line)) == from {
		from = 0
	}
	return from, to, ok
}

// sameToken says that two tokens are the same, or signs of which one has more marks: ⚠ and ⚠️.
func sameToken(a, b []byte) bool {
	x, _ := utf8.DecodeRune(a)
	y, _ := utf8.DecodeRune(b)
	return bytes.Equal(a, b) || x == y && x >= utf8.RuneSelf && !unicode.IsLetter(x)
}

// maxEnds bounds how many places of a line are tried as one end of a region.
const maxEnds = 12
