package match

import (
	"slices"

	"moltisfs/grep/match/literal"
	"moltisfs/grep/match/syntax"
)

// strategy is how a Matcher searches.
type strategy struct {
	prefilter     prefilter   // nil: nothing worth looking for
	exact         bool        // a candidate is a match
	other         prefilter   // of another literal that each match holds; nil: none, or matches are short
	singleLiteral bool        // the pattern is one literal
	neverEmpty    bool        // a match has at least one byte
	prefix        matchPrefix // the most that a match has before its candidate
	inPlace       bool        // candidates come in order, at most maxInPlace bytes into the match
	lineByLine    bool        // multiline, but no match can hold "\n": line mode finds the same
}

// matchPrefix is the longest text that a match may have before the candidate of a prefilter. For
// "[a-z]{2}foo" and the candidate "foo" it is two characters.
type matchPrefix struct {
	maxBytes int  // or -1: no bound
	newlines bool // it may hold "\n"
}

// Costs in nanoseconds, measured once on an x86-64 machine; only their ratios matter.
const (
	costCandidate = 120.0 // find the line of a candidate and confirm it
	costInPlace   = 40.0  // confirm a candidate in place
	costHolds     = 8.0   // look at all places of a window
	// A byte through the four streams costs a third of this. A prefilter that does badly is dropped
	// while searching, so it gets the benefit of the doubt.
	costDFA = 1.5

	costPair  = 0.09 // a byte through the prefilter of one literal
	costMasks = 0.12 // a byte through the prefilter of several literals, or of a window

	maxInPlace = 64 // longest prefix with which a candidate is confirmed in place

	preferLiteral = 1.1 // how much better a window must look: its cost is the rougher guess
)

// chooseStrategy compiles the programs and chooses how to search. false means that the program
// would be too large.
func (m *Matcher) chooseStrategy(t *syntax.Tree, v level) bool {
	root := syntax.Flatten(syntax.Prune(t.Root))
	lines := !m.o.Multiline
	m.stripCR = m.o.CRLF && !t.SawCR
	if m.o.Multiline && staysInLine(root, m.o.CRLF) {
		lines, m.lineByLine = true, true
	}
	if m.prog = compileProgram(root, lines, m.stripCR, false); m.prog == nil {
		return false
	}
	if m.rev = compileProgram(root, lines, m.stripCR, true); m.rev == nil {
		return false
	}
	items := []*syntax.Node{root}
	if root.Op == syntax.OpConcat {
		items = root.Subs
	}
	whole, finite, needs := literal.ExtractConcat(items, lines)
	if finite {
		whole.Item = 0
		needs = []literal.Set{whole}
	}
	m.neverEmpty = !root.Nullable()

	best := costDFA
	sets := searchable(needs, items, lines)
	cost := func(l literal.Set) float64 {
		return scanCost(l) + l.Frequency()*confirmCost(items[:l.Item], lines)
	}
	if set, ok := literal.Cheapest(sets, cost); ok {
		best = m.preferLiterals(set, cost(set), items, finite && whole.Exact, v)
		others := slices.DeleteFunc(needs, func(l literal.Set) bool { return len(l.Members) > 1 || l.Members[0].Equal(set.Members[0]) })
		if other, ok := literal.Cheapest(others, literal.Set.Frequency); ok && measurePrefix(items).maxBytes < 0 {
			m.other = newPairPrefilter(other.Members[0], v)
		}
	}
	if !m.exact && v.masks() && costMasks*preferLiteral < best {
		m.preferWindow(items, lines, best, v)
	}
	l := m.prefix.maxBytes
	m.inPlace = lines && !m.exact && m.prefilter != nil && l >= 0 && l < maxInPlace
	return true
}

// near says whether a candidate in item may be confirmed near where it stands. Under Multiline the
// confirmation begins at the earliest place where the match could begin: "(?s)a.*foo" would have
// it begin at the start of the text for every "foo".
func near(items []*syntax.Node, item int, lines bool) bool {
	l := measurePrefix(items[:min(item, len(items))])
	return lines || l.maxBytes >= 0 || !l.newlines
}

