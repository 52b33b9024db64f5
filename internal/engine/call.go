package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
	"moltisfs/internal/share"
)

// The outcomes that the engine itself writes to the audit log. Every other one is the dialect's.
const (
	outcomeOK   = "ok"
	outcomeHost = "host_error"
)

// An Operation is the work of a call in a dialect, whose arguments are an In and whose answers are an A.
type Operation[In any, A Answer[A]] struct {
	// Changes says that the operation may change the tree.
	Changes bool
	// Follows are tools that this one does the work of by another road, see [policy.Tools.Allows].
	Follows []string
	Time    time.Duration // how long Run may take, an approver included; 0: as long as any call
	Private bool          // no hook sees the answer
	Own     bool          // a person's own command, which [tools.policy] is not about; it asks for read_only itself
	// Args are the arguments as they came in. Decode takes them apart, and hooks see the JSON of the
	// result, however the caller spelled it. It touches no file, and is called again with the arguments
	// that a hook gives. nil: the zero In.
	Args   json.RawMessage
	Decode func(json.RawMessage) (In, error)
	// Run carries the operation out by the methods of the call.
	Run func(context.Context, In) (A, error)
	// Refuse makes the dialect's answer of a refusal, and names it for the audit log. in is the zero In
	// where the arguments could not be decoded. Where Run was left behind, c is a copy of the call.
	Refuse func(ctx context.Context, c *Call, in In, no *Refusal) (A, string)
}

// Answer is an answer of a dialect, as far as hooks see it.
type Answer[A any] interface {
	ForHooks() (json.RawMessage, error)
	Replaced(by json.RawMessage) (A, error) // the answer that a hook made of it; a refusal stays one
}

// MaxName is how many bytes the name of a principal, session or turn may have.
const MaxName = 256

// Do is the one place that every operation of every dialect passes. Read it downward: limits, tool
// policy, names, arguments, hooks, turn, deadline, operation, and on every way out hooks again and
// the outcome's record. A panic of the operation ends as a broken host.
//
// The error tells of a broken host, or is ErrClosed; a refusal is an answer. A view
// whose outcome can't be recorded ends as an error. A change that has happened does not, because
// its intent is on record and the caller must know: Trace.Unrecorded says it then.
func Do[In any, A Answer[A]](ctx context.Context, e *Engine, c *Call, op Operation[In, A]) (A, error) {
	var none A
	if err := e.calls.enter(); err != nil {
		return none, err
	}
	defer e.calls.leave()
	start := time.Now()
	c.ID, c.Principal, c.Session = rand.Text()[:16], cmp.Or(c.Principal, "local"), cmp.Or(c.Session, "default")
	ctx = share.By(ctx, c.Principal)
	c.Approver, c.Engine, c.stage = e.asking(c.Approver), e, new(atomic.Int32)
	c.attachEditor()
	ctx, end := c.follow(ctx)
	done := attempt(ctx, c, op)
	c = done.c
	if done.left == nil {
		defer c.end()
	}
	c.changed = c.stage.Load() == changing
	answer := hooksAfter(ctx, op, done, time.Since(start))
	c.logCall(ctx, op.Changes, done.outcome, time.Since(start))
	end(c, done.outcome, time.Since(start))
	if err := e.Record(c, start, done.outcome, done.cause); err != nil {
		e.logger.Error("the audit record could not be written", "tool", c.Tool, "err", err)
		if !op.Changes || done.outcome == outcomeHost {
			return none, errors.Join(done.cause, fmt.Errorf("writing the audit record: %w", err))
		}
		c.Trace.Unrecorded = true
	}
	if done.outcome == outcomeHost {
		return none, done.cause
	}
	return answer, nil
}

// done is a call that has ended.
type done[In, A any] struct {
	c       *Call // a copy, made before it ran, where it was left behind: then it still runs
	in      In
	answer  A
	outcome string
	cause   error // of an outcome other than "ok"
	left    *leftBehind
}

// end takes from a call that has ended all that it could do.
func (c *Call) end() { c.Engine, c.fs, c.judge, c.chain = nil, nil, nil, nil }

