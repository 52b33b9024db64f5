// Package rego asks the operator's Rego policies: files of this machine, which it evaluates itself,
// and OPA servers. It is the only importer of Open Policy Agent, which is large: a host that embeds the
// public packages does not carry it, and the program hands it to the engine.
//
// A Chain asks its policies in order. With mode "all" the first that says no denies; with "any" the
// first that says yes allows. No policies allow everything. A policy says yes with true and nothing
// else. A rule without a value says no; a failure, a time that is over and a value that is neither
// true nor false end the chain at once, in both modes, and that denies too.
//
// Policies of this machine can't reach anything but their input: no network, no files, no
// environment. An evaluation ends after a second, a request after five.
//
// It opens the files that it is told to, once, and talks to the servers that it is told to. A Chain
// is safe for concurrent use and does not change.
package rego

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"moltisfs/internal/policy"
)

// The rule that is asked for in a policy whose URL names none.
const (
	defaultRule = "data.mcp.filesystem.allow"
	defaultPath = "mcp/filesystem"
)

// A Chain is a list of policies.
type Chain struct {
	any   bool
	links []link
}

var _ policy.Chain = (*Chain)(nil)

// link is one policy. An error is that of the evaluator; *policy.Undecided says that no rule had a value. String is its URL, with what is asked
// of it.
type link interface {
	fmt.Stringer
	decide(ctx context.Context, in *policy.Input) (bool, error)
}

// Open loads the policies. Each is a URL (file:///…, http://… or https://…) and, behind a blank,
// the rule to evaluate or, at a server, the path of the policy. mode is "all", also "", or "any". The
// error says which policy can't be used, and where in it.
func Open(mode string, policies []string) (*Chain, error) {
	c := &Chain{any: mode == "any"}
	if mode != "" && mode != "any" && mode != "all" {
		return nil, fmt.Errorf("the mode %q is neither \"all\" nor \"any\"", mode)
	}
	var errs []error
	for _, p := range policies {
		l, err := openOne(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.links = append(c.links, l)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

func openOne(p string) (link, error) {
	where, beside, _ := strings.Cut(strings.TrimSpace(p), " ")
	beside = strings.TrimSpace(beside)
	u, err := url.Parse(where)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", where)
	case u.Scheme == "file" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return load(filepath.FromSlash(u.Path), beside)
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return newRemote(u, beside), nil
	}
	return nil, fmt.Errorf("%q is neither file:///… nor the URL of a server", where)
}

// Decide implements [policy.Chain].
func (c *Chain) Decide(ctx context.Context, in policy.Input) (bool, error) {
	return c.ask(ctx, in, func(Decision) {})
}

// ask asks one policy after the other until one has decided, and calls said with the answer of each.
func (c *Chain) ask(ctx context.Context, in policy.Input, said func(Decision)) (bool, error) {
	var no error
	for _, l := range c.links {
		yes, err := l.decide(ctx, &in)
		_, undecided := errors.AsType[*policy.Undecided](err)
		d := Decision{Policy: l.String(), Allowed: yes && err == nil, Failed: err != nil && !undecided}
		if err != nil {
			d.Why = err.Error()
		}
		if said(d); d.Failed {
			return false, err
		}
		if yes == c.any {
			return yes, err
		}
		no = err
	}
	if c.any && len(c.links) > 0 {
		return false, no
	}
	return true, nil
}

// A Decision is the answer of one policy to an input.
type Decision struct {
	Policy  string `json:"policy"` // its URL, with what is asked of it
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"` // that it failed, or has no value
	Failed  bool   `json:"failed,omitempty"`
}

// Explain is Decide with the answer of each policy that was asked.
func (c *Chain) Explain(ctx context.Context, in policy.Input) (allowed bool, why []Decision) {
	allowed, err := c.ask(ctx, in, func(d Decision) { why = append(why, d) })
	return allowed && err == nil, why
}
