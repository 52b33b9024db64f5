package capability

import (
	"context"
	"path"

	"moltisfs/grep"
	matching "moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/engine"
)

type searchContentArgs struct {
	Path       string  `json:"path"`
	Pattern    string  `json:"pattern"`
	Regex      bool    `json:"regex,omitempty" default:"false"`
	Case       bool    `json:"case_sensitive,omitempty" default:"false"`
	Context    *int    `json:"context,omitempty" default:"2" min:"0" max:"20"`
	MaxResults *int    `json:"max_results,omitempty" default:"20" min:"1" max:"200"`
	Glob       *string `json:"include_glob,omitempty"`
	Hidden     bool    `json:"include_hidden,omitempty" default:"false"`
	TotalOnly  bool    `json:"total_only,omitempty" default:"false"`
	FilesOnly  bool    `json:"files_only,omitempty" default:"false"`
	Ignored    bool    `json:"include_all,omitempty" default:"false"`
}

func (a *searchContentArgs) paths() []string { return []string{a.Path} }

func (a *searchContentArgs) asked() engine.Asked { return engine.Asked{Pattern: a.Pattern} }

func (a *searchContentArgs) check() error {
	if a.Pattern == "" {
		return args.Errorf("give a name or a text", "pattern is empty")
	}
	return nil
}

// maxBinary is how many binary files that match are named.
const maxBinary = 20

// maxRowsOfFile bounds the lines of one file, context included, that take part in the ranking.
const maxRowsOfFile = 5000

// contentAnswer is the answer of search_content.
type contentAnswer struct {
	Results   []result       `json:"results"`
	Matches   int            `json:"total_matches"`
	Files     int            `json:"files_matched"`
	Truncated bool           `json:"truncated"`
	Skipped   map[string]int `json:"skipped"`
	Binary    []string       `json:"binary_matches,omitempty"`
	As        string         `json:"searched_as"`
	PerFile   []fileCount    `json:"files,omitzero"`
}

// fileCount is a file, and how many of its lines match.
type fileCount struct {
	Path  string `json:"path"`
	Count int    `json:"match_count"`
}

func runSearchContent(ctx context.Context, c *call, a *searchContentArgs) (any, error) {
	if a.TotalOnly || a.FilesOnly {
		return c.counted(ctx, a)
	}
	if a.Regex {
		return c.ranked(ctx, a, question{text: a.Pattern, exact: true, ofTests: speaksOfTests().MatchString(a.Pattern)}, "regex")
	}
	out, err := c.ranked(ctx, a, asText(a.Pattern, a.Case), "text")
	if err != nil || out.Files+len(out.Binary) > 0 {
		return out, err
	}
	if q, several := asWords(a.Pattern, a.Case); several { // nowhere do they stand like that
		return c.ranked(ctx, a, q, "words")
	}
	return out, nil
}

// counted answers total_only and files_only, the first of them that was asked for. The pattern is taken as it is, as filesystem.edit does.
func (c *call) counted(ctx context.Context, a *searchContentArgs) (*contentAnswer, error) {
	m, err := c.matcher(a, a.Pattern)
	if err != nil {
		return nil, err
	}
	r, err := c.looked(ctx, a, grep.Query{Matcher: m, Mode: grep.Count, Limit: value(a.MaxResults, 20)})
	if err != nil {
		return nil, err
	}
	out := answered(a, r)
	out.Files = r.Totals.Files
	if a.TotalOnly {
		out.Matches = r.Totals.Matches
		return out, nil
	}
	out.Matches, out.PerFile, out.Truncated = r.Totals.Lines, []fileCount{}, r.Partial || r.Truncated
	for _, f := range r.Files {
		out.PerFile = append(out.PerFile, fileCount{f.Path, f.Lines})
	}
	return out, nil
}

// ranked searches for the needle of q, and puts the best results first.
func (c *call) ranked(ctx context.Context, a *searchContentArgs, q question, as string) (*contentAnswer, error) {
	text := q.needle
	if a.Regex {
		text = a.Pattern
	}
	m, err := c.matcher(a, text)
	if err != nil {
		return nil, err
	}
	r := &ranking{question: q, root: a.Path, m: m, around: value(a.Context, 2), files: map[string]bool{}}
	found, err := c.looked(ctx, a, grep.Query{Matcher: m, Mode: grep.Content, Before: r.around, After: r.around,
		Limit: maxRowsOfFile, Found: r.found, Named: r.named})
	if err != nil {
		return nil, err
	}
	best, most := r.best(), value(a.MaxResults, 20)
	out := answered(a, found)
	out.Matches, out.Files, out.As = r.lines, len(r.files), as
	out.Truncated = found.Partial || len(best) > most || r.cut
	out.Results = append(out.Results, best[:min(most, len(best))]...)
	for i := range out.Results {
		out.Results[i].Path = path.Join(found.Root, out.Results[i].Path)
	}
	return out, nil
}

// matcher compiles the text to look for.
func (c *call) matcher(a *searchContentArgs, text string) (*matching.Matcher, error) {
	return matching.Compile(text, matching.Options{IgnoreCase: !a.Case, Literal: !a.Regex,
		CRLF: true})
}

// looked searches where the call says.
func (c *call) looked(ctx context.Context, a *searchContentArgs, q grep.Query) (*grep.Result, error) {
	if glob := value(a.Glob, ""); glob != "" {
		q.Glob = append(q.Glob, glob)
	}
	if !a.Hidden && !a.Ignored {
		q.Glob = append(q.Glob, "!.*")
	}
	return c.Search(ctx, a.Path, q, a.Ignored)
}

// answered makes an answer of the facts of a search.
func answered(a *searchContentArgs, r *grep.Result) *contentAnswer {
	out := &contentAnswer{Results: []result{}, Binary: r.Binary[:min(len(r.Binary), maxBinary)], As: "text",
		Truncated: r.Partial, Skipped: map[string]int{}}
	if a.Regex {
		out.As = "regex"
	}
	for _, n := range r.Skipped.Notes() {
		out.Skipped[n.Reason] = n.Count
	}
	return out
}

func (c *contentAnswer) rows() int { return len(c.Results) + len(c.PerFile) }

// first leaves out files, of which there are none where there are results.
func (c *contentAnswer) first(n int) any {
	out := *c
	out.Results, out.Truncated = c.Results[:min(n, len(c.Results))], c.Truncated || n < c.rows()
	if c.PerFile != nil {
		out.PerFile = c.PerFile[:min(n, len(c.PerFile))]
	}
	return &out
}
