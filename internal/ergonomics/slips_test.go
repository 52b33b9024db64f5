package ergonomics

import (
	"fmt"
	"hash/fnv"
	"html"
	"math/rand"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// A slip is what befalls an edit on its way: old and new are damaged alike.
type slip struct {
	category, name string
	prep           func(text string) string         // how the file is written, where that matters
	want           func(lines []string) bool        // the regions in which the slip shows
	do             func(it intent, s string) string // to old, and to new
	only           string                           // "old": new is right
	part           bool                             // of a part of a line
	refuse         bool
}

func eachLine(f func(l string) string) func(intent, string) string {
	return func(_ intent, s string) string {
		ls := strings.Split(s, "\n")
		for i := range ls {
			if strings.TrimSpace(ls[i]) != "" {
				ls[i] = f(ls[i])
			}
		}
		return strings.Join(ls, "\n")
	}
}

func subst(pairs ...string) func(intent, string) string {
	r := strings.NewReplacer(pairs...)
	return func(_ intent, s string) string { return r.Replace(s) }
}

// led rewrites the indentation of every line.
func led(f func(in string) string) func(intent, string) string {
	return eachLine(func(l string) string { in := indentation(l); return f(in) + l[len(in):] })
}

func has(parts ...string) func([]string) bool {
	return func(lines []string) bool {
		for _, p := range parts {
			if strings.Contains(strings.Join(lines, "\n"), p) {
				return true
			}
		}
		return false
	}
}

func indentedBy(in string) func([]string) bool {
	return func(lines []string) bool {
		for _, l := range lines {
			if strings.TrimSpace(l) != "" && !strings.HasPrefix(l, in) {
				return false
			}
		}
		return true
	}
}

// someIndented: at least one line has the unit, and several lines say more.
func someIndented(in string) func([]string) bool {
	return func(lines []string) bool {
		return len(lines) > 1 && strings.Contains("\n"+strings.Join(lines, "\n"), "\n"+in)
	}
}

func several(lines []string) bool { return len(lines) > 1 }

// numbered writes line numbers as tools show them.
func numbered(format string, shift int) func(intent, string) string {
	return func(it intent, s string) string {
		ls := strings.Split(s, "\n")
		for i := range ls {
			ls[i] = fmt.Sprintf(format, it.line+i+shift) + ls[i]
		}
		return strings.Join(ls, "\n")
	}
}

// onceIn changes the first place of a kind that both texts share.
func onceIn(f func(word string) string) func(intent, string) string {
	return func(it intent, s string) string {
		for _, w := range strings.FieldsFunc(it.old, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_')
		}) {
			if len(w) >= 6 && f(w) != w && strings.Contains(it.new, w) {
				return strings.ReplaceAll(s, w, f(w))
			}
		}
		return s
	}
}

// none stands in what a slip can't be made of without a loss.
const none = "\x00"

func less(n int) func(string) string {
	return func(in string) string {
		if len(in) < n {
			return none
		}
		return in[n:]
	}
}

func tabbed(n int) func(string) string {
	return func(in string) string { return strings.ReplaceAll(in, "\t", strings.Repeat(" ", n)) }
}

// common is the indentation that all lines of old have.
func common(s string) string {
	in, first := "", true
	for _, l := range strings.Split(s, "\n") {
		if strings.TrimSpace(l) == "" {
			continue
		}
		x := indentation(l)
		if first {
			in, first = x, false
		}
		for !strings.HasPrefix(x, in) {
			in = in[:len(in)-1]
		}
	}
	return in
}

func curled(s string) string {
	return strings.NewReplacer(` "`, ` “`, `("`, `(“`, `="`, `=“`, `["`, `[“`, `"`, `”`).Replace(s)
}

func wrapped(before, after string) func(intent, string) string {
	return func(_ intent, s string) string { return before + s + after }
}

