package capability

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"moltisfs/grep"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
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

// A match is a file or directory that was found.
type match struct {
	Path     string  `json:"path"`
	Type     string  `json:"type,omitempty"`
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
	q.Dirs = true
	r, err := c.Files(ctx, a.Path, q)
	if err != nil {
		return nil, err
	}
	out := &searched{Matches: make([]match, len(r.Files)), Total: r.Total}
	names := make([]string, len(r.Files))
	for i, f := range r.Files {
		names[i], out.Matches[i] = f.Path, match{Path: f.Path, Size: f.Size, Modified: stamp(f.ModTime)}
		if f.Dir {
			out.Matches[i].Type = "directory"
		} else if a.Hash {
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
	sum, err := h.Call.Sum(h.ctx, name, h.most)
	if _, large := errors.AsType[*guardfs.TooLargeError](err); large {
		h.large++
	}
	return sum
}

// aggregated counts what was found, in groups. With dedupe each content counts once, as the first file by path that has it.
func (c *call) aggregated(ctx context.Context, a *searchArgs, q grep.GlobQuery, sums *hasher) (*searched, error) {
	by := a.Aggregate
	counts, now := map[string]tally{}, time.Now()
	count := func(f grep.FileHit) {
		key := keyBy(value(by.By, "none"), f, now)
		t := counts[key]
		counts[key] = tally{key, t.n + 1, t.size + f.Size}
	}
	var mu sync.Mutex
	var all []grep.FileHit // with dedupe
	q.Found = func(f grep.FileHit) {
		mu.Lock()
		defer mu.Unlock()
		if by.Dedupe {
			all = append(all, f)
		} else {
			count(f)
		}
	}
	r, err := c.Files(ctx, a.Path, q)
	if err != nil {
		return nil, err
	}
	out := &searched{Matches: []match{}, Total: r.Total, Groups: []group{}}
	if by.Dedupe {
		unlike := unlike(all, func(name string) string { return sums.of(path.Join(r.Root, name)) })
		out.Duplicates, out.Large = new(len(all)-len(unlike)), &sums.large
		c.Trace.Paths = []string{r.Root}
		for _, f := range unlike {
			count(f)
		}
	}
	out.Truncated = r.Partial || by.Dedupe && sums.ctx.Err() != nil
	rows, cut := rowsOf(counts, value(by.SortBy, "count"), value(by.Most, 50))
	out.Cut = &cut
	for _, t := range rows {
		g := group{Key: t.key}
		if value(by.By, "") == "dir" && t.key != otherKeys {
			g.Key = path.Join(r.Root, t.key)
		}
		if len(by.Metrics) == 0 || slices.Contains(by.Metrics, "count") {
			g.Count = &t.n
		}
		if len(by.Metrics) == 0 || slices.Contains(by.Metrics, "total_size") {
			g.Size = &t.size
		}
		out.Groups = append(out.Groups, g)
	}
	return out, ctx.Err()
}

// unlike gives the first file by path of each content. sum tells the hash of a content, or "" for one that is like no other; it is asked
// only where sizes are the same.
func unlike(files []grep.FileHit, sum func(name string) string) (out []grep.FileHit) {
	slices.SortFunc(files, func(a, b grep.FileHit) int { return strings.Compare(a.Path, b.Path) })
	sizes, seen := map[int64]int{}, map[string]bool{}
	for _, f := range files {
		sizes[f.Size]++
	}
	for _, f := range files {
		hash := ""
		if sizes[f.Size] > 1 {
			hash = sum(f.Path)
		}
		if hash == "" || !seen[hash] {
			seen[hash] = true
			out = append(out, f)
		}
	}
	return out
}

// The keys that are no extension, directory, age or value.
const (
	noKey     = "<none>"  // a file without an extension, a group of a pattern that holds nothing
	otherKeys = "<other>" // all groups beyond the most
	allFiles  = "<all>"
)

// ages are the groups of mtime-bucket, the youngest first.
var ages = []struct {
	key string
	age time.Duration
}{
	{"last_hour", time.Hour}, {"last_day", 24 * time.Hour}, {"last_week", 7 * 24 * time.Hour},
	{"last_month", 30 * 24 * time.Hour}, {"last_year", 365 * 24 * time.Hour}, {"older", 1<<63 - 1},
}

// keyBy gives the group of a file: ".go" of a/b.GO by extension, a by dir, last_day by mtime-bucket.
func keyBy(by string, f grep.FileHit, now time.Time) string {
	switch by {
	case "extension":
		name := strings.TrimLeft(path.Base(f.Path), ".") // of a hidden file too
		if ext := path.Ext(name); len(ext) > 1 {
			return strings.ToLower(ext)
		}
		return noKey
	case "dir":
		return path.Dir(f.Path)
	case "mtime-bucket":
		for _, a := range ages {
			if now.Sub(f.ModTime) <= a.age {
				return a.key
			}
		}
	}
	return allFiles
}

// A tally is how many things have a key, and the size of them.
type tally struct {
	key  string
	n    int
	size int64
}

// rowsOf gives the rows of counts: the largest first by "count" or "total_size", or in order by "key". Of more than so many rows the rest
// is one row, otherKeys, at the end, and cut is true.
func rowsOf(counts map[string]tally, sortBy string, most int) (rows []tally, cut bool) {
	rows = slices.SortedFunc(maps.Values(counts), func(a, b tally) int {
		by := 0
		switch sortBy {
		case "count":
			by = cmp.Compare(b.n, a.n)
		case "total_size":
			by = cmp.Compare(b.size, a.size)
		}
		return cmp.Or(by, strings.Compare(a.key, b.key))
	})
	if len(rows) <= most {
		return rows, false
	}
	rest := tally{key: otherKeys}
	for _, t := range rows[most:] {
		rest.n += t.n
		rest.size += t.size
	}
	return append(rows[:most:most], rest), true
}
