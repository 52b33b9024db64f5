package capability

import (
	"context"
	"slices"

	"moltisfs/grep"
	"moltisfs/internal/engine"
)

type searchArgs struct {
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
	Most    *int   `json:"max_results,omitempty" min:"1" default:"100"`
	Hidden  bool   `json:"include_hidden,omitempty" default:"false"`
}

func (a *searchArgs) asked() engine.Asked { return engine.Asked{Pattern: a.Pattern} }

func (a *searchArgs) paths() []string { return []string{a.Path} }

// A match is a file or directory that was found.
type match struct {
	Path     string  `json:"path"`
	Type     string  `json:"type,omitempty"`
	Size     int64   `json:"size"`
	Modified *string `json:"modified"`
}

// searched is the answer of search.
type searched struct {
	Matches   []match  `json:"matches"`
	Total     int      `json:"total_matches"`
	Truncated bool     `json:"truncated"`
	Odd       []string `json:"odd_names,omitempty"`
}

func runSearch(ctx context.Context, c *call, a *searchArgs) (any, error) {
	r, err := c.Files(ctx, a.Path, grep.GlobQuery{Pattern: a.Pattern, Limit: value(a.Most, 100), NoHidden: !a.Hidden, All: true, Dirs: true})
	if err != nil {
		return nil, err
	}
	out := &searched{Matches: make([]match, len(r.Files)), Total: r.Total, Truncated: r.Truncated || r.Partial}
	names := make([]string, len(r.Files))
	for i, f := range r.Files {
		names[i], out.Matches[i] = f.Path, match{Path: f.Path, Size: f.Size, Modified: stamp(f.ModTime)}
		if f.Dir {
			out.Matches[i].Type = "directory"
		}
	}
	out.Odd = engine.OddNames(r.Root, slices.Values(names))
	return out, nil
}

func (s *searched) rows() int { return len(s.Matches) }

func (s *searched) first(n int) any {
	return &searched{s.Matches[:n], s.Total, s.Truncated || n < len(s.Matches), s.Odd}
}