// attempt runs the operation, or says why not.
func attempt[In any, A Answer[A]](ctx context.Context, c *Call, op Operation[In, A]) (d done[In, A]) {
	d.c = c
	defer func() {
		if r := recover(); r != nil {
			c.logger.Error("a call panicked", "tool", d.c.Tool, "panic", r, "stack", string(debug.Stack()))
			d.outcome, d.cause = outcomeHost, fmt.Errorf("%s: %w", d.c.Tool, panicked{r})
		}
	}()
	leave, err := c.limits.enter(c, c.now())
	if err == nil {
		defer leave()
		d.in, err = admit(ctx, c, op)
	}
	if err == nil {
		c.fetch(ctx)
		c.BeginTurn(ctx)
		inTime, cancel := context.WithTimeout(ctx, cmp.Or(op.Time, longest))
		defer cancel()
		before := c.snapshot()
		in := d.in // the operation may outlive d
		d.answer, err = perform(inTime, c, func(ctx context.Context) (A, error) { return op.Run(ctx, in) })
		if left, ok := err.(*leftBehind); ok { // the operation still works on c, in and answer
			d = done[In, A]{c: before, left: left}
		}
		if err == nil && !op.Changes {
			err = c.chain.ends()
		}
	}
	if d.outcome, d.cause = outcomeOK, err; err == nil {
		return d
	}
	d.outcome = outcomeHost
	if p, ok := err.(panicked); ok {
		d.cause = fmt.Errorf("%s: %w", d.c.Tool, p)
	} else if no := Reason(err); no != nil {
		var name string
		d.answer, name = op.Refuse(ctx, d.c, d.in, no)
		d.outcome = cmp.Or(name, outcomeHost)
	}
	return d
}

// admit opens the tree for a call and decodes its arguments, or says why it is not even begun.
func admit[In any, A Answer[A]](ctx context.Context, c *Call, op Operation[In, A]) (in In, err error) {
	if c.place.Calls != nil && c.left.Swap(false) { // a worker has died in a change
		if err := c.own().recover(context.Background(), time.Now()); err != nil {
			return in, notSaved(err)
		}
	}
	if err := c.open(ctx); err != nil {
		return in, &hostError{"taking a call", err}
	}
	defer func() { c.Trace.Asked.Injected = args.Injected(op.Args) }()
	if why := c.tools.Why(c.Tool, op.Changes, op.Follows...); why != "" && !op.Own {
		return in, &policy.Denied{Path: c.Tool, Rule: "tools.policy", Why: why}
	}
	if c.Unavailable != nil {
		return in, &Refusal{Unavailable.Code, Unavailable, "", nil, c.Unavailable}
	}
	if c.stuck.tooMany(c.Principal) {
		return in, tooMany("", mostStuck, 0)
	}
	if !c.Tier.Known() {
		return in, &hostError{"taking a call", fmt.Errorf("there is no tier %q", string(c.Tier))}
	}
	if c.Tier == approval.TierBlocked {
		return in, Refuse(TierBlocked, "", nil)
	}
	if err := c.checkNames(); err != nil || op.Decode == nil {
		return in, err
	}
	if in, err = op.Decode(op.Args); err != nil {
		return in, err
	}
	return hooksBefore(ctx, c, op, in)
}

// checkNames bounds the names that history is kept under. They come from the host, but a host may
// take them from anybody.
func (c *Call) checkNames() error {
	for _, n := range []struct{ what, name string }{
		{"principal", c.Principal}, {"session", c.Session}, {"turn", c.Turn},
	} {
		if len(n.name) > MaxName {
			return Refuse(BadName, "", NameFacts{n.what, len(n.name)})
		}
		if !utf8.ValidString(n.name) || strings.ContainsFunc(n.name, unicode.IsControl) {
			return Refuse(BadName, "", NameFacts{What: n.what})
		}
	}
	return nil
}

// logCall writes the line of a call to the operator's log.
func (c *Call) logCall(ctx context.Context, changes bool, outcome string, took time.Duration) {
	level := slog.LevelInfo
	if c.Tier == approval.TierNotify && changes && outcome == outcomeOK && !c.Trace.DryRun {
		level = slog.LevelWarn
	}
	if !c.logger.Enabled(ctx, level) {
		return
	}
	c.logger.LogAttrs(ctx, level, "tool call", slog.String("tool", c.Tool),
		slog.String("file_path", c.path()), slog.Int64("bytes", c.Trace.Bytes),
		slog.String("outcome", outcome),
		slog.String("dialect", c.Dialect), slog.String("call", c.ID), slog.Duration("duration", took))
}

// underway counts the calls under way, for Shut to wait for.
type underway struct {
	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup

	closing context.Context // ends when Shut begins
	begin   context.CancelFunc
}

// enter counts a call in; leave must follow. The error is ErrClosed.
func (u *underway) enter() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return ErrClosed
	}
	u.calls.Add(1)
	return nil
}

func (u *underway) leave() { u.calls.Done() }

// Shut lets no call in any more, takes back the questions that wait for an answer, and waits for
// the calls under way. A call whose question was taken back changes nothing and ends with
// ErrClosed; every other one runs to its end. Shutting again, at the same time too, waits
// likewise. An operation must not call it.
func (e *Engine) Shut() {
	u := &e.calls
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.begin()
	u.calls.Wait()
}

