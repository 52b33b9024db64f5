package edit

import (
	"fmt"
	"html"
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
			if r.new != u.undo(head)+middle+u.undo(tail) {
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
	var (
		best   *plan
		places = map[int]bool{}
	)
	for _, r := range repairs(e) {
		// New is given as old with a byte more: what is written is settled below.
		p, err := r.place(h, e.All)
		if err != nil {
			if nu, ok := err.(*NotUniqueError); ok {
				nu.Strategy = StrategyRepaired
			}
			return nil, err
		}
		if p == nil {
			continue
		}
		if r.unsure != "" {
			return nil, nil // diagnose says why
		}
		for _, x := range p.rs {
			places[x.start] = true
		}
		if best == nil {
			best = p
			continue
		}
		if len(p.rs) != len(best.rs) {
			return nil, nil
		}
		for i := range p.rs {
			if p.rs[i] != best.rs[i] {
				return nil, nil
			}
		}
	}
	if best != nil {
		best.strategy = StrategyRepaired
	}
	return best, nil
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
		if !r.inside && lineStart(h.text, x.start, h.cr) != x.start {
			return nil, nil
		}
		if !r.several && lineAt(h.text, x.start) != r.numbered {
			return nil, nil
		}
	}
	return p, nil
}

// unescaping undoes one kind of escapes.
type unescaping struct {
	cause string
	undo  func(string) string
}

func unescapings() (out []unescaping) {
	for _, kinds := range []string{"u", `"'` + "`", "ntr", "ntr\"'`", `\`, "untr\"'`\\/bf"} {
		out = append(out, unescaping{CauseEscaped, func(s string) string { return unbackslash(s, kinds) }})
	}
	return append(out, unescaping{CauseEntity, unentity})
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

// escaping writes text as the file may have it.
type escaping struct {
	cause string
	do    func(string) string
}

func escapings() []escaping {
	return []escaping{
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace},
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace},
		{CauseEntity, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace},
		{CauseEscaped, func(s string) string { return asUnicodeEscapes(s, "%04x") }},
		{CauseEscaped, func(s string) string { return asUnicodeEscapes(s, "%04X") }},
		{CauseEscaped, strings.NewReplacer(`"`, `\"`).Replace},
		{CauseEscaped, strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace},
		{CauseEscaped, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace},
	}
}

func asUnicodeEscapes(s, format string) string {
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
