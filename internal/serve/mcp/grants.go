package mcp

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"moltisfs/approval"
)

// grantFor is how long an answer for more than one change holds. It ends with the server, too.
const grantFor = time.Hour

// How far an acceptance goes. What has a warning, beside that of a new file, is always asked about.
const (
	once        = "once"
	thisFile    = "file"
	thisSession = "session"
)

// grants are the answers that hold for more than one change, until they end.
type grants struct {
	mu  sync.Mutex
	all []grant
}

type grant struct {
	principal, session string
	paths              []string // nil: all
	until              time.Time
}

// plain says that nothing about a change needs a person to look at it again.
func plain(q approval.Question) bool { return len(others(q)) == 0 }

// add notes that changes like q are allowed from now on.
func (g *grants) add(q approval.Question, scope string, now time.Time) time.Time {
	until := now.Add(grantFor)
	one := grant{principal: q.Principal, session: q.Session, until: until}
	if scope == thisFile {
		one.paths = slices.Clone(q.Paths)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = slices.DeleteFunc(g.all, func(old grant) bool { return !now.Before(old.until) })
	g.all = append(g.all, one)
	return until
}

// holds answers a question that was answered before.
func (g *grants) holds(q approval.Question, now time.Time) (approval.Answer, bool) {
	if !plain(q) {
		return approval.Answer{}, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.all {
		if a.principal != q.Principal || a.session != q.Session || !now.Before(a.until) {
			continue
		}
		what := "all changes of this session"
		if a.paths != nil {
			what = "this file"
			if slices.ContainsFunc(q.Paths, func(p string) bool { return !slices.Contains(a.paths, p) }) {
				continue
			}
		}
		by := fmt.Sprintf("elicitation, for %s until %s", what, clock(a.until))
		return approval.Answer{Decision: approval.Approved, By: by}, true
	}
	return approval.Answer{}, false
}
