package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// The operations that a chain is asked about.
const (
	opRead   = "readFile"
	opWrite  = "writeFile"
	opAppend = "appendFile"
	opList   = "readdir"
	opStat   = "stat"
	opMkdir  = "mkdir"
	opRemove = "rm"
	opRename = "rename"
	opCopy   = "copyFile"
)

// most is the strongest access that an operation stands for; what goes beyond is another question.
var most = map[string]guardfs.Access{
	opStat: guardfs.Look, "exists": guardfs.Look, opList: guardfs.Walk, opRead: guardfs.Read,
	opWrite: guardfs.Modify, opAppend: guardfs.Modify, opMkdir: guardfs.Modify,
	opRemove: guardfs.Remove, opRename: guardfs.Remove, opCopy: guardfs.Remove,
}

// consulted is what one call has asked the policy chain, and what that answered. What was allowed
// is not asked again: the operation on that path, by true name.
type consulted struct {
	chain policy.Chain
	ctx   context.Context //nolint:containedctx // of the call that it is for
	by    policy.Input    // whose call it is

	mu     sync.Mutex
	own    *policy.Input // what the call is as a whole, where its operation says so
	no     error         // the answer to that
	known  map[consultation]error
	failed *policy.ChainError // the first; nobody is asked after it

	lasting bool        // it outlives the call: a failure is none for good
	settled atomic.Bool // a change is under way: what was begun is ended or taken back
}

type consultation struct{ operation, path, resolved, destination string }

// maxKnown bounds what a call remembers: what is beyond is asked again.
const maxKnown = 50_000

// chained is the judge of one call: the chain, and in any case the rules after it. A path that the
// rules close answers as they do, so that nothing else is told of it.
type chained struct {
	*consulted
	rules guardfs.Judge
	dirs  bool   // what is created are directories,
	of    string // above this path, which is not asked about
}

func (j chained) Judge(o guardfs.Object, a guardfs.Access) error {
	no := j.ask(&o, a)
	if err := j.rules.Judge(o, a); err != nil {
		return err
	}
	return no
}

// Dir asks about each directory that is entered. Who may list it sees its names, and what stat says
// of them.
func (j chained) Dir(canonical string, also ...string) guardfs.DirVerdict {
	rules := j.rules.Dir(canonical, also...)
	if j.ask(&guardfs.Object{Spelled: canonical, True: canonical}, guardfs.Walk) != nil {
		return guardfs.DirVerdict{}
	}
	names := func(name string, _ guardfs.Kind) bool { return !guardfs.Reserved(name) }
	return guardfs.DirVerdict{Entry: names}.And(rules)
}

// ask puts before the chain what it has to say of an access. The error is a *policy.Denied or a
// *policy.ChainError.
func (j chained) ask(o *guardfs.Object, a guardfs.Access) error {
	if j.settled.Load() {
		return nil
	}
	if a == guardfs.Look && (j.allowed(opList, path.Dir(o.True)) || j.allowed(opList, o.True)) {
		return nil
	}
	q := j.by
	q.Path, q.ResolvedPath = o.Spelled, o.True
	own, refused := j.whole()
	if refused != nil {
		return refused
	}
	if own != nil && a <= most[own.Operation] {
		switch in, covered := at(own, o.True); {
		case in != nil:
			return j.put(in, o.Spelled)
		case covered && a == guardfs.Create: // a directory that is made on the way
			return nil
		}
	}
	yes, no := true, false
	switch a {
	case guardfs.Look:
		q.Operation = opStat
	case guardfs.Walk:
		if q.Operation = opList; o.Info.Kind == guardfs.KindFile { // it is to be searched
			q.Operation = opRead
		}
	case guardfs.Read:
		q.Operation = opRead
	case guardfs.Remove:
		q.Operation, q.Recursive = opRemove, &no
		if o.Info.Kind == guardfs.KindDir {
			q.Recursive = &yes
		}
	case guardfs.Create, guardfs.Modify:
		switch q.Operation = opWrite; {
		case j.dirs && o.Spelled == j.of:
			return nil
		case a == guardfs.Create && j.allowed(opMkdir, o.True): // now it is made
			return nil
		case j.dirs:
			q.Operation, q.Recursive = opMkdir, &no
		}
		if a == guardfs.Modify && o.Info.Kind == guardfs.KindFile { // a change shows what was there
			read := q
			read.Operation = opRead
			if err := j.put(&read, o.Spelled); err != nil {
				return err
			}
		}
	}
	return j.put(&q, o.Spelled)
}

func (a *consulted) whole() (own *policy.Input, no error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own, a.no
}

// allowed says that this call may do that to the path of this true name.
func (a *consulted) allowed(operation, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	no, known := a.known[consultation{operation, name, name, ""}]
	return known && no == nil
}

