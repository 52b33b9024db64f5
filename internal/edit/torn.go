package edit

import (
	"slices"
	"strings"
)

const whyTorn = "a sign that ends the last line of old_string stands behind it, and new_string goes on below that line"

// torn gives the signs behind a match that end its last line, where New repeats that line and goes on
// below: they would come to end another.
func torn(h *haystack, old, new string, end int) string {
	rest := strings.TrimSpace(string(h.text[end:lineFrom(h.text, end).end]))
	if rest == "" || len(rest) > 4 || strings.Trim(rest, ";,.:)]}>") != "" || goesOn(old, new, rest) < 0 {
		return ""
	}
	return rest
}

// goesOn is the index in New of the last line of Old, with the signs or without, where others follow;
// -1 where they don't.
func goesOn(old, new, signs string) int {
	olds, news := contents(old), contents(new)
	mine := strings.TrimSpace(olds[len(olds)-1])
	if strings.TrimSpace(news[len(news)-1]) == mine {
		return -1
	}
	return slices.IndexFunc(news[:len(news)-1], func(l string) bool {
		return mine != "" && strings.TrimSuffix(strings.TrimSpace(l), signs) == mine
	})
}

// ended gives the two plans of an edit that is torn, nil where it isn't or there are not two.
func (r repair) ended(h *haystack) (a, b *plan) {
	tear := *h
	tear.torn = true
	if strings.TrimSpace(r.old) == "" || r.old == r.new {
		return nil, nil
	}
	p, _ := find(&tear, Edit{Old: r.old, New: r.new}, false)
	if p == nil || len(p.rs) != 1 {
		return nil, nil
	}
	sign := torn(h, r.old, r.new, p.rs[0].end)
	if sign == "" {
		return nil, nil
	}
	if all := r.closed(sign); len(all) == 2 {
		a, _ = find(h, Edit{Old: all[0].old, New: all[0].new}, false)
		b, _ = find(h, Edit{Old: all[1].old, New: all[1].new}, false)
	}
	return a, b
}

// closed gives what may be meant by an edit that is torn: the line keeps its sign, and the last line of
// New has it as well, if it may.
func (r repair) closed(sign string) (out []repair) {
	news := contents(r.new)
	at, last := goesOn(r.old, r.new, sign), len(news)-1
	r.old, news[at] = r.old+sign, strings.TrimSuffix(news[at], sign)+sign
	r.new = strings.Join(news, "\n")
	out = append(out, r)
	if l := strings.TrimSpace(news[last]); l != "" && !strings.ContainsAny(l[len(l)-1:], "{}[(,;:>") {
		r.new += sign
		out = append(out, r)
	}
	return out
}
