package tools

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"moltisfs/grep"
)

// Grep is the payload of kind "grep".
type Grep struct {
	Mode    string      `json:"mode"`
	Files   []string    `json:"files,omitempty"`
	Matches []GrepMatch `json:"matches,omitempty"`
	Counts  []GrepCount `json:"counts,omitempty"`
	// ContextOnly are lines of this page around matches that are on another one.
	ContextOnly []GrepContext `json:"context_only,omitempty"`
	// Truncated: there are more rows or files, with NextOffset to go on; or a row is cut. SizeLimited:
	// one answer holds no more, whatever head_limit says.
	Truncated   bool       `json:"truncated"`
	SizeLimited bool       `json:"size_limited,omitempty"`
	NextOffset  int        `json:"next_offset,omitempty"`
	LinesCut    int        `json:"lines_cut,omitempty"` // rows that show a window of a longer line
	Total       GrepTotals `json:"total"`
	// Binary are the first of the binary files that match. No line of theirs is shown, and they are not among the files.
	Binary   []string  `json:"binary_matches,omitempty"`
	Root     string    `json:"root"`
	Engine   string    `json:"engine,omitempty"` // "backtracking" when the pattern needs it
	Partial  bool      `json:"partial,omitempty"`
	Skipped  Skipped   `json:"skipped,omitempty"`
	OddNames []string  `json:"odd_names,omitempty"` // some of the paths that are not what they seem
	Note     string    `json:"note,omitempty"`
	Next     *NextCall `json:"next,omitempty"` // nothing was found: a call that finds something

	rows    []grep.Row
	scanned int // files whose content was looked at
	shown   int // rows or files on this page
	numbers bool
	single  bool
	context bool // lines around matches were asked for
	parted  bool // the page ends within a block
}

// GrepTotals count everything that matched, shown or not.
type GrepTotals struct {
	Files   int `json:"files"`
	Rows    int `json:"rows,omitempty"` // of content, lines of context included: what head_limit and offset count there
	Lines   int `json:"lines,omitempty"`
	Matches int `json:"matches,omitempty"`
	Binary  int `json:"binary,omitempty"` // binary files that match
}

// GrepMatch is one matching line. Block is the line, numbered unless told otherwise, with those around
// it that were asked for.
type GrepMatch struct {
	Path  string   `json:"path"`
	Line  int      `json:"line"`
	Match string   `json:"match"`
	Block []string `json:"block"`
	// BlockCut says where Block goes on upon another page: "start", "end" or "both".
	BlockCut string `json:"block_cut,omitempty"`
	// CutFrom and LineBytes say that Match is a window of a longer line.
	CutFrom   *int `json:"cut_from,omitempty"`
	LineBytes int  `json:"line_bytes,omitempty"`
}

// GrepContext is lines in a row, from Line on.
type GrepContext struct {
	Path  string   `json:"path"`
	Line  int      `json:"line"`
	Block []string `json:"block"`
}

// GrepCount is one file of a count: matching lines, and occurrences.
type GrepCount struct {
	Path        string `json:"path"`
	Count       int    `json:"count"`
	Occurrences int    `json:"occurrences"`
}

func (*Grep) inText() []string { return []string{"files", "matches", "counts", "context_only"} }

func (g *Grep) brief() (Payload, []string) {
	out := *g
	out.Files, out.Matches, out.Counts, out.ContextOnly = nil, nil, nil, nil
	left := []string{cmp.Or(map[string]string{"content": "matches", "count": "counts"}[g.Mode], "files")}
	if g.ContextOnly != nil {
		left = append(left, "context_only")
	}
	return &out, left
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
	all, unit := g.Total.Files, "file"
	if g.Mode == "content" {
		all, unit = g.Total.Rows, "row"
	}
	switch {
	case g.shown == 0 && all > 0:
		fmt.Fprintf(&b, "No entries at this offset, of %s", plural(all, unit))
	case g.Mode == "content":
		g.contentText(&b)
	case g.Mode == "count":
		root := g.above(len(g.Counts))
		b.WriteString(inRoot(root))
		for _, c := range g.Counts {
			fmt.Fprintf(&b, "%s:%d\n", relative(root, c.Path), c.Count)
		}
		if len(g.Counts) == 0 {
			b.WriteString(noneFound("matches", g.Partial))
		} else {
			fmt.Fprintf(&b, "\nFound %s across %s.", plural(g.Total.Matches, "total occurrence"),
				plural(g.Total.Files, "file"))
		}
	default:
		if len(g.Files) == 0 {
			b.WriteString(noneFound("files", g.Partial))
		} else {
			root := g.above(len(g.Files))
			fmt.Fprintf(&b, "Found %s", plural(g.Total.Files, "file"))
			if root != "" {
				b.WriteString(" in " + root)
			}
			for _, f := range g.Files {
				b.WriteString("\n" + relative(root, f))
			}
		}
	}
	if g.NextOffset > 0 {
		fmt.Fprintf(&b, "\n[%d of %s", g.shown, plural(all, unit))
		if g.SizeLimited {
			b.WriteString(", as many as one answer holds")
		}
		if g.parted {
			b.WriteString(", cut within a block")
		}
		fmt.Fprintf(&b, "; go on with offset %d]", g.NextOffset)
	}
	if n := len(g.Binary); n > 0 {
		b.WriteString("\n[binary file matches: " + strings.Join(g.Binary, ", "))
		if more := g.Total.Binary - n; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
		b.WriteString(`; Read with encoding: "utf-8" shows its text]`)
	}
	if g.Note != "" {
		b.WriteString("\n[" + g.Note + "]")
	}
	return b.String() + oddText(g.OddNames) + g.Skipped.text(g.Partial, g.Total.Files > 0)
}

func (g *Grep) contentText(b *strings.Builder) {
	if len(g.rows) == 0 {
		b.WriteString(noneFound("matches", g.Partial))
		return
	}
	root := g.above(len(g.rows))
	if !g.single {
		b.WriteString(inRoot(root))
	}
	for i, r := range g.rows {
		if i > 0 {
			b.WriteByte('\n')
			if p := g.rows[i-1]; g.context && (p.Path != r.Path || p.Line+1 != r.Line) {
				b.WriteString("--\n")
			}
		}
		mark := byte(':')
		if r.Context {
			mark = '-'
		}
		if !g.single {
			b.WriteString(relative(root, r.Path))
			b.WriteByte(mark)
		}
		if g.numbers {
			b.WriteString(strconv.Itoa(r.Line))
			b.WriteByte(mark)
		}
		b.WriteString(windowed(r))
	}
}

// above is the directory that the text names once: "" for a single path, which is named whole.
func (g *Grep) above(paths int) string {
	if paths < 2 {
		return ""
	}
	return g.Root
}

// inRoot is the line before paths that are below root.
func inRoot(root string) string {
	if root == "" {
		return ""
	}
	return "In " + root + ":\n"
}

// relative is a path below root without it.
func relative(root, path string) string {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
	if !ok || root == "" {
		return path
	}
	return rest
}

// windowed marks a line that is longer than what is shown of it.
func windowed(r grep.Row) string {
	if !r.Cut {
		return r.Text
	}
	return fmt.Sprintf("[… byte %d of %d] %s […]", r.From, r.Bytes, r.Text)
}
