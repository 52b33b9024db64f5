package capability

import (
	"context"

	"moltisfs/grep"
	"moltisfs/internal/engine/replace"
)

// fileCount is a file, and how many of its lines match.
type fileCount struct {
	Path  string `json:"path"`
	Count int    `json:"match_count"`
}

// valueCount is what a group of the pattern holds, and how often.
type valueCount struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// counted answers total_only, count_by and files_only, the first of them that was asked for. The
// pattern is taken as it is, as filesystem.edit does.
func (c *call) counted(ctx context.Context, a *searchContentArgs) (*places, error) {
	m, err := c.matcher(a, a.Pattern)
	if err != nil {
		return nil, err
	}
	most, by := value(a.MaxResults, 20), value(a.CountBy, "")
	q := grep.Query{Matcher: m, Mode: grep.Count, Limit: most}
	var values *replace.Count
	if !a.TotalOnly && by != "" {
		if values, err = replace.NewCount(a.Pattern, !a.Case, by, m); err != nil {
			return nil, err
		}
		q.Mode, q.MaxColumns, q.Limit, q.Found = grep.Content, 1<<20, 0, values.Found
	}
	r, err := c.looked(ctx, a, q)
	if err != nil {
		return nil, err
	}
	out := answered(a, r)
	out.Matches, out.Files = r.Totals.Matches, r.Totals.Files
	switch {
	case a.TotalOnly:
	case values != nil:
		rows, n, err := values.Counted(most)
		if err != nil {
			return nil, err
		}
		out.Matches, out.Counts, out.Truncated = n, []valueCount{}, r.Partial || len(rows) > most
		for _, row := range rows {
			out.Counts = append(out.Counts, valueCount{row.Key, row.Count})
		}
	default:
		out.Matches, out.PerFile, out.Truncated = r.Totals.Lines, []fileCount{}, r.Partial || r.Truncated
		for _, f := range r.Files {
			out.PerFile = append(out.PerFile, fileCount{f.Path, f.Lines})
		}
	}
	return out, nil
}
