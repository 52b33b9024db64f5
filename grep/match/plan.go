package match

import "slices"

// lead describes what of a match may stand before the place a finder gives.
type lead struct {
	max   int  // bytes, or -1: no bound
	lines bool // it may hold "\n"
}

// Costs in nanoseconds, measured once on an x86-64 machine; only their ratios matter.
const (
	costCandidate = 60.0 // finding the line of a candidate and confirming it
	costNear      = 25.0 // confirming a candidate where it stands
	costDFA       = 1.5  // a byte through the four streams; thrice what it is, for a finder that does badly is dropped anyway
	costPair      = 0.07 // a byte through the finder of one literal
	costMasks     = 0.12 // a byte through that of several, or of a window

	maxNear = 64 // bytes before a candidate at which it is still confirmed where it stands

	preferLiteral = 1.2 // how much better a window must look: its chance is the rougher guess
)

// plan chooses how to search; false means that the program would be too large.
func (m *Matcher) plan(t *tree, v level) bool {
	root := flatten(relax(t.root))
	lines := !m.o.Multiline
	m.strip = m.o.CRLF && !t.sawCR
	if m.o.Multiline && staysInLine(root, m.o.CRLF) && m.backward == nil {
		lines, m.byLine = true, true
	}
	if m.prog = compileProgram(root, lines, m.strip, false); m.prog == nil {
		return false
	}
	if m.rev = compileProgram(root, lines, m.strip, true); m.rev == nil {
		return false
	}
	items := []*node{root}
	if root.op == opConcat {
		items = root.subs
	}
	whole, finite, needs := extractConcat(items, lines)
	if finite {
		whole.item = 0
		needs = []literals{whole}
	}
	m.needs = needs

	// Under Multiline the confirmation begins at the earliest place where the match could: that should not be far.
	near := func(item int) bool {
		l := measureLead(items[:min(item, len(items))])
		return lines || l.max >= 0 || !l.lines
	}
	useful := slices.DeleteFunc(slices.Clone(needs), func(l literals) bool { return len(l.set) > maxLiterals || !near(l.item) })
	if len(useful) == 0 {
		useful = slices.DeleteFunc(slices.Clone(needs), func(l literals) bool { return len(l.set) > maxLiterals })
	}
	if lines {
		for _, l := range useful {
			// The words themselves need no confirmation: what they share must be long to be better.
			if shared, ok := l.common(); ok && (!finite || !whole.exact || len(shared.set[0].bytes) >= 6) {
				useful = append(useful, shared)
			}
		}
	}
	best := costDFA
	if set, ok := cheapest(useful); ok {
		if f := literalFinder(set.set, v, !lines); f != nil {
			c := set.cost()
			words := finite && whole.exact && !set.shared
			if c < best || words {
				best = c
				m.find = f
				m.exact = words && m.backward == nil
				m.single = m.exact && len(set.set) == 1
				m.lead = measureLead(items[:set.item])
				if m.lead.max >= 0 {
					m.lead.max += set.shift
				}
				if m.exact && !m.single && lines {
					m.words = &wordSet{set.set, newSetFinder(set.set, v, true)}
				}
			}
		}
	}
	if !m.exact && v.masks() {
		if f := newWindowFinder(m.prog, v); f != nil && near(f.point) {
			l := measureLead(items[:min(f.point, len(items))])
			confirm := costCandidate
			if lines && l.max >= 0 && l.max < maxNear {
				confirm = costNear
			}
			if (costMasks+f.cost*confirm)*preferLiteral < best {
				m.find, m.lead = f, l
			}
		}
	}
	if f, ok := m.find.(*setFinder); lines && !m.exact && m.find != nil && m.lead.max >= 0 && m.lead.max < maxNear {
		m.near = !ok || f.aligned
	}
	return true
}

