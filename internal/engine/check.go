package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strconv"
	"strings"

	"moltisfs/config"
	"moltisfs/hook"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// Check finds what is wrong with a configuration that takes a look at the file system to know. Its
// errors are *config.Problem, joined where there are several.
func Check(cfg config.FS) error {
	free, judge, _, err := newPolicy(cfg, &Host{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(checkRoot(cfg.WorkspaceRoot, false, free, judge), checkHooks(cfg.Hooks, free),
		free.Close())
}

// checkRoot refuses a workspace_root that can't be searched. Else every Glob and Grep would fail
// with that, and no model can mend it.
func checkRoot(root string, inside bool, free *guardfs.FS, judge guardfs.Judge) error {
	if root == "" {
		return nil
	}
	wrong := func(why, hint string) error {
		key := "tools.fs.workspace_root"
		if inside {
			key = "tools.sandbox.root"
			hint = "it and allow_paths are about paths in the sandbox; ${ROOT} in a rule is this root"
		}
		return &config.Problem{Key: key, Why: shown(root) + " " + why, Hint: hint}
	}
	const another = "name a directory of the agent's work"
	h, err := free.Resolve(root, guardfs.Look)
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
	if d, ok := errors.AsType[*policy.Denied](judge.Judge(h.Object(), guardfs.Walk)); ok {
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

// checkHooks refuses hooks whose program is missing. Else every call would be refused, and only the
// log would say why.
func checkHooks(cfg config.Hooks, free *guardfs.FS) error {
	var errs []error
	for _, list := range []struct {
		key   string
		lines []string
	}{
		{"before_tool_call", cfg.BeforeToolCall}, {"after_tool_call", cfg.AfterToolCall},
		{"tool_result_persist", cfg.ToolResultPersist},
	} {
		for i, line := range list.lines {
			c, err := hook.ParseCommand(line)
			if kind, known := kindOf(free, c.Path); err != nil || known && kind != guardfs.KindFile {
				errs = append(errs, &config.Problem{Key: fmt.Sprintf("tools.fs.hooks.%s[%d]", list.key, i),
					Why: shown(c.Path) + " is no program", Hint: "look at the spelling"})
			}
		}
	}
	return errors.Join(errs...)
}

// IdleRules warns of rules that do nothing, or less than they seem to.
func IdleRules(cfg config.FS) (out []*config.Problem) {
	free, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
	if err != nil {
		return out
	}
	defer free.Close() //nolint:errcheck // nothing was written through it
	for _, list := range []struct {
		key   string
		rules []string
		opens bool
	}{{"tools.fs.allow_paths", cfg.AllowPaths, true}, {"tools.fs.deny_paths", cfg.DenyPaths, false}} {
		for i, rule := range list.rules {
			if why, hint := idle(free, rule, list.opens); why != "" {
				out = append(out,
					&config.Problem{Key: fmt.Sprintf("%s[%d]", list.key, i), Why: why, Hint: hint})
			}
		}
	}
	return out
}

// idle says why a rule does nothing today, or less than it seems to; "" when it may.
func idle(free *guardfs.FS, rule string, opens bool) (why, hint string) {
	g, err := policy.CompileGlob(rule)
	if err != nil || !strings.HasPrefix(rule, "/") {
		return "", ""
	}
	for _, p := range g.Patterns() {
		named := "/" + strings.Join(p.Literal(), "/")
		whole := p.Done(p.Start()) && !p.Live(p.Start())
		kind, known := kindOf(free, named)
		if opens && whole && kind == guardfs.KindDir {
			return shown(named) + " is a directory, and nothing in it is allowed by that",
				"write " + shown(strings.TrimSuffix(named, "/")+"/**")
		}
		// What is named may be made later. Its directory has to be there already.
		if whole || !opens {
			named = path.Dir(named)
			kind, known = kindOf(free, named)
		}
		if known && kind == guardfs.KindAbsent {
			return shown(rule) + " does nothing: " + shown(named) + " does not exist", "look at the spelling"
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

func shown(s string) string { return strconv.QuoteToGraphic(s) }
