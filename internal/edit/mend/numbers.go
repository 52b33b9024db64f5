package mend

import (
	"slices"
	"strconv"
	"strings"
)

// NumberSigns stand between a line number and the line, as Read, cat -n and grep -n write them.
func NumberSigns() []string { return []string{"→", "→ ", "\t", ": ", ":", " | ", "| ", "|", " "} }

// StripNumbers takes a number and sign off every line of s. bare: the first line had none.
func StripNumbers(s, sign string) (out string, first, numbered int, bare, ok bool) {
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

// StripEach takes a number and sign off each line of new that has one. repeated: those lines are old's
// as they stand there, or the sign stands in no other text.
func StripEach(new, old, sign string) (out string, repeated bool) {
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
