package edit

import (
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/edit/letters"
)

// repair undoes one way in which Old may have been damaged, or writes Old as the file is written.
type repair struct {
	cause  string
	old    string
	new    string
	unsure string // why what should become of New cannot be told; "" when it can
	other  string // where it can't: New, of which what it adds stands for itself

	numbered int // for pasted line numbers: that of the first line; 0 otherwise
	several  bool
	inside   bool // the first line had no number: the match may begin anywhere
}

// repairs lists what could be meant by an edit that no tier could place as it stands.
func repairs(e Edit) []repair {
	out := numbersOff(e)
	for _, u := range unescapings() {
		if old := u.undo(e.Old); old != e.Old {
			head, middle, tail := affixes(e.Old, e.New)
			r := repair{cause: u.cause, old: old, new: u.undo(e.New)}
			if r.new != u.undo(head)+middle+u.undo(tail) &&
				!u.systematic(e.Old, e.New, len(head), len(e.New)-len(tail)) {
				r.other = u.undo(head) + middle + u.undo(tail)
				r.unsure = "new_string adds escapes, and whether they stand for themselves can't be told: write both as they are in the file"
			}
			out = append(out, r)
		}
	}
	for _, x := range escapings() {
		if old := x.do(e.Old); old != e.Old {
			head, middle, tail := affixes(e.Old, e.New)
			r := repair{cause: x.cause, old: old, new: x.do(head) + middle + x.do(tail)}
			if x.do(middle) != middle {
				r.other = x.do(e.New)
				r.unsure = "the file is escaped there, and whether new_string should be cannot be told: write both as they are in the file"
			}
			out = append(out, r)
		}
	}
	return out
}

// affixes divides new into what it shares with old at its start, the rest, and what at its end.
func affixes(old, new string) (head, middle, tail string) {
	n := 0
	for n < len(old) && n < len(new) && old[n] == new[n] {
		n++
	}
	for n > 0 && n < len(new) && !utf8.RuneStart(new[n]) {
		n--
	}
	o, s := old[n:], new[n:]
	m := 0
	for m < len(o) && m < len(s) && o[len(o)-1-m] == s[len(s)-1-m] {
		m++
	}
	for m > 0 && !utf8.RuneStart(s[len(s)-m]) {
		m--
	}
	return new[:n], s[:len(s)-m], s[len(s)-m:]
}

// findRepaired is the last tier. It acts only if all repairs that find anything agree on one place
// and what to write there.
func findRepaired(h *haystack, e Edit) (*plan, error) {
	var sure, unsure []*plan
	for _, r := range repairs(e) {
		p, err := r.place(h, e.All)
		if p != nil && torn(h, r.old, r.new, p.rs[0].end) != "" {
			r.unsure = whyTorn
		}
		if p != nil && further(h, Edit{Old: r.old, New: r.new}, p.rs[0].start) {
			switch h.added {
			case asTold:
				r.unsure = whyDepth
			case moved:
				p, err = r.deepened(h, p.rs[0].start).place(h, e.All)
			}
		}
		switch {
		case err != nil:
			if nu, ok := err.(*NotUniqueError); ok {
				nu.Strategy = StrategyRepaired
			}
			return nil, err
		case p == nil:
		case r.unsure != "":
			unsure = append(unsure, p) // diagnose says why
		default:
			sure = append(sure, p)
		}
	}
	for _, p := range append(unsure, sure...) {
		if len(sure) == 0 || !slices.Equal(p.rs, sure[0].rs) {
			return nil, nil
		}
	}
	if len(sure) == 0 {
		return nil, nil
	}
	sure[0].strategy = StrategyRepaired
	return sure[0], nil
}

// folded writes the odd characters of old plain again, and those of new, of which new has no other kinds.
func folded(e Edit) []repair {
	odd := letters.Odd(e.Old)
	if odd == "" {
		return nil
	}
	r := repair{old: string(letters.Plain([]byte(e.Old))), new: string(letters.Plain([]byte(e.New)))}
	if strings.Trim(letters.Odd(e.New), odd) != "" {
		head, own, tail := affixes(e.Old, e.New)
		plain := func(s string) string { return string(letters.Plain([]byte(s))) }
		r.unsure, r.other = whyChars, plain(head)+own+plain(tail)
	}
	return []repair{r}
}

// deepened is the repair with the lines of New behind the first moved to where the match begins.
func (r repair) deepened(h *haystack, at int) repair {
	first, rest, many := strings.Cut(r.new, "\n")
	if many {
		r.new = first + "\n" + deepened(rest, indentAt(h, at))
	}
	return r
}

// deepened puts blanks before every line that has any text.
func deepened(s, in string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			lines[i] = in + l
		}
	}
	return strings.Join(lines, "\n")
}

// indentAt is what stands before an offset on its line, where that is blank.
func indentAt(h *haystack, at int) string {
	if pre := h.text[lineStart(h.text, at):at]; len(trimBlanks(pre)) == 0 {
		return string(pre)
	}
	return ""
}

// place looks for a repaired edit by the tiers exact to trailing_blanks.
func (r repair) place(h *haystack, all bool) (*plan, error) {
	if r.old == "" || strings.TrimSpace(r.old) == "" {
		return nil, nil
	}
	e := Edit{Old: r.old, New: r.new, All: all}
	f := newFitter(h.text, e.Old, e.New)
	p, err := findExact(h.text, []byte(e.Old), e, f)
	if p == nil && err == nil {
		p, err = findLoose(h, e, f, tierTrailing)
	}
	if p == nil || err != nil || r.numbered == 0 {
		return p, err
	}
	for _, x := range p.rs {
		if !r.inside && lineStart(h.text, x.start) != x.start {
			return nil, nil
		}
		if !r.several && lineAt(h.text, x.start) != r.numbered {
			return nil, nil
		}
	}
	return p, nil
}
