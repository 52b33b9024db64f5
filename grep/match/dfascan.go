package match

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// scan runs an earliest DFA from state s over b. It gives the index of the byte on which a special row was entered and that
// row, or len(b) and the live state. A match so found has ended before or with that byte, in the same line ("\n" belongs
// to the line it ends).
func (d *dfa) scan(b []byte, s uint32) (int, uint32) {
	limit := d.row(rowCount)
	if s < limit || len(b) == 0 {
		return 0, s
	}
	d.scanned += len(b)
	table := unsafe.Pointer(unsafe.SliceData(d.table))
	p := unsafe.Pointer(unsafe.SliceData(b))
	i, n := 0, len(b)
	for {
		// A special row leads to itself, so one look in eight bytes is enough.
		for i+8 <= n {
			w := load64(unsafe.Add(p, i))
			x := cell(unsafe.Add(table, d.classes[byte(w)]), uintptr(s))
			x = cell(unsafe.Add(table, d.classes[byte(w>>8)]), uintptr(x))
			x = cell(unsafe.Add(table, d.classes[byte(w>>16)]), uintptr(x))
			x = cell(unsafe.Add(table, d.classes[byte(w>>24)]), uintptr(x))
			x = cell(unsafe.Add(table, d.classes[byte(w>>32)]), uintptr(x))
			x = cell(unsafe.Add(table, d.classes[byte(w>>40)]), uintptr(x))
			x = cell(unsafe.Add(table, d.classes[byte(w>>48)]), uintptr(x))
			x = cell(unsafe.Add(table, d.classes[byte(w>>56)]), uintptr(x))
			if x < limit {
				break
			}
			s = x
			i += 8
		}
		for stop := min(i+8, n); i < stop; i++ {
			x := cell(table, uintptr(s+d.classes[b[i]]))
			if x == rowUnknown {
				x = d.compute(s, int(b[i]))
				table = unsafe.Pointer(unsafe.SliceData(d.table))
			}
			if s = x; s < limit {
				return i, s
			}
		}
		if i == n {
			return n, s
		}
	}
}

// finish is the step at the end of the text.
func (d *dfa) finish(s uint32) uint32 {
	if s < d.row(rowCount) {
		return s
	}
	if x := d.table[s>>2+uint32(len(d.p.rep))]; x != rowUnknown {
		return x
	}
	return d.compute(s, endOfText)
}

// scanLines is scan for a line-mode DFA over whole lines. It runs four streams side by side: one waits for a load from the
// table on every byte, four hide that from one another. The answer is that of one stream: the first special row in b.
func (d *dfa) scanLines(b []byte) (int, uint32) {
	const least = 2 << 10
	if len(b) < least || d.lineGo < d.row(rowCount) {
		return d.scan(b, d.lineGo)
	}
	var cut [5]int
	cut[4] = len(b)
	for k := 1; k < 4; k++ {
		at := max(cut[k-1], len(b)*k/4)
		if nl := bytes.IndexByte(b[at:], '\n'); nl >= 0 {
			at += nl + 1
		} else {
			at = len(b)
		}
		cut[k] = at
	}
	shared := len(b)
	for k := range 4 {
		shared = min(shared, cut[k+1]-cut[k])
	}
	if shared == 0 { // lines too long to part
		return d.scan(b, d.lineGo)
	}
	states := [4]uint32{d.lineGo, d.lineGo, d.lineGo, d.lineGo}
	flushes := d.flushes
	done, hit, row := d.lockstep(b, cut[:], shared, &states)
	if d.flushes != flushes { // the states of the other streams are gone
		return d.scan(b, d.lineGo)
	}
	// Streams before the one that hit have not seen the rest of their part.
	taken := done
	if hit < 4 {
		taken++
	}
	for k := range hit {
		at := cut[k] + taken
		i, to := d.scan(b[at:cut[k+1]], states[k])
		if i < cut[k+1]-at {
			return at + i, to
		}
		if d.flushes != flushes {
			i, to := d.scan(b[cut[k+1]:], d.lineGo)
			return cut[k+1] + i, to
		}
		if k == 3 {
			return len(b), to
		}
	}
	return cut[hit] + done, row
}

