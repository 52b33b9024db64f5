package edit

import (
	"bytes"
	"unicode/utf8"
)

const (
	maxLines    = 50 // line numbers in a NotUniqueError
	maxContexts = 3
	maxAround   = 40       // lines on either side that a context may take
	maxContext  = 8 << 10  // bytes of a context
	lookBudget  = 64 << 20 // bytes looked at to tell contexts apart
)

// notUniqueExact lists the matches of old, of which there are at least two.
func notUniqueExact(text, old []byte, first, second int) *NotUniqueError {
	var starts []int
	count := 0
	for pos := 0; ; {
		i := bytes.Index(text[pos:], old)
		if i < 0 {
			break
		}
		if count++; len(starts) < maxLines {
			starts = append(starts, pos+i)
		}
		pos += i + len(old)
	}
	if count == 1 { // they overlap
		count, starts = 2, []int{first, second}
	}
	regions := make([]extent, len(starts))
	for i, s := range starts {
		regions[i] = extent{s, s + len(old)}
	}
	return notUnique(text, regions, count, tierExact)
}

func notUniqueLoose(text []byte, ms []match, t tier) *NotUniqueError {
	regions := make([]extent, 0, maxLines)
	for _, m := range ms[:min(len(ms), maxLines)] {
		regions = append(regions, extent{m.start, m.end})
	}
	return notUnique(text, regions, len(ms), t)
}

func notUnique(text []byte, regions []extent, count int, t tier) *NotUniqueError {
	e := &NotUniqueError{Count: count, Strategy: t.String()}
	num, pos := lineAt(text, 0), 0
	brk := []byte{'\n'}
	for _, r := range regions {
		num += bytes.Count(text[pos:max(pos, r.start)], brk)
		pos = max(pos, r.start)
		e.Lines = append(e.Lines, num)
	}
	budget := lookBudget
	for i, r := range regions[:min(len(regions), maxContexts)] {
		if s, ok := uniqueAround(text, r.start, r.end, &budget); ok {
			e.Contexts = append(e.Contexts, Context{e.Lines[i], s})
		}
	}
	return e
}

// uniqueAround gives the least run of whole lines around text[start:end] that is in the text once
// and is valid UTF-8. Of the shortest it takes the one with the match in the middle.
func uniqueAround(text []byte, start, end int, budget *int) (string, bool) {
	above, below := []int{lineStart(text, start)}, []int{end}
	next := end
	if lineStart(text, end) < end || end == start {
		l := lineFrom(text, end)
		below[0], next = l.end, l.next
	}
	if above[0]+longLine < below[0] {
		return uniqueWithin(text, above[0], below[0], start, end, budget)
	}
	limit := maxContext + (end - start)
	for i := 0; i < maxAround && above[i] > 0 && end-above[i] <= limit; i++ {
		above = append(above, lineStart(text, above[i]-1))
	}
	for i := 0; i < maxAround && next < len(text) && below[i]-start <= limit; i++ {
		l := lineFrom(text, next)
		below = append(below, l.end)
		next = l.next
	}
	reach, ok := reachOf(text, above, below, budget)
	if !ok {
		return "", false
	}
	for n := 0; n < len(above)+len(below)-1; n++ {
		for a := 0; a <= n; a++ {
			// Every way to have n more lines, the even ones first: what a reader would quote.
			up := (n + 1) / 2
			if a%2 == 1 {
				up -= (a + 1) / 2
			} else {
				up += a / 2
			}
			down := n - up
			if up >= len(above) || down >= len(below) || below[down] <= reach[up] {
				continue
			}
			if s := text[above[up]:below[down]]; len(s) > 0 && len(s) <= limit && utf8.Valid(s) {
				return string(s), true
			}
		}
	}
	return "", false
}

// reachOf tells for each start in above up to which offset the text that begins there is somewhere
// else too, -1 for one whose text up to below[0] is nowhere else. So all contexts are judged by one
// pass over the text. It gives up where that would take more than the budget.
func reachOf(text []byte, above, below []int, budget *int) (reach []int, ok bool) {
	from, to, last := above[0], below[0], below[len(below)-1]
	reach = make([]int, len(above))
	for i := range reach {
		reach[i] = -1
	}
	core := text[from:to]
	*budget -= len(text)
	for pos := 0; pos+len(core) <= len(text); pos++ { // they may overlap
		i := bytes.Index(text[pos:], core)
		if i < 0 {
			break
		}
		if pos += i; pos == from {
			continue
		}
		after := common(text[to:last], text[pos+len(core):])
		up := 0
		for up+1 < len(above) {
			l := text[above[up+1]:above[up]]
			if at := pos - (from - above[up]); !bytes.HasSuffix(text[:max(0, at)], l) {
				break
			}
			up++
		}
		reach[up] = max(reach[up], to+after)
		if *budget -= len(core) + after + from - above[up] + 16; *budget <= 0 {
			return nil, false
		}
	}
	for i := len(reach) - 1; i > 0; i-- {
		reach[i-1] = max(reach[i-1], reach[i])
	}
	return reach, true
}

// common gives how many bytes a and b begin with alike.
func common(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// once reports whether s, which is in text at offset at, is nowhere else in it.
func once(text, s []byte, at int, budget *int) bool {
	i := bytes.Index(text, s)
	*budget -= i + len(s)
	if i != at {
		return false
	}
	j := bytes.Index(text[at+1:], s)
	if j < 0 {
		*budget -= len(text) - at
		return true
	}
	*budget -= j
	return false
}
