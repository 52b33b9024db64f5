package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// Action is the kind of change that a step makes at its path.
type Action string

// The actions. A directory that is removed is empty by then, or is renamed.
const (
	Put    Action = "put"    // a file, new or in the place of a file or link
	Link   Action = "link"   // a symbolic link, likewise
	Remove Action = "remove" // a file or link
	Mkdir  Action = "mkdir"
	Rmdir  Action = "rmdir"
	Rename Action = "rename" // whatever it is, with all it holds
	Append Action = "append" // to a file that is too large to be made anew, in place
)

// State describes the object that is at a path, or is to be there. The zero State is nothing.
type State struct {
	checkpoint.State
	ID      guardfs.Identity // which object; zero where that is not known yet
	Changed time.Time        // of what was not read: its change time
}

// A Step is one path and what becomes of it.
type Step struct {
	Path   string // canonical
	Action Action
	To     string // of Rename; "" is a slot of the trash, which is chosen when all is made ready
	Before State  // what must be there
	After  State  // what will be there; its ID is known once it is made ready
	// Exact: the metadata of After holds. Otherwise it is that of what is there, or what the system
	// gives to something new; of a directory, its mode less the umask.
	Exact    bool
	Optional bool // of Rmdir: a directory that is in use by then stays, and is told

	file *Target // of Put, Link and Remove: where it is, and contents
	move *Move   // of Rename
}

// A Plan lists the steps of one call, in this order: removals, the deepest first; directories, the
// topmost first; renames that bring something; files and links. So a path may occur twice: that is
// how a file takes the place of a directory.
type Plan struct {
	Steps   []Step
	Summary string        // one line for the person who approves
	Op      checkpoint.Op // kind, undo of, restore of
	DryRun  bool          // nothing is changed, and nobody is asked
	Source  string        // canonical path of what is copied; it is on record, and not changed

	Checkpoint bool // whatever the configuration says
	Whole      bool // refuse unless store or trash holds every content

	Left []Blocked // paths that it leaves alone, and why

	// by path: how long the trash keeps what is removed there
	trash map[string]*checkpoint.Trashed
}

// PlanError: a plan contradicts itself. No call may bring that about.
type PlanError struct {
	Path, Why string
	Action    Action
}

func (e *PlanError) Error() string { return fmt.Sprintf("%s %s: %s", e.Action, e.Path, e.Why) }

// Digest gives the digest that an approval is bound to: two plans of one call with the same digest do the same.
// A file that is there counts by its content alone, so that a touch makes nothing stale.
func (p *Plan) Digest(c *Call) string {
	h := sha256.New()
	for _, s := range []string{c.Tool, c.Principal, c.Session} {
		field(h, s)
	}
	for i := range p.Steps {
		h.Write(p.Steps[i].sum())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sum is the digest of one step.
func (s *Step) sum() []byte {
	h := sha256.New()
	a, was := &s.After, ""
	if s.Action == Rename { // it is that very object, with all that is in it
		was = s.Before.ID.Lasting()
		if s.move != nil {
			was += s.move.in.names + s.move.hashes()
		}
	}
	if b := &s.Before; s.Action == Append { // nor into this one
		was = fmt.Sprint(b.ID.Lasting(), b.Size, b.ModTime.UnixNano(), b.Changed.UnixNano())
	}
	for _, f := range []string{
		string(s.Action), s.Path, s.To, string(s.Before.Kind), s.Before.Hash, s.Before.Target, was,
		string(a.Kind), a.Hash, a.Tail, a.Target, a.Mode.String(),
		fmt.Sprint(a.UID, a.GID, a.ModTime.UnixNano(), s.Exact, s.Optional),
	} {
		field(h, f)
	}
	if s.file != nil && s.file.Unsaved() {
		field(h, roleBuffer)
	}
	if s.file != nil && s.file.After.From != nil {
		field(h, s.file.After.From.String())
	}
	for _, name := range slices.Sorted(maps.Keys(a.Xattrs)) {
		field(h, name)
		field(h, string(a.Xattrs[name]))
	}
	return h.Sum(nil)
}

// field writes s so that no two lists of fields become one.
func field(w io.Writer, s string) {
	fmt.Fprintf(w, "%d:%s", len(s), s) //nolint:errcheck // a hash takes everything
}

// adds says that p does something that approved does not.
func (p *Plan) adds(approved *Plan) bool {
	known := map[string]bool{}
	for i := range approved.Steps {
		known[string(approved.Steps[i].sum())] = true
	}
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return !known[string(s.sum())] })
}

