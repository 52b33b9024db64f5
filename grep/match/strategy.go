package match

import "slices"

// strategy is how a Matcher searches.
type strategy struct {
	prefilter     prefilter   // nil: nothing worth looking for
	exact         bool        // a candidate is a match
	singleLiteral bool        // the pattern is one literal
	literalSet    *literalSet // line mode: the pattern is a choice of literals; else nil
	prefix        matchPrefix // what a match may hold before its candidate
	inPlace       bool        // candidates come in order, at most maxInPlace bytes into the match
	lineByLine    bool        // multiline, but no match can hold "\n": line mode finds the same
}

// matchPrefix says what a match may hold before the candidate that a prefilter gives. For
// "[a-z]{2}foo" and the candidate "foo" that is two characters.
type matchPrefix struct {
	maxBytes int  // or -1: no bound
	newlines bool // it may hold "\n"
}

// Costs in nanoseconds, measured once on an x86-64 machine; only their ratios matter.
const (
	costCandidate = 60.0 // find the line of a candidate and confirm it
	costInPlace   = 25.0 // confirm a candidate in place
	// A byte through the four streams costs a third of this. A prefilter that does badly is dropped
	// while searching, so it gets the benefit of the doubt.
	costDFA = 1.5

	costPair  = 0.07 // a byte through the prefilter of one literal
	costMasks = 0.12 // a byte through that of several literals, or of a window

	maxInPlace = 64 // longest prefix with which a candidate is confirmed in place

	preferLiteral = 1.2 // how much better a window must look: its cost is the rougher guess
)

