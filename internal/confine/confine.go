// Package confine has the kernel hold a program to the operator's rules, as far as Landlock can: on
// reads, writes and TCP.
//
// Landlock only ever opens trees. So a path that a rule closes in a tree that is there when the program
// starts is kept out by opening the paths beside it, one by one. In a directory of that kind nothing
// new can be made, and with something unreadable in it, it can't be listed. A path that a rule closes by a
// pattern, and is not there yet, can't be kept out at all where files may be made: a Plan names such
// rules, and its maker must ask before it goes on.
//
// It looks at the names of the trees that it opens, once, before the program starts, and never
// at the content of files.
package confine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A Right is the access to a Rule's path, and to all below it where that is a directory.
type Right int

// The rights. Each one includes the ones before it.
const (
	List   Right = iota + 1 // names only
	Read                    // and run
	Write                   // and make, remove and rename
	Device                  // and ask the driver
)

// A Rule opens one path.
type Rule struct {
	Path  string
	Right Right
	Dir   bool
	ID    guardfs.Identity // what must be there; zero: anything
}

// as is the rule with another right.
func (r Rule) as(right Right) Rule {
	r.Right = right
	return r
}

// Options are the arguments of Make. All paths are absolute.
type Options struct {
	Roots    []string               // what the rules are about
	Judge    guardfs.Judge          // the rules
	Asked    func(path string) bool // changes are asked about, and here is nobody to ask; nil: none
	Patterns []string               // rules that hold for names that are not there yet, as one reads them
	ReadOnly bool
	Weaker   bool // go on where the rules can't be held

	Reads, Writes []string // besides, whatever the rules say: the operator's --read and --write
	Budget        int      // how many names are looked at; 200,000 when 0
}

// A Plan is the paths to open, and the rules that this does not hold.
type Plan struct {
	Rules  []Rule
	Shut   []Rule   // the paths that the rules close in the roots; Right is closed: Read or Write
	Frozen []string // directories in which nothing new can be made
	Unheld []string // the rules that hold for what is there, and not for what comes
}

// mostRules is how many paths are opened one by one. Each takes a descriptor for a moment.
const mostRules = 50_000

// ErrTooMany is the error for trees in which too much lies beside what the rules close.
var ErrTooMany = errors.New("too many names")

// System are the paths that programs need of the machine to run at all.
func System() []Rule {
	var rules []Rule
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
		"/opt", "/nix", Settings, "/proc", "/sys/devices/system/cpu"} {
		rules = append(rules, Rule{Path: dir, Right: Read, Dir: true})
	}
	for _, file := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
		"/dev/tty", "/dev/ptmx"} {
		rules = append(rules, Rule{Path: file, Right: Device})
	}
	return append(rules, Rule{Path: "/dev/pts", Right: Device, Dir: true})
}