// Paths are the canonical paths of all that is changed, each once: what is meant first, then the
// directories that come and go with it.
func (p *Plan) Paths() []string {
	var meant, dirs []string
	seen := map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, name := range []string{s.Path, s.To} {
			if name == "" || seen[name] || inTrash(name) {
				continue
			}
			seen[name] = true
			if s.Action == Mkdir || s.Action == Rmdir {
				dirs = append(dirs, name)
			} else {
				meant = append(meant, name)
			}
		}
	}
	return append(meant, dirs...)
}

// keys are the lock keys of all that is changed. Every path is locked by its name: while somebody
// makes or removes the directory it lies in, others see it there, or see nothing, and their plans
// lock nothing else in common. What is there is locked by its place too, for its other spellings. A
// tree that gets another name is locked with all that is below both names.
func (p *Plan) keys() (out []string) {
	dirs := map[string]bool{}
	if p.Op.Tag != "" {
		out = append(out, opKey(p.Op.Tag))
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		t, mv := s.file, s.move
		if mv != nil && mv.place != nil {
			out = append(out, mv.place.LockKey())
		}
		if mv != nil {
			for _, from := range mv.pairs {
				out = append(out, from.place.LockKey())
			}
		}
		if t != nil && t.place != nil {
			out = append(out, t.place.LockKey())
		}
		if s.To != "" {
			out = append(out, guardfs.NameKey(s.To))
		}
		out = append(out, guardfs.NameKey(s.Path))
		for _, name := range []string{s.Path, s.To} {
			if name == "" || inTrash(name) {
				continue
			}
			if s.Action == Rename {
				out = append(out, guardfs.TreeKey(name))
			}
			above(name, dirs)
		}
	}
	for dir := range dirs {
		out = append(out, guardfs.Shared(guardfs.TreeKey(dir)))
	}
	return out
}

// above adds the directories above name to dirs.
func above(name string, dirs map[string]bool) {
	for dir := path.Dir(name); len(dir) > 1 && !dirs[dir]; dir = path.Dir(dir) {
		dirs[dir] = true
	}
}

