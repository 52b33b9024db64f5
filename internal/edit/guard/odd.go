package guard

import (
	"bytes"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/lazy"
)

// maxOdd bounds the texts that are looked at, in bytes: a hint is not worth more.
const maxOdd = 1 << 20

var oddLines = []struct {
	says string
	is   func() *regexp.Regexp
}{
	{"a marker of a merge stands in it", lazy.Regexp(`(?m)^(?:<{7}|>{7}|\|{7})(?: |\r?$)`)},
	{"a line begins with a line number", lazy.Regexp(`(?m)^[ \t]*\d+→`)},
	{"a code fence stands in it", lazy.Regexp("(?m)^[ \\t]*```")},
}

// Odd says in a few words how the text after, of the file of that name, looks broken where before did not; "" where
// it doesn't, or is no UTF-8. For example: "its () balanced before and don't now". It is no reason to refuse.
func Odd(name string, before, after []byte) string {
	if len(before) > maxOdd || len(after) > maxOdd || len(bytes.TrimSpace(before)) == 0 ||
		!utf8.Valid(after) || bytes.IndexByte(after, 0) >= 0 {
		return ""
	}
	head, tail := diff.SameEnds(before, after)
	added := diff.Lines(after[head : len(after)-tail])
	for _, o := range oddLines {
		for _, l := range added {
			if o.is().Match(l) && !o.is().Match(before) {
				return o.says
			}
		}
	}
	for _, l := range added {
		if s := bytes.TrimSpace(l); placeholder(string(s)) == spoken && !bytes.Contains(before, s) &&
			Placeholder(name, before, after) == nil { // what that finds was acknowledged
			return "a line in it only speaks of code"
		}
	}
	gone := before[head : len(before)-tail]
	for _, pair := range []string{"()", "[]", "{}"} {
		more := func(text []byte) int {
			return bytes.Count(text, []byte(pair[:1])) - bytes.Count(text, []byte(pair[1:]))
		}
		if more(gone) != more(after[head:len(after)-tail]) && more(before) == 0 { // the equal ends cancel each other out
			return "its " + pair + " balanced before and don't now"
		}
	}
	if s := oddCode(name, before, added); s != "" {
		return s
	}
	moreTabs, moreBlanks := indents(added)
	tabs, blanks := 1, 1
	if moreTabs+moreBlanks > 0 {
		tabs, blanks = indents(diff.Lines(before))
	}
	switch {
	case tabs > 1 && blanks == 0 && moreBlanks > 0:
		return "new lines are indented with blanks, all others with tabs"
	case blanks > 1 && tabs == 0 && moreTabs > 0:
		return "new lines are indented with tabs, all others with blanks"
	}
	return oddEnd(before, after)
}

// oddEnd tells of a final line break that came or went. A text of one line says nothing about it.
func oddEnd(before, after []byte) string {
	had, has := bytes.HasSuffix(before, []byte("\n")), bytes.HasSuffix(after, []byte("\n"))
	switch {
	case bytes.Count(before, []byte("\n")) < 2 || len(bytes.TrimSpace(after)) == 0:
	case had && !has:
		return "the line break at its end is gone"
	case !had && has:
		return "it ends with a line break now, and did not before"
	}
	return ""
}

var (
	entity = lazy.Regexp(`&(?:lt|gt|amp|quot|apos|#39|#34|#x27);`)
	// Quotes of prose, and spaces that look like one or like nothing.
	typographic = lazy.Regexp("[\u201c\u201d\u2018\u2019\u00a0\u200b\u2060\ufeff]")
	remark      = lazy.Regexp(`^\s*(?:#|//|/?\*|--|;|%|"""|\S+\s*:)`)
	brokenAt    = lazy.Regexp(`[\w;{}(),"'\]](\\r?\\?n)(?:[ \t]+|\\t)*[\w})\]@#"'/]`)
)

// oddCode finds entities, and line breaks written as \n, outside of quotes in code that had none.
func oddCode(name string, before []byte, added [][]byte) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm", ".xhtml", ".xml", ".svg", ".md", ".markdown", ".vue", ".svelte", ".jsx",
		".tsx", ".tmpl", ".tex", ".rst", ".txt", ".plist", ".xaml", ".csproj", ".erb", ".php":
		return ""
	}
	for _, l := range added {
		if at := typographic().FindIndex(l); at != nil && !quoted(l, at[0]) && !typographic().Match(before) && !remark().Match(l) {
			return "typographic quotes, or odd or invisible spaces, stand in it"
		}
		if at := entity().FindIndex(l); at != nil && !quoted(l, at[0]) && !entity().Match(before) {
			return "an HTML entity stands in it"
		}
		at := brokenAt().FindSubmatchIndex(l)
		if at == nil || quoted(l, at[2]) || brokenAt().Match(before) ||
			bytes.IndexByte(l[:at[2]], '/') >= 0 && bytes.IndexByte(l[at[3]:], '/') >= 0 {
			continue // a string, or a regular expression
		}
		return `a line has \n where a line break is likely meant`
	}
	return ""
}

// quoted says that an offset of a line lies within quotes that open on it.
func quoted(l []byte, at int) bool {
	var in byte
	for i := 0; i < at; i++ {
		switch c := l[i]; {
		case c == '\\' && in != 0:
			i++
		case in == 0 && (c == '"' || c == '\'' || c == '`'):
			in = c
		case c == in:
			in = 0
		}
	}
	return in != 0
}

// indents counts the lines that begin with a tab, and with two blanks or more.
func indents(lines [][]byte) (tabs, blanks int) {
	for _, l := range lines {
		switch {
		case len(bytes.TrimSpace(l)) == 0:
		case l[0] == '\t':
			tabs++
		case bytes.HasPrefix(l, []byte("  ")):
			blanks++
		}
	}
	return tabs, blanks
}