// Make looks at the roots and plans what to open.
func Make(ctx context.Context, o Options) (*Plan, error) {
	free, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
	if err != nil {
		return nil, fmt.Errorf("opening the file system: %w", err)
	}
	defer free.Close() //nolint:errcheck // nothing was written through it
	p := &Plan{Rules: System()}
	left := o.Budget
	if left == 0 {
		left = 200_000
	}
	if syscall.Geteuid() == 0 { // nobody else reads the passwords of the machine, by their modes
		p.Rules = slices.DeleteFunc(p.Rules, func(r Rule) bool { return r.Path == Settings })
		etc := Options{Judge: forAll{}, ReadOnly: true, Weaker: true}
		if err := p.add(ctx, free, &etc, Settings, &left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for _, dir := range o.Reads {
		p.Rules = append(p.Rules, Rule{Path: dir, Right: Read, Dir: true})
	}
	for _, dir := range o.Writes {
		p.Rules = append(p.Rules, Rule{Path: dir, Right: Write, Dir: true})
	}
	for _, root := range o.Roots {
		if err := p.add(ctx, free, &o, free.Canonical(root), &left); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(p.Shut, func(a, b Rule) int { return strings.Compare(a.Path, b.Path) })
	return p, nil
}

// Settings is the directory of the machine's configuration, which programs read.
const Settings = "/etc"

// forAll closes files that only their owner and group may read: that root may is no reason to show them.
type forAll struct{}

func (forAll) Judge(o guardfs.Object, _ guardfs.Access) error {
	need := fs.FileMode(0o004)
	if o.Info.Kind == guardfs.KindDir {
		need = 0o005
	}
	if o.Info.Mode&need != need {
		return fs.ErrPermission
	}
	return nil
}

func (forAll) Dir(string, ...string) guardfs.DirVerdict { return guardfs.DirVerdict{} }

// add looks at a tree and adds the paths to be opened in it.
func (p *Plan) add(ctx context.Context, free *guardfs.FS, o *Options, root string, left *int) error {
	t := tree{o: o, free: free, root: root, left: left, nodes: map[string]*node{}}
	visit := func(name string, k guardfs.Kind, id guardfs.Identity) error {
		return t.visit(ctx, name, k, id)
	}
	if err := policy.Census(free)(root, visit); err != nil {
		return fmt.Errorf("looking at %s: %w", root, err)
	}
	if top := t.nodes[root]; top != nil {
		t.open(p, top)
	}
	if len(p.Rules) > mostRules {
		return fmt.Errorf("opening %s: %w", root, ErrTooMany)
	}
	return nil
}

// A tree is a root with all it holds.
type tree struct {
	o     *Options
	free  *guardfs.FS
	root  string
	left  *int
	nodes map[string]*node // directories
}

// A node is a file or directory, with the right to it.
type node struct {
	rule  Rule // Right is 0 for what is shut
	below []*node
	shut  Right // the least that is closed in it: Read, Write, or 0 for nothing
}

func (t *tree) visit(ctx context.Context, name string, k guardfs.Kind,
	id guardfs.Identity) error {
	if *t.left--; *t.left < 0 {
		return ErrTooMany
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n := &node{rule: Rule{Path: name, Dir: k == guardfs.KindDir, ID: id}}
	object, _, err := t.free.Lstat(name) // with its other names
	access := guardfs.Read
	if n.rule.Dir {
		access = guardfs.Look
	}
	walk := false
	switch {
	case err != nil || object.Info.ID != id:
		n.shut = Read // it is gone, or another one by now
	case t.o.Judge.Judge(object, access) != nil:
		n.shut = Read
		walk = n.rule.Dir && t.o.Judge.Judge(object, guardfs.Walk) == nil
	case t.o.ReadOnly, t.o.Judge.Judge(object, guardfs.Modify) != nil,
		t.o.Asked != nil && t.o.Asked(name):
		n.rule.Right, n.shut = Read, Write
	default:
		n.rule.Right = Write
	}
	if n.rule.Dir {
		t.nodes[name] = n
	}
	if up := t.nodes[path.Dir(name)]; up != nil && name != t.root {
		up.below = append(up.below, n)
	}
	for up := name; up != t.root && n.shut > 0; { // the ones above can't be opened as a whole
		up = path.Dir(up)
		above := t.nodes[up]
		if above == nil || above.shut > 0 && above.shut <= n.shut {
			break
		}
		above.shut = n.shut
	}
	if n.shut == Read && n.rule.Dir && !walk {
		return fs.SkipDir
	}
	return nil
}

// open adds the paths to be opened in a node.
func (t *tree) open(p *Plan, n *node) {
	switch {
	case n.rule.Right == 0:
		p.Shut = append(p.Shut, n.rule.as(Read))
		if n.below == nil {
			return
		}
	case n.rule.Right == Read && n.shut == Write: // it can't be written anyway, nor can what is in it
		if !t.o.ReadOnly {
			p.Shut = append(p.Shut, n.rule.as(Write))
		}
		p.Rules = append(p.Rules, n.rule)
		return
	case n.shut == 0:
		p.Rules = append(p.Rules, n.rule)
		if n.rule.Dir && n.rule.Right == Write && (t.o.Asked != nil || !t.o.Judge.Dir(n.rule.Path).All) {
			p.unheld(t.o.Patterns)
		}
		return
	case n.shut == Write: // all of it may be read
		p.Rules = append(p.Rules, n.rule.as(Read))
	case t.o.Weaker: // names of what is closed in it can be seen
		p.Rules = append(p.Rules, n.rule.as(List))
	}
	if n.rule.Right > 0 && !t.o.ReadOnly {
		p.Frozen = append(p.Frozen, n.rule.Path)
	}
	for _, b := range n.below {
		t.open(p, b)
	}
}

// unheld says that the patterns hold for existing paths only.
func (p *Plan) unheld(patterns []string) {
	if len(patterns) == 0 {
		patterns = []string{"a rule of the configuration"}
	}
	for _, rule := range patterns {
		if !slices.Contains(p.Unheld, rule) {
			p.Unheld = append(p.Unheld, rule)
		}
	}
}
