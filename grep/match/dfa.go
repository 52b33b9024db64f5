package match

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"moltisfs/grep/match/syntax"
)

// dfaMode is the question that a DFA answers, and when it stops.
type dfaMode uint8

const (
	dfaEarliest dfaMode = iota // is there a match? stops once that is sure; states are sets
	dfaFirst                   // where the leftmost-first match ends; states keep their order
	dfaLongest                 // the longest match; on the reversed program: where a match begins
)

// dfaBytes bounds the tables and keys of one DFA. At the bound the cache is flushed: every state is
// forgotten. A DFA that flushes again and again without using its states gives up, and the caller
// goes on with the Pike VM. RE2 does the same.
const dfaBytes = 1 << 20

// dfa is a lazy DFA: it builds a state when the text first leads to it. The idea is RE2's.
//
// A state is the byte offset of its row in table, so that a step is one addition and one load. The
// cell of row s for byte c is at s+classes[c]. It holds the next state, with matchBit added in the
// modes first and longest; or 0 when the step is not computed yet. The first rows are special, see
// rowUnknown and those after it. Every special row leads to itself on every byte: a loop may run
// some bytes too far and still ends up in it.
//
// A flush makes all states void. Code that holds a state across compute must compare flushes before
// and after.
type dfa struct {
	p        *program
	mode     dfaMode
	anchored bool
	shift    uint // log2 of the bytes in a row
	table    []uint32
	classes  [256]uint32 // byte offset of each byte's cell in a row
	startStates
	stateStore
	closureScratch
	cacheUse
	meter *meter
}

// startStates are the states before the first byte, by the text before it. They hold nothing
// but the beginning of the pattern, so a DFA that is in one of them has no started match alive.
type startStates struct {
	startText  uint32 // at the start of the text
	startLine  uint32 // after "\n"
	startWord  uint32 // after a word byte
	startOther uint32 // after any other byte
}

// stateStore finds the state of a set of threads. The keys of states point into blocks.
type stateStore struct {
	states map[string]uint32
	sets   [][]int32 // by row: flags, then threads
	blocks [][]int32 // memory of sets; used again after a flush
	used   int       // the block that is being filled
}

// closureScratch is where the next set of threads is gathered.
type closureScratch struct {
	seen       []uint32 // by instruction: the generation that saw it last
	gen        uint32
	stack      []int32
	threadList []int32 // the set, in order of preference
	next       []int32
	key        []byte
	matched    bool // the set holds instMatch
}

// cacheUse says how much memory the states take, and whether they are worth it.
type cacheUse struct {
	size    int // bytes in table, keys and sets
	limit   int // of size
	built   int // states made since the last flush
	scanned int // bytes scanned since the last flush
	flushes int
	gaveUp  bool
}

// Numbers of the special rows; row gives their states. A state below row(rowCount) is special.
const (
	rowUnknown = iota // the cell is not computed yet
	rowMatch          // mode earliest: a match has ended
	rowQuit           // the DFA cannot tell: ask the Pike VM
	rowDead           // nothing can match any more
	rowCount
)

// matchBit on a cell of the modes first and longest: a match ended before the byte just taken. The
// one byte of delay is there for "$" and \b, which look at the next byte.
const matchBit = 1 << 31

// Flags of a state, in sets[row][0].
const (
	atTextStart = 1 << iota
	atLineStart
	afterWord
	pendingCR // a "\r" was read but not taken: the next byte tells whether it ends the line
)

const endOfText = 256 // the "byte" behind the last one; its class comes after all others

func newDFA(p *program, mode dfaMode, anchored bool, limit int, m *meter) *dfa {
	d := &dfa{p: p, mode: mode, anchored: anchored, cacheUse: cacheUse{limit: limit}, meter: m}
	d.shift = 2
	for 1<<(d.shift-2) < len(p.classByte)+1 {
		d.shift++
	}
	for b := range d.classes {
		d.classes[b] = uint32(p.byteClass[b]) * 4
	}
	d.seen = make([]uint32, len(p.insts))
	d.reset()
	return d
}

func (d *dfa) row(n uint32) uint32 { return n << d.shift }

func (d *dfa) reset() {
	// All memory is used again: a cache that fills again and again must not feed the collector.
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
	d.built, d.scanned = 0, 0
	d.startLine = d.enter(atLineStart)
	d.startText = d.startLine
	if !d.p.lines {
		d.startText = d.enter(atLineStart | atTextStart)
	}
	d.startOther = d.enter(0)
	d.startWord = d.enter(afterWord)
}