// searchable gives the sets of literals that a prefilter could look for.
func searchable(needs []literal.Set, items []*syntax.Node, lines bool) []literal.Set {
	tooMany := func(l literal.Set) bool { return len(l.Members) > literal.Most }
	sets := slices.DeleteFunc(slices.Clone(needs), func(l literal.Set) bool {
		return tooMany(l) || !near(items, l.Item, lines)
	})
	if len(sets) == 0 {
		sets = slices.DeleteFunc(slices.Clone(needs), tooMany)
	}
	return sets
}

// preferLiterals takes set for the prefilter when that is cheaper than the DFA, and gives the cost
// to beat. words says that set is the whole pattern: then a candidate is a match.
func (m *Matcher) preferLiterals(set literal.Set, cost float64, items []*syntax.Node, words bool, v level) float64 {
	f := literalPrefilter(set.Members, v)
	if f == nil || cost >= costDFA && !words {
		return costDFA
	}
	m.prefilter = f
	m.exact = words
	m.singleLiteral = m.exact && len(set.Members) == 1
	m.prefix = measurePrefix(items[:set.Item])
	return cost
}

// preferWindow takes a window of byte classes for the prefilter when that is cheaper than best.
func (m *Matcher) preferWindow(items []*syntax.Node, lines bool, best float64, v level) {
	f := newWindowPrefilter(m.prog, v)
	if f == nil || !near(items, f.item, lines) {
		return
	}
	before := items[:min(f.item, len(items))]
	cost := costMasks + f.scanned*costHolds + f.all*confirmCost(before, lines)
	if cost*preferLiteral < best {
		m.prefilter, m.prefix = f, measurePrefix(before)
	}
}

// confirmCost is the cost of a candidate that stands behind the items before.
func confirmCost(before []*syntax.Node, lines bool) float64 {
	if l := measurePrefix(before); lines && l.maxBytes >= 0 && l.maxBytes < maxInPlace {
		return costInPlace
	}
	return costCandidate
}

// scanCost estimates the cost of looking for l per byte of text, without confirmations.
func scanCost(l literal.Set) float64 {
	if len(l.Members) == 1 {
		return costPair
	}
	return costMasks
}

func literalPrefilter(set []literal.Literal, v level) prefilter {
	if len(set) == 1 {
		return newPairPrefilter(set[0], v)
	}
	if !v.masks() || (literal.Set{Members: set}).Shortest() < 2 { // without vectors the DFA is faster
		return nil
	}
	return newTeddy(set, v)
}

// staysInLine says that n matches the same in line mode: it can't take "\n", does not ask for the
// ends of the text, and is not empty. (An empty match could stand after the last line break, where
// there is no line.)
func staysInLine(n *syntax.Node, crlf bool) bool {
	return !n.Nullable() && !n.Any(func(n *syntax.Node) bool {
		switch n.Op {
		case syntax.OpClass, syntax.OpBytes:
			return syntax.HasRune(n.Ranges, '\n') || crlf && syntax.HasRune(n.Ranges, '\r')
		case syntax.OpLook:
			return n.Look == syntax.LookTextStart || n.Look == syntax.LookTextEnd
		}
		return false
	})
}

// measurePrefix gives the longest text that items can match.
func measurePrefix(items []*syntax.Node) matchPrefix {
	var l matchPrefix
	for _, n := range items {
		if w := widest(n); w < 0 || l.maxBytes < 0 {
			l.maxBytes = -1
		} else {
			l.maxBytes = min(l.maxBytes+w, 1<<30)
		}
		l.newlines = l.newlines || n.Any(func(n *syntax.Node) bool {
			return n.Op == syntax.OpClass && syntax.HasRune(n.Ranges, '\n')
		})
	}
	return l
}

// widest is the most bytes that n can match, -1 without a bound.
func widest(n *syntax.Node) int {
	switch n.Op {
	case syntax.OpClass:
		return 4
	case syntax.OpBytes:
		return 1
	case syntax.OpConcat, syntax.OpAlt:
		sum := 0
		for _, s := range n.Subs {
			w := widest(s)
			if w < 0 {
				return -1
			}
			if n.Op == syntax.OpAlt {
				sum = max(sum, w)
			} else {
				sum += w
			}
		}
		return min(sum, 1<<30)
	case syntax.OpRepeat:
		w := widest(n.Subs[0])
		if w < 0 || n.Max < 0 && w > 0 {
			return -1
		}
		return min(w*max(n.Max, 0), 1<<30)
	case syntax.OpGroup:
		return widest(n.Subs[0])
	}
	return 0
}
