package policy

import (
	"errors"
	"path"
	"strings"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// ClassOptions says which classes of names hold, and where they do not.
type ClassOptions struct {
	Holds

	// Lifted are absolute globs, exact as those of an allow list: what they cover, and what is below
	// it, has no class. A name is lifted by itself: a link to a lifted file is not.
	Lifted []string
	// Root is where the work is: the names of that directory and of those above it make no class.
	Root      string
	Canonical func(path string) string // as in Options
}

// Classes are the protected classes of package protect, as the operator wants them. nil has none.
// It does not change, and is safe for concurrent use.
type Classes struct {
	holds      Holds
	lifted     node
	roots      []string // spelled, and with links followed
	shortNames []shortName
}

// NewClasses compiles the globs. The error joins one *RuleError for each bad one.
func NewClasses(o ClassOptions) (*Classes, error) {
	if o.Canonical == nil {
		o.Canonical = path.Clean
	}
	c := &Classes{holds: o.Holds}
	var errs []error
	for _, pattern := range o.Lifted {
		g, err := glob.CompileRule(pattern, nil)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		for _, e := range g.Patterns() {
			root := "/" + strings.Join(e.Literal(), "/")
			c.lifted.insert(e.Literal(), rule{denied, e})
			if real := path.Clean(o.Canonical(root)); real != root {
				c.lifted.insert(segments(real), rule{denied, e})
			}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if o.Root != "" {
		c.roots = []string{path.Clean(o.Root), path.Clean(o.Canonical(o.Root))}
	}
	for _, name := range ProtectedNames() {
		if s, ok := newShortName(name); ok {
			c.shortNames = append(c.shortNames, s)
		}
	}
	return c, nil
}

// Of gives the class of an absolute name, by itself: what it leads to is not looked at. The worst
// reading of a name that some file system may read in several ways counts.
func (c *Classes) Of(name string) Class {
	if c == nil || !strings.HasPrefix(name, "/") {
		return NoClass
	}
	name = path.Clean(name)
	dir := "/"
	for _, r := range c.roots {
		if (name == r || strings.HasPrefix(name, strings.TrimSuffix(r, "/")+"/")) && len(r) > len(dir) {
			dir = r
		}
	}
	dir = strings.TrimSuffix(dir, "/")
	top, rest := foldPath(dir), name[len(dir):] // above, no reading of a name counts either
	folded := foldPath(rest)
	worst := c.holds.Of(top+folded, top)
	if ambiguous(rest) {
		for _, reading := range []string{folded, asNTFS(folded)} {
			longer, ok := expandShortNames(reading, c.shortNames)
			if !ok {
				return Secret // too many readings to try
			}
			for _, r := range append(longer, reading) {
				worst = max(worst, c.holds.Of(top+r, top))
			}
		}
	}
	if worst > NoClass && c.Lifted(name) {
		return NoClass
	}
	return worst
}

// Lifted says whether no class holds for a clean real name.
func (c *Classes) Lifted(name string) bool { return c.lifted.refuses(name) != none }

// Worst is the class of an object by all of its names, as it was spelled, as it is, and by what the
// way there passes; with the first name that has it.
func (c *Classes) Worst(o guardfs.Object) (by string, worst Class) {
	names := append([]string{o.Spelled, o.True}, o.Also...)
	for _, hop := range o.Hops {
		names = append(append(names, hop.Name), hop.Also...)
	}
	for _, name := range names {
		if is := c.Of(name); is > worst {
			by, worst = name, is
		}
	}
	return by, worst
}

// isSecret says whether a name, or one of those that it has on other mounts, is secret.
func (c *Classes) isSecret(name string, also []string) bool {
	if c == nil || !c.holds.Secret {
		return false
	}
	if c.Of(name) == Secret {
		return true
	}
	for _, other := range also {
		if c.Of(other) == Secret {
			return true
		}
	}
	return false
}

// secretsIn tells which entries of one directory, by one of its names, are secrets.
type secretsIn struct {
	classes   *Classes
	dir       string
	ambiguous bool // dir is
	parents   Tails
}

func (c *Classes) in(dir string) *secretsIn {
	if c == nil || !c.holds.Secret {
		return nil
	}
	return &secretsIn{c, dir, ambiguous(dir), Parents(foldPath(dir))}
}

// verdict gives the verdict for a directory in which all is open but secrets, and so it is below.
func (s *secretsIn) verdict() guardfs.DirVerdict {
	if s == nil {
		return guardfs.DirVerdict{All: true}
	}
	return guardfs.DirVerdict{All: true, Hides: s.hides,
		Below: func(name string) (guardfs.DirVerdict, bool) {
			if s.hides(name) {
				return guardfs.DirVerdict{}, true
			}
			return s.classes.in(strings.TrimSuffix(s.dir, "/") + "/" + name).verdict(), true
		}}
}

// hides judges one entry; the directory itself is not secret. Most names fold to themselves, and
// are tried without an allocation.
func (s *secretsIn) hides(name string) bool {
	if s == nil {
		return false
	}
	if s.ambiguous || ambiguous(name) {
		return s.whole(name)
	}
	if foldsToItself(name) {
		return IsSecret(name, s.parents) && s.whole(name)
	}
	var buf [32]byte
	if n := lowered(name, &buf); n > 0 {
		return IsSecret(string(buf[:n]), s.parents) && s.whole(name)
	}
	return s.whole(name)
}

func (s *secretsIn) whole(name string) bool {
	return s.classes.Of(strings.TrimSuffix(s.dir, "/")+"/"+name) == Secret
}
