// Package policy decides what a session may touch: paths, by the operator's allow and deny globs and by what is ours alone, and
// tools, by name.
//
// Deny wins over allow, and is fuzzy: a path is refused when a deny rule covers it or any directory
// above it under any of the names it has: as spelled, its true name, those through other mounts, each
// link on the way, and what a ".." goes up from; each of them also folded (letter case, composed or
// not, invisible code points, dots and blanks at the end, NTFS streams, backslashes and short names).
// What a rule names literally is held by device and inode number as well, and a file with several
// hard links is refused when one of them is denied. Allow is exact: the true name, byte for byte, and that of
// what a ".." goes up from. A rule holds as it is spelled and with links in its literal beginning
// followed: an allow rule as they were when the Policy was made, a deny rule wherever they have led
// since. A link that is made or turned meanwhile is noticed after some 10 ms, or, where looking at
// the links takes longer, after 50 times that; when links have led to 1000 new places all is refused.
//
// A pattern like /x/** covers /x itself: a directory all of whose content is denied can't be listed, and one all of whose
// content is allowed can. A directory above an allowed one is not allowed by that; it can be walked,
// and shows what is allowed in it. An empty allow list allows everything that is not denied or
// protected. Protected paths are those of this program; no list opens them.
//
// A refusal is a *Denied. Its text is the same whether or not there is anything at the path, and it names no
// other path and no rule. Whatever depends on what is there (identity, hard links) is asked last, of paths that
// the lists allow.
//
// What this package does not do: it resolves nothing that it judges; package guardfs asks it, with the true names. It binds only
// those who come that way. Its own looks, Identify and Census, go through handles of another guardfs.FS.
// What shows a denied tree without mounting it a second time (an overlay of it, FUSE, a share of this
// same machine, a snapshot) it can tell for the files and directories only that rules name literally.
//
// A Policy is immutable, apart from what it remembers of identities and links, and safe for concurrent use.
package policy

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// Options is what the operator wrote, and the few looks at the file system that rules need. The zero Options allows
// everything.
type Options struct {
	Allow, Deny []string    // absolute globs, see CheckGlob
	Protected   []Protected // never to be touched

	// Canonical gives the true name of the longest existing beginning of a path, and the rest as it is: guardfs.Canonical.
	// Without it rules hold as spelled only.
	Canonical func(path string) string

	// Identify tells what is at a path, links followed; ok is false when nothing is. Without it nothing is held by
	// identity. It MUST NOT ask this Policy: function Identify makes one that does not.
	Identify func(path string) (id guardfs.Identity, ok bool)

	// Census finds the names of hard links: it walks the tree at root, root itself first, whether it is a directory or a
	// file, follows no links below it, enters other mounts but no kernel file systems, and does not ask this Policy. When
	// visit returns fs.SkipDir for a directory it is not entered; any other error ends the walk and comes back. Nothing at root
	// is no error; a directory that can't be read is one, because what it holds is then not known. Without Census, files with
	// several hard links are refused whenever there are deny rules or protected paths. Function Census makes one.
	Census func(root string, visit func(path string, k guardfs.Kind, id guardfs.Identity) error) error

	// Budget is how many names a census may visit, 200,000 when 0. A tree with more can't be counted, and files with
	// several hard links are refused.
	Budget int

	// Trouble, if set, is told why a census failed: for the operator's log, with paths. It is called with a lock held
	// and MUST NOT ask the Policy.
	Trouble func(error)

	now func() time.Time // for tests
}

// Protected is a file or a whole tree that belongs to this program: its data, its configuration, its binary.
type Protected struct {
	Path string // absolute
	Why  string // "the data directory", for the operator's eyes
}

// Denied is the refusal of a path.
type Denied struct {
	Path string // as spelled by whoever asked
	Rule string // "deny_paths", "allow_paths", "protected" or "pseudo" (a name outside every tree)
	Why  string // what had to be looked at besides the name; mostly ""
}

