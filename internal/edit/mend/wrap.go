package mend

import (
	"regexp"
	"strings"
)

// A Reading is an edit without something that was put around both of its strings, or one of them.
type Reading struct {
	Name     string // of the rule
	Old, New string
	Lines    bool // they are whole lines: a column stood before each
}

// Readings lists what an edit may have been before it was wrapped. Each rule has a name.
func Readings(old, new string) (out []Reading) {
	for _, r := range rules {
		if o, n, ok := r.off(old, new); ok && o != old && o != n && strings.TrimSpace(o) != "" {
			out = append(out, Reading{r.name, o, n, r.lines})
		}
	}
	return out
}

var rules = []struct {
	name  string
	off   func(old, new string) (o, n string, ok bool)
	lines bool
}{
	{"code_fence", alike(fence), false},
	{"tags", alike(tag), false},
	{"search_markers", markers, false},
	{"diff", diffColumns, true},
	{"column", oneColumn, true},
	{"quoted", bothQuoted, false},
	{"prefixed", prefixed(true), true},
	{"prefixed", prefixed(false), true},
	{"visible", visibleSigns, false},
	{"outer_breaks", outerBreaks, false},
}

// alike takes something off old, and off new, where new has it as well. New may also be without.
func alike(off func(string) (string, bool)) func(old, new string) (string, string, bool) {
	return func(old, new string) (string, string, bool) {
		o, ok := off(old)
		if !ok {
			return "", "", false
		}
		if n, ok := off(new); ok {
			return o, n, true
		}
		return o, new, new == "" || !strings.Contains(new, "```")
	}
}

var fenceLine = regexp.MustCompile("^[ \t]*(`{3,}|~{3,})[\\w+#.-]*[ \t]*\r?\n")

func fence(s string) (string, bool) {
	m := fenceLine.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	body := strings.TrimRight(s[len(m[0]):], " \t\r\n")
	body, ok := strings.CutSuffix(body, m[1])
	return strings.TrimSuffix(strings.TrimRight(body, " \t"), "\n"), ok
}

var tagged = regexp.MustCompile(`^\s*<((?:old|new)(?:_string|_str|_text)?|search|replace|original|` +
	`updated|code|file_content)>`)

func tag(s string) (string, bool) {
	m := tagged.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	body, ok := strings.CutSuffix(strings.TrimRight(s[len(m[0]):], " \t\r\n"), "</"+m[1]+">")
	return strings.TrimSuffix(strings.TrimPrefix(body, "\n"), "\n"), ok
}

func quoted(s string) (string, bool) {
	for _, q := range []string{"`", `"`, "'", "“", "**"} {
		end := strings.Replace(q, "“", "”", 1)
		if len(s) > len(q)+len(end) && strings.HasPrefix(s, q) && strings.HasSuffix(s, end) {
			return s[len(q) : len(s)-len(end)], true
		}
	}
	return "", false
}

// bothQuoted: a quote around old alone may be what is meant.
func bothQuoted(old, new string) (string, string, bool) {
	o, ok1 := quoted(old)
	n, ok2 := quoted(new)
	return o, n, ok1 && ok2 && old[0] == new[0]
}

var (
	markBegin  = regexp.MustCompile(`^\s*<{5,9}[^\n]*\n`)
	markMiddle = regexp.MustCompile(`(?m)^={5,9}[ \t]*\r?(?:\n|$)`)
	markEnd    = regexp.MustCompile(`(?m)\n?^>{5,9}[^\n]*\s*$`)
)

// markers takes off those of search and replace blocks: of one block in both, or of one half each.
func markers(old, new string) (string, string, bool) {
	half := func(s string, second bool) (string, bool) {
		begin, middle := markBegin.FindStringIndex(s), markMiddle.FindStringIndex(s)
		end := markEnd.FindStringIndex(s)
		if begin == nil && middle == nil && end == nil {
			return s, false
		}
		from, to := 0, len(s)
		if end != nil {
			to = end[0]
		}
		if begin != nil {
			from = begin[1]
		}
		if middle != nil && middle[0] > from && !second {
			to = middle[0]
		}
		if middle != nil && second {
			from = middle[1]
		}
		if from > to {
			return "", false
		}
		return strings.TrimSuffix(s[from:to], "\n"), true
	}
	o, ok := half(old, false)
	if !ok {
		return "", "", false
	}
	n, _ := half(new, true)
	return o, n, true
}

