package match

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// literal is a byte string in which single letters may stand in either case: text[i]|mask[i] ==
// bytes[i].
type literal struct {
	bytes []byte
	mask  []byte // 0x20 where an ASCII letter folds, else 0
}

func (l literal) at(text []byte) bool {
	if len(text) < len(l.bytes) {
		return false
	}
	for i, b := range l.bytes {
		if text[i]|l.mask[i] != b {
			return false
		}
	}
	return true
}

func (l literal) folds() bool { return slices.Contains(l.mask, 0x20) }

func (l literal) join(m literal) literal {
	return literal{slices.Concat(l.bytes, m.bytes), slices.Concat(l.mask, m.mask)}
}

func (l literal) equal(m literal) bool {
	return slices.Equal(l.bytes, m.bytes) && slices.Equal(l.mask, m.mask)
}

const (
	maxLiterals = 64 // in a set that a prefilter takes
	maxProduct  = 32 // members that a set may reach when its parts are multiplied out
)

// literals is a set of which one member stands in every match of a node. For "foo[0-9]" that is
// {"foo"}.
//
// A literal must never be taken as required when a match can do without it: the search would pass
// over matches and nobody would notice. When in doubt, extraction gives less.
type literals struct {
	set   []literal
	exact bool // the node matches the members and nothing else
	item  int  // a member cannot begin before this item of the concatenation
	shift int  // how many bytes behind the beginning of that item it may stand further
	// shared: the members are only a part of the strings that the node matches.
	shared bool
}

func (l literals) shortest() int {
	n := 1 << 20
	for _, x := range l.set {
		n = min(n, len(x.bytes))
	}
	return n
}

// useful says whether l can be searched for.
func (l literals) useful() bool { return len(l.set) > 0 && l.shortest() > 0 }

func emptyLiterals(exact bool) literals { return literals{set: []literal{{}}, exact: exact} }

// extract gives the sets that every match of n satisfies, in order of appearance. When n matches a
// small finite set of strings, that set is whole. For "(a|b)c[0-9]+" it gives {"ac", "bc"}.
func extract(n *node, lines bool) (whole literals, finite bool, needs []literals) {
	switch n.op {
	case opEmpty:
		return emptyLiterals(true), true, nil
	case opLook:
		return emptyLiterals(false), true, nil
	case opClass:
		set := classLiterals(n.ranges, lines)
		return literals{set: set, exact: true}, set != nil, nil
	case opGroup:
		return extract(n.subs[0], lines)
	case opRepeat:
		return extractRepeat(n, lines)
	case opConcat:
		return extractConcat(n.subs, lines)
	case opAlt:
		return extractAlt(n, lines)
	}
	return literals{}, false, nil
}

// classLiterals spells out a class of few members. It gives nil for a larger one.
func classLiterals(ranges []rune, lines bool) []literal {
	if countRunes(ranges) > 12 {
		return nil
	}
	var out []literal
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			switch {
			case r == '\n' && lines, r >= 0xd800 && r < 0xe000:
			case r >= 'A' && r <= 'Z' && hasRune(ranges, r|0x20): // comes with its small letter
			case r >= 'a' && r <= 'z' && hasRune(ranges, r&^0x20):
				out = append(out, literal{[]byte{byte(r)}, []byte{0x20}})
			default:
				b := utf8.AppendRune(nil, r)
				out = append(out, literal{b, make([]byte, len(b))})
			}
		}
	}
	return out
}

func extractRepeat(n *node, lines bool) (literals, bool, []literals) {
	if n.max == 0 {
		return emptyLiterals(true), true, nil
	}
	whole, finite, needs := extract(n.subs[0], lines)
	if n.min == 0 {
		if n.max == 1 && finite && len(whole.set) < maxProduct {
			set := append(whole.set[:len(whole.set):len(whole.set)], literal{})
			if n.lazy { // what is preferred comes first
				set = append([]literal{{}}, whole.set...)
			}
			return literals{set: set, exact: whole.exact}, true, nil
		}
		return literals{}, false, nil
	}
	if n.max == n.min && n.min <= 16 {
		return extractConcat(slices.Repeat([]*node{n.subs[0]}, n.min), lines)
	}
	if finite {
		needs = append(needs, literals{set: whole.set})
	}
	return literals{}, false, needs
}

