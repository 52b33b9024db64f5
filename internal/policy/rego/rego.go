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
// environment. An evaluation ends after a second, or when the program has grown by 256 MB meanwhile, a
// request after five seconds.
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
	"time"

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

// link is one policy. An error is that of the evaluator; *policy.Undecided says that no rule had a
// value.
type link interface {
	decide(ctx context.Context, in *policy.Input) (bool, error)
	explain(ctx context.Context, in *policy.Input) Decision
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
	var no error
	for _, l := range c.links {
		yes, err := l.decide(ctx, &in)
		if _, undecided := errors.AsType[*policy.Undecided](err); err != nil && !undecided {
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

// A Decision is the answer of one policy to an input, and the reason.
type Decision struct {
	Policy  string   `json:"policy"` // its URL, with what is asked of it
	Allowed bool     `json:"allowed"`
	Why     string   `json:"why,omitempty"` // that it failed, or has no value
	Failed  bool     `json:"failed,omitempty"`
	Rego    []string `json:"rego,omitempty"`    // versions, of each file
	Matched []Rule   `json:"matched,omitempty"` // rules that held, the last first
	Unmet   []Rule   `json:"unmet,omitempty"`   // rules that did not, and where they ended
	Micros  float64  `json:"micros"`            // how long it took; the first time is the slowest
}

// A Rule is one in a file. Ended is the expression at which it ended.
type Rule struct {
	Name  string `json:"rule"`
	File  string `json:"file"`
	Line  int    `json:"line"`
	Ended string `json:"ended,omitempty"`
	At    int    `json:"ended_line,omitempty"`
}

// Explain is Decide with the reasons of each policy that was asked.
func (c *Chain) Explain(ctx context.Context, in policy.Input) (allowed bool, why []Decision) {
	for _, l := range c.links {
		start := time.Now()
		d := l.explain(ctx, &in)
		if d.Micros == 0 {
			d.Micros = micros(time.Since(start))
		}
		why = append(why, d)
		if d.Failed {
			return false, why
		}
		if d.Allowed == c.any {
			return d.Allowed, why
		}
	}
	return !c.any || len(c.links) == 0, why
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 10 }
