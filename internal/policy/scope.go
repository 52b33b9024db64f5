package policy

import (
	"errors"
	"path"
	"strings"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// Scope narrows a Policy for one caller: the paths that it may read and change, each with all
// that is below it. It only ever takes away. Links in a path are followed when the Scope is made.
type Scope struct{ readable, writable *Policy }

// The rules of a scope, as a Denied has them.
const (
	RuleReadable = "readable_scope"
	RuleWritable = "writable_scope"
)

// OutOfScope is the Denied of a path that a Scope leaves out. It says nothing of what is there.
type OutOfScope struct {
	*Denied
	Writable bool // it may not be changed; else it may not be read
}

func (e *OutOfScope) Unwrap() error { return e.Denied }

// NewScope makes a Scope. No paths are none: nothing may be read, or changed. On error there is no
// Scope; the error joins one *RuleError for each path that is not absolute.
func NewScope(readable, writable []string, canonical func(path string) string) (*Scope, error) {
	r, rerr := only(readable, canonical)
	w, werr := only(writable, canonical)
	if err := errors.Join(rerr, werr); err != nil {
		return nil, err
	}
	return &Scope{r, w}, nil
}

// only is the Policy that allows these paths and what is below them.
func only(paths []string, canonical func(string) string) (*Policy, error) {
	o := Options{Canonical: canonical}
	for _, p := range paths {
		if !path.IsAbs(p) || strings.ContainsRune(p, 0) {
			return nil, &RuleError{Rule: p, Why: "the path of a scope is not absolute"}
		}
		o.Allow = append(o.Allow, within(p))
	}
	p, err := New(o)
	if err == nil {
		p.allowAll = false
	}
	return p, err
}

// within is the rule for all that is in a directory.
func within(dir string) string {
	return strings.TrimSuffix(glob.Literal(path.Clean(dir)), "/") + "/**"
}

// Within is a Judge that allows only what both the Scope and j allow. The Scope speaks first, so that
// the answer of a path outside does not tell what j knows of it. A writable path must be
// readable too: a change shows the content before it.
func (s *Scope) Within(j guardfs.Judge) guardfs.Judge { return scoped{s, j} }

type scoped struct {
	*Scope
	rules guardfs.Judge
}

func (s scoped) Judge(o guardfs.Object, a guardfs.Access) error {
	if a > guardfs.Read {
		if err := leftOut(s.writable.Judge(o, a), RuleWritable); err != nil {
			return err
		}
	}
	if err := leftOut(s.readable.Judge(o, a), RuleReadable); err != nil {
		return err
	}
	return s.rules.Judge(o, a)
}

// leftOut names the rule of a refusal.
func leftOut(err error, rule string) error {
	no, ok := err.(*Denied)
	if !ok || no.Rule != ruleAllow {
		return err
	}
	return &OutOfScope{&Denied{Path: no.Path, Rule: rule}, rule == RuleWritable}
}

func (s scoped) Dir(canonical string, also ...string) guardfs.DirVerdict {
	return s.readable.Dir(canonical, also...).And(s.rules.Dir(canonical, also...))
}
