package diff

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Hunk is one item of Claude Code's structuredPatch. Lines start with ' ', '+' or '-'; they are
// without their line break, and a "\ No newline at end of file" line follows one that has none.
type Hunk struct {
	OldStart int      `json:"oldStart"` // 1-based
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`

	crlf []bool // which lines end in CRLF, for Unified; nil when none does
}

const (
	Context   = 3 // lines around a change
	noNewline = `\ No newline at end of file`
)

// Patch tells how before became after, in hunks with three lines of context. Both are UTF-8 texts
// (Result.Before and After, or Decode). Lines that differ only in their break count as changed;
// only Unified shows it. Time and memory are linear.
func Patch(before, after []byte) []Hunk {
	head, tail := SameEnds(before, after)
	line := bytes.Count(before[:head], newline)
	a, b := Lines(before[head:len(before)-tail]), Lines(after[head:len(after)-tail])
	hs := hunks(a, b, Changes(a, b))
	for i := range hs {
		hs[i].OldStart += line
		hs[i].NewStart += line
	}
	return hs
}

// SameEnds gives how many bytes two texts have in common at either end, in whole lines, less the
// lines that a hunk shows Context a change. It keeps the patch of a small change cheap.
func SameEnds(a, b []byte) (head, tail int) {
	most := min(len(a), len(b))
	for step := 4096; step > 0; step /= 2 {
		for head+step <= most && bytes.Equal(a[head:head+step], b[head:head+step]) {
			head += step
		}
	}
	for step := 4096; step > 0; step /= 2 {
		for head+tail+step <= most && bytes.Equal(a[len(a)-tail-step:len(a)-tail], b[len(b)-tail-step:len(b)-tail]) {
			tail += step
		}
	}
	for i := 0; i <= Context && head > 0; i++ {
		if i > 0 {
			head--
		}
		head = bytes.LastIndexByte(a[:head], '\n') + 1
	}
	for i := 0; i <= Context && tail > 0; i++ {
		n := bytes.IndexByte(a[len(a)-tail:], '\n')
		if n < 0 {
			tail = 0
		} else {
			tail -= n + 1
		}
	}
	return head, tail
}

var newline = []byte{'\n'}

// Lines cuts a text into lines with their breaks, LF or CRLF. Only the last may have none. A lone CR is
// a character.
func Lines(text []byte) [][]byte {
	out := make([][]byte, 0, bytes.Count(text, newline)+1)
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// hunks groups changes that are no further apart than twice the context.
func hunks(a, b [][]byte, changes []Change) []Hunk {
	var out []Hunk
	for i := 0; i < len(changes); {
		j := i + 1
		for j < len(changes) && changes[j].A0-changes[j-1].A1 <= 2*Context {
			j++
		}
		out = append(out, hunk(a, b, changes[i:j]))
		i = j
	}
	return out
}

// hunk writes changes that are close to one another, of which there is at least one.
func hunk(a, b [][]byte, cs []Change) Hunk {
	first, last := cs[0], cs[len(cs)-1]
	from := max(0, first.A0-Context)
	to := min(len(a), last.A1+Context)
	h := Hunk{OldStart: from + 1, OldLines: to - from, NewStart: first.B0 - (first.A0 - from) + 1,
		NewLines: last.B1 - first.B0 + (first.A0 - from) + (to - last.A1)}
	add := func(sign byte, lines [][]byte) {
		for _, l := range lines {
			h.add(sign, l)
		}
	}
	pos := from
	for _, c := range cs {
		add(' ', a[pos:c.A0])
		add('-', a[c.A0:c.A1])
		add('+', b[c.B0:c.B1])
		pos = c.A1
	}
	add(' ', a[pos:to])
	return h
}

// add adds the line l, with its break, under a sign.
func (h *Hunk) add(sign byte, l []byte) {
	body, crlf, open := l, false, false
	switch {
	case bytes.HasSuffix(l, []byte("\r\n")):
		body, crlf = l[:len(l)-2], true
	case bytes.HasSuffix(l, newline):
		body = l[:len(l)-1]
	default:
		open = true
	}
	h.Lines = append(h.Lines, string(sign)+string(body))
	if crlf && h.crlf == nil {
		h.crlf = make([]bool, len(h.Lines)-1)
	}
	if h.crlf != nil {
		h.crlf = append(h.crlf, crlf)
	}
	if open {
		h.Lines = append(h.Lines, noNewline)
		if h.crlf != nil {
			h.crlf = append(h.crlf, false)
		}
	}
}

// Counts gives the lines that hunks add and remove.
func Counts(hs []Hunk) (added, removed int) {
	for _, h := range hs {
		for _, l := range h.Lines {
			switch l[0] {
			case '+':
				added++
			case '-':
				removed++
			}
		}
	}
	return added, removed
}

// Count gives the lines that the patch of the same texts adds and removes, without making it.
func Count(before, after []byte) (added, removed int) {
	head, tail := SameEnds(before, after)
	for _, c := range Changes(Lines(before[head:len(before)-tail]), Lines(after[head:len(after)-tail])) {
		added, removed = added+c.B1-c.B0, removed+c.A1-c.A0
	}
	return added, removed
}

// Ends says on which sides of a change there is a file.
type Ends int

const (
	Edited  Ends = iota // both
	Created             // only after
	Removed             // only before
)

// EndsOf is for a file that is there before and after.
func EndsOf(before, after bool) Ends {
	switch {
	case !before:
		return Created
	case !after:
		return Removed
	}
	return Edited
}

// Unified writes hunks as a unified diff that git apply takes (with -p1), "" for none. name is the
// path relative to where it is applied, or an absolute one, to be applied in the root directory. A
// side without a file is /dev/null.
func Unified(name string, ends Ends, hs []Hunk) string {
	if len(hs) == 0 {
		return ""
	}
	name = strings.TrimLeft(name, "/")
	from, to := diffName("a/"+name), diffName("b/"+name)
	switch ends {
	case Created:
		from = "/dev/null"
	case Removed:
		to = "/dev/null"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
	for _, h := range hs {
		oldStart, newStart := h.OldStart, h.NewStart
		if h.OldLines == 0 {
			oldStart--
		}
		if h.NewLines == 0 {
			newStart--
		}
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", oldStart, h.OldLines, newStart, h.NewLines)
		for i, l := range h.Lines {
			b.WriteString(l)
			if h.crlf != nil && h.crlf[i] {
				b.WriteByte('\r')
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// diffName quotes a name as git does: C style when it holds anything odd, which is also what is not
// seen or has other things seen differently, a tab behind it when it holds blanks.
func diffName(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r == '"' || r == '\\' || r == utf8.RuneError || !strconv.IsPrint(r) }) {
		if strings.Contains(name, " ") {
			return name + "\t"
		}
		return name
	}
	return QuotePath(name)
}

// QuotePath writes an odd path as git does: in quotes, with C's escapes and octal bytes.
func QuotePath(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

const (
	snippetLines = 60
	snippetCut   = 400 // bytes of a line
)

// Snippet shows the text after a change around the changed places, with line numbers, from the
// hunks of Patch. number writes what stands before a line; nil is six columns and an arrow, as Read
// does it. It is bounded to 60 lines of 400 bytes and says what it leaves out.
func Snippet(hs []Hunk, number func(line int) string) string {
	if number == nil {
		number = func(n int) string { return fmt.Sprintf("%6d→", n) }
	}
	var b strings.Builder
	shown := 0
	for i, h := range hs {
		if shown == snippetLines {
			fmt.Fprintf(&b, "… %s more\n", plural(len(hs)-i, "changed place"))
			break
		}
		if i > 0 {
			b.WriteString("…\n")
		}
		after := slices.DeleteFunc(slices.Clone(h.Lines), func(l string) bool { return l[0] != ' ' && l[0] != '+' })
		fit := min(len(after), snippetLines-shown)
		for k, l := range after[:fit] {
			b.WriteString(number(h.NewStart+k) + CutLine(l[1:]) + "\n")
		}
		if shown += fit; fit < len(after) {
			fmt.Fprintf(&b, "… %s more\n", plural(len(after)-fit, "line"))
		}
	}
	return b.String()
}

// CutLine shortens a line that is shown, and says by how much.
func CutLine(s string) string {
	if len(s) <= snippetCut {
		return s
	}
	n := snippetCut
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "… (" + strconv.Itoa(len(s)-n) + " bytes more)"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
