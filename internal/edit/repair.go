package edit

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
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
func findRepaired(src *source, e Edit) (*plan, error) {
	var sure, unsure []*plan
	for _, r := range repairs(e) {
		p, err := r.place(src, e.All)
		if p != nil && orphan(src, r.old, r.new, p.rs[0].end) != "" {
			r.unsure = whyOrphan
		}
		if p != nil && further(src, Edit{Old: r.old, New: r.new}, p.rs[0].start) {
			switch src.added {
			case columnByRule:
				r.unsure = whyDepth
			case columnMoved:
				p, err = r.deepened(src, p.rs[0].start).place(src, e.All)
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
	odd := oddRunes(e.Old)
	if odd == "" {
		return nil
	}
	r := repair{old: string(Plain([]byte(e.Old))), new: string(Plain([]byte(e.New)))}
	if strings.Trim(oddRunes(e.New), odd) != "" {
		head, own, tail := affixes(e.Old, e.New)
		plain := func(s string) string { return string(Plain([]byte(s))) }
		r.unsure, r.other = whyChars, plain(head)+own+plain(tail)
	}
	return []repair{r}
}

// deepened is the repair with the lines of New behind the first moved to where the match begins.
func (r repair) deepened(src *source, at int) repair {
	first, rest, many := strings.Cut(r.new, "\n")
	if many {
		r.new = first + "\n" + deepened(rest, indentAt(src, at))
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
		} else if each, repeated := stripEach(e.New, e.Old, sign); repeated {
			r.new = each
		} else if each != e.New {
			r.other, r.unsure = each, "new_string carries line numbers that do not follow those of old_string: leave them out of both"
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

// stripEach takes a number and sign off each line of new that has one. repeated: those lines are old's
// as they stand there, or the sign stands in no other text.
func stripEach(new, old, sign string) (out string, repeated bool) {
	lines := strings.Split(new, "\n")
	known := strings.Split(old, "\n")
	repeated = true
	for i, l := range lines {
		if _, rest, ok := cutNumber(l, sign); ok {
			lines[i] = rest
			repeated = repeated && (strings.HasPrefix(sign, "→") || slices.Contains(known, l))
		}
	}
	out = strings.Join(lines, "\n")
	return out, repeated && out != new
}

// unescaping undoes one kind of escapes.
type unescaping struct {
	cause string
	kinds string // the letters behind the backslash; "" for entities
	undo  func(string) string
}

// unescapings lists them, simple ones first.
func unescapings() (out []unescaping) {
	for _, kinds := range []string{"u", `"'` + "`", "ntr", "ntr\"'`", `\`, "untr\"'`\\/bf"} {
		out = append(out, unescaping{CauseEscaped, kinds, func(s string) string { return unbackslash(s, kinds) }})
	}
	return append(out, unescaping{CauseEntity, "", unentity})
}

// unbackslash undoes backslash escapes of the given kinds and leaves all others alone.
func unbackslash(s, kinds string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		c := s[i+1]
		if strings.IndexByte(kinds, c) < 0 {
			b.WriteString(s[i : i+2]) // both, so that the second of two backslashes does not start an escape
			i++
			continue
		}
		i++
		switch c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, n := unhex(s[i+1:])
			if n == 0 {
				b.WriteString(`\u`)
				continue
			}
			i += n
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+1:], `\u`) {
				if low, m := unhex(s[i+3:]); m == 4 && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
					i += 6
				}
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unhex reads XXXX or {X…} and gives the bytes it took, 0 for anything else.
func unhex(s string) (rune, int) {
	n := 4
	digits := s
	if strings.HasPrefix(s, "{") {
		n = strings.IndexByte(s, '}') + 1
		if n < 3 || n > 8 {
			return 0, 0
		}
		digits = s[1 : n-1]
	} else if len(s) < 4 {
		return 0, 0
	} else {
		digits = s[:4]
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || v > utf8.MaxRune {
		return 0, 0
	}
	return rune(v), n
}

// unentity decodes the HTML entities that end in a semicolon.
func unentity(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '&')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		n := strings.IndexByte(s[:min(len(s), 12)], ';') + 1
		if n == 0 {
			b.WriteByte('&')
			s = s[1:]
			continue
		}
		got := html.UnescapeString(s[:n])
		if strings.HasSuffix(got, ";") && n > 0 && got != s[:n] && !strings.HasSuffix(s[:n-1], "&semi") {
			got = s[:n] // an entity without semicolon inside: not what was meant
		}
		b.WriteString(got)
		s = s[n:]
	}
}

// escaping writes text as a file may have it.
type escaping struct {
	cause string
	do    func(string) string
}

// escapings lists them.
func escapings() []escaping {
	return []escaping{
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace},
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace},
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace},
		{CauseEscaped, func(s string) string { return unicodeEscapes(s, "%04x") }},
		{CauseEscaped, func(s string) string { return unicodeEscapes(s, "%04X") }},
		{CauseEscaped, strings.NewReplacer(`"`, `\"`).Replace},
		{CauseEscaped, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace},
		{CauseEscaped, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace},
	}
}

// unicodeEscapes writes all but ASCII as \u escapes, their digits by format.
func unicodeEscapes(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u`+format+`\u`+format, hi, lo)
		default:
			fmt.Fprintf(&b, `\u`+format, r)
		}
	}
	return b.String()
}

// systematic says that the escapes of new, from one offset to another, come from what befell old as
// well: in neither string anything of that kind stands bare, and none of them is within a literal,
// where it may stand for itself.
func (u unescaping) systematic(old, new string, from, to int) bool {
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
func (u unescaping) within(s string, from, to int) bool {
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

// apostrophe tells that of "it's" and "don't" from a quote.
func apostrophe(before, after string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	if len(after) == 0 || !isWord(r) || after[0] != 's' && after[0] != 't' {
		return false
	}
	next, _ := utf8.DecodeRuneInString(after[1:])
	return !isWord(next) && next != '\'' && next != '\\'
}

const whyOrphan = "a sign that ends the last line of old_string stands behind it, and new_string goes on below that line"

// torn gives the signs behind a match that end its last line, where New repeats that line and goes on
// below: they would come to end another.
func orphan(src *source, old, new string, end int) string {
	rest := strings.TrimSpace(string(src.text[end:lineFrom(src.text, end).end]))
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
