package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

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
	hidden, first, left := 0, rune(0), 0 // lines of the hunk that are still to come
	var words []string
	for l := range strings.Lines(diff) {
		header := left <= 0
		switch {
		case header:
			var start, before, after int
			_, _ = fmt.Sscanf(l, "@@ -%d,%d +%d,%d", &start, &before, &start, &after) // or 0
			left = before + after
		case l[0] == '+' || l[0] == '-':
			left--
		case l[0] != '\\':
			left -= 2
		}
		if l[0] != '+' || header && strings.HasPrefix(l, "+++ ") || isPlain(l, true) {
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

// shows says whether a character may be one of a picture.
func shows(r rune) bool { return r >= 0x2000 && r != 0x200d && r != 0xfe0f }

// posing says whether letters of another script pass for ASCII ones in a word that has both.
func posing(word string) bool {
	return strings.ContainsAny(word, asciiTwins) &&
		strings.ContainsFunc(word, func(r rune) bool { return r < utf8.RuneSelf })
}

// confusable gives the letters of a word that can be taken for others.
func confusable(word string) (out []rune) {
	if isASCII(word) {
		return nil
	}
	scripts := map[string]bool{}
	twins := true // every letter looks like an ASCII one
	for _, r := range word {
		if !unicode.IsLetter(r) {
			continue
		}
		if s := script(r); !eastAsian[s] {
			scripts[s] = true
		}
		twins = twins && strings.ContainsRune(asciiTwins, r)
	}
	for _, r := range word {
		switch {
		case r < utf8.RuneSelf || !unicode.IsLetter(r):
		case strings.ContainsRune(latinTwins, r), isASCII(norm.NFKC.String(string(r))), twins:
			out = append(out, r)
		case len(scripts) > 1 && !eastAsian[script(r)] && script(r) != "Latin":
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

// eastAsian scripts stand in one word with Latin letters, and look like none of them.
var eastAsian = map[string]bool{
	"Han": true, "Hiragana": true, "Katakana": true, "Hangul": true, "Bopomofo": true,
	"Common": true, "Inherited": true,
}

func script(r rune) string {
	if r < utf8.RuneSelf {
		return "Latin"
	}
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