// enter gives the state before the first byte, at a place that flags describe.
func (d *dfa) enter(flags int32) uint32 {
	d.begin()
	start := d.p.startUnanchored
	if d.anchored {
		start = d.p.startAnchored
	}
	d.epsilonClosure(start, d.mode == dfaEarliest)
	return d.state(flags)
}

// begin clears the scratch for a new set.
func (d *dfa) begin() {
	d.gen++
	if d.gen == 0 {
		clear(d.seen)
		d.gen = 1
	}
	d.threadList = d.threadList[:0]
	d.matched = false
}

// epsilonClosure adds pc, and the instructions to which it leads without taking a byte, in order of preference.
// Assertions stay in the set: only the next byte tells whether they hold.
func (d *dfa) epsilonClosure(pc int32, stop bool) {
	if d.mode == dfaFirst && d.p.hasLooks {
		// The targets of an assertion are preferred to the items after it, even where a loop meets
		// itself again. The order is known only when everything is followed at once, which
		// resolveLooks does.
		if d.seen[pc] != d.gen {
			d.seen[pc] = d.gen
			d.threadList = append(d.threadList, pc)
		}
		return
	}
	d.stack = append(d.stack[:0], pc)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		for d.seen[pc] != d.gen {
			d.seen[pc] = d.gen
			x := &d.p.insts[pc]
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
				d.threadList = append(d.threadList, pc)
			}
			break
		}
	}
}

// state finds or makes the state for the set in threadList. Flags that this program never looks at
// are dropped first, so that fewer states differ.
func (d *dfa) state(flags int32) uint32 {
	if d.mode == dfaEarliest && d.matched {
		return d.row(rowMatch)
	}
	if len(d.threadList) == 0 {
		return d.row(rowDead)
	}
	if d.mode != dfaFirst {
		slices.Sort(d.threadList) // order means nothing here: equal sets must get one state
	}
	if !d.p.hasLooks && !d.p.lines {
		flags = 0
	} else if !d.p.hasLooks {
		flags &= pendingCR
	}
	if !d.p.hasWordLooks {
		flags &^= afterWord
	}
	d.key = binary.NativeEndian.AppendUint32(d.key[:0], uint32(flags))
	for _, pc := range d.threadList {
		d.key = binary.NativeEndian.AppendUint32(d.key, uint32(pc))
	}
	if s, ok := d.states[string(d.key)]; ok {
		return s
	}
	s := d.row(uint32(len(d.sets)))
	set := append(d.alloc(1+len(d.threadList)), flags)
	set = append(set, d.threadList...)
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
	// The table grows by doubling: twice a row of 4-byte cells. The 96 are the header of the set
	// and the entry of the map.
	d.size += width*8 + len(d.key) + 96
	d.built++
	return s
}

