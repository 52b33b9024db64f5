package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"moltisfs/config"
	"moltisfs/internal/args"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
)

// hooksOf adds the programs that the configuration names to the hooks of the host.
func hooksOf(cfg config.Hooks, h hook.Set) (hook.Set, error) {
	before, err := commands(cfg.BeforeToolCall)
	if err != nil {
		return h, err
	}
	after, err := commands(cfg.AfterToolCall)
	if err != nil {
		return h, err
	}
	persist, err := commands(cfg.ToolResultPersist)
	if err != nil {
		return h, err
	}
	h.Before, h.After, h.Persist = slices.Clone(h.Before), slices.Clone(h.After),
		slices.Clone(h.Persist)
	for _, c := range before {
		h.Before = append(h.Before, c)
	}
	for _, c := range after {
		h.After = append(h.After, c)
	}
	for _, c := range persist {
		h.Persist = append(h.Persist, c)
	}
	if h.Timeout == 0 {
		h.Timeout = time.Duration(cfg.Timeout)
	}
	h.Allow = h.Allow || cfg.OnError == "allow"
	return h, nil
}

func commands(lines []string) (out []hook.Command, err error) {
	for _, line := range lines {
		c, err := hook.ParseCommand(line)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// programsOf are the files that the commands of the configuration are made of. Who can write them
// decides what a hook says.
func programsOf(cfg config.Hooks, free *guardfs.FS) (out []string) {
	for _, line := range slices.Concat(cfg.BeforeToolCall, cfg.AfterToolCall, cfg.ToolResultPersist) {
		for i, word := range strings.Fields(line) {
			if kind, _ := kindOf(free, word); i == 0 ||
				strings.HasPrefix(word, "/") && kind == guardfs.KindFile {
				out = append(out, word)
			}
		}
	}
	return out
}

func (c *Call) info() hook.Info {
	return hook.Info{
		CallID: c.ID, Session: c.Session, Principal: c.Principal, Turn: c.Turn, Dialect: c.Dialect,
		Tool: c.Tool,
	}
}

// hooksBefore puts the call before the hooks, with the JSON of in, that Decode made of its arguments.
// The error is a *Refusal.
func (e *Engine) hooksBefore(ctx context.Context, c *Call, op Operation, in any) error {
	if len(e.hooks.Before) == 0 {
		return nil
	}
	canonical, err := args.Canonical(in, op.Args)
	if err != nil {
		return &hostError{"showing the arguments to hooks", err}
	}
	now, notes, err := e.hooks.RunBefore(ctx,
		hook.BeforeToolCall{Info: c.info(), Arguments: canonical},
		func(raw json.RawMessage) (json.RawMessage, error) {
			in, err := op.Decode(raw)
			if err != nil {
				return nil, err
			}
			return args.Canonical(in, raw)
		})
	e.note(c, notes)
	if no, ok := errors.AsType[*hook.Error](err); ok {
		cause := HookBlocked
		if no.Err != nil {
			cause = HookFailed
		}
		return &Refusal{Code: cause.Code, Cause: cause, Facts: no, Err: no}
	}
	if len(notes) == 0 {
		return nil
	}
	_, err = op.Decode(now) // the last that was decoded may be one that was passed over
	return err
}

// hooksAfter shows the hooks how a call ended, and lets them change its answer or withhold it.
func (e *Engine) hooksAfter(ctx context.Context, c *Call, op Operation, outcome string,
	took time.Duration) {
	if len(e.hooks.After)+len(e.hooks.Persist) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx) // a call that was given up has ended too
	defer func() {
		if r := recover(); r != nil {
			e.note(c, []string{fmt.Sprintf("the hooks panicked: %.200v", r)})
			if op.Answer != nil && outcome != outcomeHost && len(e.hooks.Persist) > 0 {
				op.Refuse(ctx,
					withheld(&hook.Error{Event: hook.ToolResultPersistEvent, Hook: "of answers",
						Err: errors.New("panic")}))
			}
		}
	}()
	var answer []byte
	if op.Answer != nil && outcome != outcomeHost {
		var err error
		if answer, err = op.Answer(); err != nil && len(e.hooks.Persist) > 0 {
			no := &hook.Error{Event: hook.ToolResultPersistEvent, Hook: e.hooks.Persist[0].Name(), Err: err}
			e.note(c, []string{no.Event + " was not asked: " + err.Error()})
			op.Refuse(ctx, withheld(no))
		}
	}
	e.note(c, e.hooks.RunAfter(ctx, hook.AfterToolCall{
		Info: c.info(), Success: outcome == outcomeOK, Outcome: outcome, Duration: took, Result: answer,
	}))
	if answer == nil || len(e.hooks.Persist) == 0 {
		return
	}
	now, notes, err := e.hooks.RunPersist(ctx, hook.ToolResultPersist{Info: c.info(), Result: answer},
		op.Replace)
	e.note(c, notes)
	switch {
	case err != nil:
		op.Refuse(ctx, withheld(err))
	case !bytes.Equal(now, answer):
		_ = op.Replace(now) // it took it before
	}
}

// withheld is the answer of a call whose own answer a hook keeps back.
func withheld(err error) *Refusal {
	no, _ := errors.AsType[*hook.Error](err)
	r := &Refusal{Code: Withheld.Code, Cause: Withheld, Facts: no, Err: no}
	if no.Err != nil {
		r.Code = HookFailed.Code
	}
	return r
}

// note keeps for the record what hooks did.
func (e *Engine) note(c *Call, notes []string) {
	c.Trace.Hooks = append(c.Trace.Hooks, notes...)
	for _, n := range notes {
		e.logger.Warn("a hook spoke", "tool", c.Tool, "call", c.ID, "hook", n)
	}
}

// follow tells the observer that a call has come in, and gives what tells it of the end. One that
// panics is not heard any more in this call.
func (e *Engine) follow(ctx context.Context,
	c *Call) (_ context.Context, end func(*Call, Operation, string, time.Duration)) {
	if e.hooks.Observer == nil {
		return ctx, func(*Call, Operation, string, time.Duration) {}
	}
	ended := func(hook.End) {}
	guarded := func(f func()) {
		defer func() {
			if r := recover(); r != nil {
				e.logger.Error("the observer panicked", "panic", r)
			}
		}()
		f()
	}
	guarded(func() {
		if inner, f := e.hooks.Observer.Begin(ctx, c.info()); inner != nil && f != nil {
			ctx, ended = inner, f
		}
	})
	return ctx, func(c *Call, op Operation, outcome string, took time.Duration) {
		guarded(func() {
			ended(hook.End{
				Outcome: outcome, Broken: outcome == outcomeHost, Known: !op.Unknown, Path: c.path(),
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