// Ending ends when Shut begins: what waits within a call must not wait any longer.
func (e *Engine) Ending() context.Context { return e.calls.closing }

// asking is a as the engine asks it; nil for nil.
func (e *Engine) asking(a approval.Approver) approval.Approver {
	if a == nil {
		return nil
	}
	return asking{a, e.calls.closing}
}

// asking takes a question back when its call or the engine ends. Then an Approver must return. One
// that does not is left behind, and its answer is not heard: it may be waiting for a person, or for
// the very Shut that waits for it.
type asking struct {
	of      approval.Approver
	closing context.Context
}

// patience is the time that an approver or a client has to return after its call has ended.
const patience = time.Second

func (a asking) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.closing, cancel)()
	ask := func() (approval.Answer, error) { return a.of.Ask(ctx, q) }
	answer, err := answered(ctx, "approver", ask)
	if a.closing.Err() != nil {
		return approval.Answer{}, ErrClosed
	}
	return answer, err
}

// answered calls ask, which waits for somebody outside and must come back when ctx ends. If it does not, it is
// left behind, and so is a panic.
func answered[T any](ctx context.Context, who string, ask func() (T, error)) (T, error) {
	type reply struct {
		answer T
		err    error
	}
	got := make(chan reply, 1)
	go func() {
		r := reply{err: fmt.Errorf("the %s gave up", who)} // by runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				r = reply{err: fmt.Errorf("the %s panicked: %v", who, p)}
			}
			got <- r
		}()
		r.answer, r.err = ask()
	}()
	var r reply
	select {
	case r = <-got:
	case <-ctx.Done():
		select {
		case r = <-got:
		case <-time.After(patience):
			r.err = ctx.Err()
		}
	}
	return r.answer, r.err
}

// NewCall is a call as the engine takes it, in a dialect that has this name for the tool.
func NewCall(in dialect.Call, of, tool string) *Call {
	return &Call{Principal: in.Principal, Session: in.Session, Turn: in.Turn, Dialect: of, Tool: tool,
		Client: Client{Program: in.Client, Approver: in.Approver, Heard: in.Heard, Overlay: in.Overlay,
			Progress: in.Progress, Headers: in.Headers, Unavailable: in.Unavailable},
		Tier: in.Tier, Scope: (*Scope)(in.Scope), ByUser: in.ByUser}
}

// TimeFor gives a call a minute to work in, and as long as an approver may take beside it.
func (e *Engine) TimeFor(changes bool, tier approval.Tier) time.Duration {
	if changes && (e.cfg.RequireApproval || tier == approval.TierAsk) {
		return time.Minute + time.Duration(e.cfg.ApprovalTimeout)
	}
	return time.Minute
}

// OwnTime is for a call that keeps its own time: a search, which has its deadline within, or a change
// that takes as long as it takes. It is what is left to it where nothing answers.
func (e *Engine) OwnTime(changes bool) time.Duration {
	if changes {
		return longest
	}
	return time.Minute + 2*time.Duration(e.cfg.SearchDeadline)
}

// outcomeUnknown is the outcome of a call of a tool that is not there.
const outcomeUnknown = "unknown_tool"

// Unknown puts a call on record of a tool that is not there or must not be called, which no tells
// its caller. follows are those of one that is there and denied: the record says so, and nobody else.
func (e *Engine) Unknown(ctx context.Context, c *Call, in dialect.Call, follows []string, no error) error {
	c.Tier = ""
	_, err := Do(ctx, e, c, Operation[struct{}, *dialect.Object]{
		Args: in.Args, Follows: follows,
		Decode: func(json.RawMessage) (struct{}, error) { return struct{}{}, no },
		Refuse: func(context.Context, *Call, struct{}, *Refusal) (*dialect.Object, string) {
			return &dialect.Object{}, outcomeUnknown
		},
	})
	if errors.Is(err, ErrClosed) {
		return err
	}
	return errors.Join(no, err)
}

// Scope narrows the configuration for one call, to the paths that it may read and change: absolute
// paths, each with all that is below it. A list without a path is nothing at all. A path that
// may be changed must be readable too. Links in a path are followed anew for each call.
//
// It holds by handle, as the policy does: for links, for names that are not there yet, for what a
// search walks through, and for what a checkpoint's list, diff or restore would name.
type Scope struct{ Readable, Writable []string }

// narrow gives the call the agent's tree, under its scope.
func (c *Call) narrow() error {
	c.fs, c.judge = c.tree, c.rules
	if c.Scope == nil {
		return nil
	}
	limits, err := policy.NewScope(c.Scope.Readable, c.Scope.Writable, c.tree.Canonical)
	if err == nil {
		c.judgedBy(limits.Within(c.rules))
	}
	return err
}