// alloc gives an empty slice for n numbers. It stays where it is until the next reset.
func (d *dfa) alloc(n int) []int32 {
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

// compute fills one cell: the step from s on c, a byte or endOfText. It returns the new state with
// its matchBit.
//
// It may flush first. Then s and every other state are void, and only the returned state counts.
// Once the meter has stopped it returns rowQuit, and the Pike VM gives up at once.
func (d *dfa) compute(s uint32, c int) uint32 {
	if d.size > d.limit {
		set := slices.Clone(d.sets[s>>d.shift]) // reset hands out its memory again
		// A state that is used for a few bytes costs more than it saves.
		if d.flushes++; d.flushes > 3 && d.scanned < 20*d.built {
			d.gaveUp = true
		}
		d.reset()
		d.begin()
		d.threadList = append(d.threadList, set[1:]...)
		s = d.state(set[0])
	}
	if d.gaveUp || d.meter.spend(8+len(d.sets[s>>d.shift])) {
		return d.row(rowQuit)
	}
	cell := s >> 2
	if c == endOfText {
		cell += uint32(len(d.p.classByte))
	} else {
		cell += uint32(d.p.byteClass[c])
	}
	to := d.step(s, c)
	d.table[cell] = to
	return to
}

// step gives the state after s and c. It quits where one byte is not enough to decide: at a
// non-ASCII byte beside a Unicode \b, and at the "\r" before which a multiline "$" may hold.
//
// In CRLF line mode it puts a "\r" off (pendingCR). If a "\n" or the end follows, the "\r" belongs
// to the line end and is dropped. Otherwise it is taken now, before the byte that follows.
func (d *dfa) step(s uint32, c int) uint32 {
	set := d.sets[s>>d.shift]
	flags := set[0]
	if d.p.hasUnicodeWord && c >= 0x80 && c != endOfText {
		return d.row(rowQuit)
	}
	if d.p.hasCRLFEnd && c == '\r' {
		return d.row(rowQuit)
	}
	if d.p.lines && d.p.crlf && d.mode == dfaEarliest && !d.anchored {
		if flags&pendingCR != 0 {
			s = d.withFlags(set, flags&^pendingCR)
			if c == '\n' || c == endOfText {
				return d.step(s, c)
			}
			if s = d.advance(d.sets[s>>d.shift], '\r'); s < d.row(rowCount) {
				return s
			}
			return d.step(s, c)
		}
		if c == '\r' {
			return d.withFlags(set, flags|pendingCR)
		}
	}
	return d.advance(set, c)
}

// withFlags is the state of the same threads under other flags.
func (d *dfa) withFlags(set []int32, flags int32) uint32 {
	d.begin()
	d.threadList = append(d.threadList, set[1:]...)
	return d.state(flags)
}

// advance is the step from a set on c.
func (d *dfa) advance(set []int32, c int) uint32 {
	flags := set[0]
	list := set[1:]
	if d.p.hasLooks {
		list = d.resolveLooks(list, flags, c)
		if d.mode == dfaEarliest && d.matched {
			return d.row(rowMatch)
		}
	}
	if d.p.lines && d.mode == dfaEarliest && !d.anchored && (c == '\n' || c == endOfText) {
		return d.startLine
	}
	var bit uint32
	d.next = append(d.next[:0], list...) // resolveLooks returned threadList, which begin clears
	d.begin()
	var after int32
	if c != endOfText {
		if c == '\n' {
			after = atLineStart
		} else if syntax.IsWordByte(byte(c)) {
			after = afterWord
		}
	}
scan:
	for _, pc := range d.next {
		x := &d.p.insts[pc]
		switch x.op {
		case instMatch:
			bit = matchBit
			if d.mode == dfaFirst {
				break scan // every later thread is less preferred than this match
			}
		case instByte:
			if c <= int(x.hi) && c >= int(x.lo) {
				d.epsilonClosure(x.out, false)
			}
		case instEdges:
			for _, e := range x.edges {
				if c <= int(e.hi) && c >= int(e.lo) {
					d.epsilonClosure(x.target(e), false)
				}
			}
		}
	}
	return d.state(after) | bit
}

// resolveLooks follows the assertions in list that hold between the byte before, which flags
// describe, and c.
func (d *dfa) resolveLooks(list []int32, flags int32, c int) []int32 {
	d.begin()
	word := c < 0x80 && syntax.IsWordByte(byte(c))
	d.next = append(d.next[:0], list...)
	for _, pc := range d.next {
		d.resolveLooksFrom(pc, flags, c, word)
	}
	return d.threadList
}

func (d *dfa) resolveLooksFrom(pc int32, flags int32, c int, word bool) {
	d.stack = append(d.stack[:0], pc)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		for d.seen[pc] != d.gen {
			d.seen[pc] = d.gen
			x := &d.p.insts[pc]
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
				d.threadList = append(d.threadList, pc)
			case instByte, instEdges:
				d.threadList = append(d.threadList, pc)
			}
			break
		}
	}
}

// holdsBetween is program.holds for a DFA. A DFA does not see the text, only flags about the last
// byte and the next byte c.
func holdsBetween(l syntax.Look, flags int32, c int, word bool) bool {
	switch l {
	case syntax.LookTextStart:
		return flags&atTextStart != 0
	case syntax.LookTextEnd:
		return c == endOfText
	case syntax.LookLineStart:
		return flags&atLineStart != 0
	case syntax.LookLineEnd:
		return c == '\n' || c == endOfText
	}
	if !l.UnicodeWord() {
		l -= syntax.LookWordASCII - syntax.LookWord
	}
	return l.HoldsWord(flags&afterWord != 0, word)
}

// enterAfter gives the start state behind byte b. ok is false where one byte does not tell the
// character before, and only the Pike VM can start.
func (d *dfa) enterAfter(b byte) (s uint32, ok bool) {
	switch {
	case d.p.hasUnicodeWord && b >= 0x80, d.p.hasCRLFEnd && b == '\r':
		return 0, false
	case b == '\n':
		return d.startLine, true
	case syntax.IsWordByte(b):
		return d.startWord, true
	}
	return d.startOther, true
}

// cell reads table at byte offset off.
func cell(table unsafe.Pointer, off uintptr) uint32 {
	return *(*uint32)(unsafe.Add(table, off))
}
