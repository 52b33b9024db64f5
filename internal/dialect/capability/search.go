package capability

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"time"

	"moltisfs/grep"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/tally"
)

type searchArgs struct {
	Path      string         `json:"path"`
	Pattern   string         `json:"pattern"`
	Most      *int           `json:"max_results,omitempty" min:"1" default:"100"`
	Hidden    bool           `json:"include_hidden,omitempty" default:"false"`
	Aggregate *aggregateArgs `json:"aggregate,omitempty"`
	Hash      bool           `json:"include_hash,omitempty" default:"false"`
	MaxHash   *int64         `json:"max_hash_bytes,omitempty" min:"1" max:"268435456" default:"10485760"`
}

func (a *searchArgs) asked() engine.Asked { return engine.Asked{Pattern: a.Pattern} }

type aggregateArgs struct {
	By      *string  `json:"group_by,omitempty" default:"none" enum:"extension|dir|mtime-bucket|none"`
	Metrics []string `json:"metrics,omitempty" enum:"count|total_size"`
	SortBy  *string  `json:"sort_by,omitempty" default:"count" enum:"count|total_size|key"`
	Most    *int     `json:"max_groups,omitempty" default:"50" min:"1" max:"1000"`
	Dedupe  bool     `json:"dedupe,omitempty" default:"false"`
}

func (a *searchArgs) paths() []string { return []string{a.Path} }

// A match is a file that was found.
type match struct {
	Path     string  `json:"path"`
	Size     int64   `json:"size"`
	Modified *string `json:"modified"`
	Checksum string  `json:"checksum,omitempty"`
}

// searched are the answer of search.
type searched struct {
	Matches    []match  `json:"matches"`
	Total      int      `json:"total_matches"`
	Truncated  bool     `json:"truncated"`
	Groups     []group  `json:"groups,omitzero"`
	Cut        *bool    `json:"groups_truncated,omitempty"`
	Duplicates *int     `json:"duplicates,omitempty"`
	Large      *int     `json:"large_files_skipped,omitempty"`
	Odd        []string `json:"odd_names,omitempty"`
}

// A group is one row of an aggregate.
type group struct {
	Key   string `json:"key"`
	Count *int   `json:"count,omitempty"`
	Size  *int64 `json:"total_size,omitempty"`
}

func runSearch(ctx context.Context, c *call, a *searchArgs) (any, error) {
	q := grep.GlobQuery{Pattern: a.Pattern, Limit: value(a.Most, 100), NoHidden: !a.Hidden, All: true}
	sums := &hasher{call: c, most: value(a.MaxHash, 10<<20)}
	if wait := time.Duration(c.e.Config().SearchDeadline); wait > 0 {
		var cancel context.CancelFunc
		sums.ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	} else {
		sums.ctx = ctx
	}
	if a.Aggregate != nil {
		return c.aggregated(ctx, a, q, sums)
	}
	r, err := c.e.Files(ctx, c.Call, a.Path, q)
	if err != nil {
		return nil, err
	}
	out := &searched{Matches: make([]match, len(r.Files)), Total: r.Total}
	names := make([]string, len(r.Files))
	for i, f := range r.Files {
		names[i], out.Matches[i] = f.Path, match{Path: f.Path, Size: f.Size, Modified: stamp(f.ModTime)}
		if a.Hash {
			out.Matches[i].Checksum = sums.of(f.Path)
		}
	}
	out.Odd = engine.OddNames(r.Root, slices.Values(names))
	if a.Hash {
		out.Large, c.Trace.Paths = &sums.large, []string{r.Root}
	}
	out.Truncated = r.Truncated || r.Partial || sums.ctx.Err() != nil && a.Hash
	return out, ctx.Err()
}

// A hasher tells the checksums of files, as far as they may be read and its time goes.
type hasher struct {
	*call
	ctx   context.Context //nolint:containedctx // of the search
	most  int64
	large int // files that had more bytes
}

// of is "" where there is none to be told.
func (h *hasher) of(name string) string {
	if h.ctx.Err() != nil {
		return ""
	}
	sum, err := h.e.Sum(h.ctx, h.Call, name, h.most)
	if _, large := errors.AsType[*guardfs.TooLargeError](err); large {
		h.large++
	}
	return sum
}

// aggregated counts what was found, in groups.
func (c *call) aggregated(ctx context.Context, a *searchArgs, q grep.GlobQuery,
	sums *hasher) (*searched, error) {
	by := a.Aggregate
	t := &tally.Tally{By: value(by.By, "none"), Now: time.Now()}
	var mu sync.Mutex
	var all []tally.File // with dedupe
	q.Found = func(f grep.FileHit) {
		one := tally.File{Path: f.Path, Size: f.Size, ModTime: f.ModTime}
		if !by.Dedupe {
			t.Add(one)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, one)
	}
	r, err := c.e.Files(ctx, c.Call, a.Path, q)
	if err != nil {
		return nil, err
	}
	out := &searched{Matches: []match{}, Total: r.Total, Groups: []group{}}
	if by.Dedupe {
		sum := func(name string) string { return sums.of(path.Join(r.Root, name)) }
		out.Duplicates, out.Large = new(t.AddUnlike(all, sum)), &sums.large
		c.Trace.Paths = []string{r.Root}
	}
	out.Truncated = r.Partial || by.Dedupe && sums.ctx.Err() != nil
	rows, cut := t.Rows(value(by.SortBy, "count"), value(by.Most, 50))
	out.Cut = &cut
	for _, row := range rows {
		g := group{Key: row.Key}
		if t.By == tally.Dir && row.Key != tally.Other {
			g.Key = path.Join(r.Root, row.Key)
		}
		if len(by.Metrics) == 0 || slices.Contains(by.Metrics, "count") {
			g.Count = &row.Count
		}
		if len(by.Metrics) == 0 || slices.Contains(by.Metrics, "total_size") {
			g.Size = &row.Size
		}
		out.Groups = append(out.Groups, g)
	}
	return out, ctx.Err()
}