// first is the path that an answer names.
func (p *Plan) first() string {
	if all := p.Paths(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// of are the paths of the steps that do a.
func (p *Plan) of(a Action) (out []string) {
	for i := range p.Steps {
		if p.Steps[i].Action == a {
			out = append(out, p.Steps[i].Path)
		}
	}
	return out
}

// check goes through a plan as if it were carried out, and refuses one that is not possible: a path
// that would be two things at once, something below what is not there, an order that is not that of
// a plan.
func (p *Plan) check() error {
	played := played{map[string]checkpoint.Kind{}, map[string]int{}}
	phase := 0
	for i := range p.Steps {
		s := &p.Steps[i]
		if why := s.against(played); why != "" {
			return &PlanError{s.Path, why, s.Action}
		}
		if s.phase() < phase {
			return &PlanError{s.Path, "it comes too late in the plan", s.Action}
		}
		phase = s.phase()
		played.set(s.Path, kind(s.After))
		if s.Action == Rename && s.To != "" {
			played.set(s.To, kind(s.Before))
		}
	}
	return nil
}

// played is a plan on its way through check, as far as it tells what there is.
type played struct {
	is    map[string]checkpoint.Kind // what is at each path by now
	holds map[string]int             // how many of these are below each directory
}

func (p played) set(name string, k checkpoint.Kind) {
	change := 1
	switch was, known := p.is[name]; {
	case k == checkpoint.Absent && (!known || was == checkpoint.Absent):
		change = 0
	case k == checkpoint.Absent:
		change = -1
	case known && was != checkpoint.Absent:
		change = 0
	}
	p.is[name] = k
	for d := path.Dir(name); change != 0 && len(d) > 1; d = path.Dir(d) {
		p.holds[d] += change
	}
}

// sort puts the steps in the order of a plan. A directory that is made twice is made once.
func (p *Plan) sort() {
	slices.SortStableFunc(p.Steps, func(a, b Step) int {
		switch order := cmp.Compare(a.phase(), b.phase()); {
		case order != 0:
			return order
		case a.Action == Mkdir:
			return strings.Compare(a.Path, b.Path)
		case a.Action == Rmdir && b.Action == Rmdir:
			return strings.Compare(b.Path, a.Path)
		case a.Action == Rmdir:
			return 1
		case b.Action == Rmdir:
			return -1
		}
		return 0
	})
	p.Steps = slices.CompactFunc(p.Steps, func(a, b Step) bool {
		return a.Action == Mkdir && b.Action == Mkdir && a.Path == b.Path
	})
}

// phase is the part of a plan that a step belongs to.
func (s *Step) phase() int {
	switch s.Action {
	case Remove, Rmdir:
		return 0
	case Rename:
		if s.To == "" || inTrash(s.To) {
			return 0
		}
		return 2
	case Mkdir:
		return 1
	}
	return 3
}

// against says why a step is not possible after those that were played; "" when it is.
func (s *Step) against(p played) string {
	const (
		file, link, dir, none = checkpoint.File, checkpoint.Symlink, checkpoint.Dir, checkpoint.Absent
	)
	before, after := kind(s.Before), kind(s.After)
	var from, to []checkpoint.Kind
	switch s.Action {
	case Put:
		from, to = []checkpoint.Kind{file, link, none}, []checkpoint.Kind{file}
	case Append:
		from, to = []checkpoint.Kind{file}, []checkpoint.Kind{file}
	case Link:
		from, to = []checkpoint.Kind{file, link, none}, []checkpoint.Kind{link}
	case Remove:
		from, to = []checkpoint.Kind{file, link}, []checkpoint.Kind{none}
	case Mkdir:
		from, to = []checkpoint.Kind{none}, []checkpoint.Kind{dir}
	case Rmdir:
		from, to = []checkpoint.Kind{dir}, []checkpoint.Kind{none}
	case Rename:
		from, to = []checkpoint.Kind{file, link, dir}, []checkpoint.Kind{none}
	}
	switch {
	case !slices.Contains(from, before):
		return fmt.Sprintf("it does not go with a %s before", before)
	case !slices.Contains(to, after):
		return fmt.Sprintf("it does not make a %s", after)
	case s.Action != Rename && s.To != "":
		return "only a rename leads elsewhere"
	case s.Optional && s.Action != Rmdir:
		return "only a directory that goes may stay"
	case s.Path == s.To || below(s.To, s.Path):
		return "it can't go into itself"
	}
	if now, known := p.is[s.Path]; known && now != before {
		return fmt.Sprintf("the plan leaves a %s there before", now)
	}
	if s.Action == Rename && s.To != "" {
		if now, known := p.is[s.To]; known && now != none {
			return fmt.Sprintf("the plan leaves a %s at %s before", now, s.To)
		}
	}
	for _, name := range []string{s.Path, s.To} {
		if !absolute(name) && (name != "" || name == s.Path) {
			return "its name is not canonical"
		}
		for d := path.Dir(name); len(d) > 1; d = path.Dir(d) {
			if now, known := p.is[d]; known && now != dir {
				return fmt.Sprintf("the plan leaves a %s at %s before", now, d)
			}
		}
	}
	if !s.Optional && p.holds[s.Path] > 0 {
		return "the plan leaves something in it"
	}
	return ""
}

// absolute says that name is a canonical one: absolute and without detours.
func absolute(name string) bool {
	return path.Clean(name) == name &&
		(strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':')
}

func kind(s State) checkpoint.Kind {
	if s.Kind == "" {
		return checkpoint.Absent
	}
	return s.Kind
}
