package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"moltisfs/internal/share"
	"moltisfs/internal/state"
)

// A Grant says how far a yes goes beyond the change that it was given to. It never goes to another
// principal or session, never covers a change that carries a warning, and ends after [GrantFor].
// It is kept in memory alone, so that it ends with the process that asked, unless [Grants] has Files.
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
	// Files, where set before the first use, keeps the grants, a file for each session: all who have the same Files have the same grants. A
	// grant that can't be read there does not hold, and its end is told by each machine's own clock.
	Files state.Files

	mu  sync.Mutex
	all []granted // without Files
}

// granted is one grant, and a line of its session's file. JSON keeps the bytes of paths that are not UTF-8.
type granted struct {
	Principal, Session string
	Scope              Grant
	Paths              [][]byte // of ThisFile
	End                time.Time
}

// Add notes how far a yes to q goes, and says when that ends. After an error it is for q alone.
func (g *Grants) Add(q Question, scope Grant, now time.Time) (end time.Time, err error) {
	one := granted{Principal: q.Principal, Session: q.Session, Scope: scope, End: now.Add(GrantFor)}
	for _, p := range q.Paths {
		one.Paths = append(one.Paths, []byte(p))
	}
	switch {
	case scope == Once:
	case g.Files != nil:
		err = g.store(one)
	default:
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all = slices.DeleteFunc(g.all, func(old granted) bool { return !now.Before(old.End) })
		g.all = append(g.all, one)
	}
	return one.End, err
}

// Note is Add from now on, in words behind the name of the person: how far their yes goes.
func (g *Grants) Note(q Question, scope Grant) string {
	end, err := g.Add(q, scope, time.Now())
	if err != nil {
		return ", for this change alone: " + err.Error()
	}
	return ", for " + scope.Until(end)
}

// store appends a grant to the file of its session, and removes files in which every grant has ended.
func (g *Grants) store(one granted) error {
	line, err := json.Marshal(one)
	if err == nil {
		err = g.Files.Append(fileOf(one.Principal, one.Session), append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keeping a grant: %w", err)
	}
	if names, err := g.Files.List(); err == nil {
		if is, err := g.Files.Look(names...); err == nil {
			for i, f := range is {
				if !f.At.IsZero() && time.Since(f.At) > 2*GrantFor { // one is for the clocks of other machines
					_ = g.Files.Remove(names[i]) // else the next one does it
				}
			}
		}
	}
	return nil
}

// fileOf names the file of a session. The NUL keeps ("a","bc") apart from ("ab","c"); names that join alike share a file, and no grant.
func fileOf(principal, session string) string {
	sum := sha256.Sum256([]byte(principal + "\x00" + session))
	return hex.EncodeToString(sum[:16])
}

// of gives the grants that may be for q, in the order in which they were given.
func (g *Grants) of(q Question) (all []granted) {
	if g.Files == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		return slices.Clone(g.all)
	}
	f, err := g.Files.Open(fileOf(q.Principal, q.Session))
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	for d := json.NewDecoder(f); ; {
		var one granted
		if d.Decode(&one) != nil {
			return all
		}
		all = append(all, one)
	}
}

// Holds says by which grant q has been answered before; Once is none.
func (g *Grants) Holds(q Question, now time.Time) (scope Grant, end time.Time) {
	if len(q.Warnings) > 0 {
		return Once, end
	}
	for _, a := range g.of(q) {
		if a.Principal != q.Principal || a.Session != q.Session || !now.Before(a.End) {
			continue
		}
		other := func(p string) bool {
			return !slices.ContainsFunc(a.Paths, func(b []byte) bool { return string(b) == p })
		}
		if a.Scope == ThisSession || a.Scope == ThisFile && len(q.Paths) > 0 && !slices.ContainsFunc(q.Paths, other) {
			return a.Scope, a.End
		}
	}
	return Once, end
}

// Remember is an approver whose answers hold as far as their Grant says. It puts one question at a
// time: the answer may be for those that wait.
func Remember(of Approver) Approver { return RememberIn(of, &Grants{}) }

// RememberIn is Remember with the grants in grants.
func RememberIn(of Approver, grants *Grants) Approver {
	return &remembering{of: of, turn: share.New(1), grants: grants}
}

type remembering struct {
	of     Approver
	turn   *share.Pool // of the question that is put
	grants *Grants
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
		a.By += r.grants.Note(q, a.Grant)
	}
	return a, err
}
