package policy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// Dir gives the verdict for the entries of one directory, by its true names. It costs about as much as one Judge. Entries are
// judged by name: for identities and hard links Judge has to be asked, as guardfs does when it opens one.
func (p *Policy) Dir(canonical string, also ...string) guardfs.DirVerdict {
	d := p.rules.follow()
	if canonical == "" || canonical[0] != '/' || d.full || d.refusesAny(canonical, also) != none {
		return guardfs.DirVerdict{}
	}
	l := &listing{listed: d.listed(canonical)}
	free := l.free
	for _, other := range also {
		o := d.listed(other)
		free = free && o.free
		l.others = append(l.others, &o)
	}
	allowed, below, rest := p.allow.here(canonical, nil)
	if !p.allows(canonical) && len(allowed)+len(below) == 0 {
		return guardfs.DirVerdict{}
	}
	l.all = p.allowAll || rest
	if free && l.all {
		return guardfs.DirVerdict{All: true}
	}
	l.allowed, l.allowedBelow = allowed, below
	return l.verdict(p)
}

func (l *listing) verdict(p *Policy) guardfs.DirVerdict {
	v := guardfs.DirVerdict{Entry: l.entry, Way: l.way}
	if !l.odd && len(l.others) == 0 {
		v.Below = func(name string) (guardfs.DirVerdict, bool) { return p.below(l, name) }
	}
	return v
}

// below is Dir for a directory in one that is listed, one step further on the way of each rule. It is not ok where the rules have
// changed since, and where a name has several readings.
func (p *Policy) below(l *listing, name string) (v guardfs.DirVerdict, ok bool) {
	d := p.rules.follow()
	if d != l.denials || d.full || strange(name) {
		return v, false
	}
	folded := foldRun(name, true)
	if l.refuses(name) || guardfs.Reserved(folded) {
		return v, true
	}
	c := &listing{listed: listed{denials: d, dir: strings.TrimSuffix(l.dir, "/") + "/" + name}}
	c.denied, c.deniedBelow, _ = step(l.denied, l.deniedBelow, name)
	c.folded, c.foldedBelow, _ = step(l.folded, l.foldedBelow, folded)
	c.free = len(c.denied)+len(c.deniedBelow)+len(c.folded)+len(c.foldedBelow) == 0
	var rest bool
	c.allowed, c.allowedBelow, rest = step(l.allowed, l.allowedBelow, name)
	if !l.all && !covers(l.allowed, l.allowedBelow, name) && len(c.allowed)+len(c.allowedBelow) == 0 {
		return v, true
	}
	if c.all = p.allowAll || rest; c.free && c.all {
		return guardfs.DirVerdict{All: true}, true
	}
	return c.verdict(p), true
}

// step is what node.here gives for a directory called name in the one of cursors and below.
func step(cursors []cursor, below map[string]*node, name string) (into []cursor, deeper map[string]*node, rest bool) {
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

// listing is what of all rules concerns the entries of one directory. It is not changed once it is made.
type listing struct {
	listed
	others       []*listed // by the directory's other names
	all          bool      // every entry is allowed
	allowed      []cursor
	allowedBelow map[string]*node
}

// listed is what of the deny rules concerns the entries of a directory by one of its names.
type listed struct {
	denials *denials
	dir     string
	odd     bool // the directory's own name has other readings: look at whole paths
	free    bool // no entry is denied

	denied, folded           []cursor
	deniedBelow, foldedBelow map[string]*node
}

func (d *denials) listed(dir string) (l listed) {
	l = listed{denials: d, dir: dir, odd: strange(dir)}
	l.denied, l.deniedBelow, _ = d.deny.here(dir, nil)
	l.folded, l.foldedBelow, _ = d.folded.here(foldPath(dir), nil)
	l.free = !l.odd && len(l.denied)+len(l.deniedBelow)+len(l.folded)+len(l.foldedBelow) == 0
	return l
}

// entry judges one name. It allocates only for names that don't fold in place. A directory that an allow rule passes by name may be
// named like one that is allowed.
func (l *listing) entry(name string, k guardfs.Kind) bool {
	return !l.refuses(name) && (l.all || covers(l.allowed, l.allowedBelow, name) || k == guardfs.KindDir && l.allowedBelow[name] != nil)
}

// way judges one name of a directory: whether the wildcards of an allow rule may pass through.
func (l *listing) way(name string) bool {
	for i := range l.allowed {
		if c := &l.allowed[i]; c.pattern.Live(c.pattern.Step(c.state, name)) {
			return !l.refuses(name)
		}
	}
	return false
}

// refuses reports whether a name is denied.
func (l *listing) refuses(name string) bool {
	return guardfs.Reserved(name) || l.listed.refuses(name) ||
		slices.ContainsFunc(l.others, func(o *listed) bool { return o.refuses(name) })
}

func (l *listed) refuses(name string) bool {
	switch {
	case l.free:
		return false
	case l.odd || strange(name):
		return l.denials.refuses(strings.TrimSuffix(l.dir, "/")+"/"+name) != none
	}
	return covers(l.denied, l.deniedBelow, name) || l.coversFolded(name)
}

// covers reports whether some rule covers the entry itself.
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
			if n.rules[i].hits() {
				return true
			}
		}
	}
	return false
}

// coversFolded folds names like README.md on the stack.
func (l *listed) coversFolded(name string) bool {
	if len(l.folded) == 0 && len(l.foldedBelow) == 0 {
		return false
	}
	if plain(name) {
		return covers(l.folded, l.foldedBelow, name)
	}
	var buf [32]byte
	n := copy(buf[:], name)
	for i := range n {
		c := buf[i]
		if c >= utf8.RuneSelf {
			n = -1
			break
		}
		if 'A' <= c && c <= 'Z' {
			buf[i] = c + 'a' - 'A'
		}
	}
	if n != len(name) || name[n-1] == '.' || name[n-1] == ' ' {
		return covers(l.folded, l.foldedBelow, foldRun(name, true))
	}
	return covers(l.folded, l.foldedBelow, string(buf[:n]))
}