// lockstep runs the four streams n bytes far or until one enters a special row: row, stream hit, on its byte done; the streams
// before it have taken that byte too. hit is 4 when all came through, and done is n. On a flush the answer is void.
func (d *dfa) lockstep(b []byte, cut []int, n int, states *[4]uint32) (done, hit int, row uint32) {
	limit := d.row(rowCount)
	d.scanned += 4 * n
	base := unsafe.Pointer(unsafe.SliceData(b))
	p0, p1, p2, p3 := base, unsafe.Add(base, cut[1]), unsafe.Add(base, cut[2]), unsafe.Add(base, cut[3])
	table := unsafe.Pointer(unsafe.SliceData(d.table))
	s0, s1, s2, s3 := states[0], states[1], states[2], states[3]
	flushes := d.flushes
	i := 0
	for {
		for i+4 <= n {
			w0, w1 := load32(unsafe.Add(p0, i)), load32(unsafe.Add(p1, i))
			w2, w3 := load32(unsafe.Add(p2, i)), load32(unsafe.Add(p3, i))
			x0 := cell(unsafe.Add(table, d.classes[byte(w0)]), uintptr(s0))
			x1 := cell(unsafe.Add(table, d.classes[byte(w1)]), uintptr(s1))
			x2 := cell(unsafe.Add(table, d.classes[byte(w2)]), uintptr(s2))
			x3 := cell(unsafe.Add(table, d.classes[byte(w3)]), uintptr(s3))
			x0 = cell(unsafe.Add(table, d.classes[byte(w0>>8)]), uintptr(x0))
			x1 = cell(unsafe.Add(table, d.classes[byte(w1>>8)]), uintptr(x1))
			x2 = cell(unsafe.Add(table, d.classes[byte(w2>>8)]), uintptr(x2))
			x3 = cell(unsafe.Add(table, d.classes[byte(w3>>8)]), uintptr(x3))
			x0 = cell(unsafe.Add(table, d.classes[byte(w0>>16)]), uintptr(x0))
			x1 = cell(unsafe.Add(table, d.classes[byte(w1>>16)]), uintptr(x1))
			x2 = cell(unsafe.Add(table, d.classes[byte(w2>>16)]), uintptr(x2))
			x3 = cell(unsafe.Add(table, d.classes[byte(w3>>16)]), uintptr(x3))
			x0 = cell(unsafe.Add(table, d.classes[byte(w0>>24)]), uintptr(x0))
			x1 = cell(unsafe.Add(table, d.classes[byte(w1>>24)]), uintptr(x1))
			x2 = cell(unsafe.Add(table, d.classes[byte(w2>>24)]), uintptr(x2))
			x3 = cell(unsafe.Add(table, d.classes[byte(w3>>24)]), uintptr(x3))
			if min(x0, x1, x2, x3) < limit {
				break
			}
			s0, s1, s2, s3 = x0, x1, x2, x3
			i += 4
		}
		for stop := min(i+4, n); i < stop; i++ {
			*states = [4]uint32{s0, s1, s2, s3}
			for k := range 4 {
				c := b[cut[k]+i]
				x := d.table[(states[k]+d.classes[c])>>2]
				if x == rowUnknown {
					if x = d.compute(states[k], int(c)); d.flushes != flushes {
						return 0, 0, 0
					}
					table = unsafe.Pointer(unsafe.SliceData(d.table))
				}
				if x < limit {
					return i, k, x
				}
				states[k] = x
			}
			s0, s1, s2, s3 = states[0], states[1], states[2], states[3]
		}
		if i == n {
			*states = [4]uint32{s0, s1, s2, s3}
			return n, 4, 0
		}
	}
}

// pass notes that n bytes went by. Matches are asked for one by one, and each may look at the whole text again.
func (d *dfa) pass(n int) {
	d.scanned += n
	d.meter.pass(n)
}

// last runs a DFA of mode first over text[at:] from state s and gives the end of the match; ok is false for none, sure is
// false when the DFA has to leave the answer to pike. When after place idle nothing is alive that could become a match, it
// stops: then resume is where to go on, otherwise it is -1.
func (d *dfa) last(text []byte, at int, s uint32, idle int) (end, resume int, ok, sure bool) {
	limit := d.row(rowCount)
	if s < limit {
		return 0, -1, false, s == d.row(rowDead)
	}
	for i := at; i < len(text); i++ {
		x := d.table[(s+d.classes[text[i]])>>2]
		if x == rowUnknown {
			x = d.compute(s, int(text[i]))
		}
		if x&matchBit != 0 {
			end, ok = i, true
			x &^= matchBit
		}
		if s = x; s < limit {
			d.pass(i - at)
			return end, -1, ok, s == d.row(rowDead)
		}
		if i >= idle && !ok && (s == d.lineGo || s == d.elseGo || s == d.wordGo) {
			d.pass(i - at)
			return 0, i + 1, false, true
		}
	}
	d.pass(len(text) - at)
	x := d.finish(s)
	if x&matchBit != 0 {
		return len(text), -1, true, true
	}
	return end, -1, ok, x != d.row(rowQuit)
}

// first runs a longest DFA of the reversed program backwards from text[:end], not beyond least, and gives where the
// longest match begins.
func (d *dfa) first(text []byte, least, end int) (begin int, sure bool) {
	s, ok := d.textGo, true
	if end < len(text) {
		s, ok = d.enterAfter(text[end])
	}
	limit := d.row(rowCount)
	begin = -1
	if !ok || s < limit {
		return 0, false
	}
	for i := end; ; i-- {
		var x uint32
		if i == 0 {
			x = d.finish(s)
		} else {
			c := text[i-1]
			if x = d.table[(s+d.classes[c])>>2]; x == rowUnknown {
				x = d.compute(s, int(c))
			}
		}
		if x&matchBit != 0 {
			begin = i
			x &^= matchBit
		}
		if s = x; s < limit || i <= least {
			// Beyond least only the assertions were of interest.
			d.pass(end - i)
			return begin, begin >= 0 && s != d.row(rowQuit)
		}
	}
}

func load64(p unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(p)[:]) }
func load32(p unsafe.Pointer) uint32 { return binary.LittleEndian.Uint32((*[4]byte)(p)[:]) }