// cheapest gives the set that costs the least to look for.
func cheapest(sets []literals) (literals, bool) {
	best := -1
	for i, s := range sets {
		if s.useful() && (best < 0 || s.cost() < sets[best].cost()) {
			best = i
		}
	}
	if best < 0 {
		return literals{}, false
	}
	return sets[best], true
}

// cost of l by the byte.
func (l literals) cost() float64 {
	scan := costMasks
	if len(l.set) == 1 {
		scan = costPair
	}
	return scan + l.frequency()*costCandidate
}

func literalFinder(set []literal, v level, aligned bool) finder {
	if len(set) == 1 {
		return newPairFinder(set[0], v)
	}
	if !v.masks() || (literals{set: set}).shortest() < 2 { // byte by byte the DFA is faster
		return nil
	}
	return newSetFinder(set, v, aligned)
}

// staysInLine says that n matches the same with line mode: it can't take "\n", does not ask for the ends of the text, and is
// not empty (an empty match could stand after the last line break, where there is no line).
func staysInLine(n *node, crlf bool) bool {
	return !n.nullable() && !n.any(func(n *node) bool {
		switch n.op {
		case opClass, opBytes:
			return hasRune(n.ranges, '\n') || crlf && hasRune(n.ranges, '\r')
		case opLook:
			return n.look == lookTextStart || n.look == lookTextEnd
		}
		return false
	})
}

// flatten pulls groups and concatenations within a concatenation up into it, so that the items of the top level are as small
// as can be.
func flatten(n *node) *node {
	for n.op == opGroup {
		n = n.subs[0]
	}
	if n.op != opConcat {
		return n
	}
	var subs []*node
	for _, s := range n.subs {
		if s = flatten(s); s.op == opConcat {
			subs = append(subs, s.subs...)
		} else {
			subs = append(subs, s)
		}
	}
	return concatNode(subs)
}

// relax gives a tree for the linear engine that matches at least what n matches: look-around is taken to hold, a
// back-reference to be any text.
func relax(n *node) *node {
	switch n.op {
	case opAround:
		return &node{op: opEmpty}
	case opAtomic:
		return relax(n.subs[0])
	case opBackref:
		return &node{op: opRepeat, max: -1, subs: []*node{classNode([]rune{0, 0x10ffff})}}
	}
	if len(n.subs) == 0 {
		return n
	}
	c := *n
	c.subs = slices.Clone(n.subs)
	for i := range c.subs {
		c.subs[i] = relax(c.subs[i])
	}
	if c.hollow() {
		return &node{op: opEmpty}
	}
	return &c
}

// hollow says that n adds nothing to a program. A thousand thousand copies of nothing would only take time.
func (n *node) hollow() bool {
	switch n.op {
	case opRepeat:
		return n.max == 0 || n.subs[0].op == opEmpty
	case opGroup, opConcat:
		return !slices.ContainsFunc(n.subs, func(s *node) bool { return s.op != opEmpty })
	}
	return false
}

func measureLead(items []*node) lead {
	var l lead
	for _, n := range items {
		if w := widest(n); w < 0 || l.max < 0 {
			l.max = -1
		} else {
			l.max = min(l.max+w, 1<<30)
		}
		l.lines = l.lines || n.any(func(n *node) bool { return n.op == opClass && hasRune(n.ranges, '\n') })
	}
	return l
}

// widest is the most bytes n can match, -1 without a bound.
func widest(n *node) int {
	switch n.op {
	case opClass:
		return 4
	case opBytes:
		return 1
	case opConcat, opAlt:
		sum := 0
		for _, s := range n.subs {
			w := widest(s)
			if w < 0 {
				return -1
			}
			if n.op == opAlt {
				sum = max(sum, w)
			} else {
				sum += w
			}
		}
		return min(sum, 1<<30)
	case opRepeat:
		w := widest(n.subs[0])
		if w < 0 || n.max < 0 && w > 0 {
			return -1
		}
		return min(w*max(n.max, 0), 1<<30)
	case opGroup:
		return widest(n.subs[0])
	}
	return 0
}
