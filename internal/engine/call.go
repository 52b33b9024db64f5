package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/policy"
	"moltisfs/internal/share"
)

// ErrClosed is the error of every call that comes after Shut, and of one that Shut met while it
// waited for its approver: it has changed nothing.
var ErrClosed = errors.New("closed: no calls are taken any more")

// The outcomes that the engine itself writes to the audit log. Every other one is the dialect's.
const (
	outcomeOK   = "ok"
	outcomeHost = "host_error"
)

// An Operation is the work of a dialect within [Engine.Do].
type Operation struct {
	// Changes says that the operation may change the tree.
	Changes bool
	// Unknown says that there is no such tool.
	Unknown bool
	// Follows are tools that this one does the work of by another road, see [policy.Tools.Allows].
	Follows []string
	// Args are the arguments as they came in. Decode takes them apart into what Run works with, and
	// hooks see the JSON of that, however the caller spelled it. It touches no file, and is called
	// again with what a hook makes of them.
	Args   json.RawMessage
	Decode func(json.RawMessage) (any, error)
	// Run carries the operation out by the engine's functions.
	Run  func(context.Context) error
	Time time.Duration // how long Run may take, an approver included; 0: as long as any call
	// Refuse makes the dialect's answer of an error and names it for the audit log. "" says that
	// this is no refusal: the host is broken.
	Refuse func(context.Context, error) string
	// Answer gives hooks the answer as JSON, that of Refuse included; nil where there is none. Replace
	// takes theirs in its place. It may be called more than once.
	Answer  func() (json.RawMessage, error)
	Replace func(json.RawMessage) error
}

// MaxName is how many bytes the name of a principal, session or turn may have.
const MaxName = 256

// Do is the one place that every operation of every dialect passes. Read it downward: limits, tool
// policy, names, arguments, hooks, turn, deadline, operation, and on every way out hooks again and
// the outcome's record. A panic of the operation ends as a broken host.
//
// The error tells of a broken host, or is ErrClosed; a refusal is the dialect's to answer. A view
// whose outcome can't be recorded ends as an error. A change that has happened does not, because
// its intent is on record and the caller must know: Trace.Unrecorded says it then.
func (e *Engine) Do(ctx context.Context, c *Call, op Operation) error {
	if err := e.calls.enter(); err != nil {
		return err
	}
	defer e.calls.leave()
	start := time.Now()
	c.ID, c.Principal, c.Session = rand.Text()[:16], cmp.Or(c.Principal, "local"),
		cmp.Or(c.Session, "default")
	ctx = share.By(ctx, c.Principal)
	c.Approver, c.in = e.asking(c.Approver), &visit{}
	e.edited(c)
	ctx, end := e.follow(ctx, c)
	outcome, before, cause := e.attempt(ctx, c, op)
	left, isLeft := errors.AsType[*LeftBehind](cause)
	begun := c.in.stage.Load() == changing
	if isLeft { // the operation may still be writing to what c, Answer and Refuse have
		c, op.Answer = before, nil
	} else {
		c.in = nil
	}
	c.begun = begun
	e.hooksAfter(ctx, c, op, outcome, time.Since(start))
	e.tell(ctx, c, op, outcome, time.Since(start))
	end(c, op, outcome, time.Since(start))
	if rerr := e.Record(c, start, outcome, cause); rerr != nil {
		e.logger.Error("the audit record could not be written", "tool", c.Tool, "err", rerr)
		if !op.Changes || outcome == outcomeHost {
			return errors.Join(cause, fmt.Errorf("writing the audit record: %w", rerr))
		}
		c.Trace.Unrecorded = true
	}
	if outcome == outcomeHost {
		return cause
	}
	if isLeft {
		return left
	}
	return nil
}

// errNotBegun is the error of a call that did not come by Do.
var errNotBegun = &hostError{"taking a call",
	errors.New("it did not come by Engine.Do, so it would not be on record")}

