package edit

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"moltisfs/internal/lazy"
)

// repair undoes one way in which Old may have been damaged.
type repair struct {
	cause  string
	old    string
	new    string
	unsure string // why it is in doubt how New is to be written; "" if it isn't

	numbered int // of pasted line numbers the first one; 0 without
	several  bool
	inside   bool // the first line had no number: the match may begin anywhere
}

// repairs lists the ways to read an edit that no tier could place as it stands.
func repairs(e Edit) []repair {
	out := numbersOff(e)
	for _, w := range rewritings {
		old := w.undo(e.Old)
		if old == e.Old {
			continue
		}
		r := repair{cause: w.cause, old: old, new: w.undo(e.New)}
		head, middle, tail := affixes(e.Old, e.New)
		if r.new != w.undo(head)+middle+w.undo(tail) && !w.systematic(e.Old, e.New, len(head), len(e.New)-len(tail)) {
			r.unsure = "new_string adds escapes, and whether they stand for themselves can't be told: write both as they are in the file"
		}
		out = append(out, r)
	}
	return out
}

// affixes divides new into the start that it shares with old, the rest, and the end that it shares: of "a b c" and "a x c" that is "a ", "x", " c".
func affixes(old, new string) (head, middle, tail string) {
	n, m := commonEnds(old, new)
	return new[:n], new[n : len(new)-m], new[len(new)-m:]
}

// findRepaired is the last tier. It acts only if all repairs that find anything agree on one place
// and what to write there.
func findRepaired(src *source, e Edit) (*plan, error) {
	var found *plan
	agree, sure := true, false
	for _, r := range repairs(e) {
		p, err := r.place(src, e.All)
		if p != nil && orphan(src, r.old, r.new, p.rs[0].end) != "" {
			r.unsure = whyOrphan
		}
		if p != nil && further(src, Edit{Old: r.old, New: r.new}, p.rs[0].start) {
			r.unsure = whyDepth
		}
		switch {
		case err != nil:
			if nu, ok := err.(*NotUniqueError); ok {
				nu.Strategy = StrategyRepaired
			}
			return nil, err
		case p == nil:
		case found == nil:
			found, sure = p, r.unsure == ""
		default:
			agree, sure = agree && slices.Equal(p.rs, found.rs), sure || r.unsure == ""
		}
	}
	if !agree || !sure {
		return nil, nil // diagnose says why
	}
	found.strategy = StrategyRepaired
	return found, nil
}