// open gives the call the agent's tree, under its scope and the policy chain.
func (c *Call) open(ctx context.Context) error {
	if err := c.narrow(); err != nil {
		return err
	}
	if c.Engine.chain != nil {
		by := policy.Input{
			Headers: c.Headers, Principal: c.Principal, Session: c.Session, Dialect: c.Dialect,
		}
		c.chain = &policyCache{chain: c.Engine.chain, ctx: ctx, known: map[policyKey]error{}, by: by}
		c.judgedBy(policyJudge{policyCache: c.chain, rules: c.judge})
	}
	return nil
}

// judgedBy puts the tree of the call under another judge.
func (c *Call) judgedBy(judge guardfs.Judge) { c.fs, c.judge = c.tree.With(judge), judge }

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

// strongest is the strongest access that an operation stands for; what goes beyond is another question.
var strongest = map[string]guardfs.Access{
	opStat: guardfs.Look, "exists": guardfs.Look, opList: guardfs.Walk, opRead: guardfs.Read,
	opWrite: guardfs.Modify, opAppend: guardfs.Modify, opMkdir: guardfs.Modify,
	opRemove: guardfs.Remove, opRename: guardfs.Remove, opCopy: guardfs.Remove,
}

// policyCache keeps the questions of one call to the policy chain, and the answers. An operation that was allowed
// is not asked about again: the operation on that path, by true name.
type policyCache struct {
	chain policy.Chain
	ctx   context.Context //nolint:containedctx // of the call that it is for
	by    policy.Input    // whose call it is

	mu     sync.Mutex
	own    *policy.Input // the call as a whole, where its operation describes it
	no     error         // the answer to that
	known  map[policyKey]error
	failed *policy.ChainError // the first; nobody is asked after it

	lasting bool        // it outlives the call: a failure is none for good
	settled atomic.Bool // a change is under way: what was begun is ended or taken back
}

type policyKey struct{ operation, path, resolved, destination string }

// maxKnown bounds what a call remembers: what is beyond is asked again.
const maxKnown = 50_000

// policyJudge is the judge of one call: the chain, and in any case the rules after it. A path that the
// rules close answers as they do, so that nothing else is told of it.
type policyJudge struct {
	*policyCache
	rules guardfs.Judge
	dirs  bool   // directories are created,
	of    string // above this path, which is not asked about
}

func (j policyJudge) Judge(o guardfs.Object, a guardfs.Access) error {
	no := j.ask(&o, a)
	if err := j.rules.Judge(o, a); err != nil {
		return err
	}
	return no
}

// Dir asks about each directory that is entered. A call that may list it sees its names, and what stat says
// of them.
func (j policyJudge) Dir(canonical string, also ...string) guardfs.DirVerdict {
	rules := j.rules.Dir(canonical, also...)
	if j.ask(&guardfs.Object{Spelled: canonical, True: canonical}, guardfs.Walk) != nil {
		return guardfs.DirVerdict{}
	}
	names := func(name string, _ guardfs.Kind) bool { return !guardfs.Reserved(name) }
	return guardfs.DirVerdict{Entry: names}.And(rules)
}

// ask puts before the chain what it has to say of an access. The error is a *policy.Denied or a
// *policy.ChainError.
func (j policyJudge) ask(o *guardfs.Object, a guardfs.Access) error {
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
	if own != nil && a <= strongest[own.Operation] {
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

func (a *policyCache) whole() (own *policy.Input, no error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own, a.no
}

// allowed says that this call may do that to the path of this true name.
func (a *policyCache) allowed(operation, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	no, known := a.known[policyKey{operation, name, name, ""}]
	return known && no == nil
}

// put asks the chain, once.
func (a *policyCache) put(in *policy.Input, spelled string) error {
	q := policyKey{in.Operation, in.Path, in.ResolvedPath, in.ResolvedDestination}
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
func (a *policyCache) decide(in policy.Input) (allowed bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			allowed, err = false, fmt.Errorf("the policy chain panicked: %v", r)
		}
	}()
	return a.chain.Decide(a.ctx, in)
}

// ends is the error that a call ends with though its operation did not: where the chain failed, an
// answer may be less than it seems.
func (a *policyCache) ends() error {
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

// AskPolicy asks the policy chain about the whole operation that in describes: its name and its paths. If the chain
// says no, later steps of the call are refused with that answer, unless the rules refuse them first. Path and
// Destination are as the caller wrote them; ResolvedPath and ResolvedDestination are the same from the root on, and
// links in them are followed here. The call must use it before any other method. Paths that in does not cover, and
// paths that lead elsewhere by then, are asked about one by one.
func (c *Call) AskPolicy(in policy.Input) error {
	j, ok := c.judge.(policyJudge)
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
			return c.fs.Canonical(name)
		}
		return joined(c.fs.Canonical(path.Dir(name)), base)
	}
	last := strongest[in.Operation] <= guardfs.Read || in.Operation == opCopy
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

// lasting is a copy of the call for work that outlives it, as a watch.
func (c *Call) lasting(ctx context.Context) *Call {
	out := *c
	if j, ok := c.judge.(policyJudge); ok {
		out.judgedBy(policyJudge{rules: j.rules, policyCache: &policyCache{chain: j.chain, by: j.by,
			ctx: context.WithoutCancel(ctx), lasting: true, known: map[policyKey]error{}}})
	}
	return &out
}

// askPolicy is AskPolicy for the engine's own operations, of which the dialect has not said it.
func (c *Call) askPolicy(operation, name, to string, recursive ...bool) error {
	in := policy.Input{Operation: operation, Path: name, ResolvedPath: name, Destination: to,
		ResolvedDestination: to}
	for _, all := range recursive {
		in.Recursive = &all
	}
	return c.AskPolicy(in)
}

// canCreate says whether the directory name may be made.
func (c *Call) canCreate(name string) error {
	judge := c.judge
	if j, ok := judge.(policyJudge); ok {
		j.dirs = true
		judge = j
	}
	return judge.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create)
}

