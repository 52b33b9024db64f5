package tools

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/engine"
)

// GrepArgs is what a model may say to Grep.
type GrepArgs struct {
	Pattern    string  `json:"pattern" doc:"regular expression"`
	Path       *string `json:"path,omitempty" doc:"absolute file or directory"`
	Glob       *string `json:"glob,omitempty" doc:"like *.{ts,tsx} or !*_test.go"`
	Type       *string `json:"type,omitempty" doc:"like rust, py, ts"`
	OutputMode *string `json:"output_mode,omitempty" enum:"files_with_matches|content|count" default:"files_with_matches"`
	IgnoreCase *bool   `json:"-i,omitempty"`
	Numbers    *bool   `json:"-n,omitempty" default:"true"`
	After      *int    `json:"-A,omitempty" min:"0"`
	Before     *int    `json:"-B,omitempty" min:"0"`
	Around     *int    `json:"-C,omitempty" min:"0"`
	Context    *int    `json:"context,omitempty" min:"0" doc:"same as -C"`
	Only       *bool   `json:"-o,omitempty" doc:"only the matched text"`
	Multiline  *bool   `json:"multiline,omitempty" doc:". matches newlines, matches may span lines"`
	HeadLimit  *int    `json:"head_limit,omitempty" min:"0" default:"250" doc:"0: all"`
	Offset     *int    `json:"offset,omitempty" min:"0"`
}

func (a *GrepArgs) target() string { return value(a.Path) }

const (
	maxContext  = 1000 // lines around a match; more is clamped
	defaultHead = 250
)

// Grep is the payload of kind "grep".
type Grep struct {
	Mode    string      `json:"mode"`
	Files   []string    `json:"files,omitempty"`
	Matches []GrepMatch `json:"matches,omitempty"`
	Counts  []GrepCount `json:"counts,omitempty"`
	// Truncated: head_limit or offset left rows out; go on with NextOffset.
	Truncated  bool       `json:"truncated"`
	NextOffset int        `json:"next_offset,omitempty"`
	Total      GrepTotals `json:"total"`
	Root       string     `json:"root"`
	Engine     string     `json:"engine,omitempty"` // "backtracking" when the pattern needs it
	Partial    bool       `json:"partial,omitempty"`
	Skipped    Skipped    `json:"skipped,omitempty"`

	rows    []grep.Row
	numbers bool
	single  bool
	beyond  bool // offset lies behind the last row
}

// GrepTotals count everything that matched, shown or not.
type GrepTotals struct {
	Files   int `json:"files"`
	Lines   int `json:"lines,omitempty"`
	Matches int `json:"matches,omitempty"`
}

// GrepMatch is one matching line. Block is the line with those around it,
// when context was asked for.
type GrepMatch struct {
	Path  string   `json:"path"`
	Line  int      `json:"line"`
	Match string   `json:"match"`
	Block []string `json:"block,omitempty"`
	// CutFrom and LineBytes say that Match is a window of a longer line.
	CutFrom   *int `json:"cut_from,omitempty"`
	LineBytes int  `json:"line_bytes,omitempty"`
}

// GrepCount is one file of a count: matching lines, and occurrences.
type GrepCount struct {
	Path        string `json:"path"`
	Count       int    `json:"count"`
	Occurrences int    `json:"occurrences"`
}

func (*Grep) Kind() string { return "grep" }
func (*Grep) payload()     {}