// folded writes the odd characters of old plain again, and those of new, of which new has no other kinds.
func folded(e Edit) []repair {
	odd := oddRunes(e.Old)
	if odd == "" {
		return nil
	}
	r := repair{old: string(Plain([]byte(e.Old))), new: string(Plain([]byte(e.New)))}
	if strings.Trim(oddRunes(e.New), odd) != "" {
		r.unsure = whyChars
	}
	return []repair{r}
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

// indentAt gives the blanks before an offset on its line; "" if there is more than blanks.
func indentAt(src *source, at int) string {
	if pre := src.text[lineStart(src.text, at):at]; len(trimBlanks(pre)) == 0 {
		return string(pre)
	}
	return ""
}

// place looks for a repaired edit by the tiers exact to trailing_blanks.
func (r repair) place(src *source, all bool) (*plan, error) {
	if r.old == "" || strings.TrimSpace(r.old) == "" {
		return nil, nil
	}
	e := Edit{Old: r.old, New: r.new, All: all}
	f := newFitter(src.text, e.Old, e.New)
	p, err := findExact(src.text, []byte(e.Old), e, f)
	if p == nil && err == nil {
		p, err = findLoose(src, e, f, tierTrailing)
	}
	if p == nil || err != nil || r.numbered == 0 {
		return p, err
	}
	for _, x := range p.rs {
		if !r.inside && lineStart(src.text, x.start) != x.start {
			return nil, nil
		}
		if !r.several && lineAt(src.text, x.start) != r.numbered {
			return nil, nil
		}
	}
	return p, nil
}

// numbersOff lists the ways in which line numbers may have been pasted with Old. The numbers must
// count up line by line; only the first line may be without, and empty lines.
func numbersOff(e Edit) (out []repair) {
	if !strings.ContainsAny(e.Old, "0123456789") {
		return nil
	}
	for _, sign := range numberSigns() {
		old, first, numbered, bare, ok := stripNumbers(e.Old, sign)
		if !ok || numbered == 0 || sign == " " && numbered < 2 {
			continue
		}
		r := repair{cause: CauseLineNumbers, old: old, new: e.New, numbered: first, several: numbered > 1, inside: bare}
		if s, from, n, _, ok := stripNumbers(e.New, sign); ok && n > 0 && from == first {
			r.new = s
		} else if slices.ContainsFunc(strings.Split(e.New, "\n"), func(l string) bool { _, _, has := cutNumber(l, sign); return has }) {
			r.unsure = "new_string carries line numbers that do not follow those of old_string: leave them out of both"
		}
		out = append(out, r)
	}
	return out
}

// numberSigns stand between a line number and the line, as Read, cat -n and grep -n write them.
func numberSigns() []string { return []string{"→", "→ ", "\t", ": ", ":", " | ", "| ", "|", " "} }

// stripNumbers takes a number and sign off every line of s. bare: the first line had none.
func stripNumbers(s, sign string) (out string, first, numbered int, bare, ok bool) {
	var b strings.Builder
	next := 0
	for i, l := range strings.SplitAfter(s, "\n") {
		n, rest, has := cutNumber(l, sign)
		switch {
		case has && (next == 0 || n == next):
			if first == 0 {
				first = n
			}
			next = n
			numbered++
			b.WriteString(rest)
		case strings.TrimSpace(l) == "":
			b.WriteString(l)
		case i == 0:
			bare = true
			b.WriteString(l)
		default:
			return "", 0, 0, false, false
		}
		if next > 0 {
			next++
		}
	}
	return b.String(), first, numbered, bare, true
}

// cutNumber takes a number n and sign off the line l: of "   12→x" and the sign "→" it leaves "x".
func cutNumber(l, sign string) (n int, rest string, ok bool) {
	s := strings.TrimLeft(l, " ")
	digits := 0
	for digits < len(s) && digits < 8 && '0' <= s[digits] && s[digits] <= '9' {
		digits++
	}
	if digits == 0 {
		return 0, "", false
	}
	n, err := strconv.Atoi(s[:digits])
	if err != nil || n == 0 {
		return 0, "", false
	}
	s = s[digits:]
	if after, found := strings.CutPrefix(s, sign); found {
		return n, after, true
	}
	// Blanks at the end of an empty line are easily lost.
	if short := strings.TrimRight(sign, " \t"); strings.TrimRight(s, "\r\n") == short {
		return n, strings.TrimPrefix(s, short), true
	}
	// grep marks lines around a match by another sign.
	if sign == ":" {
		if after, found := strings.CutPrefix(s, "-"); found {
			return n, after, true
		}
	}
	return 0, "", false
}

// rewriting undoes one kind of escapes.
type rewriting struct {
	cause string
	kinds string // the letters behind the backslash that it undoes; "" for entities
}

// rewritings are tried in this order, simple ones first.
var rewritings = []rewriting{{CauseEscaped, "u"}, {CauseEscaped, `"'` + "`"}, {CauseEscaped, "ntr"}, {CauseEscaped, "ntr\"'`"}, {CauseEscaped, `\`},
	{CauseEscaped, "untr\"'`\\/bf"}, {CauseEntity, ""}}

func (u rewriting) undo(s string) string {
	if u.cause == CauseEntity {
		return unentity(s)
	}
	return unbackslash(s, u.kinds)
}

// escape is one escape: a backslash with a character, or with the number of one.
var escape = lazy.Regexp(`(?s)\\(?:u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}|u[[:xdigit:]]{4}|u\{[[:xdigit:]]{1,6}\}|.)`)

// unbackslash undoes the escapes of s whose letter is one of kinds, and leaves all others alone. Of "a\\n" with the kinds "n" nothing
// is undone: the second backslash belongs to the first.
func unbackslash(s, kinds string) string {
	return escape().ReplaceAllStringFunc(s, func(e string) string {
		at := strings.IndexByte("ntrbf", e[1])
		switch {
		case strings.IndexByte(kinds, e[1]) < 0, e == `\u`:
			return e
		case at >= 0:
			return "\n\t\r\b\f"[at : at+1]
		case e[1] != 'u':
			return e[1:]
		}
		number := func(digits string) rune {
			n, _ := strconv.ParseInt(strings.Trim(digits, "{}"), 16, 32)
			return rune(n)
		}
		if len(e) == len(`\ud83d\ude00`) {
			return string(utf16.DecodeRune(number(e[2:6]), number(e[8:])))
		} else if r := number(e[2:]); r <= utf8.MaxRune {
			return string(r)
		}
		return e
	})
}

var entity = lazy.Regexp(`&#?\w{1,10};`)

// unentity decodes the HTML entities of s that end in a semicolon.
func unentity(s string) string {
	return entity().ReplaceAllStringFunc(s, func(e string) string {
		if got := html.UnescapeString(e); got == ";" || !strings.HasSuffix(got, ";") {
			return got
		}
		return e // "&ampx;" begins with an entity without semicolon: that was not meant
	})
}

// systematic says that the escapes of new, from one offset to another, come from what befell old as
// well: in neither string anything of that kind stands bare, and none of them is within a literal,
// where it may stand for itself.
func (u rewriting) systematic(old, new string, from, to int) bool {
	if u.kinds == "" {
		bare := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "", "&quot;", "", "&#34;", "", "&#39;", "")
		return !strings.ContainsAny(bare.Replace(old+new), "&<>") && !u.within(new, from, to)
	}
	for _, c := range u.kinds {
		plain := map[rune]string{'n': "\n", 't': "\t", 'r': "\r"}[c]
		if plain == "" {
			plain = string(c)
		}
		escaped := `\` + string(c)
		if c == 'u' || c == 'b' || c == 'f' || c == '/' || !strings.Contains(old+new, escaped) {
			continue
		}
		if rest := strings.ReplaceAll(old+"\x00"+new, escaped, ""); strings.Contains(rest, plain) ||
			!strings.Contains(old, escaped) {
			return false
		}
	}
	return u.kinds == `\` || !u.within(new, from, to)
}

// within says that one of the escapes stands between quotes that are not escaped like it.
func (u rewriting) within(s string, from, to int) bool {
	var open byte
	quote := func(c byte) (inside bool) {
		switch open {
		case 0:
			open = c
		case c:
			open = 0
		default:
			return true
		}
		return false
	}
	for i := 0; i < len(s); i++ {
		own := i >= from && i < to
		c, n, escaped := s[i], 1, false
		if u.kinds != "" && c == '\\' && i+1 < len(s) {
			c, n = s[i+1], 2
			if escaped = strings.IndexByte(u.kinds, c) >= 0; !escaped {
				i++
				continue
			}
		} else if u.kinds == "" && c == '&' {
			if end := strings.IndexByte(s[i:min(len(s), i+8)], ';'); end > 0 {
				if got := html.UnescapeString(s[i : i+end+1]); len(got) == 1 {
					c, n, escaped = got[0], end+1, true
				}
			}
		}
		if escaped && own && (c == 'n' || c == 't') && i > 0 && s[i-1] == ' ' && strings.HasPrefix(s[i+n:], " ") {
			return true // prose speaks of it
		}
		isQuote := c == '"' || c == '\'' || c == '`'
		switch {
		case c == '\n' && !escaped, escaped && c == 'n' && open == 0:
			open = 0
		case isQuote && c == '\'' && apostrophe(s[:i], s[i+n:]):
		case isQuote:
			if quote(c) && escaped && own {
				return true
			}
		case escaped && own && open != 0 && c != '\\':
			return true
		}
		i += n - 1
	}
	return false
}

// apostrophe tells the sign in "it's" and "don't" from a quote. before and after are the text around it.
func apostrophe(before, after string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	if len(after) == 0 || !isWord(r) || after[0] != 's' && after[0] != 't' {
		return false
	}
	next, _ := utf8.DecodeRuneInString(after[1:])
	return !isWord(next) && next != '\'' && next != '\\'
}

const whyOrphan = "a sign that ends the last line of old_string stands behind it, and new_string goes on below that line"

// orphan gives the signs behind a match that end its last line, if New repeats that line, with them or without, and goes on below: they
// would come to end another. end is the end of the match. Given "a()" in "a();" and the New "a()\nb()", it gives ";".
func orphan(src *source, old, new string, end int) string {
	signs := strings.TrimSpace(string(src.text[end:lineFrom(src.text, end).end]))
	olds, news := contents(old), contents(new)
	mine, last := strings.TrimSpace(olds[len(olds)-1]), len(news)-1
	repeats := func(l string) bool { return strings.TrimSuffix(strings.TrimSpace(l), signs) == mine }
	if signs == "" || len(signs) > 4 || strings.Trim(signs, ";,.:)]}>") != "" || mine == "" ||
		strings.TrimSpace(news[last]) == mine || !slices.ContainsFunc(news[:last], repeats) {
		return ""
	}
	return signs
}