func (c *Call) info() hook.Info {
	return hook.Info{
		CallID: c.ID, Session: c.Session, Principal: c.Principal, Turn: c.Turn, Dialect: c.Dialect,
		Tool: c.Tool,
	}
}

// hooksBefore puts the call before the hooks, with the JSON of in, the decoded arguments. It returns in, or
// the arguments that a hook gave. The error is a *Refusal.
func hooksBefore[In any, A Answer[A]](ctx context.Context, c *Call, op Operation[In, A], in In) (In, error) {
	if len(c.hooks.Before) == 0 {
		return in, nil
	}
	canonical, err := args.Canonical(in, op.Args)
	if err != nil {
		return in, &hostError{"showing the arguments to hooks", err}
	}
	now, notes, err := c.hooks.RunBefore(ctx,
		hook.BeforeToolCall{Info: c.info(), Arguments: canonical},
		func(raw json.RawMessage) (json.RawMessage, error) {
			in, err := op.Decode(raw)
			if err != nil {
				return nil, err
			}
			return args.Canonical(in, raw)
		})
	c.note(notes)
	if no, ok := errors.AsType[*hook.Error](err); ok {
		cause := HookBlocked
		if no.Err != nil {
			cause = HookFailed
		}
		return in, &Refusal{Code: cause.Code, Cause: cause, Facts: no, Err: no}
	}
	if len(notes) == 0 {
		return in, nil
	}
	return op.Decode(now) // the last that was decoded may be one that was passed over
}

// hooksAfter shows the hooks how a call ended, and returns its answer, or the one that they put in its
// place. Where it was left behind, or the host is broken, there is none to be shown.
func hooksAfter[In any, A Answer[A]](ctx context.Context, op Operation[In, A], d done[In, A], took time.Duration) (answer A) {
	c := d.c
	if answer = d.answer; len(c.hooks.After)+len(c.hooks.Persist) == 0 {
		return answer
	}
	ctx = context.WithoutCancel(ctx) // a call that was given up has ended too
	has := d.left == nil && d.outcome != outcomeHost && !op.Private
	withhold := func(no *hook.Error) { answer, _ = op.Refuse(ctx, c, d.in, withheld(no)) }
	defer func() {
		if r := recover(); r != nil {
			c.note([]string{fmt.Sprintf("the hooks panicked: %.200v", r)})
			if has && len(c.hooks.Persist) > 0 {
				withhold(&hook.Error{Event: hook.ToolResultPersistEvent, Hook: "of answers", Err: errors.New("panic")})
			}
		}
	}()
	var shown json.RawMessage
	if has {
		var err error
		if shown, err = answer.ForHooks(); err != nil && len(c.hooks.Persist) > 0 {
			no := &hook.Error{Event: hook.ToolResultPersistEvent, Hook: c.hooks.Persist[0].Name(), Err: err}
			c.note([]string{no.Event + " was not asked: " + err.Error()})
			withhold(no)
		}
	}
	c.note(c.hooks.RunAfter(ctx, hook.AfterToolCall{
		Info: c.info(), Success: d.outcome == outcomeOK, Outcome: d.outcome, Duration: took, Result: shown,
	}))
	if shown == nil || len(c.hooks.Persist) == 0 {
		return answer
	}
	check := func(raw json.RawMessage) error {
		_, err := answer.Replaced(raw)
		return err
	}
	now, notes, err := c.hooks.RunPersist(ctx, hook.ToolResultPersist{Info: c.info(), Result: shown}, check)
	c.note(notes)
	if no, ok := errors.AsType[*hook.Error](err); ok {
		withhold(no)
	} else if !bytes.Equal(now, shown) {
		if by, err := answer.Replaced(now); err == nil { // it was checked before
			answer = by
		}
	}
	return answer
}

