package match

import (
	"slices"

	"moltisfs/grep/match/syntax"
)

// maxProgram bounds the instructions of a program. Without it "(.{1000}){1000}" would fill the
// memory.
const maxProgram = 200_000

type instOp uint8

const (
	instFail  instOp = iota
	instByte         // one byte in lo..hi, then out
	instEdges        // one byte by the template's edges, then base+target or out
	instAlt          // out preferred, then alt
	instLook         // look holds, then out
	instMatch
)

type inst struct {
	op       instOp
	look     syntax.Look
	lo, hi   byte
	out, alt int32
	edges    []edge // shared between the uses of one class
	base     int32  // the targets of edges are relative to this
}

// edge leads on bytes lo..hi to node to of its template, or out of the template when to < 0.
type edge struct {
	lo, hi byte
	to     int32
}

// program is a byte automaton in which every choice has a preferred way (Thompson's construction).
// Text that is not valid UTF-8 is no problem: a class matches encoded code points only, so nothing
// but (?-u) matches a stray byte.
type program struct {
	insts           []inst
	startAnchored   int32
	startUnanchored int32 // with a lazy any-byte loop in front
	// itemStarts are where the items of the top-level concatenation begin, in order. Every match
	// passes all of them.
	itemStarts []int32
	byteClass  [256]uint8 // bytes that no instruction tells apart have one class
	classByte  []byte     // one byte of each class
	lines      bool
	crlf       bool
	reverse    bool
	lookFacts
}

// lookFacts say which assertions a program has, for the DFA.
type lookFacts struct {
	hasLooks       bool
	hasWordLooks   bool
	hasUnicodeWord bool // a Unicode word assertion: the DFA cannot pass non-ASCII bytes
	hasCRLFEnd     bool // a "$" that must hold before "\r\n" (multiline with CRLF)
}

type compiler struct {
	in        []inst
	reverse   bool
	lines     bool
	templates map[string]*template
	tooBig    bool
}

// compileProgram turns n into a program, or nil when it would be too large. lines says that a match
// never holds "\n".
func compileProgram(n *syntax.Node, lines, crlf, reverse bool) *program {
	c := &compiler{reverse: reverse, lines: lines, templates: map[string]*template{}}
	match := c.emit(inst{op: instMatch})
	p := &program{lines: lines, crlf: crlf, reverse: reverse}
	if n.Op == syntax.OpConcat && !reverse {
		next := match
		for i := len(n.Subs) - 1; i >= 0; i-- {
			next = c.node(n.Subs[i], next)
			p.itemStarts = append(p.itemStarts, next)
		}
		slices.Reverse(p.itemStarts)
		p.startAnchored = next
	} else {
		p.startAnchored = c.node(n, match)
		p.itemStarts = []int32{p.startAnchored}
	}
	p.startUnanchored = c.emit(inst{op: instAlt, out: p.startAnchored})
	c.in[p.startUnanchored].alt = c.emit(inst{op: instByte, lo: 0, hi: 255, out: p.startUnanchored})
	if c.tooBig {
		return nil
	}
	p.insts = c.in
	p.finish()
	return p
}

