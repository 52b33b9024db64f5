package capability

import (
	"context"
	"path"
	"slices"

	"moltisfs/grep"
	matching "moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/rank"
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
	CountBy    *string `json:"count_by,omitempty"`
	FilesOnly  bool    `json:"files_only,omitempty" default:"false"`
	Ignored    bool    `json:"include_all,omitempty" default:"false"`
}

func (a *searchContentArgs) paths() []string { return []string{a.Path} }

func (a *searchContentArgs) asked() engine.Asked { return engine.Asked{Pattern: a.Pattern} }

func (a *searchContentArgs) check() error {
	if a.Pattern == "" {
		return args.Errorf("give a name or a text", "pattern is empty")
	}
	if value(a.CountBy, "") != "" && !a.Regex {
		return args.Errorf("say regex=true", "count_by needs a regular expression with groups")
	}
	return nil
}

// maxBinary is how many binary files that match are named.
const maxBinary = 20

// maxRowsOfFile bounds the lines of one file, context included, that take part in the ranking.
const maxRowsOfFile = 5000

// A place is one result of search_content.
type place struct {
	Path    string   `json:"path"`
	Line    int      `json:"line"` // 0: only the file's name matches
	Column  int      `json:"column"`
	Text    string   `json:"text"`
	Before  []string `json:"before"`
	After   []string `json:"after"`
	More    []int    `json:"more_lines,omitempty"`
	Copies  int      `json:"copies,omitempty"`
	Score   int      `json:"score"`
	Reasons []string `json:"reasons"`
}

// places are the answer of search_content.
type places struct {
	Results   []place        `json:"results"`
	Matches   int            `json:"total_matches"`
	Files     int            `json:"files_matched"`
	Truncated bool           `json:"truncated"`
	Skipped   map[string]int `json:"skipped"`
	Binary    []string       `json:"binary_matches,omitempty"`
	As        string         `json:"searched_as"`
	Counts    []valueCount   `json:"counts,omitzero"`
	PerFile   []fileCount    `json:"files,omitzero"`
}

func runSearchContent(ctx context.Context, c *call, a *searchContentArgs) (any, error) {
	if a.TotalOnly || a.FilesOnly || value(a.CountBy, "") != "" {
		return c.counted(ctx, a)
	}
	q, as := rank.Literal(a.Pattern, a.Case), "text"
	if a.Regex {
		q, as = rank.Pattern(a.Pattern), "regex"
	}
	out, err := c.ranked(ctx, a, q, as)
	if err != nil || a.Regex || out.Files+len(out.Binary) > 0 {
		return out, err
	}
	if q, several := rank.Words(a.Pattern, a.Case); several { // nowhere do they stand like that
		return c.ranked(ctx, a, q, "words")
	}
	return out, nil
}

// ranked looks for what q asks for, and puts the best first.
func (c *call) ranked(ctx context.Context, a *searchContentArgs, q rank.Query,
	as string) (*places, error) {
	text := q.Needle()
	if a.Regex {
		text = a.Pattern
	}
	m, err := c.matcher(a, text)
	if err != nil {
		return nil, err
	}
	around := value(a.Context, 2)
	f := finder{m, rank.New(q), around}
	query := grep.Query{Matcher: m, Mode: grep.Content, Before: around, After: around,
		Limit: maxRowsOfFile, Found: f.found, Named: f.named}
	r, err := c.looked(ctx, a, query)
	if err != nil {
		return nil, err
	}
	hits, most := f.Best(), value(a.MaxResults, 20)
	out := answered(a, r)
	out.Matches, out.Files, out.As = f.Lines(), f.Files(), as
	out.Truncated = r.Partial || len(hits) > most || !f.Complete()
	for _, h := range hits[:min(most, len(hits))] {
		out.Results = append(out.Results, place{path.Join(r.Root, h.Path), h.Line, h.Column, h.Text,
			list(h.Before), list(h.After), h.More, h.Copies, h.Score, h.Reasons})
	}
	return out, nil
}

// matcher compiles what is looked for.
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
	if a.Ignored {
		return c.e.SearchIgnored(ctx, c.Call, a.Path, q)
	}
	return c.e.Search(ctx, c.Call, a.Path, q)
}

// answered is an answer with what a search tells of itself.
func answered(a *searchContentArgs, r *grep.Result) *places {
	out := &places{Results: []place{}, Binary: r.Binary[:min(len(r.Binary), maxBinary)], As: "text",
		Truncated: r.Partial, Skipped: map[string]int{}}
	if a.Regex {
		out.As = "regex"
	}
	for _, n := range r.Skipped.Notes() {
		out.Skipped[n.Reason] = n.Count
	}
	return out
}

// list is never null.
func list(lines []string) []string {
	if lines == nil {
		return []string{}
	}
	return lines
}

// A finder hands what a search finds to the ranking.
type finder struct {
	m *matching.Matcher
	*rank.Search
	around int
}

// spans are the matches in a line or a name.
func (f *finder) spans(text string) [][2]int {
	s := f.m.Scanner()
	defer f.m.Put(s)
	return slices.DeleteFunc(s.Spans(nil, []byte(text), 0, len(text)), func(x [2]int) bool {
		return x[0] == x[1]
	})
}

func (f *finder) named(name string) {
	if spans := f.spans(path.Base(name)); len(spans) > 0 {
		f.Name(rank.File{Path: name, Named: spans})
	}
}

func (f *finder) found(h grep.FileHit, rows []grep.Row) {
	lines, places := make([]rank.Line, 0, h.Lines), make([]int, 0, h.Lines)
	s, text := f.m.Scanner(), []byte(nil)
	defer f.m.Put(s)
	for i := range rows {
		r := &rows[i]
		if r.Context {
			continue
		}
		text = append(text[:0], r.Text...)
		l := rank.Line{Number: r.Line, Text: r.Text, From: r.From,
			Spans: s.Spans(nil, text, 0, len(text))}
		if at := min(max(r.Column-1-r.From, 0), len(r.Text)); len(l.Spans) == 0 {
			l.Spans = [][2]int{{at, at}} // it is empty, or speaks of an end that was cut off
		}
		lines, places = append(lines, l), append(places, i)
	}
	f.Found(rank.File{Path: h.Path, ModTime: h.ModTime, Named: f.spans(path.Base(h.Path)),
		Lines: h.Lines, Around: func(i int) (_, _ []string) { return f.context(rows, places[i]) }}, lines)
}

// context are the rows next to one, without a gap.
func (f *finder) context(rows []grep.Row, i int) (before, after []string) {
	from, to, line := i, i+1, rows[i].Line
	for from > 0 && rows[from-1].Line >= line-f.around && rows[from-1].Line == rows[from].Line-1 {
		from--
	}
	for to < len(rows) && rows[to].Line <= line+f.around && rows[to].Line == rows[to-1].Line+1 {
		to++
	}
	return texts(rows[from:i]), texts(rows[i+1 : to])
}

func texts(rows []grep.Row) (out []string) {
	for i := range rows {
		out = append(out, rows[i].Text)
	}
	return out
}