// withheld is the refusal of a call whose answer a hook keeps back.
func withheld(no *hook.Error) *Refusal {
	r := &Refusal{Code: Withheld.Code, Cause: Withheld, Facts: no, Err: no}
	if no.Err != nil {
		r.Code = HookFailed.Code
	}
	return r
}

// note keeps for the record what hooks did.
func (c *Call) note(notes []string) {
	c.Trace.Hooks = append(c.Trace.Hooks, notes...)
	for _, n := range notes {
		c.logger.Warn("a hook spoke", "tool", c.Tool, "call", c.ID, "hook", n)
	}
}

// follow tells the observer that a call has come in, and gives a function that tells it of the end. One that
// panics is not heard any more in this call.
func (c *Call) follow(ctx context.Context) (_ context.Context, end func(c *Call, outcome string, took time.Duration)) {
	observer, logger := c.hooks.Observer, c.logger
	if observer == nil {
		return ctx, func(*Call, string, time.Duration) {}
	}
	ended := func(hook.End) {}
	guarded := func(f func()) {
		defer func() {
			if r := recover(); r != nil {
				logger.Error("the observer panicked", "panic", r)
			}
		}()
		f()
	}
	guarded(func() {
		if inner, f := observer.Begin(ctx, c.info()); inner != nil && f != nil {
			ctx, ended = inner, f
		}
	})
	return ctx, func(c *Call, outcome string, took time.Duration) {
		guarded(func() {
			ended(hook.End{
				Outcome: outcome, Broken: outcome == outcomeHost, Known: outcome != outcomeUnknown, Path: c.path(),
				Bytes: c.Trace.Bytes, Duration: took,
			})
		})
	}
}

// path is the first that the call is about; "" where none is known.
func (c *Call) path() string {
	if len(c.Trace.Paths) == 0 {
		return ""
	}
	return c.Trace.Paths[0]
}

// limits counts the calls of each session. Its zero value lets all through.
type limits struct {
	config.Limits
	mu       sync.Mutex
	sessions session.Recent[*rate]
}

// rate counts the calls of one session. It may have saved up ten seconds of calls.
type rate struct {
	left    float64   // calls that it may make now
	at      time.Time // when left was counted
	running int
}

const savedUp = 10 // seconds of calls_per_second that an idle session has

// enter counts a call in, or refuses it. leave must follow where it is taken.
func (l *limits) enter(c *Call, now time.Time) (leave func(), err error) {
	if l.CallsPerSecond == 0 && l.CallsAtOnce == 0 {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.session(c.key(), now)
	r.left += now.Sub(r.at).Seconds() * float64(l.CallsPerSecond)
	r.left, r.at = min(r.left, savedUp*float64(l.CallsPerSecond)), now
	if most := l.CallsAtOnce; most > 0 && r.running >= most {
		return nil, tooMany("calls_at_once", most, 0)
	}
	if most := float64(l.CallsPerSecond); most > 0 {
		if r.left < 1 {
			wait := time.Duration((1-r.left)/most*float64(time.Second)) + time.Millisecond
			return nil, tooMany("calls_per_second", l.CallsPerSecond, wait)
		}
		r.left--
	}
	r.running++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		r.running--
	}, nil
}

func tooMany(limit string, most int, wait time.Duration) error {
	return Refuse(TooManyCalls, "", CallFacts{limit, most, wait})
}

// session gives the rate of k. A session that was not used for long is as a new one.
func (l *limits) session(k session.Key, now time.Time) *rate {
	r := l.sessions.Get(k)
	if r == nil {
		r = &rate{left: savedUp * float64(l.CallsPerSecond), at: now}
		l.sessions.Set(k, r)
	}
	return r
}

// A call whose file system does not answer (a network that is gone, a FUSE server that hangs)
// blocks its thread within the kernel, and nothing can end that. Such a call is left behind:
// its caller gets a refusal, and its goroutine ends when the system call does. Its findings are
// dropped then, and a change that has not begun by then never begins.

const (
	// viewPatience and changePatience are how long a call may go on after its deadline, or after its
	// caller gave up. A change under way gets longer: a slow disk is no frozen one, and what has
	// begun is best taken back.
	viewPatience   = 5 * time.Second
	changePatience = 2 * time.Minute
	// mostStuck bounds the calls of a principal that are left behind, for each keeps threads.
	mostStuck = 32
	// longest is how long a call may take that has no deadline of its own.
	longest = time.Hour
)

