// Package policy decides what a session may touch: paths, by the operator's allow and deny globs
// and by what belongs to this program; and tools, by name.
//
// For example, with allow_paths = ["/ws/**"] and deny_paths = ["**/.env"] a session may read
// /ws/src/a.go, not /ws/src/.env, not /ws/src/.ENV/x, and nothing outside /ws.
//
// # Deny wins, and is fuzzy
//
// A path is refused when a deny rule covers it, or a directory above it, under any of its names.
// Its names are: the requested one, the real one, those through other mounts, each link on the way,
// and what a ".." goes up from. Each name is also folded, because a file system may find the file
// under that spelling too: letter case, composed or decomposed accents, invisible code points, dots
// and blanks at the end, NTFS streams, backslashes and short names.
//
// A deny rule also holds by its own letters: /app/[id]/** covers the directory called [id], besides
// those called i and d.
//
// A file that a rule names literally is also held by device and inode number. A file with several hard
// links is refused when one of them is denied.
//
// # Allow is exact
//
// Only the real name counts, byte for byte, and the real name of the directory that a ".." goes up from. A pattern like
// /x/** covers /x itself: a directory whose whole content is allowed can be listed, and one whose
// whole content is denied cannot. A directory above an allowed one is not allowed by that. It can
// be walked, and shows what is allowed in it. An empty allow list allows everything that is neither
// denied nor protected. Protected paths are those of this program; no list opens them.
//
// # Links in rules
//
// A rule holds as it is spelled, and with links in its literal beginning followed. An allow rule
// keeps to where the links led when the Policy was made. A deny rule holds wherever they have led
// since. A new link is noticed after some 10 ms, or, where looking is slow, after 50 times as long
// as a look takes. When links have led to 1000 new places, everything is refused.
//
// # What a refusal tells
//
// A refusal is a *Denied. Its text is the same whether or not anything is at the path, and it names
// no other path and no rule. Identity and hard links depend on what is there. They are asked
// last, and only of paths that the lists allow.
//
// # What this package does not do
//
// It resolves no path: package guardfs asks it, with the real names, and only those who go through
// guardfs are bound by it. Its own looks, Identify and Census, go through another guardfs.FS. A
// denied tree may be shown without a second mount: by an overlay of it, FUSE, a network share of
// this machine, or a snapshot. Then only files and directories that rules name literally are
// recognised.
//
// A Policy is safe for concurrent use. It does not change, except in what it remembers of
// identities and links.
package policy

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// Options are the rules of the operator, and the few looks at the file system that rules need. The
// zero Options allows everything.
type Options struct {
	Allow, Deny []string    // absolute globs, see glob.CheckRule
	Protected   []Protected // never to be touched
	Root        string      // absolute; nothing outside may be touched, whatever Allow says. "": no such wall

	Classes *Classes // names that keep secrets are refused as they say; nil: none are

	// Canonical gives the real name of the longest existing beginning of a path, and the rest as it
	// is: guardfs.Canonical. Without it rules hold only as they are spelled.
	Canonical func(path string) string

	// Identify gives the identity of the object at path, links followed. ok is false when there is none. Without it
	// nothing is held by identity. It MUST NOT ask this Policy: function Identify makes one that
	// does not.
	Identify func(path string) (id guardfs.Identity, ok bool)

	// Census finds the names of hard links. It walks the tree at root, root itself first, be it a
	// directory or a file. It follows no links below root, enters other mounts but no kernel file
	// systems, and MUST NOT ask this Policy. When visit returns fs.SkipDir for a directory, that
	// one is not entered; any other error ends the walk and is returned. Nothing at root is no
	// error. A directory that cannot be read is one, because what it holds is unknown. Without
	// Census, files with several hard links are refused whenever there are deny rules or protected
	// paths. Function Census makes one.
	Census func(root string, visit visitor) error

	// Budget is how many names a census may visit, 200,000 when 0. In a larger tree files with
	// several hard links are refused.
	Budget int

	// CensusFailed, if set, is told why a census failed: for the operator's log, with paths. It is
	// called with a lock held and MUST NOT ask the Policy.
	CensusFailed func(error)

	now func() time.Time // for tests
}

// Protected is a file or a whole tree that belongs to this program: its data, its configuration,
// its binary.
type Protected struct {
	Path string // absolute
	Why  string // "the data directory", for the operator's eyes
}

