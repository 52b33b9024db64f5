package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Lookalike warns of letters in a path that can be taken for others, as the first one of "аpp.py", which is Cyrillic: who approves
// a change reads another name than the one that is changed. "" when there are none.
//
// A letter is told when its word mixes it with letters of another script, when all letters of its word have twins in ASCII, or
// when it is itself an ASCII letter in another dress. Words of one script are fine, and so are Chinese, Japanese and Korean
// ones with Latin letters in them.
func Lookalike(name string) string {
	if isASCII(name) {
		return ""
	}
	var found []string
	seen := map[rune]bool{}
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) }) {
		for _, r := range doubtful(word) {
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

// doubtful are the letters of a word that can be taken for others.
func doubtful(word string) (out []rune) {
	if isASCII(word) {
		return nil
	}
	scripts := map[string]bool{}
	twins := true // all letters have one in ASCII
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
	// Letters of other scripts that are drawn as ASCII letters are.
	asciiTwins = "аеорсухіјѕһԁԛԝӏАВЕЅІЈКМНОРСТХҮ" + "οϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "օ"
	// Latin ones, which no mixture of scripts gives away.
	latinTwins = "ıȷɑɡɩ"
)

// eastAsian scripts stand in one word with Latin letters, and look like none of them.
var eastAsian = map[string]bool{"Han": true, "Hiragana": true, "Katakana": true, "Hangul": true, "Bopomofo": true, "Common": true, "Inherited": true}

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