// The stages of a call. It leaves looking once: for changing or for gone, whichever comes first.
const (
	looking  = iota // nothing has been changed
	changing        // the intent is on record, or is about to be
	gone            // the call was left behind before it changed anything, and must not
)

// begin says whether a change may begin.
func (c *Call) begin() bool {
	return c.stage.CompareAndSwap(looking, changing) || c.stage.Load() == changing
}

// leave keeps a change from beginning. begun is true where that is too late.
func (c *Call) leave() (begun bool) { return !c.stage.CompareAndSwap(looking, gone) }

// stuck counts the calls of each principal that were left behind and have not ended.
type stuck struct {
	mu  sync.Mutex
	all map[string]int
}

func (s *stuck) add(principal string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]int{}
	}
	if s.all[principal] += n; s.all[principal] == 0 {
		delete(s.all, principal)
	}
}

func (s *stuck) tooMany(principal string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[principal] >= mostStuck
}

// leftBehind is the error of a call that was left behind: a refusal NoAnswer. The operation still
// runs, so the answer is made of this alone.
type leftBehind struct{ *Refusal }

func (l *leftBehind) Unwrap() error { return l.Refusal }

// panicked is the value of a panic that ended an operation.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprintf("internal error: %v", p.value) }

// perform runs an operation of c. Where it has to be left behind, the error is a *leftBehind. That
// takes a goroutine of its own, which costs a small call a fifth of its time: so it is done only
// where something is mounted that may hang.
func perform[A any](ctx context.Context, c *Call, run func(context.Context) (A, error)) (answer A, err error) {
	guarded := func() (answer A, err error) {
		defer func() {
			if r := recover(); r != nil {
				c.logger.Error("an operation panicked", "tool", c.Tool, "panic", r, "stack", string(debug.Stack()))
				err = panicked{r}
			}
		}()
		return run(ctx)
	}
	if !c.mayHang() {
		return guarded()
	}
	type result struct {
		answer A
		err    error
	}
	ended, e, principal, path := make(chan result, 1), c.Engine, c.Principal, c.path()
	go func() {
		r := result{err: panicked{"the operation gave up"}} // by runtime.Goexit
		defer func() { ended <- r }()
		r.answer, r.err = guarded()
	}()
	select {
	case r := <-ended:
		return r.answer, r.err
	case <-ctx.Done():
	}
	began := false
	for _, patience := range e.patience {
		select {
		case r := <-ended:
			return r.answer, r.err
		case <-time.After(patience):
		}
		if began = c.leave(); !began {
			break
		}
	}
	e.stuck.add(principal, 1)
	go func() { <-ended; e.stuck.add(principal, -1) }()
	return answer, &leftBehind{&Refusal{NoAnswer.Code, NoAnswer, path, StuckFacts{began}, context.Cause(ctx)}}
}

// snapshot is c as it is before it runs, for the time after it was left behind.
func (c *Call) snapshot() *Call {
	s := *c
	s.Trace.Paths, s.Trace.Hooks = slices.Clone(c.Trace.Paths), slices.Clone(c.Trace.Hooks)
	return &s
}

// outside remembers turns and looks, to notice changes that were not made by the tools.
type outside struct {
	turns session.Recent[string] // the turn that a session is in

	mu sync.Mutex
	// by path, what the last look found: what did not move is not read again
	looks map[string]look
	// which recordClosedDirs has seen in this turn
	dirs map[string]bool
}

type look struct {
	stamp string // identity, size and times
	state checkpoint.State
}

const maxLooks = 50_000

// BeginTurn begins the call's turn, if it is a new one. From here on "restore to this turn" means
// something, and what others changed since the session last looked is on record.
//
// It refuses nothing. If the store fails here, the next change fails too, and that is where it
// matters.
func (c *Call) BeginTurn(ctx context.Context) {
	if c.Turn == "" || !c.cfg.CheckpointBeforeMutation {
		return
	}
	o := &c.outside
	if o.turns.Get(c.key()) == c.Turn {
		return
	}
	if err := c.beginTurn(ctx); err != nil {
		c.logger.Warn("the beginning of a turn could not be recorded", "turn", c.Turn, "err", err)
		return
	}
	o.turns.Set(c.key(), c.Turn)
	o.mu.Lock()
	o.dirs = nil
	o.mu.Unlock()
}

