package approval

import (
	"fmt"
	"slices"
	"strings"
)

// Card is the question as a person sees it: the tool, the paths, the size of the change, the
// warnings, and up to lines lines of the diff. What is left out is counted. Everything in it is
// escaped.
func Card(q Question, lines int) string { return card(q, lines, Plain) }

// statRows is how many files a card counts one by one.
const statRows = 20

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
		if n := hunksIn(left); n > 0 {
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

// pathRows has a line for each path, with what changes of it as far as the diff tells.
func pathRows(q Question, ink Ink) string {
	var b strings.Builder
	of := stat(q)
	shown := q.Paths
	if len(shown) > statRows {
		shown = shown[:statRows]
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
// named in full beside them. What a hunk holds is never taken for a header.
func stat(q Question) map[string]*lines {
	out := map[string]*lines{}
	var now *lines
	from, left := "", [2]int{} // of the hunk: old and new lines to come
	for l := range strings.Lines(q.Diff) {
		l = strings.TrimRight(l, "\r\n")
		switch {
		case left[0]+left[1] > 0 && strings.HasPrefix(l, "+"):
			now.added++
			left[1]--
		case left[0]+left[1] > 0 && strings.HasPrefix(l, "-"):
			now.removed++
			left[0]--
		case left[0]+left[1] > 0 && !strings.HasPrefix(l, `\`):
			left[0], left[1] = left[0]-1, left[1]-1
		case strings.HasPrefix(l, "--- "):
			from = strings.TrimPrefix(l[4:], "a/")
		case strings.HasPrefix(l, "+++ "):
			to := strings.TrimPrefix(l[4:], "b/")
			if to == "/dev/null" {
				to = from
			}
			now = &lines{}
			out[to] = now
		case now != nil && strings.HasPrefix(l, "@@"):
			var start int
			_, err := fmt.Sscanf(l, "@@ -%d,%d +%d,%d @@", &start, &left[0], &start, &left[1])
			if err != nil {
				return out // a diff of another form
			}
		}
	}
	return out
}

func hunksIn(diff []string) (n int) {
	for _, l := range diff {
		if strings.HasPrefix(l, "@@") {
			n++
		}
	}
	return n
}

// counted is a number and its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Unseen is how many lines of the diff a Card of so many lines leaves out. A person who approves
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
