package approval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"moltisfs/internal/share"
)

// A Grant says how far a yes goes beyond the change that it was given to. It never goes to another
// principal or session, never covers a change that carries a warning, and is kept in memory alone:
// it ends after [GrantFor], and with the process that asked.
type Grant uint8

// The grants. The zero one is for the change alone.
const (
	Once        Grant = iota
	ThisFile          // later changes of no other paths than these
	ThisSession       // every later change
)

// GrantFor is the time for which an answer for more than one change holds.
const GrantFor = time.Hour

// Until says how far a yes goes and when that ends, for people and on record.
func (g Grant) Until(end time.Time) string {
	what := "this file in this session"
	if g == ThisSession {
		what = "every change of this session"
	}
	return fmt.Sprintf("%s, until %s", what, end.Local().Format("15:04:05"))
}

// A Choice is a yes that a question offers: its word in an answer, its title for people, and how far it goes.
type Choice struct {
	Word, Title string
	Grant       Grant
}

// Choices gives each yes to q. A change with a warning is allowed once.
func Choices(q Question) []Choice {
	file := "Allow changes of this file"
	if len(q.Paths) != 1 {
		file = "Allow changes of these files"
	}
	end := fmt.Sprintf(" for %d minutes", int(GrantFor.Minutes()))
	all := []Choice{{"once", "Allow this change", Once}, {"file", file + end, ThisFile},
		{"session", "Allow all changes of this session" + end, ThisSession}}
	if len(q.Warnings) > 0 {
		return all[:1]
	}
	return all
}

// Grants are the answers that hold for more than one change, until they end. The zero value has
// none. It is safe for concurrent use.
type Grants struct {
	mu  sync.Mutex
	all []granted
}

type granted struct {
	principal, session string
	scope              Grant
	paths              []string // of ThisFile
	end                time.Time
}

// Add notes how far a yes to q goes, and says when that ends.
func (g *Grants) Add(q Question, scope Grant, now time.Time) (end time.Time) {
	end = now.Add(GrantFor)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = slices.DeleteFunc(g.all, func(old granted) bool { return !now.Before(old.end) })
	if scope != Once {
		g.all = append(g.all, granted{q.Principal, q.Session, scope, slices.Clone(q.Paths), end})
	}
	return end
}

// Holds says by which grant q has been answered before; Once is none.
func (g *Grants) Holds(q Question, now time.Time) (scope Grant, end time.Time) {
	if len(q.Warnings) > 0 {
		return Once, end
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.all {
		if a.principal != q.Principal || a.session != q.Session || !now.Before(a.end) {
			continue
		}
		other := func(p string) bool { return !slices.Contains(a.paths, p) }
		if a.scope == ThisSession || len(q.Paths) > 0 && !slices.ContainsFunc(q.Paths, other) {
			return a.scope, a.end
		}
	}
	return Once, end
}

// Remember is an approver whose answers hold as far as their Grant says. It puts one question at a
// time: the answer may be for those that wait.
func Remember(of Approver) Approver {
	return &remembering{of: of, turn: share.New(1)}
}

type remembering struct {
	of     Approver
	turn   *share.Pool // of the question that is put
	grants Grants
}

func (r *remembering) Ask(ctx context.Context, q Question) (Answer, error) {
	if ctx.Err() != nil || r.turn.Take(ctx, "", 1) != nil { // a call that is done must not get its turn by chance
		a, _ := ContextAnswer(ctx)
		return a, nil
	}
	defer r.turn.Give("", 1)
	if scope, end := r.grants.Holds(q, time.Now()); scope != Once {
		return Answer{Decision: Approved, By: "an earlier yes to " + scope.Until(end)}, nil
	}
	a, err := r.of.Ask(ctx, q)
	if err == nil && a.Decision == Approved && a.Grant != Once {
		a.By += ", for " + a.Grant.Until(r.grants.Add(q, a.Grant, time.Now()))
	}
	return a, err
}
