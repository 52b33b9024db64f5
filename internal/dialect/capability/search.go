package capability

import (
	"context"

	"moltisfs/grep"
	"moltisfs/internal/engine"
)

type searchArgs struct {
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
	Most    *int   `json:"max_results,omitempty" min:"1" default:"100"`
	Hidden  bool   `json:"include_hidden,omitempty" default:"false"`
}

func (a *searchArgs) paths() []string { return []string{a.Path} }

func (a *searchArgs) asked() engine.Asked { return engine.Asked{Pattern: a.Pattern} }

// A match is a file that was found.
type match struct {
	Path     string  `json:"path"`
	Size     int64   `json:"size"`
	Modified *string `json:"modified"`
}

func runSearch(ctx context.Context, c *call, a *searchArgs) (any, error) {
	r, err := c.e.Files(ctx, c.Call, a.Path, grep.GlobQuery{Pattern: a.Pattern,
		Limit: value(a.Most, 100), NoHidden: !a.Hidden, All: true})
	if err != nil {
		return nil, err
	}
	matches := make([]match, len(r.Files))
	for i, f := range r.Files {
		matches[i] = match{f.Path, f.Size, stamp(f.ModTime)}
	}
	return struct {
		Matches   []match `json:"matches"`
		Total     int     `json:"total_matches"`
		Truncated bool    `json:"truncated"`
	}{matches, r.Total, r.Truncated || r.Partial}, nil
}
