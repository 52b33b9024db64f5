package engine

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/grep/ignore"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// CodeFacts is why what runs code is not changed. Lifts: a yes would have done, and nobody was
// there to give it; Why is what the approver said. Else the operator has it refused.
type CodeFacts struct {
	Lifts bool
	Why   string
}

// mostCode is of how many paths each is named.
const mostCode = 5

// runsCode are the paths of a plan that run code later, under any of their names, with those inside
// of a tree that gets another name, goes, or comes back. No more than a few are named.
func (e *Engine) runsCode(ctx context.Context, p *Plan) (out []string, err error) {
	if e.classes == nil || e.cfg.ProtectExec == "allow" {
		return nil, nil
	}
	hooks := map[string][]string{}
	// The name that has the class is told first: it is the one to lift.
	add := func(name string, is policy.Class) {
		if is < policy.Exec && !e.isHook(name, hooks) {
			return
		}
		if len(out) <= mostCode && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, name := range []string{s.Path, s.To} {
			if name == "" || inTrash(name) {
				continue
			}
			as := name
			if s.Action == Mkdir || s.Action == Rmdir {
				as += "/-" // some names count for files only, as HEAD
			}
			if is := e.classes.Of(as); is >= policy.Exec || e.isHook(as, hooks) {
				add(name, policy.Exec)
			}
		}
		if t := s.file; t != nil {
			by, is := t.Path, e.classes.Of(t.Path)
			if t.place != nil && is < policy.Exec {
				by, is = e.classes.Worst(t.place.Object())
			}
			add(by, is)
			add(t.True, is)
		}
		if s.move == nil {
			continue
		}
		for _, place := range []*guardfs.Place{s.move.place, s.move.slot} {
			if place != nil && !inTrash(place.Object().True) {
				by, is := e.classes.Worst(place.Object())
				add(by, is)
				add(place.Object().True, is)
			}
		}
		err := e.inside(ctx, s.move, func(name string) { add(name, e.classes.Of(name)) })
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// inside names all that is in a tree that moves, as it is called before and after.
func (e *Engine) inside(ctx context.Context, mv *Move, use func(name string)) (err error) {
	switch {
	case mv.info.Kind != guardfs.KindDir:
	case mv.Back:
		_, err = e.lookInto(ctx, mv, mv.Entry.Parked, func(name string, _ guardfs.Kind) { use(name) })
	case mv.To == "":
		_, err = e.census(ctx, mv.Path, true, use)
	default:
		for _, name := range slices.Concat(mv.in.paths, mv.in.dirs) {
			use(name)
			use(mv.newName(name))
		}
	}
	return err
}

// isHook says whether a path is, or is in, what git reads and runs under names that say nothing: what
// the configuration names, and git's own directory where .git only leads there. known has those of
// directories.
func (e *Engine) isHook(name string, known map[string][]string) bool {
	return slices.ContainsFunc(e.gitPlaces(path.Dir(name), known), func(at string) bool {
		dir, whole := strings.CutSuffix(at, "/")
		return name == dir || whole && below(name, dir)
	}) && !e.classes.Lifted(name)
}

// gitPlaces are the code places of the repository that holds dir, and of the user, and where .git
// leads, each as it is named and as it truly is. A directory of which all counts ends in a slash. What
// can't be read names none: git can't read it either.
func (e *Engine) gitPlaces(dir string, known map[string][]string) (out []string) {
	out, ok := known[dir]
	if ok || e.free == nil {
		return out
	}
	defer func() { known[dir] = out }()
	add := func(name string) {
		if name == "" || len(name) > 4096 {
			return
		}
		slash := ""
		if strings.HasSuffix(name, "/") {
			slash = "/"
		}
		name = path.Clean(name)
		out = append(out, name+slash)
		if h, err := e.free.Resolve(name, guardfs.Walk); err == nil {
			out = append(out, h.Object().True+slash)
			h.Close() //nolint:errcheck // nothing was written through it
		}
	}
	read := func(name string) ([]byte, error) { return readWhole(e.free, name, ignore.MaxFile) }
	git := path.Join(dir, ".git")
	var h *guardfs.Handle
	err := fs.ErrNotExist
	if !e.free.Nothing(git) {
		h, err = e.free.Resolve(git, guardfs.Look)
	}
	top := dir == "/" || dir == "." || e.place.Calls != nil && dir == e.cfg.WorkspaceRoot
	if err != nil && !top { // above the root of a sandbox, the workspace there, nothing can be read
		return e.gitPlaces(path.Dir(dir), known)
	}
	code := e.search.code
	if err == nil {
		kind := h.Object().Info.Kind
		h.Close() //nolint:errcheck // nothing was written through it
		common := git
		if kind == guardfs.KindFile {
			git, common = linked(dir, read)
			add(common + "/")
		}
		add(git + "/")
		u := ignore.User{Home: e.search.home, GitDir: git, Read: read,
			Files: []string{common + "/config", git + "/config.worktree"}}
		code = slices.Concat(code, u.CodePlaces())
	}
	for _, to := range code {
		if to != "" && !filepath.IsAbs(to) {
			if err != nil { // no repository
				continue
			}
			to = dir + "/" + to
		}
		add(to)
	}
	return out
}

// linked follows the .git file of a worktree or a submodule: to its own directory, and to the one
// that has the configuration.
func linked(top string, read func(string) ([]byte, error)) (git, common string) {
	data, _ := read(top + "/.git") //nolint:errcheck // nothing is named then
	to, _ := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
	if git = strings.TrimSpace(to); !path.IsAbs(git) {
		git = path.Join(top, git)
	}
	common = git
	if data, err := read(git + "/commondir"); err == nil {
		if common = strings.TrimSpace(string(data)); !path.IsAbs(common) {
			common = path.Join(git, common)
		}
	}
	return git, common
}

// covers refuses a plan that was made anew, and changes what runs code: nobody was asked about
// that.
func (e *Engine) covers(ctx context.Context, approved bool, p *Plan) error {
	if approved {
		return nil // it is refused for whatever it adds
	}
	code, err := e.runsCode(ctx, p)
	if err == nil && len(code) > 0 {
		err = Refuse(ApprovalStale, code[0], p.diff())
	}
	return err
}

// codeWarnings say of a question what in it runs code: what is asked about for that reason, and
// what runs when a build or a test does.
func (e *Engine) codeWarnings(p *Plan, code []string) (out []string) {
	for i, name := range code {
		if i == mostCode {
			out = append(out, "more of what is changed runs code later")
			break
		}
		out = append(out,
			edit.ShownPath(name)+" runs code later, or tells an agent what to do (class exec)")
	}
	for _, name := range p.Paths() {
		if e.classes.Of(name) == policy.Marked && len(out) < 2*mostCode {
			out = append(out, fmt.Sprintf("%s runs code when it is used", edit.ShownPath(name)))
		}
	}
	return out
}
