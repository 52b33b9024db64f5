package edit

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/edit/letters"
	"moltisfs/internal/edit/mend"
	"moltisfs/internal/text"
)

// A mender looks for the edit that was meant where no tier could make the one that was sent. What
// it finds is offered, never made: both strings as they should be sent, tried before.
type mender struct {
	h     *haystack
	sent  Edit
	found []*outcome
	tier  int // by which they were found
	doubt bool
	like  *resemblance
}

// resemblance is what a reading is most like.
type resemblance struct {
	repair
	*needle
	mend.Like
}

// outcome is a stretch of the text and what becomes of it, and the same as small as it goes.
type outcome struct {
	start, end int
	with       string
	least      replacement
}

const maxMended = 64 << 10 // bytes of what is mended

// mended gives the edit that was most likely meant; nil where that is in doubt. The mender knows what
// else may be meant; it is nil where nothing was looked for.
func mended(h *haystack, e Edit) (*Edit, *mender) {
	if e.All || len(e.Old)+len(e.New) > maxMended || !utf8.ValidString(e.Old) || !utf8.ValidString(e.New) {
		return nil, nil
	}
	m := newMender(h, e)
	if m.nothing() {
		m.alike(mend.Neither)
	}
	if m.doubt || len(m.found) != 1 {
		return nil, m
	}
	return m.offer(m.found[0]), m
}

// newMender has looked for all readings by the tiers, and where there is nothing, for what they are like.
func newMender(h *haystack, e Edit) *mender {
	tear := *h
	tear.torn = true
	m := &mender{h: &tear, sent: e}
	readings := m.readings()
	for _, r := range readings {
		m.equal(r)
	}
	if m.nothing() {
		m.resembles(readings[:min(len(readings), 12)])
	}
	return m
}

func (m *mender) nothing() bool { return len(m.found) == 0 && !m.doubt }

// readings are the edit as sent, and without what befell it: one thing, or two.
func (m *mender) readings() []repair {
	first := repair{old: m.sent.Old, new: m.sent.New}
	out := []repair{first}
	seen := map[[2]string]bool{{first.old, first.new}: true}
	for depth, from := 0, 0; depth < 2; depth++ {
		to := len(out)
		for _, r := range out[from:to] {
			for _, next := range append(undone(r), m.elided(r)...) {
				if k := [2]string{next.old, next.new}; !seen[k] && len(out) < 40 {
					seen[k] = true
					next.unsure += r.unsure
					next.joined = r.joined || next.cause == CauseEscaped && strings.Count(next.old, "\n") > strings.Count(r.old, "\n")
					out = append(out, next)
				}
			}
		}
		from = to
	}
	return out
}

