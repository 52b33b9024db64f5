package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
	"moltisfs/internal/lazy"
	"moltisfs/internal/policy"
)

// Check finds what is wrong with a configuration that takes a look at the file system to know. Its
// errors are *config.Problem, joined where there are several.
func Check(cfg config.Tools) error {
	free, judge, _, err := newPolicy(cfg.FS, &Host{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(checkRoots(cfg, free, judge), checkHooks(cfg.FS.Hooks, free), free.Close())
}

// checkRoots refuses a workspace_root and workspaces that can't be worked in. Else every call there
// would fail with that, and no model can mend it.
func checkRoots(cfg config.Tools, free *guardfs.FS, judge guardfs.Judge) error {
	return errors.Join(checkRoot("tools.fs.workspace_root", cfg.FS.WorkspaceRoot, free, judge),
		checkRoot("tools.jettson.workspaces", cfg.Jettson.Workspaces, free, judge))
}

// checkRoot refuses a directory of a key that is not there, or closed.
func checkRoot(key, root string, free *guardfs.FS, judge guardfs.Judge) error {
	if root == "" {
		return nil
	}
	wrong := func(why, hint string) error {
		if key == "tools.sandbox.root" {
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

// cause gives the error of the system, without the operation.
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
		{"tool_result_persist", cfg.ToolResultPersist}, {"on_question", cfg.OnQuestion},
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

// RuleOf names for the operator the rule by which the configuration closes path to reading, or with change to changes: a list with the
// rule of it, as in `deny_paths "**/*.log"`, or a class of protected names. It is "" where the path is open. root is Options.Root.
func RuleOf(cfg config.FS, root, path string, change bool) (string, error) {
	o := rules(cfg, root)
	var err error
	o.Classes, err = policy.NewClasses(policy.ClassOptions{Holds: holds(cfg), Lifted: cfg.Unprotected,
		Root: cmp.Or(root, cfg.WorkspaceRoot), Canonical: guardfs.Canonical})
	if err != nil {
		return "", err
	}
	p, err := policy.New(o)
	if err != nil {
		return "", err
	}
	access := guardfs.Read
	if change {
		access = guardfs.Create
	}
	denied, _ := errors.AsType[*policy.Denied](p.Judge(guardfs.Object{Spelled: path, True: guardfs.Canonical(path)}, access))
	if denied == nil {
		return "", nil
	}
	if text, _ := patternOf(&cfg, denied); text != "" {
		return denied.Rule + " " + strconv.Quote(text), nil
	}
	return denied.Rule, nil
}

// patternOf gives the first pattern of deny_paths that refuses the path of a refusal by itself, and where it stands; "" where none does.
func patternOf(cfg *config.FS, denied *policy.Denied) (pattern, at string) {
	if denied.Rule != "deny_paths" {
		return "", ""
	}
	for i, rule := range cfg.DenyPaths {
		one, err := policy.New(policy.Options{Deny: []string{rule}, Canonical: guardfs.Canonical})
		if err == nil && one.Judge(guardfs.Object{Spelled: denied.Path, True: guardfs.Canonical(denied.Path)}, guardfs.Read) != nil {
			return rule, cfg.DenyAt(i)
		}
	}
	return "", ""
}

// IdleRules warns of rules that do nothing, or less than they seem to. only is the directory outside
// of which nothing is open, whatever cfg allows; "" for none.
func IdleRules(cfg config.FS, only string) (out []*config.Problem) {
	free, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
	if err != nil {
		return out
	}
	defer free.Close() //nolint:errcheck // nothing was written through it
	l := ruleLook{free: free, root: cfg.WorkspaceRoot}
	if only != "" {
		l.open = []string{only, free.Canonical(only)}
	} else {
		for _, rule := range cfg.AllowPaths {
			l.open = append(l.open, l.begins(rule)...)
		}
	}
	if len(l.open) == 0 {
		l.open = []string{"/"}
	}
	for _, list := range []struct {
		key   string
		rules []string
	}{{"allow_paths", cfg.AllowPaths}, {"deny_paths", cfg.DenyPaths}, {"unprotected", cfg.Unprotected}} {
		for i, rule := range list.rules {
			if why, hint := l.idle(rule, list.key); why != "" {
				key := fmt.Sprintf("tools.fs.%s[%d]", list.key, i)
				out = append(out, &config.Problem{Key: key, Why: shown(rule) + " " + why, Hint: hint})
			}
		}
	}
	return out
}

// A ruleLook looks for what rules are about: open are the trees that are open, root is the workspace.
type ruleLook struct {
	free *guardfs.FS
	open []string
	root string
}

// begins gives the literal beginnings of a rule, as they are spelled and with links followed.
func (l *ruleLook) begins(rule string) (out []string) {
	g, err := glob.CompileRule(rule, nil)
	if err != nil {
		return nil
	}
	for _, p := range g.Patterns() {
		named := "/" + strings.Join(p.Literal(), "/")
		out = append(out, named, l.free.Canonical(named))
	}
	return slices.Compact(out)
}

// idle says why a rule of a list does nothing today, or less than it seems to; "" when it may.
func (l *ruleLook) idle(rule, list string) (why, hint string) {
	g, err := glob.CompileRule(rule, nil)
	if err != nil {
		return "", ""
	}
	by, at := l.byLetters(rule, g)
	if by != "" && list == "deny_paths" {
		return "", "" // which it closes
	}
	if by != "" {
		return "does not name " + shown(at) + ": brackets, braces and backslashes are signs in a rule", "write " + shown(by)
	}
	if windows().MatchString(strings.ReplaceAll(rule, `\\`, "")) {
		return "has backslashes before letters, where they say nothing", "write / between the names of a path"
	}
	if !strings.HasPrefix(rule, "/") {
		return "", ""
	}
	if begins := l.begins(rule); !slices.ContainsFunc(begins, l.overlaps) {
		return "does nothing: it is about no path that is open", l.meant(rule, begins[0])
	}
	for _, p := range g.Patterns() {
		named := "/" + strings.Join(p.Literal(), "/")
		whole := p.Done(p.Start()) && !p.Live(p.Start())
		kind, known := kindOf(l.free, named)
		if list == "allow_paths" && whole && kind == guardfs.KindDir {
			return "is a directory, and nothing in it is allowed by that",
				"write " + shown(strings.TrimSuffix(named, "/")+"/**")
		}
		// A named path may be made later. Its directory has to be there already, and nothing is made
		// in that of the root.
		if up := path.Dir(named); up != "/" && (whole || list != "allow_paths") {
			named = up
			kind, known = kindOf(l.free, named)
		}
		if known && kind == guardfs.KindAbsent {
			return "does nothing: " + shown(named) + " does not exist", l.meant(rule, named)
		}
	}
	return "", ""
}

// overlaps reports whether something that is open may lie in dir, or dir in it. Letter case does not
// count, as in deny rules.
func (l *ruleLook) overlaps(dir string) bool {
	in := func(a, b string) bool {
		a, b = strings.TrimSuffix(strings.ToLower(a), "/")+"/", strings.ToLower(b)+"/"
		return strings.HasPrefix(b, a)
	}
	return slices.ContainsFunc(l.open, func(o string) bool { return in(o, dir) || in(dir, o) })
}

// byLetters gives the spelling of a rule, and a path that is there, where that one is named by the
// rule's letters alone.
func (l *ruleLook) byLetters(rule string, g *glob.Glob) (spelling, at string) {
	for _, reading := range glob.Letters(rule) {
		letters, err := glob.CompileRule(reading, nil)
		if err != nil {
			continue
		}
		left := lookedAt
		visit := func(path string, _ guardfs.Kind, _ guardfs.Identity) error {
			if left--; letters.Match(path) && !g.Match(path) {
				at = path
			}
			if at != "" || left < 0 {
				return errors.New("enough")
			}
			return nil
		}
		for _, from := range l.begins(reading) {
			if from == "/" {
				from = cmp.Or(l.root, l.open[0])
			}
			policy.Census(l.free)(from, visit) //nolint:errcheck // what can't be looked at is passed by
		}
		if at != "" {
			if strings.HasPrefix(rule, "/") {
				return reading, at
			}
			return reading[1:], at
		}
	}
	return "", ""
}

// windows finds backslashes between the names of a path.
var windows = lazy.Regexp(`\\[\w.]`)

// meant is the hint for a rule that begins at a path where nothing is: that path may be below the root.
func (l *ruleLook) meant(rule, at string) string {
	if kind, _ := kindOf(l.free, l.root+at); l.root != "" && kind != guardfs.KindAbsent {
		return "write " + shown("${ROOT}"+rule)
	}
	return "look at the spelling"
}

// lookedAt is how many names below a wildcard are looked at for what a rule names by its letters.
const lookedAt = 4_000

// kindOf gives the kind of the object at a path; known is false where it can't be told.
func kindOf(free *guardfs.FS, path string) (kind guardfs.Kind, known bool) {
	h, err := free.Resolve(path, guardfs.Look)
	if err != nil {
		return guardfs.KindAbsent, errors.Is(err, fs.ErrNotExist)
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	return h.Object().Info.Kind, true
}

func shown(s string) string { return strconv.QuoteToGraphic(s) }

const mostOddNames = 5 // that are told; a tree in two scripts may have many

// OddNames are the first of some paths, below root and in ASCII, that read as something else than
// they are: with characters that can't be seen, or letters that look like others.
func OddNames(root string, paths iter.Seq[string]) (out []string) {
	last := ""
	for p := range paths {
		if p == last || ascii(p) {
			continue
		}
		last = p
		name := strings.TrimPrefix(p, strings.TrimSuffix(root, "/")+"/")
		if approval.Escape(name, false) == name && approval.Lookalike(name) == "" {
			continue
		}
		if name = strconv.QuoteToASCII(name); !slices.Contains(out, name) {
			out = append(out, name)
		}
		if len(out) == mostOddNames {
			break
		}
	}
	return out
}

// ascii takes controls for others: ESC is one that can't be seen.
func ascii(p string) bool {
	for i := range len(p) {
		if p[i] < ' ' || p[i] > '~' {
			return false
		}
	}
	return true
}