// put asks the chain, once.
func (a *consulted) put(in *policy.Input, spelled string) error {
	q := consultation{in.Operation, in.Path, in.ResolvedPath, in.ResolvedDestination}
	a.mu.Lock()
	no, known := a.known[q]
	failed := a.failed
	a.mu.Unlock()
	if known {
		return no
	}
	if failed != nil {
		return failed
	}
	allowed, err := a.decide(*in)
	undecided, why := errors.AsType[*policy.Undecided](err)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case why:
		no = &policy.Denied{Path: spelled, Rule: policy.RuleChain, Why: undecided.Why}
	case err != nil:
		broken := &policy.ChainError{Path: spelled, Operation: in.Operation, Err: err}
		if no = broken; a.lasting {
			return no
		}
		a.failed = cmp.Or(a.failed, broken)
	case !allowed:
		no = &policy.Denied{Path: spelled, Rule: policy.RuleChain}
	}
	if len(a.known) < maxKnown {
		a.known[q] = no
		if no == nil { // by its true name it is the same path
			q.path = q.resolved
			a.known[q] = nil
		}
	}
	return no
}

// decide catches a panic of the chain: workers of a search ask it, where nobody else would.
func (a *consulted) decide(in policy.Input) (allowed bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			allowed, err = false, fmt.Errorf("the policy chain panicked: %v", r)
		}
	}()
	return a.chain.Decide(a.ctx, in)
}

// ends is the error that a call ends with though its operation did not: where the chain failed, an
// answer may be less than it seems.
func (a *consulted) ends() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed == nil {
		return nil
	}
	return a.failed
}

// at is the question of a path that own is about, or that lies below one. covered says that name
// lies above one.
func at(own *policy.Input, name string) (in *policy.Input, covered bool) {
	for _, top := range []string{own.ResolvedPath, own.ResolvedDestination} {
		rest, within := "", top == name
		if !within && top != "" {
			rest, within = strings.CutPrefix(name, strings.TrimSuffix(top, "/")+"/")
			rest = "/" + rest
		}
		if !within {
			covered = covered || top != "" && below(top, name)
			continue
		}
		if top == name {
			return own, true
		}
		out := *own
		out.ResolvedPath += rest
		if out.Path = out.ResolvedPath; out.ResolvedDestination != "" {
			out.ResolvedDestination += rest
			out.Destination = out.ResolvedDestination
		}
		return &out, true
	}
	return nil, covered
}

// HasChain says that a policy chain is asked. An empty one is one.
func (e *Engine) HasChain() bool { return e.chain != nil }

// Asks says what a call is, for a chain to be asked that, and asks it. A no is the answer of
// whatever the call does then, where the rules don't have another. Path and Destination are as
// the caller wrote them, ResolvedPath and ResolvedDestination the same from the root on; links in
// these are followed here. It comes before any other use of the engine by the call. What the
// operation does not cover, and paths that lead elsewhere by then, are asked about one by one.
func (e *Engine) Asks(c *Call, in policy.Input) error {
	e, err := e.begun(c)
	if err != nil {
		return err
	}
	j, ok := e.judge.(chained)
	if !ok {
		return nil
	}
	if own, _ := j.whole(); own != nil {
		return nil
	}
	by := j.by
	in.Headers, in.Principal, in.Session, in.Dialect = by.Headers, by.Principal, by.Session, by.Dialect
	followed := func(name string, last bool) string {
		name = cmp.Or(strings.TrimRight(name, "/"), "/")
		base := path.Base(name)
		if last || base == "/" || base == "." || base == ".." {
			return e.fs.Canonical(name)
		}
		return joined(e.fs.Canonical(path.Dir(name)), base)
	}
	last := most[in.Operation] <= guardfs.Read || in.Operation == opCopy
	in.ResolvedPath = followed(in.ResolvedPath, last)
	if in.ResolvedDestination != "" {
		in.ResolvedDestination = followed(in.ResolvedDestination, false)
	}
	no := j.put(&in, in.Path)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.own, j.no = &in, no
	return nil
}

// settle keeps the chain from being asked until done: all that a plan looks at was judged under its
// locks, and to take a change back must not depend on what a policy says of that, or on its server.
func (e *Engine) settle() (done func()) {
	j, ok := e.judge.(chained)
	if !ok {
		return func() {}
	}
	j.settled.Store(true)
	return func() { j.settled.Store(false) }
}

// lasting is the engine for what outlives its call, as a watch.
func (e *Engine) lasting(ctx context.Context) *Engine {
	j, ok := e.judge.(chained)
	if !ok {
		return e
	}
	return e.judgedBy(chained{rules: j.rules, consulted: &consulted{chain: j.chain, by: j.by,
		ctx: context.WithoutCancel(ctx), lasting: true, known: map[consultation]error{}}})
}

// is is Asks for the engine's own operations, of which the dialect has not said it.
func (e *Engine) is(c *Call, operation, name, to string, recursive ...bool) error {
	in := policy.Input{Operation: operation, Path: name, ResolvedPath: name, Destination: to,
		ResolvedDestination: to}
	for _, all := range recursive {
		in.Recursive = &all
	}
	return e.Asks(c, in)
}

// makes is the tree for looking at the directories that are to be made above a path.
func (e *Engine) makes(above string) *guardfs.FS {
	if j, ok := e.judge.(chained); ok {
		j.dirs, j.of = true, above
		return e.fs.With(j)
	}
	return e.fs
}

// mayMake says whether the directory name may be made.
func (e *Engine) mayMake(name string) error {
	judge := e.judge
	if j, ok := judge.(chained); ok {
		j.dirs = true
		judge = j
	}
	return judge.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create)
}
