package replace

import (
	"slices"
	"sync"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/tally"
)

// A Count counts what one group of a pattern holds in the matches of a search. Its Found is for
// grep.Query.Found, in Content.
type Count struct {
	tally.Tally

	matcher *match.Matcher
	groups  *Groups
	group   int

	mu      sync.Mutex
	matches int
	err     error
}

// NewCount reads a pattern, of which matcher was made, and the name or number of its group. The error
// is a *match.PatternError or an *args.Error.
func NewCount(pattern string, fold bool, group string, matcher *match.Matcher) (*Count, error) {
	groups, err := NewGroups(pattern, fold)
	if err != nil {
		return nil, err
	}
	c := &Count{matcher: matcher, groups: groups}
	var ok bool
	if c.group, ok = groups.index(group); !ok {
		return nil, args.Errorf("give the number of a group, or its name", "pattern has no group %q", group)
	}
	return c, nil
}

// Found counts the matches of a file.
func (c *Count) Found(_ grep.FileHit, rows []grep.Row) {
	s := c.matcher.Scanner()
	defer c.matcher.Put(s)
	n := 0
	for i := range rows {
		line := []byte(rows[i].Text)
		spans := s.Spans(nil, line, 0, len(line))
		groups, err := c.groups.of(line, 0, spans)
		if rows[i].Cut {
			err = args.Errorf("leave count_by out", "a line of more than a megabyte matches")
		}
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
		for _, g := range groups {
			value := string(g[c.group])
			if value == "" {
				value = tally.None
			}
			c.AddKey(value, 0)
		}
		n += len(groups)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.matches += n
}

// Counted are the values of the group, the most frequent first, and the number of all matches. Of
// more than so many values the rest is one row.
func (c *Count) Counted(most int) (rows []tally.Row, matches int, err error) {
	rows, _ = c.Rows("count", most)
	return slices.Clip(rows), c.matches, c.err
}