// begun is the engine under the scope of a call, of which it refuses those that do not come by Do.
// Every function that takes a Call begins with it.
func (e *Engine) begun(c *Call) (*Engine, error) {
	if e.place.Calls != nil && e.temps.Behind() { // a worker has died in a change
		if err := e.recover(context.Background(), time.Now()); err != nil {
			return nil, notSaved(err)
		}
	}
	switch {
	case c != nil && c.in != nil && c.in.under != nil && c.in.under.shared == e.shared:
		return c.in.under, nil
	case e.recorded:
		return nil, errNotBegun
	}
	return e.under(c.Scope)
}

// attempt runs the operation. before is the call as it was before it ran, cause the error behind an
// outcome other than "ok".
func (e *Engine) attempt(ctx context.Context, c *Call, op Operation) (
	outcome string, before *Call, cause error,
) {
	defer func() {
		if r := recover(); r != nil {
			e.logger.Error("a call panicked", "tool", c.Tool, "panic", r,
				"stack", string(debug.Stack()))
			outcome, cause = outcomeHost, fmt.Errorf("%s: %w", c.Tool, panicked{r})
		}
	}()
	leave, cause := e.limits.enter(c, e.now())
	if cause == nil {
		defer leave()
		cause = e.admit(ctx, c, op)
	}
	if cause == nil {
		e.BeginTurn(ctx, c)
		inTime, cancel := context.WithTimeout(ctx, cmp.Or(op.Time, longest))
		defer cancel()
		before = c.apart()
		cause = e.perform(inTime, c, op)
		if cause == nil && !op.Changes {
			cause = c.in.chain.ends()
		}
	}
	switch err := cause.(type) {
	case nil:
		return outcomeOK, before, nil
	case *LeftBehind:
		return string(err.Refusal.Code), before, err
	case panicked:
		return outcomeHost, before, fmt.Errorf("%s: %w", c.Tool, err)
	}
	return cmp.Or(op.Refuse(ctx, cause), outcomeHost), before, cause
}

// intend writes the intent to the audit log before anything changes. Without that record there is
// no change.
func (e *Engine) intend(c *Call) error {
	if !c.in.begin() {
		return context.DeadlineExceeded // nobody waits for it any more
	}
	r := e.record(c, "intent")
	if err := e.log.AppendChange(r); err != nil {
		return &hostError{"writing the audit record", err}
	}
	return nil
}

// admit says why a call is not even begun.
func (e *Engine) admit(ctx context.Context, c *Call, op Operation) (err error) {
	if c.in.under, err = e.chained(ctx, c); err != nil {
		return &hostError{"taking a call", err}
	}
	defer func() { c.Trace.Asked.Injected = args.Injected(op.Args) }()
	if why := e.tools.Why(c.Tool, op.Changes, op.Follows...); why != "" {
		return &policy.Denied{Path: c.Tool, Rule: "tools.policy", Why: why}
	}
	if c.Unavailable != nil {
		return &Refusal{Unavailable.Code, Unavailable, "", nil, c.Unavailable}
	}
	if e.stuck.tooMany(c.Principal) {
		return tooMany("", mostStuck, 0)
	}
	if !c.Tier.Known() {
		return &hostError{"taking a call", fmt.Errorf("there is no tier %q", string(c.Tier))}
	}
	if c.Tier == approval.TierBlocked {
		return Refuse(TierBlocked, "", nil)
	}
	if err := c.checkNames(); err != nil || op.Decode == nil {
		return err
	}
	in, err := op.Decode(op.Args)
	if err != nil {
		return err
	}
	return e.hooksBefore(ctx, c, op, in)
}

// tell writes the line of a call to the operator's log.
func (e *Engine) tell(ctx context.Context, c *Call, op Operation, outcome string,
	took time.Duration) {
	level := slog.LevelInfo
	if c.Tier == approval.TierNotify && op.Changes && outcome == outcomeOK && !c.Trace.DryRun {
		level = slog.LevelWarn
	}
	if !e.logger.Enabled(ctx, level) {
		return
	}
	e.logger.LogAttrs(ctx, level, "tool call", slog.String("tool", c.Tool),
		slog.String("file_path", c.path()), slog.Int64("bytes", c.Trace.Bytes),
		slog.String("outcome", outcome),
		slog.String("dialect", c.Dialect), slog.String("call", c.ID), slog.Duration("duration", took))
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

// patience is how long whoever is asked has to come back.
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
