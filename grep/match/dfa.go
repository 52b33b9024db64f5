package match

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// dfaMode says what a DFA stops at.
type dfaMode uint8

const (
	dfaEarliest dfaMode = iota // says that a match has ended, as soon as that is sure; sets, no preferences
	dfaFirst                   // the end of the leftmost-first match; states keep their threads in order
	dfaLongest                 // the longest match; on the reversed program it gives where a match begins
)

// dfaBytes bounds the tables and keys of one DFA. When it is reached everything is forgotten; when that happens too often
// the DFA gives up and the caller goes on with pike.
const dfaBytes = 1 << 20

// dfa builds the states of a program as text asks for them. A state is named by the byte offset of its row in table, so that
// a step is one add and one load. The first rows are special, in this order; each leads to itself on every byte.
type dfa struct {
	p        *program
	mode     dfaMode
	anchored bool
	shift    uint // log2 of the bytes in a row
	table    []uint32
	states   map[string]uint32 // by the bytes of their sets, in blocks
	sets     [][]int32         // by row: flags, then threads; in blocks
	blocks   [][]int32
	used     int    // blocks that are full, or being filled
	size     int    // bytes in table, keys and sets
	limit    int    // of size
	textGo   uint32 // where the text begins
	lineGo   uint32 // after "\n"
	wordGo   uint32 // after a word byte
	elseGo   uint32 // after any other byte
	classes  [256]uint32

	seen    []uint32
	gen     uint32
	stack   []int32
	order   []int32
	next    []int32
	key     []byte
	matched bool

	fresh   int // states made since the last flush
	flushes int
	scanned int // bytes scanned since the last flush
	gaveUp  bool
	meter   *meter
}

// Row numbers; times the row size they are states. Row 0 in a table cell means "not computed yet".
const (
	rowUnknown = iota
	rowMatch   // earliest: a match ended
	rowQuit    // only pike can say
	rowDead    // nothing more can match
	rowCount
)

// matchBit on a table cell of the modes first and longest: a match ended before the byte that was just taken.
const matchBit = 1 << 31

// Flags of a state, in sets[row][0].
const (
	atTextStart = 1 << iota
	atLineStart
	afterWord
	heldCR // a "\r" was taken but not yet looked at: only the next byte tells whether it ends the line
)

const endOfText = 256 // as a "byte": the class after all others

func newDFA(p *program, mode dfaMode, anchored bool, limit int, m *meter) *dfa {
	d := &dfa{p: p, mode: mode, anchored: anchored, limit: limit, meter: m}
	d.shift = 2
	for 1<<(d.shift-2) < len(p.rep)+1 {
		d.shift++
	}
	for b := range d.classes {
		d.classes[b] = uint32(p.class[b]) * 4
	}
	d.seen = make([]uint32, len(p.in))
	d.reset()
	return d
}

func (d *dfa) row(n uint32) uint32 { return n << d.shift }

func (d *dfa) reset() {
	// A cache that fills again and again should not make the collector's work: all memory is used again.
	width := 1 << (d.shift - 2)
	if d.states == nil {
		d.states = make(map[string]uint32)
		d.table = make([]uint32, rowCount*width, 16*width)
		d.sets = make([][]int32, rowCount, 16)
	}
	clear(d.states)
	d.table, d.sets = d.table[:rowCount*width], d.sets[:rowCount]
	for i := range d.blocks {
		d.blocks[i] = d.blocks[i][:0]
	}
	d.used = 0
	for r := rowMatch; r < rowCount; r++ {
		for i := range width {
			d.table[r*width+i] = d.row(uint32(r))
		}
	}
	d.size = 0
	d.fresh, d.scanned = 0, 0
	d.lineGo = d.enter(atLineStart)
	d.textGo = d.lineGo
	if !d.p.lines {
		d.textGo = d.enter(atLineStart | atTextStart)
	}
	d.elseGo = d.enter(0)
	d.wordGo = d.enter(afterWord)
}

// enter gives the state before anything is taken, in a place described by flags.
func (d *dfa) enter(flags int32) uint32 {
	d.begin()
	start := d.p.search
	if d.anchored {
		start = d.p.start
	}
	d.close(start, d.mode == dfaEarliest)
	return d.state(flags)
}

