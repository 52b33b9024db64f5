package replace

import (
	"sync"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/args"
)

// A Count counts what one group of a pattern holds in the matches of a search. Its Found is for
// grep.Query.Found, in Content.
type Count struct {
	matcher *match.Matcher
	groups  *Groups
	group   int

	mu     sync.Mutex
	counts map[string]int
	err    error
}

// NewCount reads a pattern, of which matcher was made, and the name or number of its group. The error
// is a *match.PatternError or an *args.Error.
func NewCount(pattern string, fold bool, group string, matcher *match.Matcher) (*Count, error) {
	groups, err := NewGroups(pattern, fold)
	if err != nil {
		return nil, err
	}
	c := &Count{matcher: matcher, groups: groups, counts: map[string]int{}}
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
	var values []string
	for i := range rows {
		line := []byte(rows[i].Text)
		groups, err := c.groups.of(line, 0, s.Spans(nil, line, 0, len(line)))
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
			values = append(values, string(g[c.group]))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range values {
		c.counts[v]++
	}
}

// Counted gives how often each value of the group was found; "" is a group that holds nothing. The search must be over.
func (c *Count) Counted() (map[string]int, error) { return c.counts, c.err }
