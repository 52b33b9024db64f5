package match

import (
	"slices"
)

// maxProgram bounds the instructions of a program, so that "(.{1000}){1000}" is refused instead of filling the memory.
const maxProgram = 200_000

type instOp uint8

const (
	instFail  instOp = iota
	instByte         // one byte in lo..hi, then out
	instEdges        // one byte by the template's table, then base+target or out
	instAlt          // out preferred, then alt
	instLook         // look holds, then out
	instMatch
)

type inst struct {
	op       instOp
	look     look
	lo, hi   byte
	out, alt int32
	edges    []edge // shared between the uses of one class
	base     int32  // what the targets of edges are relative to
}

// edge leads on bytes lo..hi to node to of its template, or out of it when to < 0.
type edge struct {
	lo, hi byte
	to     int32
}

// program is a byte automaton with preferences. Texts that are not valid UTF-8 are no obstacle: a class matches encoded
// code points only, so nothing but (?-u) matches a stray byte.
type program struct {
	in        []inst
	start     int32 // anchored
	search    int32 // with a lazy any-byte loop in front
	looks     bool
	uniWord   bool    // has Unicode word assertions: the DFA can't pass non-ASCII bytes
	endAtCR   bool    // has "$" that must hold before "\r\n" (multiline with CRLF)
	points    []int32 // instructions that every match passes, in order: where the items of the top-level concatenation begin
	class     [256]uint8
	rep       []byte // one byte of each class
	lines     bool
	crlf      bool
	reverse   bool
	wordLooks bool
}

type compiler struct {
	in        []inst
	reverse   bool
	lines     bool
	templates map[string]*template
	tooBig    bool
}

// compileProgram turns n into a program, or nil when it would be too large. lines says that a match never holds "\n".
func compileProgram(n *node, lines, crlf, reverse bool) *program {
	c := &compiler{reverse: reverse, lines: lines, templates: map[string]*template{}}
	match := c.emit(inst{op: instMatch})
	p := &program{lines: lines, crlf: crlf, reverse: reverse}
	if n.op == opConcat && !reverse {
		next := match
		for i := len(n.subs) - 1; i >= 0; i-- {
			next = c.node(n.subs[i], next)
			p.points = append(p.points, next)
		}
		slices.Reverse(p.points)
		p.start = next
	} else {
		p.start = c.node(n, match)
		p.points = []int32{p.start}
	}
	p.search = c.emit(inst{op: instAlt, out: p.start})
	c.in[p.search].alt = c.emit(inst{op: instByte, lo: 0, hi: 255, out: p.search})
	if c.tooBig {
		return nil
	}
	p.in = c.in
	p.finish()
	return p
}

func (p *program) finish() {
	var cut [257]bool // cut[b]: a class begins at b
	cut['\n'], cut['\n'+1] = true, true
	for i := range p.in {
		x := &p.in[i]
		switch x.op {
		case instByte:
			cut[x.lo], cut[int(x.hi)+1] = true, true
		case instEdges:
			for _, e := range x.edges {
				cut[e.lo], cut[int(e.hi)+1] = true, true
			}
		case instLook:
			p.looks = true
			p.wordLooks = p.wordLooks || x.look.word()
			p.uniWord = p.uniWord || x.look.unicodeWord()
			end := lookLineEnd
			if p.reverse {
				end = lookLineStart
			}
			if p.crlf && !p.lines && x.look == end {
				p.endAtCR = true
			}
		}
	}
	if p.wordLooks {
		for b := 1; b < 256; b++ {
			if isWordByte(byte(b)) != isWordByte(byte(b-1)) {
				cut[b] = true
			}
		}
		cut[0x80] = true
	}
	if p.crlf {
		cut['\r'], cut['\r'+1] = true, true
	}
	k := -1
	for b := range 256 {
		if b == 0 || cut[b] {
			k++
			p.rep = append(p.rep, byte(b))
		}
		p.class[b] = uint8(k)
	}
}

func (c *compiler) emit(i inst) int32 {
	if len(c.in) >= maxProgram {
		c.tooBig = true
		return 0
	}
	c.in = append(c.in, i)
	return int32(len(c.in) - 1)
}

