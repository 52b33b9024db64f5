// Package literal finds out which strings every match of a pattern holds, and how rare they are. A
// search that knows one need only look where it stands.
//
// It is about patterns and knows no text: looking for the strings is package match's business. A
// wrong estimate costs time, but never a match. A wrong Set would cost matches.
package literal

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/grep/match/frequency"
	"moltisfs/grep/match/syntax"
)

// Literal is a byte string in which single letters may stand in either case: text[i]|Mask[i] ==
// Bytes[i].
type Literal struct {
	Bytes []byte
	Mask  []byte // 0x20 where an ASCII letter folds, else 0
}

// At says whether text begins with l.
func (l Literal) At(text []byte) bool {
	if len(text) < len(l.Bytes) {
		return false
	}
	for i, b := range l.Bytes {
		if text[i]|l.Mask[i] != b {
			return false
		}
	}
	return true
}

// Folds says whether a letter may stand in either case.
func (l Literal) Folds() bool { return slices.Contains(l.Mask, 0x20) }

func (l Literal) join(m Literal) Literal {
	return Literal{slices.Concat(l.Bytes, m.Bytes), slices.Concat(l.Mask, m.Mask)}
}

// Equal says whether both are the same literal.
func (l Literal) Equal(m Literal) bool {
	return slices.Equal(l.Bytes, m.Bytes) && slices.Equal(l.Mask, m.Mask)
}

const (
	// Most is how many members a set may have that a prefilter takes.
	Most       = 64
	maxProduct = 32 // members that a set may reach when its parts are multiplied out
)

// Set is a set of literals of which one member stands in every match of a node. For "foo[0-9]" that
// is {"foo"}.
//
// A literal must never be taken as required when a match can do without it: the search would pass
// over matches and nobody would notice. When in doubt, extraction gives less.
type Set struct {
	Members []Literal
	Exact   bool // the node matches the members and nothing else
	Item    int  // a member cannot begin before this item of the concatenation
}

// Shortest is the length of the shortest member.
func (l Set) Shortest() int {
	n := 1 << 20
	for _, x := range l.Members {
		n = min(n, len(x.Bytes))
	}
	return n
}

// Useful says whether l can be searched for.
func (l Set) Useful() bool { return len(l.Members) > 0 && l.Shortest() > 0 }

func emptyLiterals(exact bool) Set { return Set{Members: []Literal{{}}, Exact: exact} }

// Extract gives the sets that every match of n satisfies, in order of appearance. When n matches a
// small finite set of strings, that set is whole. For "(a|b)c[0-9]+" it gives {"ac", "bc"}.
func Extract(n *syntax.Node, lines bool) (whole Set, finite bool, needs []Set) {
	switch n.Op {
	case syntax.OpEmpty:
		return emptyLiterals(true), true, nil
	case syntax.OpLook:
		return emptyLiterals(false), true, nil
	case syntax.OpClass:
		set := classLiterals(n.Ranges, lines)
		return Set{Members: set, Exact: true}, set != nil, nil
	case syntax.OpGroup:
		return Extract(n.Subs[0], lines)
	case syntax.OpRepeat:
		return extractRepeat(n, lines)
	case syntax.OpConcat:
		return ExtractConcat(n.Subs, lines)
	case syntax.OpAlt:
		return extractAlt(n, lines)
	}
	return Set{}, false, nil
}

// classLiterals spells out a class of few members. It gives nil for a larger one.
func classLiterals(ranges []rune, lines bool) []Literal {
	if syntax.CountRunes(ranges) > 12 {
		return nil
	}
	var out []Literal
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			switch {
			case r == '\n' && lines, r >= 0xd800 && r < 0xe000:
			case r >= 'A' && r <= 'Z' && syntax.HasRune(ranges, r|0x20): // comes with its small letter
			case r >= 'a' && r <= 'z' && syntax.HasRune(ranges, r&^0x20):
				out = append(out, Literal{[]byte{byte(r)}, []byte{0x20}})
			default:
				b := utf8.AppendRune(nil, r)
				out = append(out, Literal{b, make([]byte, len(b))})
			}
		}
	}
	return out
}

func extractRepeat(n *syntax.Node, lines bool) (Set, bool, []Set) {
	if n.Max == 0 {
		return emptyLiterals(true), true, nil
	}
	whole, finite, needs := Extract(n.Subs[0], lines)
	if n.Min == 0 {
		if n.Max == 1 && finite && len(whole.Members) < maxProduct {
			set := append(whole.Members[:len(whole.Members):len(whole.Members)], Literal{})
			if n.Lazy { // the preferred choice comes first
				set = append([]Literal{{}}, whole.Members...)
			}
			return Set{Members: set, Exact: whole.Exact}, true, nil
		}
		return Set{}, false, nil
	}
	if n.Max == n.Min && n.Min <= 16 {
		return ExtractConcat(slices.Repeat([]*syntax.Node{n.Subs[0]}, n.Min), lines)
	}
	if finite {
		needs = append(needs, Set{Members: whole.Members})
	}
	return Set{}, false, needs
}