func (c *Call) beginTurn(ctx context.Context) error {
	db, err := c.checkpoints.open()
	if err != nil {
		return err
	}
	who := checkpoint.Scope{Principal: c.Principal, Session: c.Session}
	began, err := db.BeginTurn(ctx, who, c.Turn)
	if err != nil || !began {
		return err
	}
	_, err = c.recordOutside(ctx, db, nil)
	return err
}

// recordOutside compares the files that the call's session knows with what is recorded of them, and
// records what others changed. skip says which paths to pass over; it may be nil. The answer is ""
// when nothing had changed.
func (c *Call) recordOutside(ctx context.Context, db *checkpoint.DB, skip func(path string) bool) (checkpoint.ID, error) {
	known, err := db.Known(ctx, checkpoint.Scope{Principal: c.Principal, Session: c.Session})
	if err != nil {
		return "", err
	}
	op := checkpoint.Op{Kind: checkpoint.KindExternal, Principal: c.Principal, Session: c.Session,
		Turn: c.Turn}
	for _, k := range known {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if k.State.Kind == checkpoint.Dir ||
			k.Before.Kind == checkpoint.Dir && k.State.Kind == checkpoint.Absent ||
			skip != nil && skip(k.Path) {
			continue
		}
		now, ok := c.observe(&k)
		if !ok || k.Expects(now.After) {
			continue
		}
		if _, held, err := c.held(ctx, k.Path); held || err != nil {
			continue // the disk is not what counts
		}
		moved, err := movedAbove(ctx, db, k.Path)
		if err != nil {
			return "", err
		}
		if !moved {
			op.Changes = append(op.Changes, now)
		}
	}
	if len(op.Changes) == 0 {
		return "", nil
	}
	saved, err := db.Save(ctx, op)
	if err == nil {
		c.logger.Info("files were changed outside of the tools", "checkpoint", saved.ID,
			"session", c.Session)
	}
	return saved.ID, err
}

// observe looks what became of a path since the session recorded it. It passes by what policy
// denies today, and what is too large to be read. Where there is a directory in the place of a
// file, or the reverse, what was there is gone: no tool makes that.
func (c *Call) observe(k *checkpoint.Known) (checkpoint.Change, bool) {
	out := checkpoint.Change{Path: k.Path, Role: "target", Before: k.Own,
		After: checkpoint.State{Kind: checkpoint.Absent}}
	if k.Own.Kind == checkpoint.File && k.Own.Hash == "" {
		// It was recorded without content and hash, as a file too large to read.
		out.Skipped = checkpoint.SkipNotRead
	}
	place, err := c.fs.EntryLink(k.Path)
	if err != nil {
		_, missing := errors.AsType[*guardfs.MissingParentError](err)
		return out, missing || errors.Is(err, syscall.ENOTDIR)
	}
	defer place.Close()
	info := place.Object().Info
	if same := place.Object().True == k.Path; !same || info.Kind == guardfs.KindDir ||
		info.Kind == guardfs.KindOther {
		return out, same
	}
	stamp := info.ID.String() + stamp(info, "")
	o := &c.outside
	o.mu.Lock()
	last := o.looks[k.Path]
	o.mu.Unlock()
	if info.Kind == guardfs.KindFile && last.stamp == stamp && k.Expects(last.state) {
		out.After = last.state
		return out, true
	}
	b, err := place.Load(c.cfg.Checkpoint.MaxFileBytes)
	if err != nil {
		return out, false
	}
	out.After = state(b)
	if b.Exists && b.Info.Kind == guardfs.KindFile {
		out.AfterContent = b.Content
		if out.AfterContent == nil {
			out.AfterContent = []byte{}
		}
		o.mu.Lock()
		if o.looks == nil || len(o.looks) > maxLooks {
			o.looks = map[string]look{}
		}
		o.looks[k.Path] = look{stamp, out.After}
		o.mu.Unlock()
	}
	return out, true
}

// movedAbove says that the newest change of name was that of a directory above it, which the tools gave another name or put
// into the trash: then nobody from outside took name away.
func movedAbove(ctx context.Context, db *checkpoint.DB, name string) (bool, error) {
	page, err := db.List(ctx, checkpoint.Filter{Path: name, NoReads: true, Limit: 1, AllSessions: true})
	return len(page.Checkpoints) > 0 && page.Checkpoints[0].Outcome != checkpoint.Aborted &&
		!slices.ContainsFunc(page.Checkpoints[0].Changes, func(c checkpoint.Recorded) bool { return c.Path == name }), err
}

// Once a session has changed something in a directory that is not open to all, the mode of
// that directory is recorded. Somebody may remove it with all it holds, and a restore must not make
// it anew for all to see.
//
// This holds for directories below the workspace root. Where none is set, it holds for the one with
// the file. The record has the kind of a read, so no rewind and no undo covers it.
