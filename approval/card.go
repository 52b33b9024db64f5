package approval

import (
	"fmt"
	"strings"
)

// Card is the question as a person sees it: the tool, the paths, the size of the change, the
// warnings, and up to lines lines of the diff. What is left out is counted. Everything in it is
// escaped.
func Card(q Question, lines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s wants to change", Escape(q.Tool, false))
	if len(q.Paths) == 1 {
		fmt.Fprintf(&b, " %s", Escape(q.Paths[0], false))
	} else {
		fmt.Fprintf(&b, " %d paths:", len(q.Paths))
		for _, p := range q.Paths {
			fmt.Fprintf(&b, "\n  %s", Escape(p, false))
		}
	}
	fmt.Fprintf(&b, "  +%d −%d\n", q.Added, q.Removed)
	who := ""
	if q.Session != "" || q.Principal != "" {
		session, principal := Escape(q.Session, false), Escape(q.Principal, false)
		who = fmt.Sprintf("session %s, principal %s\n", session, principal)
	}
	return b.String() + details(q, who, lines)
}

// Details is a Card without its beginning: the summary, the warnings and the diff.
func Details(q Question, lines int) string { return details(q, "", lines) }

func details(q Question, who string, lines int) string {
	var b strings.Builder
	if q.Summary != "" {
		fmt.Fprintf(&b, "%s\n", Escape(q.Summary, false))
	}
	b.WriteString(who)
	for _, w := range q.Warnings {
		fmt.Fprintf(&b, "WARNING: %s\n", Escape(w, false))
	}
	if q.Diff == "" {
		return b.String()
	}
	diff := splitDiff(q)
	shown := diff[:min(len(diff), lines)]
	b.WriteString(renderDiff(shown))
	if left := diff[len(shown):]; len(left) > 0 {
		hunks := 0
		for _, l := range left {
			if strings.HasPrefix(l, "@@") {
				hunks++
			}
		}
		fmt.Fprintf(&b, "… %d more lines of diff, %d more hunks\n", len(left), hunks)
	}
	return b.String()
}

// Unseen is how many lines of the diff a Card of so many lines leaves out. A person who approves
// without having seen them must say so.
func Unseen(q Question, lines int) int { return max(len(splitDiff(q))-lines, 0) }

func splitDiff(q Question) []string { return strings.Split(strings.TrimSuffix(q.Diff, "\n"), "\n") }

// renderDiff escapes the lines of a diff. It shows carriage returns and blanks at the end of a
// line: a change can hide in them.
func renderDiff(diff []string) string {
	var b strings.Builder
	for _, l := range diff {
		text := strings.ReplaceAll(Escape(l, true), "\n", "")
		changed := strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-")
		if t := strings.TrimRight(text, " \t"); t != text && changed && len(t) > 0 {
			text = t + strings.ReplaceAll(strings.ReplaceAll(text[len(t):], " ", "·"), "\t", `\t`)
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	return b.String()
}

const isNew = " is new"

// NewFile is the warning of a file that is made. IsNewFile tells it from the others, which a person
// should look at twice.
func NewFile(path string) string { return path + isNew }

// IsNewFile says whether a warning is only that a file is made.
func IsNewFile(warning string) bool { return strings.HasSuffix(warning, isNew) }
