package edit

import (
	"slices"
	"strconv"
	"strings"
)

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
