package approval

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Card is the question as a person sees it: the tool, the paths, the size of the change, the
// warnings, and up to lines lines of the diff. Lines that are left out are counted. Everything in it is
// escaped.
func Card(q Question, lines int) string { return card(q, lines, Plain) }

// CardPaths bounds the paths that a card names.
const CardPaths = 20

func card(q Question, lines int, ink Ink) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s wants to change ", Escape(q.Tool, false))
	size := fmt.Sprintf("  %s %s\n", ink.Added(fmt.Sprintf("+%d", q.Added)),
		ink.Removed(fmt.Sprintf("−%d", q.Removed)))
	switch {
	case len(q.Paths) == 1:
		fmt.Fprintf(&b, "%s%s", ink.Strong(Escape(q.Paths[0], false)), size)
	default:
		fmt.Fprintf(&b, "%d paths:%s", len(q.Paths), size)
		b.WriteString(pathRows(q, ink))
	}
	who := ""
	if q.Session != "" || q.Principal != "" {
		session, principal := Escape(q.Session, false), Escape(q.Principal, false)
		who = fmt.Sprintf("session %s, principal %s\n", session, principal)
	}
	return b.String() + details(q, who, lines, ink)
}

// Details is a Card without its beginning: the summary, the warnings and the diff.
func Details(q Question, lines int) string { return details(q, "", lines, Plain) }

func details(q Question, who string, lines int, ink Ink) string {
	var b strings.Builder
	if len(q.Paths) == 1 && len(q.New) == 1 {
		b.WriteString("new file: ")
	}
	if q.Summary != "" {
		fmt.Fprintf(&b, "%s\n", Escape(q.Summary, false))
	}
	b.WriteString(who)
	for _, w := range q.Warnings {
		fmt.Fprintf(&b, "%s\n", ink.Warning("WARNING: "+Escape(w, false)))
	}
	if q.Diff == "" {
		return b.String()
	}
	diff := splitDiff(q)
	shown := diff[:min(len(diff), lines)]
	b.WriteString(renderDiff(shown, ink))
	if left := diff[len(shown):]; len(left) > 0 {
		hunks := ""
		n := 0
		for _, l := range left {
			if strings.HasPrefix(l, "@@") {
				n++
			}
		}
		if n > 0 {
			hunks = " in " + counted(n, "hunk")
		}
		lines := "more line"
		if len(shown) == 0 {
			lines = "line"
		}
		fmt.Fprintf(&b, "… %s of diff%s\n", counted(len(left), lines), hunks)
	}
	return b.String()
}

// pathRows has a line for each path, with the counts of its changed lines as far as the diff tells.
func pathRows(q Question, ink Ink) string {
	var b strings.Builder
	of := stat(q)
	shown := q.Paths
	if len(shown) > CardPaths {
		shown = shown[:CardPaths]
	}
	for _, p := range shown {
		fmt.Fprintf(&b, "  %s", Escape(p, false))
		if slices.Contains(q.New, p) {
			b.WriteString("  new")
		}
		if s, ok := of[strings.TrimLeft(p, "/")]; ok {
			fmt.Fprintf(&b, "  %s %s", ink.Added(fmt.Sprintf("+%d", s.added)),
				ink.Removed(fmt.Sprintf("−%d", s.removed)))
		}
		b.WriteByte('\n')
	}
	if n := len(q.Paths) - len(shown); n > 0 {
		fmt.Fprintf(&b, "  … %s\n", counted(n, "more path"))
	}
	return b.String()
}

type lines struct{ added, removed int }

// stat counts the lines of each file in the diff, by its path without the slash before it. A name
// that the diff had to quote is not found: the counts are a help to the eye, and the paths are
// named in full beside them.
func stat(q Question) map[string]*lines {
	out, now, from := map[string]*lines{}, &lines{}, ""
	for kind, l := range DiffLines(q.Diff) {
		switch {
		case kind == '+':
			now.added++
		case kind == '-':
			now.removed++
		case kind == 'h' && strings.HasPrefix(l, "--- "):
			from = strings.TrimPrefix(l[4:], "a/")
		case kind == 'h' && strings.HasPrefix(l, "+++ "):
			to := strings.TrimPrefix(l[4:], "b/")
			if to == "/dev/null" {
				to = from
			}
			now = &lines{}
			out[to] = now
		}
	}
	return out
}

