package match

import (
	"encoding/binary"
	"unsafe"
)

// scan runs an earliest DFA from state s over b. It gives the index of the byte on which it entered
// a special row, and that row; or len(b) and the live state.
//
// A match so found has ended with that byte or before it, in the same line. ("\n" belongs to the
// line that it ends.)
//
// The fast loop does not check bounds. It is safe because every cell holds a multiple of the row
// size within table, and classes stays within a row.
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
		// A special row leads to itself, so one look in eight bytes is enough. The slow loop below
		// repeats the eight bytes and finds the exact one.
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
	if x := d.table[s>>2+uint32(len(d.p.classByte))]; x != rowUnknown {
		return x
	}
	return d.compute(s, endOfText)
}

// scanLines is scan for a line-mode DFA over whole lines. It gives the same answer: the first
// special row in b.
//
// A single stream waits for the load from the table at every byte. Four streams side by side hide
// that wait from one another. The cuts are at line starts, where a line-mode DFA is in startLine
// in any case: so the parts are independent.
func (d *dfa) scanLines(b []byte) (int, uint32) {
	const least = 2 << 10
	if len(b) < least || d.startLine < d.row(rowCount) {
		return d.scan(b, d.startLine)
	}
	cut, shared := quarters(b)
	if shared == 0 { // the lines are too long to cut
		return d.scan(b, d.startLine)
	}
	states := [4]uint32{d.startLine, d.startLine, d.startLine, d.startLine}
	flushes := d.flushes
	done, hit, row := d.lockstep(b, cut[:], shared, &states)
	if d.flushes != flushes { // the states of the other streams are void
		return d.scan(b, d.startLine)
	}
	// The first special row counts. A stream before the one that hit may still find one in the rest
	// of its part.
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
			i, to := d.scan(b[cut[k+1]:], d.startLine)
			return cut[k+1] + i, to
		}
		if k == 3 {
			return len(b), to
		}
	}
	return cut[hit] + done, row
}

// quarters cuts b into four parts at line starts: part k is b[cut[k]:cut[k+1]]. shared is the length of the shortest.
func quarters(b []byte) (cut [5]int, shared int) {
	cut[4], shared = len(b), len(b)
	for k := 1; k < 4; k++ {
		cut[k] = afterLine(b, max(cut[k-1], len(b)*k/4))
	}
	for k := range 4 {
		shared = min(shared, cut[k+1]-cut[k])
	}
	return cut, shared
}

// lockstep runs the four streams n bytes far, or until one enters a special row. Then hit is that
// stream, row its row and done the index of the byte in its part; the streams before it have taken
// that byte too. When all come through, hit is 4 and done is n. After a flush the answer is void.
func (d *dfa) lockstep(b []byte, cut []int, n int, states *[4]uint32) (done, hit int, row uint32) {
	limit := d.row(rowCount)
	d.scanned += 4 * n
	base := unsafe.Pointer(unsafe.SliceData(b))
	p0, p1 := base, unsafe.Add(base, cut[1])
	p2, p3 := unsafe.Add(base, cut[2]), unsafe.Add(base, cut[3])
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

// countBytes notes that n bytes went by. The meter must hear of them: matches are asked for one by
// one, and each may look at the whole text again.
func (d *dfa) countBytes(n int) {
	d.scanned += n
	d.meter.pass(n)
}

// matchEnd runs a DFA of mode first over text[at:] from state s and gives the end of the match. ok
// is false for none; sure is false when the Pike VM must answer.
//
// Once place idle is passed and no started match is alive, it stops. Then resume is where to go on;
// otherwise it is -1.
func (d *dfa) matchEnd(text []byte, at int, s uint32, idle int) (end, resume int, ok, sure bool) {
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
			d.countBytes(i - at)
			return end, -1, ok, s == d.row(rowDead)
		}
		if i >= idle && !ok && (s == d.startLine || s == d.startOther || s == d.startWord) {
			d.countBytes(i - at)
			return 0, i + 1, false, true
		}
	}
	d.countBytes(len(text) - at)
	x := d.finish(s)
	if x&matchBit != 0 {
		return len(text), -1, true, true
	}
	return end, -1, ok, x != d.row(rowQuit)
}

// matchStart runs a longest DFA of the reversed program backwards from text[:end], not beyond
// least. It gives where the longest match begins, which is where the leftmost match begins.
func (d *dfa) matchStart(text []byte, least, end int) (begin int, sure bool) {
	s, ok := d.startText, true
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
			// The bytes before least matter to the assertions only.
			d.countBytes(end - i)
			return begin, begin >= 0 && s != d.row(rowQuit)
		}
	}
}

func load64(p unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(p)[:]) }
func load32(p unsafe.Pointer) uint32 { return binary.LittleEndian.Uint32((*[4]byte)(p)[:]) }