func extractAlt(n *node, lines bool) (literals, bool, []literals) {
	all := literals{exact: true}
	finite := true
	var best literals // one set out of each branch
	for i, s := range n.subs {
		whole, ok, needs := extract(s, lines)
		finite = finite && ok && len(all.set)+len(whole.set) <= maxLiterals
		if finite {
			all.set = append(all.set, whole.set...)
			all.exact = all.exact && whole.exact
		}
		if ok {
			needs = append(needs, literals{set: whole.set})
		}
		pick, found := choose(needs)
		if !found || i > 0 && best.set == nil {
			best.set = nil
			if !finite {
				return literals{}, false, nil
			}
			continue
		}
		best.set = append(best.set, pick.set...)
	}
	if finite {
		all.set = dedupe(all.set)
		return all, true, nil
	}
	if best.set = dedupe(best.set); len(best.set) == 0 || len(best.set) > 4*maxLiterals {
		return literals{}, false, nil
	}
	return literals{}, false, []literals{best}
}

// choose gives the most selective set.
func choose(sets []literals) (literals, bool) {
	best := -1
	for i, s := range sets {
		if s.useful() && (best < 0 || cmp.Less(s.frequency(), sets[best].frequency())) {
			best = i
		}
	}
	if best < 0 {
		return literals{}, false
	}
	return sets[best], true
}

func extractConcat(subs []*node, lines bool) (literals, bool, []literals) {
	var needs []literals
	run := emptyLiterals(true)
	finite := true
	flush := func(next int) {
		if run.useful() {
			needs = append(needs, literals{set: run.set, item: run.item})
		}
		run = emptyLiterals(false)
		run.item = next
	}
	join := func(l literals, item int) {
		if len(run.set)*len(l.set) > maxProduct || run.shortest()+l.shortest() > 64 {
			finite = false
			flush(item)
		}
		set := make([]literal, 0, len(run.set)*len(l.set))
		for _, a := range run.set {
			for _, b := range l.set {
				set = append(set, a.join(b))
			}
		}
		run = literals{set: dedupe(set), exact: run.exact && l.exact, item: run.item}
	}
	for i, s := range subs {
		whole, ok, inner := extract(s, lines)
		if ok {
			join(whole, i)
			continue
		}
		finite = false
		// x{n,} begins with x and ends with x. So x continues what stands before, and what stands
		// after continues x: "ab+c" gives "ab" and "bc".
		for s.op == opGroup {
			s = s.subs[0]
		}
		if s.op == opRepeat && s.min > 0 {
			if w, ok, _ := extract(s.subs[0], lines); ok {
				join(literals{set: w.set}, i)
				flush(i + 1)
				// The last x may stand far behind the first: only item i+1 is a safe beginning.
				run = literals{set: w.set, item: i + 1}
				continue
			}
		}
		flush(i + 1)
		for _, need := range inner {
			need.item = i + 1
			needs = append(needs, need)
		}
	}
	if finite {
		return run, true, nil
	}
	flush(len(subs))
	return literals{}, false, needs
}

// common gives the rarest string of at least four bytes that all members hold: one literal is found
// faster than several. For "getName|setName" that is "etName".
func (l literals) common() (literals, bool) {
	const least = 4
	if len(l.set) < 2 || l.shortest() < least {
		return literals{}, false
	}
	first := l.set[0]
	var best literals
	rarest := 2.0
	for from := 0; from+least <= len(first.bytes); from++ {
		to := from + least
		shift, ok := l.holds(first.part(from, to))
		if !ok {
			continue
		}
		for to < len(first.bytes) {
			s, ok := l.holds(first.part(from, to+1))
			if !ok {
				break
			}
			shift, to = s, to+1
		}
		if f := first.part(from, to).frequency(); f < rarest {
			rarest = f
			best = literals{set: []literal{first.part(from, to)}, shared: true}
			best.item, best.shift = l.item, l.shift+shift
		}
	}
	return best, best.set != nil
}

// holds says whether x stands in every member, and how far behind a beginning at most.
func (l literals) holds(x literal) (shift int, ok bool) {
	for _, m := range l.set {
		at := 0
		for at+len(x.bytes) <= len(m.bytes) && !m.part(at, at+len(x.bytes)).equal(x) {
			at++
		}
		if at+len(x.bytes) > len(m.bytes) {
			return 0, false
		}
		shift = max(shift, at)
	}
	return shift, true
}

func (l literal) part(from, to int) literal { return literal{l.bytes[from:to], l.mask[from:to]} }

// dedupe drops literals that occur twice.
func dedupe(set []literal) []literal {
	var out []literal
	for _, l := range set {
		if !slices.ContainsFunc(out, l.equal) {
			out = append(out, l)
		}
	}
	return out
}