// DiffLines gives the lines of a unified diff, without their ends, and the kind of each: '@' begins a hunk
// of so many lines, within which '+', '-' and ' ' are lines of the file, and '\\' is a remark; 'h' is any
// line outside of hunks. For example a removed line "-- a/x" stands there as "--- a/x", and is of the kind
// '-' and no header.
func DiffLines(diff string) iter.Seq2[byte, string] {
	return func(yield func(byte, string) bool) {
		var start, old, now int // lines of the hunk that are still to come
		for l := range strings.Lines(diff) {
			l = strings.TrimSuffix(l, "\n")
			kind := byte('h')
			switch inside := old > 0 || now > 0; {
			case strings.HasPrefix(l, `\`):
				kind = '\\'
			case inside && strings.HasPrefix(l, "+"):
				kind, now = '+', now-1
			case inside && strings.HasPrefix(l, "-"):
				kind, old = '-', old-1
			case inside:
				kind, old, now = ' ', old-1, now-1
			case strings.HasPrefix(l, "@@"):
				kind, old, now = '@', 0, 0
				_, _ = fmt.Sscanf(l, "@@ -%d,%d +%d,%d", &start, &old, &start, &now) // else none are to come
			}
			if !yield(kind, l) {
				return
			}
		}
	}
}

// counted is a number and its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Unseen counts the lines of the diff that a Card of so many lines leaves out. A person who approves
// without having seen them must say so.
func Unseen(q Question, lines int) int {
	if q.Diff == "" {
		return 0
	}
	return max(len(splitDiff(q))-lines, 0)
}

// UnseenBy gives the words of the record, behind the name of the approver, for so many lines of a diff
// that were not shown.
func UnseenBy(lines int) string { return ", with " + counted(lines, "line") + " unseen" }

func splitDiff(q Question) []string { return strings.Split(strings.TrimSuffix(q.Diff, "\n"), "\n") }

// renderDiff escapes the lines of a diff. It shows carriage returns and blanks at the end of a
// line: a change can hide in them.
func renderDiff(diff []string, ink Ink) string {
	var b strings.Builder
	for _, l := range diff {
		text := strings.ReplaceAll(Escape(l, true), "\n", "")
		changed := strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-")
		if t := strings.TrimRight(text, " \t"); t != text && changed && len(t) > 0 {
			text = t + strings.ReplaceAll(strings.ReplaceAll(text[len(t):], " ", "·"), "\t", `\t`)
		}
		b.WriteString(ink.DiffLine(text))
		b.WriteByte('\n')
	}
	return b.String()
}

// Ink colours text that is escaped already: a terminal obeys nothing in it but the colours.
type Ink bool

// The inks. Colour is for terminals whose user has not set NO_COLOR.
const (
	Plain  Ink = false
	Colour Ink = true
)

func (i Ink) paint(code, text string) string {
	if !i || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (i Ink) Added(text string) string   { return i.paint("32", text) }
func (i Ink) Removed(text string) string { return i.paint("31", text) }
func (i Ink) Strong(text string) string  { return i.paint("1", text) }
func (i Ink) Warning(text string) string { return i.paint("1;33", text) }

// DiffLine is one line of a unified diff, without its end.
func (i Ink) DiffLine(line string) string {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return i.Strong(line)
	case strings.HasPrefix(line, "+"):
		return i.Added(line)
	case strings.HasPrefix(line, "-"):
		return i.Removed(line)
	case strings.HasPrefix(line, "@@"):
		return i.paint("36", line)
	}
	return line
}

// Escape makes text safe to show to the person who decides. For example a right-to-left mark, which
// could make "exe.txt" read as "txt.exe", becomes \u{202e}.
//
// Every character that a terminal obeys or that cannot be seen becomes \u{…}: C0 and C1 controls,
// DEL, bidirectional marks, zero-width and other invisible code points, tags, line and paragraph
// separators. Every byte that is no character becomes \x{…}. With lines, line ends and tabs stay. A
// backslash stays as it is: the text is for reading, not for parsing.
func Escape(text string, lines bool) string {
	if isPlain(text, lines) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x{%02x}`, text[i])
		case invisible(r) && (!lines || r != '\n' && r != '\t'):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

func isPlain(text string, lines bool) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x7f || c < ' ' && (!lines || c != '\n' && c != '\t') {
			return false
		}
	}
	return true
}

// invisible reports whether r shows nothing, or changes how other characters are shown. Combining
// marks and the ordinary blank are fine. Other blanks are not: they look like the ordinary one.
func invisible(r rune) bool {
	switch {
	case r < ' ' || 0x7f <= r && r < 0xa0:
		return true
	case r < 0xa0:
		return false
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Co, unicode.Cs):
		return true // Cf holds the bidirectional and zero-width marks, the soft hyphen and the tags
	case unicode.Is(unicode.Variation_Selector, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return !unicode.IsPrint(r) && !unicode.IsMark(r)
}

// Lookalike warns of letters in a path that can be taken for others. The first letter of "аpp.py"
// is Cyrillic: the person who approves would read another name than the one that is changed. It
// gives "" when there are no such letters.
//
// A letter is reported when its word mixes it with letters of another script, when all letters of
// its word look like ASCII letters, or when it is an ASCII letter in another form, such as a
// full-width one. Words of one script are fine. So are Chinese, Japanese and Korean words with
// Latin letters in them.
func Lookalike(name string) string {
	if isASCII(name) {
		return ""
	}
	var found []string
	seen := map[rune]bool{}
	between := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
	}
	for word := range strings.FieldsFuncSeq(name, between) {
		for _, r := range confusable(word) {
			if seen[r] || len(found) == 5 {
				continue
			}
			seen[r] = true
			found = append(found, fmt.Sprintf("%q is U+%04X (%s)", r, r, script(r)))
		}
	}
	if found == nil {
		return ""
	}
	return name + " holds letters that look like others: " + strings.Join(found, ", ")
}

// Odd finds text that reads as something else than it is, in the lines that a diff adds: characters that
// cannot be seen (controls are escaped, and no editor hides them), and words in which letters of
// another script stand among ASCII ones that look the same. It gives no more than two sentences,
// and none for plain text.
func Odd(diff string) (out []string) {
	hidden, first := 0, rune(0)
	var words []string
	for kind, l := range DiffLines(diff) {
		if kind != '+' || isPlain(l, true) {
			continue
		}
		var last rune
		for _, r := range strings.TrimRight(l, "\r\n") {
			// Pictures are joined of others. More joiners than that could hold a text of their own.
			joins := r == 0xfe0f && shows(last) || r == 0x200d && (shows(last) || last == 0xfe0f)
			if last = r; r < 0xa0 || !invisible(r) || joins || unicode.Is(unicode.Zs, r) {
				continue
			}
			if hidden++; hidden == 1 {
				first = r
			}
		}
		for w := range strings.FieldsFuncSeq(l, func(r rune) bool { return !unicode.IsLetter(r) }) {
			if len(words) < 3 && posing(w) && !slices.Contains(words, strconv.Quote(w)) {
				words = append(words, strconv.Quote(w))
			}
		}
	}
	if hidden > 0 {
		out = append(out, fmt.Sprintf("what is added holds %s that cannot be seen, the first of them U+%04X",
			counted(hidden, "character"), first))
	}
	if words != nil {
		out = append(out, "what is added holds words with letters of two scripts that look alike: "+
			strings.Join(words, ", "))
	}
	return out
}

// shows reports whether a character may be one of a picture.
func shows(r rune) bool { return r >= 0x2000 && r != 0x200d && r != 0xfe0f }

// posing reports whether letters of another script pass for ASCII ones in a word that has both.
func posing(word string) bool {
	return strings.ContainsAny(word, asciiTwins) &&
		strings.ContainsFunc(word, func(r rune) bool { return r < utf8.RuneSelf })
}

// confusable gives the letters of a word that can be taken for others.
func confusable(word string) (out []rune) {
	twins := true // every letter looks like an ASCII one
	mixed := false
	for _, r := range word {
		twins = twins && (!unicode.IsLetter(r) || strings.ContainsRune(asciiTwins, r))
		mixed = mixed || unicode.Is(unicode.Latin, r)
	}
	for _, r := range word {
		switch {
		case r < utf8.RuneSelf || !unicode.IsLetter(r):
		case strings.ContainsRune(latinTwins, r), isASCII(norm.NFKC.String(string(r))), twins:
			out = append(out, r)
		case mixed && !unicode.In(r, besideLatin...):
			out = append(out, r)
		}
	}
	return out
}

const (
	// Letters of other scripts that look like ASCII letters.
	asciiTwins = "аеорсухіјѕһԁԛԝӏАВЕЅІЈКМНОРСТХҮ" + "οϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "օ"
	// Latin letters that look like others; no mixture of scripts reveals them.
	latinTwins = "ıȷɑɡɩ"
)

// besideLatin are the scripts that stand in one word with Latin letters, and look like none of them.
var besideLatin = []*unicode.RangeTable{unicode.Latin, unicode.Han, unicode.Hiragana, unicode.Katakana,
	unicode.Hangul, unicode.Bopomofo, unicode.Common, unicode.Inherited}

func script(r rune) string {
	for name, table := range unicode.Scripts { // a character has one
		if unicode.Is(table, r) {
			return name
		}
	}
	return "Common"
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