func extractAlt(n *syntax.Node, lines bool) (Set, bool, []Set) {
	all := Set{Exact: true}
	finite := true
	var best Set // one set out of each branch
	for i, s := range n.Subs {
		whole, ok, needs := Extract(s, lines)
		finite = finite && ok && len(all.Members)+len(whole.Members) <= Most
		if finite {
			all.Members = append(all.Members, whole.Members...)
			all.Exact = all.Exact && whole.Exact
		}
		if ok {
			needs = append(needs, Set{Members: whole.Members})
		}
		pick, found := Cheapest(needs, Set.Frequency)
		if !found || i > 0 && best.Members == nil {
			best.Members = nil
			if !finite {
				return Set{}, false, nil
			}
			continue
		}
		best.Members = append(best.Members, pick.Members...)
	}
	if finite {
		all.Members = dedupe(all.Members)
		return all, true, nil
	}
	if best.Members = dedupe(best.Members); len(best.Members) == 0 || len(best.Members) > 4*Most {
		return Set{}, false, nil
	}
	return Set{}, false, []Set{best}
}

// Cheapest gives the useful set of the least cost.
func Cheapest(sets []Set, cost func(Set) float64) (Set, bool) {
	best := -1
	for i, s := range sets {
		if s.Useful() && (best < 0 || cost(s) < cost(sets[best])) {
			best = i
		}
	}
	if best < 0 {
		return Set{}, false
	}
	return sets[best], true
}

// ExtractConcat is Extract for items one after the other.
func ExtractConcat(subs []*syntax.Node, lines bool) (Set, bool, []Set) {
	var needs []Set
	run := emptyLiterals(true)
	finite := true
	flush := func(next int) {
		if run.Useful() {
			needs = append(needs, Set{Members: run.Members, Item: run.Item})
		}
		run = emptyLiterals(false)
		run.Item = next
	}
	join := func(l Set, item int) {
		if len(run.Members)*len(l.Members) > maxProduct || run.Shortest()+l.Shortest() > 64 {
			finite = false
			flush(item)
		}
		set := make([]Literal, 0, len(run.Members)*len(l.Members))
		for _, a := range run.Members {
			for _, b := range l.Members {
				set = append(set, a.join(b))
			}
		}
		run = Set{Members: dedupe(set), Exact: run.Exact && l.Exact, Item: run.Item}
	}
	for i, s := range subs {
		whole, ok, inner := Extract(s, lines)
		if ok {
			join(whole, i)
			continue
		}
		finite = false
		// x{n,} begins with x and ends with x. So x continues the text before it, and the text
		// after it continues x: "ab+c" gives "ab" and "bc".
		for s.Op == syntax.OpGroup {
			s = s.Subs[0]
		}
		if s.Op == syntax.OpRepeat && s.Min > 0 {
			if w, ok, _ := Extract(s.Subs[0], lines); ok {
				join(Set{Members: w.Members}, i)
				flush(i + 1)
				// The last x may stand far behind the first: only item i+1 is a safe beginning.
				run = Set{Members: w.Members, Item: i + 1}
				continue
			}
		}
		flush(i + 1)
		for _, need := range inner {
			need.Item = i + 1
			needs = append(needs, need)
		}
	}
	if finite {
		return run, true, nil
	}
	flush(len(subs))
	return Set{}, false, needs
}

// Part is the literal from one byte to another.
func (l Literal) Part(from, to int) Literal { return Literal{l.Bytes[from:to], l.Mask[from:to]} }

// dedupe drops literals that occur twice.
func dedupe(set []Literal) []Literal {
	var out []Literal
	for _, l := range set {
		if !slices.ContainsFunc(out, l.Equal) {
			out = append(out, l)
		}
	}
	return out
}

// commonWords occur in source far more often than their letters suggest.
var commonWords = []string{
	"#define ", "#include ", "#endif", "#ifdef ", "static ", "struct ", "return ", "const ",
	"unsigned ", "void ", "int ", "char ", "import ", "export ", "function ", "public ",
	"private ", "string ", "error ", "self.", "this.", "class ", "type ", "func ", "else ",
	"if (", "for (", "while ", "package ", "default", "null", "nil {", "true", "false", "from ",
	"require(", "async ", "await ", "the ", "and ", "that ", "with ", "printf(", "    ", "\t\t",
	"---", "===", "***", "///", "TODO",
}

// Frequency estimates how often l occurs per byte of text.
func (l Literal) Frequency() float64 {
	// A literal is no more frequent than each of its ends.
	f, then, rest := 1.0, 1.0, 1.0 // then: that the byte behind follows; rest: that all behind that do
	var behind *frequency.Set
	for i := len(l.Bytes) - 1; i >= 0; i-- {
		here := frequency.Of(func(x byte) bool { return x|l.Mask[i] == l.Bytes[i] })
		if behind != nil {
			rest *= math.Sqrt(then) // the longer a word's beginning, the surer is its next letter
			then = here.Then(behind)
		}
		f = min(f, here.Chance()*then*rest)
		behind = here
	}
	if len(l.Bytes) > 1 {
		text, folds := string(l.Bytes), l.Folds()
		for _, w := range commonWords {
			if strings.Contains(w, text) || folds && strings.Contains(strings.ToLower(w), text) {
				f = max(f, 5e-4)
			}
		}
	}
	return f
}

// Frequency estimates how often a member of l occurs per byte of text.
func (l Set) Frequency() float64 {
	f := 0.0
	for _, x := range l.Members {
		f += x.Frequency()
	}
	return f
}
