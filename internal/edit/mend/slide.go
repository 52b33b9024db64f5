package mend

import (
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
)

// slide moves what was only put in, or only dropped, to where the white space shows that it belongs:
// of two tags that are alike the one whose indentation is gone was dropped. Where that does not tell,
// what is put in begins a line.
func slide(old, new text, cs []diff.Change) {
	for n := range cs {
		c := &cs[n]
		lo, hi := 0, len(old.tokens)
		if n > 0 {
			lo = cs[n-1].A1
		}
		if n+1 < len(cs) {
			hi = cs[n+1].A0
		}
		switch {
		case c.B0 == c.B1: // from old
			d := best(old, new, c.A0, c.A1, c.B0, c.A0-lo, hi-c.A1)
			*c = diff.Change{A0: c.A0 + d, A1: c.A1 + d, B0: c.B0 + d, B1: c.B1 + d}
		case c.A0 == c.A1:
			d := best(new, old, c.B0, c.B1, c.A0, c.A0-lo, hi-c.A1)
			*c = diff.Change{A0: c.A0 + d, A1: c.A1 + d, B0: c.B0 + d, B1: c.B1 + d}
		}
	}
}

// best gives how far long[from:to], which short lacks at offset at, is moved: by at most up and down.
func best(long, short text, from, to, at, up, down int) int {
	first, last := reach(long, from, to, up, down)
	cost := func(d int) (n int) {
		for i := first; i < last; i++ { // the tokens that are kept, before the stretch or behind it
			l := from + i
			if i >= d {
				l = to + i
			}
			_, breaks, in := parts(long.gaps[l])
			if at+i == 0 { // nothing stands before it
				breaks = breaksOf(short.gaps[0])
			}
			if !placedAs(short.gaps[at+i], breaks, in) {
				n += 2
			}
		}
		if breaksOf(long.gaps[from+d]) == "" && from+d > 0 {
			n++
		}
		return n
	}
	out := 0
	for d := first; d <= last; d++ {
		if cost(d) < cost(out) {
			out = d
		}
	}
	return out
}

// reach is how far a stretch can be moved without a change of the whole.
func reach(long text, from, to, up, down int) (first, last int) {
	for -first < up && long.tokens[from+first-1] == long.tokens[to+first-1] {
		first--
	}
	for last < down && to+last < len(long.tokens) && long.tokens[from+last] == long.tokens[to+last] {
		last++
	}
	return first, last
}

// meet says that new puts something in where old may lack something: which of the two comes first
// can't be told.
func meet(old, file text, damage, change []diff.Change) bool {
	for n, d := range damage {
		if d.A0 != d.A1 {
			continue
		}
		lo, hi := 0, len(old.tokens)
		if n > 0 {
			lo = damage[n-1].A1
		}
		if n+1 < len(damage) {
			hi = damage[n+1].A0
		}
		first, last := reach(file, d.B0, d.B1, d.A0-lo, hi-d.A1)
		for _, c := range change {
			if c.A0 == c.A1 && first < last && c.A0 >= d.A0+first && c.A0 <= d.A0+last {
				return true
			}
		}
	}
	return false
}

// placedAs says that a gap has these breaks and this indentation.
func placedAs(g, breaks, in string) bool {
	_, a, b := parts(g)
	return a == breaks && b == in
}

// part mends a name that begins or ends as a damaged word does, up to where a part of it ends.
func part(t, old, to string) (string, bool) {
	const least = 3
	head, tail := 0, 0 // what old and to have alike
	for head < min(len(old), len(to)) && old[head] == to[head] {
		head++
	}
	for tail < min(len(old), len(to))-head && old[len(old)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	n := 0
	for n < min(len(t), len(old)) && t[n] == old[n] {
		n++
	}
	for ; n >= max(least, len(old)-tail, head+1); n-- {
		if endsPart(t, n) {
			return to[:len(to)-(len(old)-n)] + t[n:], true
		}
	}
	n = 0
	for n < min(len(t), len(old)) && t[len(t)-1-n] == old[len(old)-1-n] {
		n++
	}
	for ; n >= max(least, len(old)-head, tail+1); n-- {
		if endsPart(t, len(t)-n) {
			return t[:len(t)-n] + to[len(old)-n:], true
		}
	}
	return "", false
}

// endsPart says that a part of a name ends at an offset: at_offset, atOffset.
func endsPart(t string, at int) bool {
	if at == 0 || at == len(t) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(t[:at])
	after, _ := utf8.DecodeRuneInString(t[at:])
	return before == '_' || after == '_' || unicode.IsUpper(after) && unicode.IsLower(before)
}