// chooseStrategy compiles the programs and chooses how to search. false means that the program
// would be too large.
func (m *Matcher) chooseStrategy(t *tree, v level) bool {
	root := flatten(linearSuperset(t.root))
	lines := !m.o.Multiline
	m.stripCR = m.o.CRLF && !t.sawCR
	if m.o.Multiline && staysInLine(root, m.o.CRLF) && m.fallback == nil {
		lines, m.lineByLine = true, true
	}
	if m.prog = compileProgram(root, lines, m.stripCR, false); m.prog == nil {
		return false
	}
	if m.rev = compileProgram(root, lines, m.stripCR, true); m.rev == nil {
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
	m.required = needs

	best := costDFA
	sets := m.searchable(needs, items, lines, finite && whole.exact)
	if set, ok := cheapest(sets); ok {
		best = m.preferLiterals(set, items, lines, finite && whole.exact && !set.shared, v)
	}
	if !m.exact && v.masks() {
		m.preferWindow(items, lines, best, v)
	}
	l := m.prefix.maxBytes
	if lines && !m.exact && m.prefilter != nil && l >= 0 && l < maxInPlace {
		t, ok := m.prefilter.(*teddy)
		m.inPlace = !ok || t.aligned
	}
	return true
}

// near says whether a candidate in item may be confirmed near where it stands. Under Multiline the
// confirmation begins at the earliest place where the match could begin: "(?s)a.*foo" would have
// it begin at the start of the text for every "foo".
func near(items []*node, item int, lines bool) bool {
	l := measurePrefix(items[:min(item, len(items))])
	return lines || l.maxBytes >= 0 || !l.newlines
}

// searchable gives the sets of literals that a prefilter could look for. onlyWords says that the
// pattern is nothing but a choice of literals.
func (m *Matcher) searchable(needs []literals, items []*node, lines, onlyWords bool) []literals {
	tooMany := func(l literals) bool { return len(l.set) > maxLiterals }
	sets := slices.DeleteFunc(slices.Clone(needs), func(l literals) bool {
		return tooMany(l) || !near(items, l.item, lines)
	})
	if len(sets) == 0 {
		sets = slices.DeleteFunc(slices.Clone(needs), tooMany)
	}
	if !lines {
		return sets
	}
	for _, l := range sets {
		// The literals themselves need no confirmation. What they share does, so it must be long
		// to be better.
		if shared, ok := l.common(); ok && (!onlyWords || len(shared.set[0].bytes) >= 6) {
			sets = append(sets, shared)
		}
	}
	return sets
}

// preferLiterals takes set for the prefilter when that is cheaper than the DFA, and gives the cost
// to beat. words says that set is the whole pattern: then a candidate is a match.
func (m *Matcher) preferLiterals(set literals, items []*node, lines, words bool, v level) float64 {
	f := literalPrefilter(set.set, v, !lines)
	cost := set.cost()
	if f == nil || cost >= costDFA && !words {
		return costDFA
	}
	m.prefilter = f
	m.exact = words && m.fallback == nil
	m.singleLiteral = m.exact && len(set.set) == 1
	m.prefix = measurePrefix(items[:set.item])
	if m.prefix.maxBytes >= 0 {
		m.prefix.maxBytes += set.shift
	}
	if m.exact && !m.singleLiteral && lines {
		m.literalSet = &literalSet{set.set, newTeddy(set.set, v, true)}
	}
	return cost
}

// preferWindow takes a window of byte classes for the prefilter when that is cheaper than best.
func (m *Matcher) preferWindow(items []*node, lines bool, best float64, v level) {
	f := newWindowPrefilter(m.prog, v)
	if f == nil || !near(items, f.item, lines) {
		return
	}
	l := measurePrefix(items[:min(f.item, len(items))])
	confirm := costCandidate
	if lines && l.maxBytes >= 0 && l.maxBytes < maxInPlace {
		confirm = costInPlace
	}
	if (costMasks+f.cost*confirm)*preferLiteral < best {
		m.prefilter, m.prefix = f, l
	}
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

// cost estimates what looking for l costs per byte of text, confirmations included.
func (l literals) cost() float64 {
	scan := costMasks
	if len(l.set) == 1 {
		scan = costPair
	}
	return scan + l.frequency()*costCandidate
}

func literalPrefilter(set []literal, v level, aligned bool) prefilter {
	if len(set) == 1 {
		return newPairPrefilter(set[0], v)
	}
	if !v.masks() || (literals{set: set}).shortest() < 2 { // without vectors the DFA is faster
		return nil
	}
	return newTeddy(set, v, aligned)
}

// staysInLine says that n matches the same in line mode: it can't take "\n", does not ask for the
// ends of the text, and is not empty. (An empty match could stand after the last line break, where
// there is no line.)
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

// flatten lifts groups and inner concatenations into the outer one, so that its items are as small
// as can be: a prefilter may begin at any item.
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

// linearSuperset gives a tree for the linear engine that matches at least what n matches.
// Look-around is taken to hold, a back-reference to be any text. The backtracking engine decides.
func linearSuperset(n *node) *node {
	switch n.op {
	case opAround:
		return &node{op: opEmpty}
	case opAtomic:
		return linearSuperset(n.subs[0])
	case opBackref:
		return &node{op: opRepeat, max: -1, subs: []*node{classNode([]rune{0, 0x10ffff})}}
	}
	if len(n.subs) == 0 {
		return n
	}
	c := *n
	c.subs = slices.Clone(n.subs)
	for i := range c.subs {
		c.subs[i] = linearSuperset(c.subs[i])
	}
	if c.emitsNothing() {
		return &node{op: opEmpty}
	}
	return &c
}

// emitsNothing says that n adds nothing to a program. "(((){1000}){1000}){1000}" would only take
// time.
func (n *node) emitsNothing() bool {
	switch n.op {
	case opRepeat:
		return n.max == 0 || n.subs[0].op == opEmpty
	case opGroup, opConcat:
		return !slices.ContainsFunc(n.subs, func(s *node) bool { return s.op != opEmpty })
	}
	return false
}

// measurePrefix says what the given items can hold at most.
func measurePrefix(items []*node) matchPrefix {
	var l matchPrefix
	for _, n := range items {
		if w := widest(n); w < 0 || l.maxBytes < 0 {
			l.maxBytes = -1
		} else {
			l.maxBytes = min(l.maxBytes+w, 1<<30)
		}
		l.newlines = l.newlines || n.any(func(n *node) bool {
			return n.op == opClass && hasRune(n.ranges, '\n')
		})
	}
	return l
}

// widest is the most bytes that n can match, -1 without a bound.
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