// finish computes the byte classes and the lookFacts. Two bytes may share a class only if no
// instruction and no assertion tells them apart: a missing cut here makes the DFA match wrong text.
func (p *program) finish() {
	var cut [257]bool // cut[b]: a class begins at b
	cut['\n'], cut['\n'+1] = true, true
	for i := range p.insts {
		x := &p.insts[i]
		switch x.op {
		case instByte:
			cut[x.lo], cut[int(x.hi)+1] = true, true
		case instEdges:
			for _, e := range x.edges {
				cut[e.lo], cut[int(e.hi)+1] = true, true
			}
		case instLook:
			p.hasLooks = true
			p.hasWordLooks = p.hasWordLooks || x.look.Word()
			p.hasUnicodeWord = p.hasUnicodeWord || x.look.UnicodeWord()
			end := syntax.LookLineEnd
			if p.reverse {
				end = syntax.LookLineStart
			}
			if p.crlf && !p.lines && x.look == end {
				p.hasCRLFEnd = true
			}
		}
	}
	if p.hasWordLooks {
		for b := 1; b < 256; b++ {
			if syntax.IsWordByte(byte(b)) != syntax.IsWordByte(byte(b-1)) {
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
			p.classByte = append(p.classByte, byte(b))
		}
		p.byteClass[b] = uint8(k)
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

// node compiles n to go on at next, and gives the entry.
func (c *compiler) node(n *syntax.Node, next int32) int32 {
	if c.tooBig {
		return next
	}
	switch n.Op {
	case syntax.OpEmpty:
		return next
	case syntax.OpClass:
		return c.class(n.Ranges, next)
	case syntax.OpBytes:
		alt := int32(-1)
		for i := len(n.Ranges) - 2; i >= 0; i -= 2 {
			lo, hi := byte(n.Ranges[i]), byte(n.Ranges[i+1])
			x := c.emit(inst{op: instByte, lo: lo, hi: hi, out: next})
			if alt < 0 {
				alt = x
			} else {
				alt = c.emit(inst{op: instAlt, out: x, alt: alt})
			}
		}
		return alt
	case syntax.OpLook:
		l := n.Look
		if c.reverse {
			l = l.Mirror()
		}
		if c.lines { // a line is the whole text
			switch l {
			case syntax.LookTextStart:
				l = syntax.LookLineStart
			case syntax.LookTextEnd:
				l = syntax.LookLineEnd
			}
		}
		return c.emit(inst{op: instLook, look: l, out: next})
	case syntax.OpConcat:
		for i := range n.Subs {
			if c.reverse {
				next = c.node(n.Subs[i], next)
			} else {
				next = c.node(n.Subs[len(n.Subs)-1-i], next)
			}
		}
		return next
	case syntax.OpAlt:
		cur := c.node(n.Subs[len(n.Subs)-1], next)
		for i := len(n.Subs) - 2; i >= 0; i-- {
			cur = c.emit(inst{op: instAlt, out: c.node(n.Subs[i], next), alt: cur})
		}
		return cur
	case syntax.OpRepeat:
		return c.repeat(n, next)
	case syntax.OpGroup:
		return c.node(n.Subs[0], next)
	}
	return c.emit(inst{op: instFail})
}

func (c *compiler) repeat(n *syntax.Node, next int32) int32 {
	sub := n.Subs[0]
	if sub.Op == syntax.OpEmpty || n.Max == 0 {
		return next
	}
	copies := n.Min
	if n.Max < 0 {
		// As in Go, x* with an x that may be empty is (x+)?. It decides which of two empty passes
		// is preferred.
		if n.Min == 0 {
			if sub.Nullable() {
				return c.choice(c.plus(n, next), next, n.Lazy)
			}
			loop := c.emit(inst{op: instAlt})
			body := c.node(sub, loop)
			c.setChoice(loop, body, next, n.Lazy)
			return loop
		}
		next = c.plus(n, next)
		copies--
	} else {
		end := next
		for i := n.Max - n.Min; i > 0 && !c.tooBig; i-- {
			next = c.choice(c.node(sub, next), end, n.Lazy)
		}
	}
	for ; copies > 0 && !c.tooBig; copies-- {
		next = c.node(sub, next)
	}
	return next
}

func (c *compiler) plus(n *syntax.Node, next int32) int32 {
	loop := c.emit(inst{op: instAlt})
	body := c.node(n.Subs[0], loop)
	c.setChoice(loop, body, next, n.Lazy)
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
	if c.lines && syntax.HasRune(ranges, '\n') {
		ranges = syntax.Intersect(ranges, []rune{0, 9, 11, 0x10ffff})
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