// MarshalJSON makes the list of the mode present even when it is empty.
func (g *Grep) MarshalJSON() ([]byte, error) {
	type plain Grep
	switch g.Mode {
	case "content":
		return plainJSON(struct {
			Mode    string      `json:"mode"`
			Matches []GrepMatch `json:"matches"`
			*plain
		}{g.Mode, orEmpty(g.Matches), (*plain)(g)})
	case "count":
		return plainJSON(struct {
			Mode   string      `json:"mode"`
			Counts []GrepCount `json:"counts"`
			*plain
		}{g.Mode, orEmpty(g.Counts), (*plain)(g)})
	}
	return plainJSON(struct {
		Mode  string   `json:"mode"`
		Files []string `json:"files"`
		*plain
	}{g.Mode, orEmpty(g.Files), (*plain)(g)})
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Text is the answer in ripgrep's and Claude Code's shape.
func (g *Grep) Text() string {
	var b strings.Builder
	switch {
	case g.beyond:
		fmt.Fprintf(&b, "No entries at this offset, of %s", plural(g.Total.Files, "file"))
	case g.Mode == "content":
		g.contentText(&b)
	case g.Mode == "count":
		for _, c := range g.Counts {
			fmt.Fprintf(&b, "%s:%d\n", c.Path, c.Count)
		}
		if len(g.Counts) == 0 {
			b.WriteString("No matches found")
		} else {
			fmt.Fprintf(&b, "\nFound %d total occurrences across %d files.", g.Total.Matches, g.Total.Files)
		}
	default:
		if len(g.Files) == 0 {
			b.WriteString("No files found")
		} else {
			fmt.Fprintf(&b, "Found %s\n%s", plural(g.Total.Files, "file"), strings.Join(g.Files, "\n"))
		}
	}
	if g.Truncated {
		fmt.Fprintf(&b, "\n[cut; go on with offset %d]", g.NextOffset)
	}
	return b.String() + g.Skipped.text(g.Partial)
}

func (g *Grep) contentText(b *strings.Builder) {
	if len(g.rows) == 0 {
		b.WriteString("No matches found")
		return
	}
	for i, r := range g.rows {
		if i > 0 {
			b.WriteByte('\n')
			if p := g.rows[i-1]; g.withContext() && (p.Path != r.Path || p.Line+1 != r.Line) {
				b.WriteString("--\n")
			}
		}
		mark := byte(':')
		if r.Context {
			mark = '-'
		}
		if !g.single {
			b.WriteString(r.Path)
			b.WriteByte(mark)
		}
		if g.numbers {
			b.WriteString(strconv.Itoa(r.Line))
			b.WriteByte(mark)
		}
		b.WriteString(windowed(r))
	}
}

func (g *Grep) withContext() bool {
	for _, r := range g.rows {
		if r.Context {
			return true
		}
	}
	return false
}

// windowed marks a line that is longer than what is shown of it.
func windowed(r grep.Row) string {
	if !r.Cut {
		return r.Text
	}
	return fmt.Sprintf("[… byte %d of %d] %s […]", r.From, r.Bytes, r.Text)
}

var grepTool = define[GrepArgs](Tool{
	Name:  "Grep",
	Title: "Search file contents",
	Description: "Searches with a regular expression (RE2 and ripgrep syntax; look-around works, slower). Files newest first, lines by path. " +
		"$ matches before CRLF. What was not searched is counted in skipped.",
	Effect: Reads,
}, runGrep)

func runGrep(ctx context.Context, s *Suite, c *engine.Call, a *GrepArgs) (Payload, error) {
	root, err := s.searchRoot(value(a.Path))
	if err != nil {
		return nil, err
	}
	m, err := match.Compile(a.Pattern, match.Options{
		IgnoreCase: value(a.IgnoreCase), Multiline: value(a.Multiline), CRLF: true, NoFallback: !s.cfg.Tools.FS.RegexFallback,
	})
	if err != nil {
		return nil, err
	}
	q := grep.Query{Matcher: m, Multiline: value(a.Multiline), OnlyMatching: value(a.Only), Index: s.search.index, Limit: defaultHead, Offset: value(a.Offset)}
	if a.HeadLimit != nil {
		q.Limit = *a.HeadLimit
	}
	if g := value(a.Glob); g != "" {
		q.Glob = []string{g}
	}
	if t := value(a.Type); t != "" {
		q.Type = []string{t}
	}
	out := &Grep{Mode: or(value(a.OutputMode), "files_with_matches"), numbers: a.Numbers == nil || *a.Numbers}
	switch out.Mode {
	case "content":
		q.Mode = grep.Content
		q.Before, q.After = contextOf(a)
	case "count":
		q.Mode = grep.Count
	}
	err = s.walk(ctx, c, root, func(ctx context.Context, w grep.Walk) error {
		r, err := grep.Search(ctx, w, q)
		if err != nil {
			return err
		}
		out.single = w.File != nil
		out.fill(r, q)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// contextOf: an explicit -A or -B beats -C, and -C beats context.
func contextOf(a *GrepArgs) (before, after int) {
	around := value(a.Context)
	if a.Around != nil {
		around = *a.Around
	}
	before, after = around, around
	if a.Before != nil {
		before = *a.Before
	}
	if a.After != nil {
		after = *a.After
	}
	return min(before, maxContext), min(after, maxContext)
}

func (g *Grep) fill(r *grep.Result, q grep.Query) {
	g.Root, g.Partial, g.Skipped = r.Root, r.Partial, skippedOf(r.Skipped)
	g.Total = GrepTotals{Files: r.Totals.Files, Lines: r.Totals.Lines, Matches: r.Totals.Matches}
	if r.Engine == "backtracking" {
		g.Engine = r.Engine
	}
	shown, all := len(r.Files), r.Totals.Files
	switch q.Mode {
	case grep.Content:
		g.rows = r.Rows
		g.Matches = g.matches(q)
		shown, all = len(r.Rows), r.Totals.Rows
	case grep.Count:
		for _, f := range r.Files {
			g.Counts = append(g.Counts, GrepCount{f.Path, f.Lines, f.Matches})
		}
	default:
		for _, f := range r.Files {
			g.Files = append(g.Files, f.Path)
		}
	}
	g.beyond = shown == 0 && all > 0
	if q.Offset+shown < all {
		g.Truncated, g.NextOffset = true, q.Offset+shown
	}
}

// matches turns rows into Moltis' matches: one a matching line, with the
// lines around it as its block.
func (g *Grep) matches(q grep.Query) []GrepMatch {
	var out []GrepMatch
	for i, r := range g.rows {
		if r.Context {
			continue
		}
		m := GrepMatch{Path: r.Path, Line: r.Line, Match: r.Text}
		if r.Cut {
			m.CutFrom, m.LineBytes = &r.From, r.Bytes
		}
		if q.Before > 0 || q.After > 0 {
			from, to := i, i
			for from > 0 && g.rows[from-1].Path == r.Path && g.rows[from-1].Line >= r.Line-q.Before {
				from--
			}
			for to+1 < len(g.rows) && g.rows[to+1].Path == r.Path && g.rows[to+1].Line <= r.Line+q.After {
				to++
			}
			for _, b := range g.rows[from : to+1] {
				line := b.Text
				if g.numbers {
					line = strconv.Itoa(b.Line) + ":" + line
				}
				m.Block = append(m.Block, line)
			}
		}
		out = append(out, m)
	}
	return out
}