// diffColumns takes off the column of signs that a diff has. A whole diff in either string gives
// both sides of it; beside an empty new_string, old_string is one: its context is not deleted.
func diffColumns(old, new string) (string, string, bool) {
	side := func(s string, keep, drop byte) (out string, signed, ok bool) {
		var lines []string
		for _, l := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
			switch {
			case strings.HasPrefix(l, "@@ "),
				len(lines) == 0 && (strings.HasPrefix(l, "--- ") || strings.HasPrefix(l, "+++ ")):
				signed = true
			case l == "":
				lines = append(lines, l)
			case l[0] == ' ':
				lines = append(lines, l[1:])
			case l[0] == keep:
				signed = true
				lines = append(lines, l[1:])
			case l[0] == drop:
				signed = true
			default:
				return "", false, false
			}
		}
		return strings.Join(lines, "\n"), signed, true
	}
	o, signed, ok := side(old, '-', '+')
	if !ok {
		return "", "", false
	}
	if new == "" {
		n, _, _ := side(old, '+', '-')
		return o, n, signed
	}
	n, also, ok := side(new, '+', '-')
	switch {
	case !ok && signed && !strings.HasPrefix(new, "+") && !strings.Contains(new, "\n+"):
		return o, new, true
	case !ok, !signed && !also, n == "": // whose lines are all taken away is no diff
		return "", "", false
	}
	return o, n, true
}

// columns are signs that stand before each line of a quotation, or of a list of lines.
var columns = []string{"> ", ">", "- ", "* ", "+ ", "| ", "-", "+"}

// oneColumn takes off a column that every line of both has.
func oneColumn(old, new string) (string, string, bool) {
	for _, c := range columns {
		o, ok := uncolumned(old, c)
		if !ok {
			continue
		}
		if n, ok := uncolumned(new, c); ok || new == "" {
			return o, n, true
		}
	}
	return "", "", false
}

func uncolumned(s, column string) (string, bool) {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		rest, ok := strings.CutPrefix(l, column)
		if !ok && l != strings.TrimRight(column, " ") && l != "" {
			return "", false
		}
		lines[i] = rest
		if !ok {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n"), s != ""
}

var (
	linePrefix = regexp.MustCompile(`^[ \t]*(?:[\w./+-]*[\w]:|[Ll](?:ine )?)[ \t]*(\d+)(:|\t|→| ?\||-)`)
	wordPrefix = regexp.MustCompile(`^[ \t]*(?:[\w./+-]*[\w]:|[Ll](?:ine )?)[ \t]*(\d+)(: |→ | ?\| | )`)
)

// prefixed takes off what stands before each line: a path with its number, L12: and the like. The
// numbers must count up. blank: a blank follows the sign.
func prefixed(bare bool) func(old, new string) (string, string, bool) {
	prefix := wordPrefix
	if bare {
		prefix = linePrefix
	}
	return func(old, new string) (string, string, bool) {
		o, ok := unprefixed(old, prefix)
		if !ok {
			return "", "", false
		}
		if n, ok := unprefixed(new, prefix); ok {
			return o, n, true
		}
		return o, new, new == "" || !prefix.MatchString(new)
	}
}

func unprefixed(s string, prefix *regexp.Regexp) (string, bool) {
	lines := strings.Split(s, "\n")
	next, sign := 0, ""
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			next++
			continue
		}
		m := prefix.FindStringSubmatch(l)
		if m == nil {
			m = prefix.FindStringSubmatch(l + " ") // blanks at the end are easily lost
		}
		n := 0
		if m == nil || sign != "" && m[2] != sign {
			return "", false
		}
		for _, c := range m[1] {
			n = n*10 + int(c-'0')
		}
		if sign != "" && n != next {
			return "", false
		}
		sign, next, lines[i] = m[2], n+1, l[min(len(l), len(m[0])):]
	}
	return strings.Join(lines, "\n"), sign != ""
}

var numberArrow = regexp.MustCompile(`\d→`)

// visibleSigns undoes the signs that stand for blanks in what people and tools show.
func visibleSigns(old, new string) (string, string, bool) {
	if numberArrow.MatchString(old) {
		return "", "", false // a line number
	}
	r := strings.NewReplacer("→", "\t", "·", " ", "^M\n", "\n", "␍", "", "↵", "", "¶", "", "⏎", "")
	return r.Replace(old), r.Replace(new), true
}

// outerBreaks takes off empty lines before and behind, as many of both.
func outerBreaks(old, new string) (string, string, bool) {
	o, n := strings.TrimLeft(old, "\n"), strings.TrimLeft(new, "\n")
	if len(old)-len(o) != len(new)-len(n) {
		return "", "", false
	}
	ot, nt := strings.TrimRight(o, "\n"), strings.TrimRight(n, "\n")
	if len(o)-len(ot) != len(n)-len(nt) {
		return "", "", false
	}
	return ot, nt, true
}