// Denied is the refusal of a path.
type Denied struct {
	Path string // as the caller spelled it
	// "deny_paths", "allow_paths"; "workspace_root", which is neither moved nor
	// deleted; "hard" and "secret", which are classes; or "pseudo": in no tree
	Rule string
	Why  string // the reason besides the name; mostly ""
	// Class is the class that alone closes the path, and that the path has as it was spelled. A caller may be
	// told it: it says nothing of what is there.
	Class string
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
	ruleSecret    = "secret"
	ruleProtected = "hard"
	rulePseudo    = "pseudo"
)

func (r rank) String() string {
	switch r {
	case protected:
		return ruleProtected
	case secret:
		return ruleSecret
	}
	return ruleDeny
}

// Policy is a guardfs.Judge.
type Policy struct {
	tracker  ruleTracker // the denied paths
	allow    node
	allowAll bool // no allow list
	classes  *Classes
	wall     *Policy // allows the root and nothing else; nil without one

	inodes    ruleInodes
	hardLinks hardLinks
}

var _ guardfs.Judge = (*Policy)(nil)

// New compiles the rules. On error there is no Policy; the error joins one *RuleError for each bad
// rule.
func New(o Options) (*Policy, error) {
	if o.Canonical == nil {
		o.Canonical = path.Clean
	}
	if o.now == nil {
		o.now = time.Now
	}
	p := &Policy{allowAll: len(o.Allow) == 0, classes: o.Classes}
	var errs []error
	if o.Root != "" {
		var err error
		if p.wall, err = only([]string{o.Root}, o.Canonical); err != nil {
			errs = append(errs, err)
		}
	}
	floating := false // a rule holds at any depth
	for _, pattern := range o.Deny {
		exact, err := glob.CompileClosing(pattern, nil)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		folded, err := glob.CompileClosing(pattern, foldRun)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		for i, e := range exact.Patterns() {
			root := "/" + strings.Join(e.Literal(), "/")
			source := &denyRule{[]string{root}, e, folded.Patterns()[i]}
			p.tracker.sources = append(p.tracker.sources, source)
			floating = floating || root == "/"
			if r := (rule{denied, e}); r.coversRoot() && root != "/" {
				p.inodes.add(root, denied)
			}
		}
	}
	for _, own := range o.Protected {
		if !strings.HasPrefix(own.Path, "/") {
			errs = append(errs, &RuleError{Rule: own.Path, Why: "protected path is not absolute"})
			continue
		}
		spelled := path.Clean(own.Path)
		p.tracker.sources = append(p.tracker.sources, &denyRule{roots: []string{spelled}})
		p.inodes.add(spelled, protected)
	}
	var allowed []string
	for _, pattern := range o.Allow {
		exact, err := glob.CompileRule(pattern, nil)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		allowed = append(allowed, p.allow.insertGlob(exact, denied, o.Canonical)...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if floating {
		// A rule for any depth, such as "**/.env", covers files on the whole disk. The census looks
		// for them in the allowed trees only.
		if p.allowAll {
			allowed = []string{"/"}
		}
		p.tracker.otherRoots = inside(allowed, o)
	}
	p.tracker.canonical, p.tracker.now, p.tracker.started = o.Canonical, o.now, o.now()
	p.tracker.current()
	p.inodes.identify, p.inodes.now = o.Identify, o.now
	p.hardLinks = hardLinks{census: o.Census, budget: o.Budget, failed: o.CensusFailed, now: o.now}
	return p, nil
}

// inside gives the parts of trees that lie within the root of o.
func inside(trees []string, o Options) (out []string) {
	if o.Root == "" {
		return trees
	}
	root := path.Clean(o.Canonical(o.Root))
	for _, t := range trees {
		switch {
		case t == root || strings.HasPrefix(t, strings.TrimSuffix(root, "/")+"/"):
			out = append(out, t)
		case strings.HasPrefix(root, strings.TrimSuffix(t, "/")+"/"):
			out = append(out, root)
		}
	}
	return out
}

// Judge decides about one object. The error is a *Denied.
func (p *Policy) Judge(o guardfs.Object, a guardfs.Access) error {
	if !strings.HasPrefix(o.True, "/") { // "pipe:[123]", "(unreachable)/x"
		return &Denied{Path: o.Spelled, Rule: rulePseudo}
	}
	if p.wall != nil {
		if err := p.wall.Judge(o, a); err != nil {
			return err
		}
	}
	d := p.tracker.current()
	if d.full {
		const why = "the links that rules go through have led to too many places"
		return &Denied{Path: o.Spelled, Rule: ruleDeny, Why: why}
	}
	if rule := p.refusedByName(d, &o, a); rule != "" {
		no := &Denied{Path: o.Spelled, Rule: rule}
		if rule == ruleSecret && p.classes.Of(o.Spelled) == Secret {
			no.Class = ruleSecret
		}
		return no
	}
	if o.Info.Kind == guardfs.KindAbsent {
		return nil
	}
	if r := p.inodes.rank(o.Info.ID); r != none {
		return &Denied{Path: o.Spelled, Rule: r.String()}
	}
	if o.Info.Links > 1 && o.Info.Kind == guardfs.KindFile {
		if why := p.hardLinkDenied(d, &o.Info); why != "" {
			return &Denied{Path: o.Spelled, Rule: ruleDeny, Why: why}
		}
	}
	return nil
}

// refusedByName gives the rule by which one of the names of o is refused, or "". The names are
// tried in the order in which the path passes them, and the first that is refused decides. The
// names behind that one must not show in the answer.
func (p *Policy) refusedByName(d *denials, o *guardfs.Object, a guardfs.Access) string {
	if o.Spelled != o.True && strings.HasPrefix(o.Spelled, "/") {
		if s := path.Clean(o.Spelled); s != o.True {
			if r := p.refuses(d, s, nil); r != none {
				return r.String()
			}
		}
	}
	outside := false // a link on the way lies in no allowed tree; it may still lead into one
	for _, hop := range o.Hops {
		r, allowed := p.refuses(d, hop.Name, hop.Also), p.allows(hop.Name)
		if s := path.Clean(o.Spelled); r == secret && strings.HasPrefix(s, hop.Name+"/") &&
			p.classes.Lifted(s) {
			r = none // a lifted name lifts the directories above it, too
		}
		switch {
		case r != none && !outside:
			return r.String()
		case r != none, hop.Left && !allowed:
			return ruleAllow
		}
		outside = outside || !allowed
	}
	r := p.refuses(d, o.True, o.Also)
	// A directory above something protected may change but must stay. So must a link there, since
	// it leads to the protected thing. Where the path is refused anyway, the answer does
	// not tell which of the two it is.
	link := a > guardfs.Read && o.Info.Kind != guardfs.KindDir && r == none && p.allows(o.True)
	if a == guardfs.Remove || link {
		if d.holdsProtected(o.True) || slices.ContainsFunc(o.Also, d.holdsProtected) {
			r = protected
		}
	}
	switch {
	case r != none && !outside:
		return r.String()
	case r != none, !p.allows(o.True) && !p.leadsToAllowed(o, a):
		return ruleAllow
	}
	return ""
}

// allows tries a real name.
func (p *Policy) allows(name string) bool { return p.allowAll || p.allow.allows(name) }

// refuses tries all names of one thing, by rules and by classes.
func (p *Policy) refuses(d *denials, name string, also []string) rank {
	r := d.refusesAny(name, also)
	if r == none && p.classes.isSecret(name, also) {
		return secret
	}
	return r
}

// refuses tries a name in every reading that some file system may give it.
func (d *denials) refuses(name string) rank {
	worst := d.deny.refuses(name)
	if worst == protected {
		return worst
	}
	folded := foldPath(name)
	if guardfs.ReservedPath(folded) { // the trash of any volume, and temporary files
		return protected
	}
	if worst = max(worst, d.folded.refuses(folded)); worst == protected || !ambiguous(name) {
		return worst
	}
	kept, ok := foldKeepingEnds(name)
	if !ok {
		return max(worst, denied) // too many readings to try: refuse
	}
	for _, reading := range kept {
		worst = max(worst, d.folded.refuses(reading))
	}
	for _, reading := range []string{folded, asNTFS(folded)} {
		if reading != folded {
			worst = max(worst, d.folded.refuses(reading))
		}
		longer, ok := expandShortNames(reading, d.shortNames)
		if !ok {
			return max(worst, denied)
		}
		for _, l := range longer {
			worst = max(worst, d.folded.refuses(l))
		}
	}
	return worst
}

// Rules holds the rules for another process, which applies them to a tree that holds nothing of
// ours.
type Rules struct {
	Allow, Deny []string
	Only        string // Options.Root
	Work        string // where the work is, if not Only
	Holds       Holds
	Lifted      []string
}

// Policy compiles t over the tree that free opens; free asks no judge.
func (t Rules) Policy(free *guardfs.FS) (*Policy, error) {
	classes, err := NewClasses(ClassOptions{Holds: t.Holds, Lifted: t.Lifted,
		Root: cmp.Or(t.Only, t.Work), Canonical: free.Canonical})
	if err != nil {
		return nil, err
	}
	return New(Options{Allow: t.Allow, Deny: t.Deny, Root: t.Only,
		Classes: classes, Canonical: free.Canonical, Identify: Identify(free), Census: Census(free)})
}
