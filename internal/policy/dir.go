package policy

import (
	"slices"
	"strings"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// Dir gives the verdict for the entries of one directory, by its real names. It costs about as much
// as one Judge. Entries are judged by name only. For identities and hard links Judge must be asked,
// as guardfs does when it opens one.
func (p *Policy) Dir(canonical string, also ...string) guardfs.DirVerdict {
	if p.wall != nil {
		return p.wall.Dir(canonical, also...).And(p.listing(canonical, also))
	}
	return p.listing(canonical, also)
}

// listing is Dir without the wall.
func (p *Policy) listing(canonical string, also []string) guardfs.DirVerdict {
	d := p.tracker.current()
	if canonical == "" || canonical[0] != '/' || d.full || p.refuses(d, canonical, also) != none {
		return guardfs.DirVerdict{}
	}
	l := &dirListing{dirRules: d.dirRules(canonical)}
	l.secrets = p.classes.in(canonical)
	free := l.nothingDenied
	for _, other := range also {
		o := d.dirRules(other)
		o.secrets = p.classes.in(other)
		free = free && o.nothingDenied
		l.otherNames = append(l.otherNames, &o)
	}
	allowed, below, rest := p.allow.cursorsAt(canonical)
	if !p.allows(canonical) && len(allowed)+len(below) == 0 {
		return guardfs.DirVerdict{}
	}
	l.allAllowed = p.allowAll || rest
	if free && l.allAllowed && (l.secrets == nil || len(also) == 0) {
		return l.secrets.verdict()
	}
	l.allowed, l.allowedBelow = allowed, below
	return l.verdict(p)
}

func (l *dirListing) verdict(p *Policy) guardfs.DirVerdict {
	v := guardfs.DirVerdict{Entry: l.entry, Way: l.mayPass, Held: func(i *guardfs.Info) bool {
		return p.tracker.current() != l.denials || p.inodes.rank(i.ID) != none
	}}
	if !l.ambiguous && len(l.otherNames) == 0 {
		v.Below = func(name string) (guardfs.DirVerdict, bool) { return p.below(l, name) }
	}
	return v
}

// below is Dir for a directory inside one that is being listed. Each rule takes one step further,
// which is cheaper than starting from the root. ok is false where that may be wrong: the rules have
// changed since, or the name has several readings. Then the caller asks Dir.
func (p *Policy) below(l *dirListing, name string) (v guardfs.DirVerdict, ok bool) {
	d := p.tracker.current()
	folded := foldName(name)
	if d != l.denials || d.full || folded == "" {
		return v, false
	}
	if l.refuses(name) || guardfs.Reserved(folded) {
		return v, true
	}
	dir := strings.TrimSuffix(l.dir, "/") + "/" + name
	c := &dirListing{dirRules: dirRules{denials: d, dir: dir}}
	c.denied, c.deniedBelow, _ = advance(l.denied, l.deniedBelow, name)
	c.folded, c.foldedBelow, _ = advance(l.folded, l.foldedBelow, folded)
	c.nothingDenied = len(c.denied)+len(c.deniedBelow)+len(c.folded)+len(c.foldedBelow) == 0
	c.secrets = p.classes.in(dir)
	var rest bool
	c.allowed, c.allowedBelow, rest = advance(l.allowed, l.allowedBelow, name)
	covered := l.allAllowed || covers(l.allowed, l.allowedBelow, name)
	if !covered && len(c.allowed)+len(c.allowedBelow) == 0 {
		return v, true
	}
	if c.allAllowed = p.allowAll || rest; c.nothingDenied && c.allAllowed {
		return c.secrets.verdict(), true
	}
	return c.verdict(p), true
}

// advance gives the same as node.cursorsAt, for the directory name inside the directory of cursors and
// below.
func advance(
	cursors []cursor, below map[string]*node, name string,
) (into []cursor, deeper map[string]*node, rest bool) {
	add := func(p *glob.Pattern, s glob.State) {
		if p.Live(s) {
			into = append(into, cursor{p, s})
			rest = rest || p.Rest(s)
		}
	}
	for _, c := range cursors {
		add(c.pattern, c.pattern.Step(c.state, name))
	}
	n := below[name]
	if n == nil {
		return into, nil, rest
	}
	for _, r := range n.rules {
		if r.pattern != nil {
			add(r.pattern, r.pattern.Start())
		}
	}
	return into, n.below, rest
}

// dirListing is everything in the rules that concerns the entries of one directory. It never
// changes.
type dirListing struct {
	dirRules
	otherNames   []*dirRules // the deny rules by the directory's other names
	allAllowed   bool        // every entry is allowed
	allowed      []cursor
	allowedBelow map[string]*node
}

// dirRules holds the deny rules that concern the entries of a directory, by one of its names.
type dirRules struct {
	denials       *denials
	dir           string
	ambiguous     bool // the directory's name has several readings: try whole paths
	nothingDenied bool // no rule denies an entry
	secrets       *secretsIn

	denied, folded           []cursor
	deniedBelow, foldedBelow map[string]*node
}

func (d *denials) dirRules(dir string) (l dirRules) {
	l = dirRules{denials: d, dir: dir, ambiguous: ambiguous(dir)}
	l.denied, l.deniedBelow, _ = d.deny.cursorsAt(dir)
	l.folded, l.foldedBelow, _ = d.folded.cursorsAt(foldPath(dir))
	rules := len(l.denied) + len(l.deniedBelow) + len(l.folded) + len(l.foldedBelow)
	l.nothingDenied = !l.ambiguous && rules == 0
	return l
}

// entry judges one name. A directory that an allow rule passes by name may be shown like one that is allowed.
func (l *dirListing) entry(name string, k guardfs.Kind) bool {
	passed := k == guardfs.KindDir && l.allowedBelow[name] != nil
	return (l.allAllowed || passed || covers(l.allowed, l.allowedBelow, name)) && !l.refuses(name)
}

// mayPass judges one name of a directory: whether the wildcards of an allow rule may pass through
// it.
func (l *dirListing) mayPass(name string) bool {
	for i := range l.allowed {
		if c := &l.allowed[i]; c.pattern.Live(c.pattern.Step(c.state, name)) {
			return !l.refuses(name)
		}
	}
	return false
}

// refuses reports whether a name is denied.
func (l *dirListing) refuses(name string) bool {
	return guardfs.Reserved(name) || l.dirRules.refuses(name) ||
		slices.ContainsFunc(l.otherNames, func(o *dirRules) bool { return o.refuses(name) })
}

func (l *dirRules) refuses(name string) bool {
	switch {
	case l.secrets.hides(name):
		return true
	case l.nothingDenied:
		return false
	}
	folded := foldName(name)
	if l.ambiguous || folded == "" {
		return l.denials.refuses(strings.TrimSuffix(l.dir, "/")+"/"+name) != none
	}
	return covers(l.denied, l.deniedBelow, name) || covers(l.folded, l.foldedBelow, folded)
}

// covers reports whether a rule covers the entry itself.
func covers(cursors []cursor, below map[string]*node, name string) bool {
	for i := range cursors {
		c := &cursors[i]
		if c.pattern.Done(c.pattern.Step(c.state, name)) {
			return true
		}
	}
	if len(below) == 0 {
		return false
	}
	if n := below[name]; n != nil {
		for i := range n.rules {
			if n.rules[i].coversRoot() {
				return true
			}
		}
	}
	return false
}

// A directory that is not allowed may lie above something that is: /ws is above what
// allow_paths = ["/ws/src/**"] allows. It can be walked then, and shows only what is allowed. Its
// name and existence are told only where a rule names it. A wildcard passes through any name, so it
// tells none.

// leadsToAllowed reports whether o is a directory above something that is allowed, as far as a
// needs to know.
func (p *Policy) leadsToAllowed(o *guardfs.Object, a guardfs.Access) bool {
	if o.Info.Kind != guardfs.KindDir || a > guardfs.Read {
		return false
	}
	if n := p.allow.find(o.True); n != nil && n.coversBelow() {
		return true
	}
	if a != guardfs.Walk {
		return false
	}
	cursors, _, _ := p.allow.cursorsAt(o.True)
	return len(cursors) > 0
}

// coversBelow reports whether a rule may cover something below n.
func (n *node) coversBelow() bool {
	for i := range n.rules {
		if p := n.rules[i].pattern; p.Live(p.Start()) {
			return true
		}
	}
	return len(n.below) > 0
}