// begin clears the scratch for a new set.
func (d *dfa) begin() {
	d.gen++
	if d.gen == 0 {
		clear(d.seen)
		d.gen = 1
	}
	d.order = d.order[:0]
	d.matched = false
}

// close adds pc and what it leads to without a byte, in order of preference. Assertions are kept: the next byte decides.
func (d *dfa) close(pc int32, stop bool) {
	if d.mode == dfaFirst && d.p.looks {
		// What an assertion leads to is preferred to what comes after it, even where a loop meets itself again: the order
		// is only known when all of it is followed at once, in resolve.
		if d.seen[pc] != d.gen {
			d.seen[pc] = d.gen
			d.order = append(d.order, pc)
		}
		return
	}
	d.stack = append(d.stack[:0], pc)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		for d.seen[pc] != d.gen {
			d.seen[pc] = d.gen
			x := &d.p.in[pc]
			if x.op == instAlt {
				d.stack = append(d.stack, x.alt)
				pc = x.out
				continue
			}
			if x.op == instMatch {
				d.matched = true
				if stop {
					return
				}
			}
			if x.op != instFail {
				d.order = append(d.order, pc)
			}
			break
		}
	}
}

// state finds or makes the state for the set in order.
func (d *dfa) state(flags int32) uint32 {
	if d.mode == dfaEarliest && d.matched {
		return d.row(rowMatch)
	}
	if len(d.order) == 0 {
		return d.row(rowDead)
	}
	if d.mode != dfaFirst {
		slices.Sort(d.order) // sets: equal ones shall meet
	}
	if !d.p.looks && !d.p.lines {
		flags = 0
	} else if !d.p.looks {
		flags &= heldCR
	}
	if !d.p.wordLooks {
		flags &^= afterWord
	}
	d.key = binary.NativeEndian.AppendUint32(d.key[:0], uint32(flags))
	for _, pc := range d.order {
		d.key = binary.NativeEndian.AppendUint32(d.key, uint32(pc))
	}
	if s, ok := d.states[string(d.key)]; ok {
		return s
	}
	s := d.row(uint32(len(d.sets)))
	set := append(d.room(1+len(d.order)), flags)
	set = append(set, d.order...)
	d.sets = append(d.sets, set)
	d.states[unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(set))), 4*len(set))] = s
	width := 1 << (d.shift - 2)
	n := len(d.table)
	if cap(d.table) < n+width {
		grown := make([]uint32, n, 2*cap(d.table)+width)
		copy(grown, d.table)
		d.table = grown
	}
	d.table = d.table[:n+width]
	clear(d.table[n:])
	d.size += width*8 + len(d.key) + 96 // the table grows by doubling; the rest is the set, its header and the map's entry
	d.fresh++
	return s
}

// room gives an empty slice for n numbers that stay where they are until the next reset.
func (d *dfa) room(n int) []int32 {
	const block = 4 << 10
	for {
		if d.used == len(d.blocks) {
			d.blocks = append(d.blocks, make([]int32, 0, max(n, block)))
		}
		b := d.blocks[d.used]
		if len(b)+n <= cap(b) {
			d.blocks[d.used] = b[:len(b)+n]
			return b[len(b) : len(b) : len(b)+n]
		}
		d.used++
	}
}

// compute fills one cell: the step from s on c, a byte or endOfText. The new state is returned with its matchBit. A flush may
// come first; then s is gone, only the returned state counts. Once the meter is over only pike can say, and does not.
func (d *dfa) compute(s uint32, c int) uint32 {
	if d.size > d.limit {
		set := slices.Clone(d.sets[s>>d.shift]) // reset uses its memory again
		// States that are used for a few bytes only cost more than they save.
		if d.flushes++; d.flushes > 3 && d.scanned < 20*d.fresh {
			d.gaveUp = true
		}
		d.reset()
		d.begin()
		d.order = append(d.order, set[1:]...)
		s = d.state(set[0])
	}
	if d.gaveUp || d.meter.spend(8+len(d.sets[s>>d.shift])) {
		return d.row(rowQuit)
	}
	cell := s >> 2
	if c == endOfText {
		cell += uint32(len(d.p.rep))
	} else {
		cell += uint32(d.p.class[c])
	}
	to := d.step(s, c)
	d.table[cell] = to
	return to
}