var slips = []slip{
	{category: "A indentation", name: "tabs as 2 spaces", want: someIndented("\t"), do: led(tabbed(2))},
	{category: "A indentation", name: "tabs as 4 spaces", want: someIndented("\t"), do: led(tabbed(4))},
	{category: "A indentation", name: "tabs as 8 spaces", want: indentedBy("\t"), do: led(tabbed(8))},
	{category: "A indentation", name: "4 spaces as tabs", want: someIndented("    "), do: func(it intent, s string) string {
		if strings.Contains(it.old+it.new, "\t") {
			return s // which of them were blanks nobody could tell
		}
		return led(func(in string) string { return strings.ReplaceAll(in, "    ", "\t") })(it, s)
	}},
	{category: "A indentation", name: "one deeper", want: indentedBy("  "), do: led(func(in string) string { return " " + in })},
	{category: "A indentation", name: "two deeper", want: indentedBy("    "), do: led(func(in string) string { return "  " + in })},
	{category: "A indentation", name: "four deeper", want: indentedBy("    "), do: led(func(in string) string { return "    " + in })},
	{category: "A indentation", name: "one less", want: indentedBy("  "), do: led(less(1))},
	{category: "A indentation", name: "two less", want: indentedBy("    "), do: led(less(2))},
	{category: "A indentation", name: "a tab deeper", want: indentedBy("\t"), do: led(func(in string) string { return "\t" + in })},
	{category: "A indentation", name: "dedented", want: func(ls []string) bool { return indentedBy(" ")(ls) || indentedBy("\t")(ls) },
		do: func(it intent, s string) string {
			return eachLine(func(l string) string { return strings.TrimPrefix(l, common(it.old)) })(it, s)
		}},
	{category: "A indentation", name: "first line from its text", want: func(ls []string) bool { return len(ls) > 1 && indentation(ls[0]) != "" },
		do: func(_ intent, s string) string { return strings.TrimLeft(s, " \t") }},
	{category: "A indentation", name: "2 spaces as 4", want: indentedBy("  "), do: led(func(in string) string { return in + in })},
	{category: "A indentation", name: "4 spaces as 2", want: indentedBy("    "), do: led(func(in string) string { return in[:len(in)/2] })},

	{category: "B blanks", name: "trailing blank sent", do: eachLine(func(l string) string { return l + " " })},
	{category: "B blanks", name: "trailing blanks in the file", prep: func(s string) string { return strings.ReplaceAll(s, "\n", "  \n") },
		do: eachLine(func(l string) string { return strings.TrimRight(l, " ") })},
	{category: "B blanks", name: "a blank line lost", want: has("\n\n"), do: subst("\n\n", "\n")},
	{category: "B blanks", name: "a blank line more", want: several, do: func(it intent, s string) string { return strings.Replace(s, "\n", "\n\n", 1) }},
	{category: "B blanks", name: "blanks around = lost", want: has(" = "), do: subst(" = ", "=")},
	{category: "B blanks", name: "blank after comma lost", want: has(", "), do: subst(", ", ",")},
	{category: "B blanks", name: "runs of blanks as one", want: func(ls []string) bool {
		for _, l := range ls {
			if strings.Contains(strings.TrimSpace(l), "  ") {
				return true
			}
		}
		return false
	}, do: eachLine(func(l string) string { return indentation(l) + strings.Join(strings.Fields(l), " ") })},
	{category: "B blanks", name: "a break before and behind", do: wrapped("\n", "\n"), want: func(ls []string) bool { return true }},

	{category: "C line numbers", name: "arrow", do: numbered("%6d→", 0)},
	{category: "C line numbers", name: "tab", do: numbered("%d\t", 0)},
	{category: "C line numbers", name: "cat -n", do: numbered("%6d\t", 0)},
	{category: "C line numbers", name: "grep", do: numbered("%d:", 0)},
	{category: "C line numbers", name: "bar", do: numbered("%4d | ", 0)},
	{category: "C line numbers", name: "arrow and blank", do: numbered("%6d→ ", 0)},
	{category: "C line numbers", name: "off by one", want: several, do: numbered("%6d→", 1)},
	{category: "C line numbers", name: "old only", only: "old", do: numbered("%6d→", 0)},
	{category: "C line numbers", name: "L12:", do: numbered("L%d: ", 0)},
	{category: "C line numbers", name: "path and number", do: func(it intent, s string) string { return numbered(it.name+":%d:", 0)(it, s) }},

	{category: "D typography", name: "curly quotes sent", want: has(`"`), do: func(_ intent, s string) string { return curled(s) }},
	{category: "D typography", name: "curly apostrophes sent", want: has(`'`), do: subst("'", "’")},
	{category: "D typography", name: "no-break spaces sent", want: has(", "), do: subst(", ", ",\u00a0")},
	{category: "D typography", name: "no-break spaces as indentation", want: indentedBy("  "), do: led(func(in string) string { return strings.ReplaceAll(in, " ", "\u00a0") })},
	{category: "D typography", name: "zero width sent", want: has("("), do: subst("(", "\u200b(")},
	{category: "D typography", name: "byte order mark sent", do: wrapped("\ufeff", "")},
	{category: "D typography", name: "long dash sent", want: has(" - ", "--"), do: subst(" - ", " – ", "--", "—")},
	{category: "D typography", name: "ellipsis sent", want: has("..."), do: subst("...", "…")},
	{category: "D typography", name: "quotes curly in the file", want: has("“", "”", "’"), prep: func(s string) string { return strings.ReplaceAll(curled(s), "'", "’") }, do: subst("“", `"`, "”", `"`, "’", "'")},
	{category: "D typography", name: "no-break spaces in the file", want: has("\u00a0"), prep: func(s string) string { return strings.ReplaceAll(s, ", ", ",\u00a0") }, do: subst("\u00a0", " ")},
	{category: "D typography", name: "decomposed in the file", want: has("e\u0301"), prep: func(s string) string { return norm.NFD.String(strings.ReplaceAll(s, "er ", "ér ")) }, do: func(_ intent, s string) string { return norm.NFC.String(s) }},
	{category: "D typography", name: "decomposed sent", want: has("é"), prep: func(s string) string { return strings.ReplaceAll(s, "er ", "ér ") }, do: func(_ intent, s string) string { return norm.NFD.String(s) }},

	{category: "E escapes", name: "quotes escaped", want: has(`"`), do: subst(`"`, `\"`)},
	{category: "E escapes", name: "apostrophes escaped", want: has(`'`), do: subst(`'`, `\'`)},
	{category: "E escapes", name: "breaks escaped", want: func(ls []string) bool { return len(ls) > 1 && !has(`\`)(ls) }, do: subst("\n", `\n`)},
	{category: "E escapes", name: "breaks and tabs escaped", want: func(ls []string) bool { return someIndented("\t")(ls) && !has(`\`)(ls) }, do: subst("\n", `\n`, "\t", `\t`)},
	{category: "E escapes", name: "backslashes doubled", want: has(`\`), do: subst(`\`, `\\`)},
	{category: "E escapes", name: "as in JSON", want: func(ls []string) bool { return len(ls) > 1 && has(`"`)(ls) }, do: func(_ intent, s string) string { q := strconv.Quote(s); return q[1 : len(q)-1] }},
	{category: "E escapes", name: "entities", want: has("<", ">", "&"), do: func(_ intent, s string) string { return html.EscapeString(s) }},
	{category: "E escapes", name: "only < and >", want: has("<", ">"), do: subst("<", "&lt;", ">", "&gt;")},
	{category: "E escapes", name: "< by its number", want: has("<", ">", "&"), do: subst("<", `\u003c`, ">", `\u003e`, "&", `\u0026`)},
	{category: "E escapes", name: "entities lost", want: has("&lt;", "&amp;", "&gt;"), do: func(_ intent, s string) string { return html.UnescapeString(s) }},
	{category: "E escapes", name: "backslashes lost", want: has(`\"`, `\n`), do: subst(`\"`, `"`)},
	{category: "E escapes", name: "dollar escaped", want: has("$"), do: subst("$", `\$`)},

	{category: "F content", name: "case of a word", do: onceIn(strings.ToLower)},
	{category: "F content", name: "upper case of a word", do: onceIn(func(w string) string { return strings.ToUpper(w[:1]) + w[1:] })},
	{category: "F content", name: "one letter lost", do: onceIn(func(w string) string { return w[:3] + w[4:] })},
	{category: "F content", name: "one letter doubled", do: onceIn(func(w string) string { return w[:4] + w[3:] })},
	{category: "F content", name: "two letters swapped", do: onceIn(func(w string) string { return w[:2] + w[3:4] + w[2:3] + w[4:] })},
	{category: "F content", name: "a plural", do: onceIn(func(w string) string { return w + "s" })},
	{category: "F content", name: "underscore lost", want: has("_"), do: onceIn(func(w string) string { return strings.Replace(w, "_", "", 1) })},
	{category: "F content", name: "middle elided", want: func(ls []string) bool { return len(ls) == 4 },
		do: elided("...")},
	{category: "F content", name: "middle elided by a remark", want: func(ls []string) bool { return len(ls) == 4 },
		do: elided("// ... existing code ...")},
	{category: "F content", name: "code fence", do: func(it intent, s string) string { return "```" + it.lang + "\n" + s + "\n```" }},
	{category: "F content", name: "diff columns", want: several, do: diffed},
	{category: "F content", name: "search markers", do: func(it intent, s string) string {
		if s == it.old {
			return "<<<<<<< SEARCH\n" + s + "\n======="
		}
		return s + "\n>>>>>>> REPLACE"
	}},
	{category: "F content", name: "tags", do: func(it intent, s string) string {
		if s == it.old {
			return "<old_string>" + s + "</old_string>"
		}
		return "<new_string>" + s + "</new_string>"
	}},
	{category: "F content", name: "in quotes", do: wrapped("`", "`")},
	{category: "F content", name: "semicolon lost", want: has(";"), do: func(_ intent, s string) string { return strings.Replace(s, ";", "", 1) }},
	{category: "F content", name: "comma at the end", part: true, do: wrapped("", ",")},

	{category: "P two slips", name: "numbers and tabs as spaces", want: someIndented("\t"), do: both(led(tabbed(4)), numbered("%6d→", 0))},
	{category: "P two slips", name: "numbers and dedented", want: func(ls []string) bool { return indentedBy(" ")(ls) || indentedBy("\t")(ls) }, do: func(it intent, s string) string {
		return numbered("%d\t", 0)(it, eachLine(func(l string) string { return strings.TrimPrefix(l, common(it.old)) })(it, s))
	}},
	{category: "P two slips", name: "quotes escaped and tabs as spaces", want: func(ls []string) bool { return someIndented("\t")(ls) && has(`"`)(ls) }, do: both(subst(`"`, `\"`), led(tabbed(4)))},
	{category: "P two slips", name: "entities and dedented", want: func(ls []string) bool { return indentedBy(" ")(ls) && has("<", "&")(ls) }, do: func(it intent, s string) string {
		return subst("&", "&amp;", "<", "&lt;")(it, eachLine(func(l string) string { return strings.TrimPrefix(l, common(it.old)) })(it, s))
	}},
	{category: "P two slips", name: "a letter lost and tabs as spaces", want: someIndented("\t"), do: both(onceIn(func(w string) string { return w[:3] + w[4:] }), led(tabbed(4)))},
	{category: "P two slips", name: "case and trailing blank", do: both(onceIn(strings.ToLower), eachLine(func(l string) string { return l + " " }))},
	{category: "P two slips", name: "curly and dedented", want: func(ls []string) bool { return indentedBy(" ")(ls) && has(`"`)(ls) }, do: func(it intent, s string) string {
		return eachLine(func(l string) string { return strings.TrimPrefix(l, common(it.old)) })(it, curled(s))
	}},
	{category: "P two slips", name: "code fence and line numbers", do: both(numbered("%6d→", 0), wrapped("```\n", "\n```"))},
}

func both(f, g func(intent, string) string) func(intent, string) string {
	return func(it intent, s string) string { return g(it, f(it, s)) }
}

// elided drops the middle of four lines where old and new have the same.
func elided(mark string) func(intent, string) string {
	return func(it intent, s string) string {
		ls := strings.Split(s, "\n")
		olds := strings.Split(it.old, "\n")
		if len(ls) < 4 || !strings.Contains(s, olds[1]+"\n"+olds[2]) {
			return it.old // no case: the change is in the middle
		}
		return strings.Replace(s, olds[1]+"\n"+olds[2], indentation(olds[1])+mark, 1)
	}
}

// diffed writes old with the columns of a diff, and new too.
func diffed(it intent, s string) string {
	other := map[string]bool{}
	from, sign := it.new, "-"
	if s == it.new {
		from, sign = it.old, "+"
	}
	for _, l := range strings.Split(from, "\n") {
		other[l] = true
	}
	ls := strings.Split(s, "\n")
	for i, l := range ls {
		if other[l] {
			ls[i] = " " + l
		} else {
			ls[i] = sign + l
		}
	}
	return strings.Join(ls, "\n")
}

func seeded(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewSource(int64(h.Sum64())))
}

// slipped are the cases of all slips, so many of each.
func slipped(t testing.TB, sources []source, each int) []Case {
	return slippedAs(t, slips, sources, each)
}

func slippedAs(t testing.TB, slips []slip, sources []source, each int) (out []Case) {
	for _, sl := range slips {
		got := 0
		r := seeded(sl.category + sl.name)
		for _, i := range r.Perm(len(sources)) {
			s := sources[i]
			if sl.prep != nil {
				s.text = sl.prep(s.text)
			}
			for _, it := range intents(s, r, 2+2*each/len(sources), sl.want) {
				if c, ok := sl.makes(it); ok && got < each {
					out = append(out, c)
					got++
				}
			}
		}
		if got == 0 {
			t.Logf("%s, %s: no case", sl.category, sl.name)
		}
	}
	return out
}

func (sl slip) makes(it intent) (Case, bool) {
	if sl.part {
		var ok bool
		if it, ok = it.within(); !ok {
			return Case{}, false
		}
	}
	old, new := sl.do(it, it.old), it.new
	if sl.only != "old" {
		new = sl.do(it, it.new)
	}
	if old == it.old || old == new || new == it.old || strings.Contains(it.text, old) || strings.Contains(old+new, none) {
		return Case{}, false
	}
	c := it.edit(sl.category, sl.name, old, new)
	c.Refuse = sl.refuse
	return c, true
}

// TestWhateverTheSlip: the tree is as it was meant, or untouched, after the call and after what its refusal offers, by one slip and by two, in strict
// matching too. The edits are others than those of the corpus.
func TestWhateverTheSlip(t *testing.T) {
	var some []slip
	for i, a := range slips {
		a.name += ", other edits"
		some = append(some, a)
		// A slip in the content would hit another place of new than of old behind another slip.
		if b := slips[(7*i+3)%len(slips)]; a.category < "F" && b.category < "F" && b.prep == nil && b.only == "" {
			a.name += ", and " + b.name
			a.do = both(a.do, b.do)
			if first := a.want; b.want != nil {
				a.want = func(ls []string) bool { return b.want(ls) && (first == nil || first(ls)) }
			}
			some = append(some, a)
		}
	}
	cases := slippedAs(t, some, allSources(t), *others)
	for _, matching := range []string{"tolerant", "strict"} {
		for i, r := range run(t, cases, openInside(t, matching)) {
			if r.Outcome == Wrong || r.Outcome == Misled || r.Outcome == Collateral {
				t.Errorf("%s, %s, %s: %s\n%s\n%s", matching, cases[i].Category, cases[i].Slip, r.Outcome, rendered(cases[i].Args), rendered(r.First.Body))
			}
		}
	}
}
