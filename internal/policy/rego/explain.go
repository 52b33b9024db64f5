package rego

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"moltisfs/internal/policy"
)

// answered takes over what a policy said.
func (d *Decision) answered(yes bool, err error) {
	d.Allowed = yes && err == nil
	if err == nil {
		return
	}
	_, undecided := errors.AsType[*policy.Undecided](err)
	d.Why, d.Failed = err.Error(), !undecided
}

// explain evaluates twice: the second time as calls do, for how long that takes.
func (l *local) explain(ctx context.Context, in *policy.Input) Decision {
	d := Decision{Policy: "file://" + l.path + " " + l.rule, Rego: l.versions}
	t := &tracer{entered: map[uint64]*ast.Rule{}, ended: map[*ast.Rule]*ast.Expr{}}
	d.answered(l.eval(ctx, in, t))
	if !d.Failed {
		start := time.Now()
		_, _ = l.decide(ctx, in)
		d.Micros = micros(time.Since(start))
	}
	for _, r := range t.held {
		d.Matched = append(d.Matched, place(r, nil))
	}
	for _, r := range t.order {
		if !slices.Contains(t.held, r) {
			d.Unmet = append(d.Unmet, place(r, t.ended[r]))
		}
	}
	return d
}

// tracer notes which rules held, and at which expression the others ended.
type tracer struct {
	entered map[uint64]*ast.Rule // by query
	order   []*ast.Rule
	held    []*ast.Rule
	ended   map[*ast.Rule]*ast.Expr
}

func (*tracer) Enabled() bool               { return true }
func (*tracer) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

func (t *tracer) TraceEvent(e topdown.Event) {
	rule, isRule := e.Node.(*ast.Rule)
	switch {
	case e.Op == topdown.EnterOp && isRule:
		if t.entered[e.QueryID] = rule; !slices.Contains(t.order, rule) {
			t.order = append(t.order, rule)
		}
	case e.Op == topdown.ExitOp && isRule && !slices.Contains(t.held, rule):
		t.held = slices.Insert(t.held, 0, rule)
	case e.Op == topdown.FailOp:
		if x, ok := e.Node.(*ast.Expr); ok && t.entered[e.QueryID] != nil {
			t.ended[t.entered[e.QueryID]] = x
		}
	}
}

// place is a rule as a person finds it.
func place(r *ast.Rule, ended *ast.Expr) Rule {
	out := Rule{Name: r.Head.Ref().String(), File: r.Location.File, Line: r.Location.Row}
	if r.Default {
		out.Name = "default " + out.Name
	}
	if ended != nil && ended.Location != nil {
		out.At = ended.Location.Row
		out.Ended, _, _ = strings.Cut(strings.TrimSpace(string(ended.Location.Text)), "\n")
	}
	return out
}