func (d *dfa) step(s uint32, c int) uint32 {
	set := d.sets[s>>d.shift]
	flags := set[0]
	if d.p.uniWord && c >= 0x80 && c != endOfText {
		return d.row(rowQuit)
	}
	if d.p.endAtCR && c == '\r' {
		return d.row(rowQuit)
	}
	if d.p.lines && d.p.crlf && d.mode == dfaEarliest && !d.anchored {
		if flags&heldCR != 0 {
			s = d.drop(set, flags&^heldCR)
			if c == '\n' || c == endOfText {
				return d.step(s, c)
			}
			if s = d.take(d.sets[s>>d.shift], '\r'); s < d.row(rowCount) {
				return s
			}
			return d.step(s, c)
		}
		if c == '\r' {
			return d.drop(set, flags|heldCR)
		}
	}
	return d.take(set, c)
}

// drop is the state of the same threads under other flags.
func (d *dfa) drop(set []int32, flags int32) uint32 {
	d.begin()
	d.order = append(d.order, set[1:]...)
	return d.state(flags)
}

// take is the step from a set on c.
func (d *dfa) take(set []int32, c int) uint32 {
	flags := set[0]
	list := set[1:]
	if d.p.looks {
		list = d.resolve(list, flags, c)
		if d.mode == dfaEarliest && d.matched {
			return d.row(rowMatch)
		}
	}
	if d.p.lines && d.mode == dfaEarliest && !d.anchored && (c == '\n' || c == endOfText) {
		return d.lineGo
	}
	var bit uint32
	d.next = append(d.next[:0], list...) // resolve's list lives in order
	d.begin()
	var after int32
	if c != endOfText {
		if c == '\n' {
			after = atLineStart
		} else if isWordByte(byte(c)) {
			after = afterWord
		}
	}
scan:
	for _, pc := range d.next {
		x := &d.p.in[pc]
		switch x.op {
		case instMatch:
			bit = matchBit
			if d.mode == dfaFirst {
				break scan // what follows is less preferred
			}
		case instByte:
			if c <= int(x.hi) && c >= int(x.lo) {
				d.close(x.out, false)
			}
		case instEdges:
			for _, e := range x.edges {
				if c <= int(e.hi) && c >= int(e.lo) {
					d.close(x.target(e), false)
				}
			}
		}
	}
	return d.state(after) | bit
}

// resolve follows the assertions in list that hold between what flags say was before and c.
func (d *dfa) resolve(list []int32, flags int32, c int) []int32 {
	d.begin()
	word := c < 0x80 && isWordByte(byte(c))
	d.next = append(d.next[:0], list...)
	for _, pc := range d.next {
		d.follow(pc, flags, c, word)
	}
	return d.order
}

func (d *dfa) follow(pc int32, flags int32, c int, word bool) {
	d.stack = append(d.stack[:0], pc)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		for d.seen[pc] != d.gen {
			d.seen[pc] = d.gen
			x := &d.p.in[pc]
			switch x.op {
			case instAlt:
				d.stack = append(d.stack, x.alt)
				pc = x.out
				continue
			case instLook:
				if holdsBetween(x.look, flags, c, word) {
					pc = x.out
					continue
				}
			case instMatch:
				d.matched = true
				d.order = append(d.order, pc)
			case instByte, instEdges:
				d.order = append(d.order, pc)
			}
			break
		}
	}
}

// holdsBetween is holds for a DFA, which knows the last byte by flags and the next one.
func holdsBetween(l look, flags int32, c int, word bool) bool {
	switch l {
	case lookTextStart:
		return flags&atTextStart != 0
	case lookTextEnd:
		return c == endOfText
	case lookLineStart:
		return flags&atLineStart != 0
	case lookLineEnd:
		return c == '\n' || c == endOfText
	}
	if !l.unicodeWord() {
		l -= lookWordASCII - lookWord
	}
	return l.holdsWord(flags&afterWord != 0, word)
}

// enterAfter gives the state in front of the byte after b, and false when only pike can start there.
func (d *dfa) enterAfter(b byte) (s uint32, ok bool) {
	switch {
	case d.p.uniWord && b >= 0x80, d.p.endAtCR && b == '\r':
		return 0, false
	case b == '\n':
		return d.lineGo, true
	case isWordByte(b):
		return d.wordGo, true
	}
	return d.elseGo, true
}

// cell reads table at byte offset off.
func cell(table unsafe.Pointer, off uintptr) uint32 {
	return *(*uint32)(unsafe.Add(table, off))
}