// undone lists the ways in which one more thing can be undone.
func undone(r repair) (out []repair) {
	e := Edit{Old: r.old, New: r.new}
	for _, x := range mend.Readings(r.old, r.new) {
		out = append(out, repair{old: x.Old, new: x.New, whole: x.Lines || r.whole})
	}
	for _, x := range repairs(e) {
		if x.whole = r.whole || x.numbered > 0 && !x.inside; x.numbered > 0 || strings.TrimSpace(x.old) != "" {
			if x.cause == CauseEscaped && len(x.old) < len(r.old) && ownHas(x.old, x.new, `\`) {
				x.unsure = "escapes are left in what new_string adds"
			}
			out = append(out, x)
		}
	}
	return append(out, folded(r)...)
}

// elided puts the file's lines in place of a line of dots that stands for them in old, and in new.
// The lines before are in the file once, and those behind soon after them: once, or as the end of
// the block.
func (m *mender) elided(r repair) (out []repair) {
	const most = 16 << 10
	head, mark, tail, ok := mend.Dots(r.old)
	n, newMark, w, also := mend.Dots(r.new)
	if !ok || !also || mark != newMark {
		return nil
	}
	text := m.h.text
	at := bytes.Index(text, []byte(head))
	if at < 0 || bytes.Contains(text[at+1:], []byte(head)) {
		return nil
	}
	from := at + len(head)
	rest := text[from:min(len(text), from+most)]
	to := bytes.Index(rest, []byte("\n"+tail)) + 1
	again := to > 0 && bytes.Contains(rest[to:], []byte("\n"+tail))
	if to < 1 || again && !mend.Deeper(string(rest[:to]), tail) || !utf8.Valid(rest[:to]) {
		return nil
	}
	if l := lineFrom(text, from+to+len(tail)); len(trimBlanks(text[from+to+len(tail):l.end])) > 0 {
		return nil // it is the beginning of another line
	}
	middle := string(rest[:to])
	return []repair{{old: head + middle + tail, new: n + middle + w}}
}

// folded writes the odd characters of old plain again: those kinds, and no others, in new as well.
// A dash may stand for one sign or two.
func folded(r repair) (out []repair) {
	odd := letters.Odd(r.old)
	if odd == "" {
		return nil
	}
	for _, dash := range []string{"-", "--"} {
		var pairs []string
		seen := false // a reader can see them
		for _, c := range odd {
			to, _ := letters.Fold(c)
			if seen = seen || strings.TrimSpace(to) != ""; c == '—' {
				to = dash
			}
			switch pairs = append(pairs, string(c), to); c {
			case '“', '”':
				pairs = append(pairs, "“", to, "”", to)
			case '‘', '’':
				pairs = append(pairs, "‘", to, "’", to)
			}
		}
		f := strings.NewReplacer(pairs...)
		next := repair{old: f.Replace(r.old), new: f.Replace(r.new), whole: r.whole}
		left := strings.IndexFunc(letters.Odd(next.new), func(c rune) bool {
			s, _ := letters.Fold(c)
			return strings.TrimSpace(s) != ""
		})
		if seen && left >= 0 {
			head, own, tail := affixes(r.old, r.new)
			next.unsure, next.other = whyChars, f.Replace(head)+own+f.Replace(tail)
			next.new = string(letters.Plain([]byte(next.new)))
		}
		if out = append(out, next); !strings.Contains(odd, "—") {
			break
		}
	}
	return out
}

// equal looks for a reading by the tiers.
func (m *mender) equal(r repair) {
	if strings.TrimSpace(r.old) == "" || r.old == r.new {
		return
	}
	p, err := find(m.h, Edit{Old: r.old, New: r.new}, false)
	if _, many := err.(*NotUniqueError); many && r.old != m.sent.Old {
		m.doubt = true
	}
	if p != nil && len(p.rs) == 1 && r.whole {
		if pre := m.h.text[lineStart(m.h.text, p.rs[0].start):p.rs[0].start]; len(pre) > 0 {
			// Whole lines, of which the indentation was lost: all by the same.
			if r.whole = false; len(trimBlanks(pre)) == 0 {
				r.old, r.new = mend.Deepened(r.old, string(pre)), mend.Deepened(r.new, string(pre))
				m.equal(r)
			}
			return
		}
	}
	if p == nil || err != nil || len(p.rs) != 1 || r.numbered > 0 &&
		!r.several && lineAt(m.h.text, p.rs[0].start) != r.numbered {
		return
	}
	if sign := torn(m.h, r.old, r.new, p.rs[0].end); sign != "" {
		if all := r.closed(sign); len(all) == 1 {
			m.equal(all[0])
		} else {
			m.doubt = true
		}
		return
	}
	if r.unsure != "" && p.strategy != StrategyRepaired || further(m.h, Edit{Old: r.old, New: r.new}, p.rs[0].start) {
		m.doubt = true
		return
	}
	tier := slices.Index(strategies, p.strategy)
	if r.joined && p.strategy == StrategyIndentation {
		return
	}
	if len(m.found) > 0 && tier != m.tier { // a reading that is there exactly is the better one
		if tier > m.tier {
			return
		}
		m.found = nil
	}
	m.tier = tier
	m.add(p.rs[0].start, p.rs[0].end, p.rs[0].with)
}

var strategies = []string{StrategyExact, StrategyLineEndings, StrategyTrailingBlanks, StrategyQuotes,
	StrategyUnicode, StrategyIndentation, StrategyRepaired}

func (m *mender) add(start, end int, with string) {
	o := &outcome{start: start, end: end, with: with}
	d := document{text: m.h.text, enc: text.UTF8}
	o.least = d.trim(replacement{start, end, with})
	if !slices.ContainsFunc(m.found, func(x *outcome) bool { return x.least == o.least }) {
		m.found = append(m.found, o)
	}
}

// resembles looks for what the edit is most like, by the reading that is nearest to it.
func (m *mender) resembles(readings []repair) {
	bones, _ := m.h.skeleton()
	bones = lowerASCII(bones)
	budget := mend.Budget
	for _, x := range readings {
		if try := newNeedle([]byte(x.old)); try != nil && len(try.bones) >= 6 && !x.joined {
			got, ok := mend.Approx(bones, lowerASCII(try.bones), &budget)
			if ok && got.Sure(len(try.bones)) && (m.like == nil || got.Distance < m.like.Distance) {
				m.like = &resemblance{x, try, got}
			}
		}
	}
}

// alike merges with what the edit is most like.
func (m *mender) alike(side mend.Side) {
	if m.like == nil || m.like.unsure != "" {
		return
	}
	n, r := m.like.needle, m.like.repair
	_, marks := m.h.skeleton()
	start, end, ok := letters.Place(m.h.text, marks, m.like.Start, m.like.End)
	if !ok || !utf8.Valid(m.h.text[start:end]) || mend.Cuts(m.h.text, start) || mend.Cuts(m.h.text, end) {
		return
	}
	e := Edit{Old: r.old, New: r.new}
	if start, end = n.widened(m.h, start, end, e.New); end-start > maxMended {
		return
	}
	if sign := torn(m.h, e.Old, e.New, end); sign != "" {
		end += bytes.Index(m.h.text[end:], []byte(sign)) + len(sign)
	}
	head, own, tail := affixes(e.Old, e.New)
	if pre := m.h.text[lineStart(m.h.text, start):start]; strings.TrimSpace(head) == "" &&
		strings.Contains(own, "\n") && len(trimBlanks(pre)) > 0 {
		return // what new adds above would come to stand behind the beginning of the line
	}
	if strings.TrimSpace(tail) == "" && strings.Contains(own, "\n") &&
		len(trimBlanks(m.h.text[end:lineFrom(m.h.text, end).end])) > 0 {
		return // what new adds below would come to stand before the rest of the line
	}
	region := lf(string(m.h.text[start:end]))
	if strings.Contains(region, "\r") {
		return
	}
	i := &indenter{text: m.h.text, near: start, old: e.Old, new: e.New, at: indentAt(m.h, start)}
	with, ok := mend.Merge(lf(e.Old), region, lf(e.New), i.of, m.foreign(start, end), side)
	if !ok || with == region || !m.clean(e, region, with) {
		return
	}
	f := newFitter(m.h.text, region, with)
	m.add(start, end, f.fit(start, end))
}

// clean: what new adds bears no sign of the kind in which old and the file differ.
func (m *mender) clean(e Edit, region, with string) bool {
	for _, r := range letters.Odd(with) {
		if !strings.ContainsRune(region, r) && strings.ContainsRune(e.Old, r) {
			return false
		}
	}
	return letters.Odd(region) == letters.Odd(e.Old) || !ownHas(e.Old, e.New, "\"'-")
}

// ownHas says that what new has and old has not holds one of some signs.
func ownHas(old, new, signs string) bool {
	_, own, _ := affixes(old, new)
	return strings.ContainsAny(own, signs)
}

// widened adds to the stretch from the first to the last sign the white space that old has there.
func (n *needle) widened(h *haystack, start, end int, new string) (int, int) {
	for i := n.last; i < len(n.old) && end < len(h.text) && n.old[i] == h.text[end] && isBlankByte(n.old[i]); i++ {
		end++ // the blanks that both have there
	}
	for i := n.first; i > 0 && start > 0 && n.old[i-1] == h.text[start-1] && isBlankByte(n.old[i-1]); i-- {
		start--
	}
	at := lineStart(h.text, start)
	if blank := len(trimBlanks(h.text[at:start])) == 0; blank && (n.first > 0 || bytes.Contains(n.old, []byte("\n"))) {
		start = at
	}
	if l := lineFrom(h.text, end); n.last < len(n.old) && len(trimBlanks(h.text[end:l.end])) == 0 {
		end = l.end
		if bytes.Contains(n.old[n.last:], []byte("\n")) {
			end = l.next
		}
	}
	return start, end
}

// indentAt is what stands before an offset on its line, where that is blank.
func indentAt(h *haystack, at int) string {
	if pre := h.text[lineStart(h.text, at):at]; len(trimBlanks(pre)) == 0 {
		return string(pre)
	}
	return ""
}

// foreign tells whether the text has a word outside of a stretch.
func (m *mender) foreign(start, end int) func(string) bool {
	return func(word string) bool {
		return mend.HasWord(m.h.text[:start], word) || mend.HasWord(m.h.text[end:], word)
	}
}

// indenter indents the lines that new adds.
type indenter struct {
	text     []byte
	near     int
	old, new string
	at       string // of the line in which the stretch begins, if it begins within
	rule     *mend.Rule
	tried    bool
}

func (i *indenter) of(pairs []mend.Pair, in string) (string, bool) {
	same, known, clash, to := true, false, false, ""
	for _, p := range pairs {
		same = same && p.Old == p.File
		if p.Old == in {
			clash = clash || known && to != p.File
			known, to = true, p.File
		}
	}
	switch {
	case same:
		return in, strings.HasPrefix(in, i.at)
	case clash, spansLines(i.new), !i.aligned():
		return "", false
	case known:
		return to, true
	}
	if !i.tried {
		i.tried, i.rule = true, mend.FindRule(pairs, i.old, i.new, i.text, i.near)
	}
	if i.rule == nil {
		return "", false
	}
	return i.rule.Apply(in)
}

// aligned says that old and new were moved together: they begin in one column or share a line.
func (i *indenter) aligned() bool {
	a, b := strings.Split(i.old, "\n"), strings.Split(i.new, "\n")
	x, _, _ := parts(a[0])
	y, _, _ := parts(b[0])
	return x == y || slices.ContainsFunc(a, func(l string) bool {
		return strings.TrimSpace(l) != "" && slices.Contains(b, l)
	})
}

// smaller is the same edit with no more of the lines that both strings share than make it unique: a
// refusal that offers it stays short.
func smaller(h *haystack, e *Edit) *Edit {
	const enough = 120
	if e == nil || len(e.Old)+len(e.New) < enough || e.New == "" {
		return e
	}
	a, b := strings.SplitAfter(e.Old, "\n"), strings.SplitAfter(e.New, "\n")
	head, tail, n := 0, 0, min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	budget := lookBudget
	for c := 0; c < max(head, tail); c++ {
		from, to := max(0, head-c), max(0, tail-c)
		old, new := strings.Join(a[from:len(a)-to], ""), strings.Join(b[from:len(b)-to], "")
		at := bytes.Index(h.text, []byte(old))
		if strings.TrimSpace(old) == "" || at < 0 || new == "" || !once(h.text, []byte(old), at, &budget) {
			continue
		}
		return &Edit{Old: old, New: new}
	}
	return e
}

// offer makes the edit that is sent: exact, unique, and tried.
func (m *mender) offer(o *outcome) *Edit {
	all := m.h.text
	sent := &Edit{Old: string(all[o.start:o.end]), New: o.with}
	budget := lookBudget
	if !once(all, all[o.start:o.end], o.start, &budget) {
		around, ok := uniqueAround(all, o.start, o.end, &budget)
		at := strings.Index(around, sent.Old)
		if !ok || at < 0 || strings.Count(around, sent.Old) != 1 {
			return nil
		}
		sent.Old, sent.New = around, around[:at]+o.with+around[at+len(sent.Old):]
	}
	p, err := find(m.h, *sent, true)
	if err != nil || p == nil || len(p.rs) != 1 || !utf8.ValidString(sent.Old) || sent.Old == sent.New {
		return nil
	}
	d := document{text: all, enc: text.UTF8}
	if d.trim(p.rs[0]) != o.least {
		return nil
	}
	return sent
}
