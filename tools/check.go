package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// Check finds what is wrong with a configuration: what config.Check finds, and what takes the tools, or a look at the file system, to
// know. Its errors are *config.Problem, joined where there are several; config.Locate adds where in a file they stand. Open does
// the same.
func Check(cfg config.Config) error {
	if err := checkValues(cfg); err != nil {
		return err
	}
	s := &Suite{cfg: cfg, logger: slog.New(slog.DiscardHandler)}
	if err := s.newPolicy("", nil); err != nil {
		return err
	}
	return errors.Join(s.checkRoot(), s.free.Close())
}

// checkValues is Check without a look at the file system.
func checkValues(cfg config.Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	return errors.Join(someTool(cfg.Tools.Policy))
}

// someTool refuses lists that leave no tool: who starts a server wants to call something.
func someTool(p config.Policy) error {
	if defs, err := DefinitionsUnder(p); err != nil || len(defs) > 0 {
		return err
	}
	key := "tools.policy.deny"
	if defs, _ := DefinitionsUnder(config.Policy{Allow: p.Allow}); len(defs) == 0 {
		key = "tools.policy.allow"
	}
	return &config.Problem{Key: key, Why: "leaves no tool at all", Hint: "name one of them, as \"Read\""}
}

// checkRoot refuses a workspace_root that can't be searched: each Glob and Grep would be told so, and no model can mend it.
func (s *Suite) checkRoot() error {
	root := s.cfg.Tools.FS.WorkspaceRoot
	if root == "" {
		return nil
	}
	wrong := func(why, hint string) error {
		return &config.Problem{Key: "tools.fs.workspace_root", Why: quote(root) + " " + why, Hint: hint}
	}
	const another = "name a directory of the agent's work"
	h, err := s.free.Resolve(root, guardfs.Look)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wrong("does not exist", "make it, or name another directory")
	case errors.Is(err, guardfs.ErrPseudo):
		return wrong("is on a kernel interface, where there are no files", another)
	case err != nil:
		return wrong("can't be looked at: "+cause(err), another)
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	if h.Object().Info.Kind != guardfs.KindDir {
		return wrong("is no directory", another)
	}
	if d, ok := errors.AsType[*policy.Denied](s.policy.Judge(h.Object(), guardfs.Walk)); ok {
		return wrong("is closed to the tools by "+d.Rule, "open it there, or name another directory")
	}
	return nil
}

// cause is what the system said, without the operation.
func cause(err error) string {
	if e, ok := errors.AsType[*guardfs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

// Warnings are what is right and may still be meant otherwise: those of the configuration itself, and what a look at the file
// system adds of rules that do nothing.
func Warnings(cfg config.Config) []*config.Problem {
	out := cfg.Warnings()
	free, err := guardfs.New(guardfs.Options{Judge: policy.Free{}})
	if err != nil {
		return out
	}
	defer free.Close() //nolint:errcheck // nothing was written through it
	for _, list := range []struct {
		key   string
		rules []string
		opens bool
	}{{"tools.fs.allow_paths", cfg.Tools.FS.AllowPaths, true}, {"tools.fs.deny_paths", cfg.Tools.FS.DenyPaths, false}} {
		for i, rule := range list.rules {
			if why, hint := idle(free, rule, list.opens); why != "" {
				out = append(out, &config.Problem{Key: fmt.Sprintf("%s[%d]", list.key, i), Why: why, Hint: hint})
			}
		}
	}
	return out
}

// idle says why a rule does nothing today, or less than it seems to; "" when it may.
func idle(free *guardfs.FS, rule string, opens bool) (why, hint string) {
	g, err := policy.CompileGlob(rule, policy.GlobOptions{})
	if err != nil || !strings.HasPrefix(rule, "/") {
		return "", ""
	}
	for _, p := range g.Patterns() {
		named := "/" + strings.Join(p.Literal(), "/")
		whole := p.Done(p.Start()) && !p.Live(p.Start())
		kind, known := kindOf(free, named)
		if opens && whole && kind == guardfs.KindDir {
			return quote(named) + " is a directory, and nothing in it is allowed by that", "write " + quote(strings.TrimSuffix(named, "/")+"/**")
		}
		if whole || !opens { // what is named may be made later; the directory that it is to be in is there already
			named = path.Dir(named)
			kind, known = kindOf(free, named)
		}
		if known && kind == guardfs.KindAbsent {
			return quote(rule) + " does nothing: " + quote(named) + " does not exist", "look at the spelling"
		}
	}
	return "", ""
}

// kindOf is what is at a path; known is false where that can't be told.
func kindOf(free *guardfs.FS, path string) (kind guardfs.Kind, known bool) {
	h, err := free.Resolve(path, guardfs.Look)
	if err != nil {
		return guardfs.KindAbsent, errors.Is(err, fs.ErrNotExist)
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	return h.Object().Info.Kind, true
}
