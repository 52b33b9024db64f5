package mcp

import (
	"fmt"
	"strings"
	"time"

	"moltisfs/internal/approval"
)

// message is a question for clients that show three lines of it, as Claude Code does: what happens,
// and the first lines that go and come. Whoever shows more shows the whole diff, and who asks.
func message(q approval.Question, root string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s +%d −%d", approval.Escape(q.Tool, false), pathsOf(q, root), q.Added, q.Removed)
	switch {
	case len(q.Warnings) > 0:
		b.WriteString(" (WARNING: " + approval.Escape(q.Warnings[0], false) + ")")
	case len(q.New) == 1:
		b.WriteString(" (NEW FILE)")
	case len(q.New) > 1:
		fmt.Fprintf(&b, " (%d NEW FILES)", len(q.New))
	}
	b.WriteByte('\n')
	for _, l := range firstLines(q.Diff) {
		b.WriteString(l + "\n")
	}
	b.WriteByte('\n')
	if len(q.Paths) > 1 {
		for _, p := range q.Paths {
			b.WriteString("  " + approval.Escape(p, false) + "\n")
		}
	}
	b.WriteString(approval.Details(q, diffLines))
	b.WriteString("Accept to allow this change.")
	if !q.Expires.IsZero() {
		left := q.Expires.Sub(now).Round(time.Second)
		fmt.Fprintf(&b, " The question expires at %s, in %s.", clock(q.Expires), span(left))
	}
	if q.Session != "" || q.Principal != "" {
		fmt.Fprintf(&b, "\nsession %s, principal %s", approval.Escape(q.Session, false),
			approval.Escape(q.Principal, false))
	}
	return b.String()
}

// pathsOf names what changes, below the workspace without it.
func pathsOf(q approval.Question, root string) string {
	const named = 3
	var names []string
	for _, p := range q.Paths[:min(len(q.Paths), named)] {
		names = append(names, approval.Escape(below(root, p), false))
	}
	switch n := len(q.Paths); {
	case n <= 1:
		return strings.Join(names, "")
	case n > named:
		names = append(names, "…")
	}
	return fmt.Sprintf("%d paths (%s)", len(q.Paths), strings.Join(names, ", "))
}

// below is a path without the directory that it lies in, unless that is "/".
func below(root, path string) string {
	if root == "/" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/"); ok && root != "" {
		return rest
	}
	return path
}

// firstLines are the first removed and the first added line of a diff, or two of a kind where there
// is no other. Each fits a line of a terminal.
func firstLines(diff string) (out []string) {
	var minus, plus []string
	old, added := 0, 0 // lines that the hunk still has
	for l := range strings.SplitSeq(diff, "\n") {
		if old <= 0 && added <= 0 {
			var from, to int
			_, _ = fmt.Sscanf(l, "@@ -%d,%d +%d,%d @@", &from, &old, &to, &added) // else it is a header
			continue
		}
		switch {
		case strings.HasPrefix(l, "-"):
			minus, old = append(minus, l), old-1
		case strings.HasPrefix(l, "+"):
			plus, added = append(plus, l), added-1
		default:
			old, added = old-1, added-1
		}
		if len(minus) > 0 && len(plus) > 0 {
			break
		}
	}
	switch {
	case len(minus) == 0:
		out = plus[:min(2, len(plus))]
	case len(plus) == 0:
		out = minus[:min(2, len(minus))]
	default:
		out = []string{minus[0], plus[0]}
	}
	const width = 76
	for i, l := range out {
		r := []rune(approval.Escape(strings.ReplaceAll(l, "\t", "    "), false))
		if len(r) > width {
			r = append(r[:width-1], '…')
		}
		out[i] = string(r)
	}
	return out
}

// clock is a time of day where the server runs, which is where its client runs.
func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// span is a duration in words.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d seconds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", int(d.Minutes()))
	}
	return fmt.Sprintf("%d hours", int(d.Hours()))
}