func (e *Denied) Error() string {
	text := strconv.Quote(e.Path) + " is denied by " + e.Rule
	if e.Rule == rulePseudo {
		text = strconv.Quote(e.Path) + " is not a path in the file system"
	}
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

const (
	ruleDeny      = "deny_paths"
	ruleAllow     = "allow_paths"
	ruleProtected = "protected"
	rulePseudo    = "pseudo"
)

func (r rank) String() string {
	if r == protected {
		return ruleProtected
	}
	return ruleDeny
}

// Policy is a guardfs.Judge.
type Policy struct {
	rules    follower // what is denied
	allow    node
	allowAll bool // no allow list

	held  held
	links links
}

var _ guardfs.Judge = (*Policy)(nil)

// New compiles the rules. The error joins one *RuleError for each that can't be used; then there is no Policy.
func New(o Options) (*Policy, error) {
	if o.Canonical == nil {
		o.Canonical = path.Clean
	}
	if o.now == nil {
		o.now = time.Now
	}
	p := &Policy{allowAll: len(o.Allow) == 0}
	var errs []error
	floating := false // a rule holds at any depth
	for _, pattern := range o.Deny {
		exact, err := glob.CompileRule(pattern, nil)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		folded, err := glob.CompileRule(pattern, foldRun)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		for i, e := range exact.Patterns() {
			root := "/" + strings.Join(e.Literal(), "/")
			p.rules.sources = append(p.rules.sources, &source{[]string{root}, e, folded.Patterns()[i]})
			floating = floating || root == "/"
			if r := (rule{denied, e}); r.hits() && root != "/" {
				p.held.add(root, denied)
			}
		}
	}
	for _, own := range o.Protected {
		if !strings.HasPrefix(own.Path, "/") {
			errs = append(errs, &RuleError{Rule: own.Path, Why: "protected path is not absolute"})
			continue
		}
		spelled := path.Clean(own.Path)
		p.rules.sources = append(p.rules.sources, &source{names: []string{spelled}})
		p.held.add(spelled, protected)
	}
	var allowed []string
	for _, pattern := range o.Allow {
		exact, err := glob.CompileRule(pattern, nil)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		for _, e := range exact.Patterns() {
			root := "/" + strings.Join(e.Literal(), "/")
			p.allow.hang(e.Literal(), rule{pattern: e})
			real := path.Clean(o.Canonical(root))
			if real != root {
				p.allow.hang(segments(real), rule{pattern: e})
			}
			allowed = append(allowed, real)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if floating {
		// A rule for any depth could be counted nowhere else: outside the allowed trees there is the whole disk.
		if p.allowAll {
			allowed = []string{"/"}
		}
		p.rules.elsewhere = allowed
	}
	p.rules.canonical, p.rules.now, p.rules.begun = o.Canonical, o.now, o.now()
	p.rules.follow()
	p.held.identify, p.held.now = o.Identify, o.now
	p.links = links{census: o.Census, budget: o.Budget, trouble: o.Trouble, now: o.now}
	return p, nil
}

// Judge decides about one object. The error is a *Denied.
func (p *Policy) Judge(o guardfs.Object, a guardfs.Access) error {
	if !strings.HasPrefix(o.True, "/") { // "pipe:[123]", "(unreachable)/x"
		return &Denied{Path: o.Spelled, Rule: rulePseudo}
	}
	d := p.rules.follow()
	if d.full {
		return &Denied{Path: o.Spelled, Rule: ruleDeny, Why: "the links that rules go through have led to too many places"}
	}
	if rule := p.names(d, &o, a); rule != "" {
		return &Denied{Path: o.Spelled, Rule: rule}
	}
	if o.Info.Kind == guardfs.KindAbsent {
		return nil
	}
	if r := p.held.rank(o.Info.ID); r != none {
		return &Denied{Path: o.Spelled, Rule: r.String()}
	}
	if o.Info.Links > 1 && o.Info.Kind == guardfs.KindFile {
		if why := p.linked(d, &o.Info); why != "" {
			return &Denied{Path: o.Spelled, Rule: ruleDeny, Why: why}
		}
	}
	return nil
}

// names gives the rule by which one of the names of o is refused, "" when none is. The names come
// in the order in which the path passes them, and the first that is refused gives the rule: what
// lies behind it, if anything does, must not show in the answer.
func (p *Policy) names(d *denials, o *guardfs.Object, a guardfs.Access) string {
	if o.Spelled != o.True && strings.HasPrefix(o.Spelled, "/") {
		if s := path.Clean(o.Spelled); s != o.True {
			if r := d.refuses(s); r != none {
				return r.String()
			}
		}
	}
	outside := false // a link on the way lies in no allowed tree; it may lead into one
	for _, hop := range o.Hops {
		r, allowed := d.refusesAny(hop.Name, hop.Also), p.allows(hop.Name)
		switch {
		case r != none && !outside:
			return r.String()
		case r != none, hop.Left && !allowed:
			return ruleAllow
		}
		outside = outside || !allowed
	}
	r := d.refusesAny(o.True, o.Also)
	// A directory above something protected may change, but not go. A link there is what leads to it, and stays as well; of
	// what is refused anyway it is not told which of the two it is.
	link := a > guardfs.Read && o.Info.Kind != guardfs.KindDir && r == none && p.allows(o.True)
	if (a == guardfs.Remove || link) && (d.shields(o.True) || slices.ContainsFunc(o.Also, d.shields)) {
		r = protected
	}
	switch {
	case r != none && !outside:
		return r.String()
	case r != none, !p.allows(o.True) && !p.passes(o, a):
		return ruleAllow
	}
	return ""
}

// allows tries a true name.
func (p *Policy) allows(name string) bool { return p.allowAll || p.allow.allows(name) }

// refuses tries a true or spelled name in all its readings.
func (d *denials) refuses(name string) rank {
	worst := d.deny.refuses(name)
	if worst == protected {
		return worst
	}
	folded := foldPath(name)
	if guardfs.ReservedPath(folded) { // the trash, on whatever volume, and what is beside a file for a moment
		return protected
	}
	if worst = max(worst, d.folded.refuses(folded)); worst == protected || !strange(name) {
		return worst
	}
	kept, ok := keepEnds(name)
	if !ok {
		return max(worst, denied) // too many to be sure
	}
	for _, reading := range kept {
		worst = max(worst, d.folded.refuses(reading))
	}
	for _, reading := range []string{folded, windows(folded)} {
		if reading != folded {
			worst = max(worst, d.folded.refuses(reading))
		}
		longer, ok := lengthen(reading, d.short)
		if !ok {
			return max(worst, denied)
		}
		for _, l := range longer {
			worst = max(worst, d.folded.refuses(l))
		}
	}
	return worst
}