// node compiles n with next as what follows, and gives the entry.
func (c *compiler) node(n *node, next int32) int32 {
	if c.tooBig {
		return next
	}
	switch n.op {
	case opEmpty:
		return next
	case opClass:
		return c.class(n.ranges, next)
	case opBytes:
		alt := int32(-1)
		for i := len(n.ranges) - 2; i >= 0; i -= 2 {
			x := c.emit(inst{op: instByte, lo: byte(n.ranges[i]), hi: byte(n.ranges[i+1]), out: next})
			if alt < 0 {
				alt = x
			} else {
				alt = c.emit(inst{op: instAlt, out: x, alt: alt})
			}
		}
		return alt
	case opLook:
		l := n.look
		if c.reverse {
			l = l.mirror()
		}
		if c.lines { // a line is the whole text
			switch l {
			case lookTextStart:
				l = lookLineStart
			case lookTextEnd:
				l = lookLineEnd
			}
		}
		return c.emit(inst{op: instLook, look: l, out: next})
	case opConcat:
		for i := range n.subs {
			if c.reverse {
				next = c.node(n.subs[i], next)
			} else {
				next = c.node(n.subs[len(n.subs)-1-i], next)
			}
		}
		return next
	case opAlt:
		cur := c.node(n.subs[len(n.subs)-1], next)
		for i := len(n.subs) - 2; i >= 0; i-- {
			cur = c.emit(inst{op: instAlt, out: c.node(n.subs[i], next), alt: cur})
		}
		return cur
	case opRepeat:
		return c.repeat(n, next)
	case opGroup:
		return c.node(n.subs[0], next)
	}
	return c.emit(inst{op: instFail})
}

func (c *compiler) repeat(n *node, next int32) int32 {
	sub := n.subs[0]
	if sub.op == opEmpty || n.max == 0 {
		return next
	}
	copies := n.min
	if n.max < 0 {
		// An empty pass through a loop is preferred or not as Go has it: x* with an empty x is (x+)?.
		if n.min == 0 {
			if sub.nullable() {
				return c.choice(c.plus(n, next), next, n.lazy)
			}
			loop := c.emit(inst{op: instAlt})
			body := c.node(sub, loop)
			c.setChoice(loop, body, next, n.lazy)
			return loop
		}
		next = c.plus(n, next)
		copies--
	} else {
		end := next
		for i := n.max - n.min; i > 0 && !c.tooBig; i-- {
			next = c.choice(c.node(sub, next), end, n.lazy)
		}
	}
	for ; copies > 0 && !c.tooBig; copies-- {
		next = c.node(sub, next)
	}
	return next
}

func (c *compiler) plus(n *node, next int32) int32 {
	loop := c.emit(inst{op: instAlt})
	body := c.node(n.subs[0], loop)
	c.setChoice(loop, body, next, n.lazy)
	return body
}

func (c *compiler) choice(body, skip int32, lazy bool) int32 {
	x := c.emit(inst{op: instAlt})
	c.setChoice(x, body, skip, lazy)
	return x
}

func (c *compiler) setChoice(x, body, skip int32, lazy bool) {
	if lazy {
		body, skip = skip, body
	}
	c.in[x].out, c.in[x].alt = body, skip
}

func (c *compiler) class(ranges []rune, next int32) int32 {
	if c.lines && hasRune(ranges, '\n') {
		ranges = intersectRanges(ranges, []rune{0, 9, 11, 0x10ffff})
	}
	if len(ranges) == 0 {
		return c.emit(inst{op: instFail})
	}
	if len(ranges) == 2 && ranges[1] < 0x80 {
		return c.emit(inst{op: instByte, lo: byte(ranges[0]), hi: byte(ranges[1]), out: next})
	}
	t := c.template(ranges)
	base := int32(len(c.in))
	for _, n := range t.nodes {
		if len(n) == 1 {
			to := next
			if n[0].to >= 0 {
				to = base + n[0].to
			}
			c.emit(inst{op: instByte, lo: n[0].lo, hi: n[0].hi, out: to})
			continue
		}
		c.emit(inst{op: instEdges, edges: n, base: base, out: next})
	}
	return base + t.root
}

func (x *inst) target(e edge) int32 {
	if e.to < 0 {
		return x.out
	}
	return x.base + e.to
}
