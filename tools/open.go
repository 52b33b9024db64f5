package tools

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"moltisfs/config"
	"moltisfs/grep/ignore"
	"moltisfs/internal/datadir"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// Options is what the host supplies. The zero value is safe: nobody can
// approve, so with require_approval every change is refused.
type Options struct {
	// DataDir is our own directory: audit, checkpoints, locks, read ledger. Required; made 0700 when
	// missing. One that exists must be ours or empty, and nobody else may write in it: else it is a
	// *DataDirError. Its mode stays as it is.
	DataDir string
	// Approver answers for calls that bring none of their own. nil: nobody can be asked.
	Approver Approver
	// Protect lists files and trees that no tool may touch besides DataDir: the config file, the
	// binary. Each is held under all its names: as spelled, by each link on the way, and where it
	// ends. So is DataDir.
	Protect []string
	// Logger gets what an operator should know. nil: silent. Never file contents.
	Logger *slog.Logger
	// GitUser says where the user's own git configuration is. Glob and Grep obey its core.excludesFile
	// with respect_gitignore. It also says where "~/" leads in a repository's. The zero value:
	// nowhere.
	GitUser ignore.User
	// Program is what opens the suite, for the record.
	Program Program
	// Identities are age identities ("AGE-SECRET-KEY-1…") to read encrypted checkpoints with.
	Identities []string
	// Progress hears how far long work is, see checkpoint.Options. May be nil.
	Progress func(what string, done, total int)
	// Root is an absolute directory: workspace_root, what ${ROOT} stands for in rules, and the only
	// tree that may be touched, of which allow_paths may leave less. "": the configuration says it all.
	Root string
	// RootMayBeGone opens the suite although workspace_root can't be searched: for who brings it back.
	RootMayBeGone bool
	// Hooks run around every call, before those that [tools.fs.hooks] names. Their Observer follows calls,
	// for metrics and traces: *[Metrics] is one.
	Hooks Hooks
	// Worker is the command line that runs a reader in a process of its own; see readers.RunWorker.
	// Empty: such readers are off.
	Worker []string
}

// Program is what opens a suite: its name and version, as the audit log has them at its start and
// stop. Reloads says that it goes on for another suite, after a change of the configuration: that is
// on record as a reload, not a start.
type Program struct {
	Name    string // "host" when empty
	Reloads bool
	Where   string // as the audit log names this machine; "": not at all
}

// DataDirError is a data directory that can't be ours.
type DataDirError struct{ Dir, Why, Do string }

func (e *DataDirError) Error() string { return "data directory " + e.Dir + ": " + e.Why }

// Hint says where it could be instead.
func (e *DataDirError) Hint() string { return e.Do }

// Open readies the suite. Problems of the configuration come back all at
// once; nothing of the agent's tree is touched.
func Open(cfg config.Config, o Options) (*Suite, error) {
	return open(cfg, o, nil, engine.Place{Where: o.Program.Where})
}

func open(cfg config.Config, o Options, fault func(op string) *guardfs.Fault, at engine.Place) (*Suite, error) {
	o.Program.Name = cmp.Or(o.Program.Name, "host")
	e, err := openEngine(cfg, o, nil, nil, fault, at)
	if err != nil {
		return nil, err
	}
	s := Over(e)
	s.close = sync.OnceValue(e.Close)
	return s, nil
}

// OpenEngine opens what a suite stands on, as Open does. It is for who has other dialects stand on
// it too; others are what those offer. Over makes the suite. policies evaluates tools.fs.policies: a
// suite that Open opens has nothing for that, because it is large, and refuses them.
func OpenEngine(cfg config.Config, o Options, policies engine.Policies,
	others ...Definition) (*engine.Engine, error) {
	return openEngine(cfg, o, policies, others, nil, engine.Place{Where: o.Program.Where})
}

func openEngine(cfg config.Config, o Options, policies engine.Policies, others []Definition,
	fault func(op string) *guardfs.Fault, at engine.Place) (*engine.Engine, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	wall := o.Root
	if len(cfg.Tools.FS.AllowPaths) == 0 {
		wall = "" // the allow list will say the same
	}
	cfg, err := cfg.At(o.Root)
	if err != nil {
		return nil, err
	}
	defs, err := DefinitionsUnder(cfg.Tools)
	if defs = append(defs, others...); err == nil && len(defs) == 0 {
		err = someTool(cfg.Tools)
	}
	if err != nil {
		return nil, err
	}
	changes := slices.ContainsFunc(defs, func(d Definition) bool { return !d.ReadOnly })
	e, err := engine.Open(cfg, engine.Host{
		DataDir: o.DataDir, Approver: o.Approver, Protect: o.Protect, Logger: o.Logger,
		GitUser:    o.GitUser,
		Identities: o.Identities, Progress: o.Progress, Hooks: o.Hooks, Fault: fault,
		Program: engine.Program{Name: o.Program.Name, Reloads: o.Program.Reloads, Worker: o.Worker,
			Policies: policies},
		Root: engine.Root{Only: wall, MayBeGone: o.RootMayBeGone, Place: at}, ReadOnly: !changes,
	})
	if d, ok := errors.AsType[*datadir.Error](err); ok {
		return nil, (*DataDirError)(d)
	}
	return e, err
}

// Definitions are those of every tool, for a host that shows them without a
// suite.
func Definitions() []Definition { return (&Suite{}).Definitions() }

// DefinitionsUnder are those of the tools that a configuration leaves.
func DefinitionsUnder(cfg config.Tools) ([]Definition, error) {
	lists, err := policy.NewTools(cfg.Policy.Names(), cfg.Policy.Deny, cfg.FS.ReadOnly)
	if err != nil {
		return nil, err
	}
	return (&Suite{tools: lists}).Definitions(), nil
}

// Check finds what is wrong with a configuration: what config.Check finds, and what takes the
// tools, or a look at the file system, to know. Open does the same. Its errors are *config.Problem,
// joined where there are several; config.Locate adds where in a file they stand.
func Check(cfg config.Config) error {
	err := cfg.Check()
	if err == nil {
		err = someTool(cfg.Tools)
	}
	if err != nil {
		return err
	}
	if rooted, err := cfg.At(""); err == nil { // else --root says where: what can be looked at waits
		cfg = rooted
	} else {
		fs := &cfg.Tools.FS
		fs.AllowPaths, fs.DenyPaths, fs.Unprotected = nil, nil, nil
	}
	if cfg.Tools.Sandbox.All() {
		cfg.Tools.FS.WorkspaceRoot, cfg.Tools.Jettson.Workspaces = "", "" // nobody works in it
	}
	return engine.Check(cfg.Tools)
}

// someTool refuses lists that leave no tool: who starts a server wants to call something.
func someTool(cfg config.Tools) error {
	if defs, err := DefinitionsUnder(cfg); err != nil || len(defs) > 0 {
		return err
	}
	p, key := cfg.Policy, "tools.policy.deny"
	if defs, _ := DefinitionsUnder(config.Tools{Policy: p}); len(defs) > 0 {
		return &config.Problem{Key: "tools.fs.read_only", Why: "leaves no tool at all of those that " +
			"[tools.policy] has", Hint: "allow one that only reads, as \"Read\""}
	}
	if len(p.Allow) == 0 && len(p.Names()) > 0 {
		return &config.Problem{Key: "tools.policy.profile", Why: strconv.Quote(p.Profile) +
			" leaves no tool at all of ours: it has " + strings.Join(p.Names(), ", "),
			Hint: `add allow = ["Read", …] with the names that are wanted, or write profile = "full"`}
	}
	p = config.Policy{Allow: p.Allow}
	if defs, _ := DefinitionsUnder(config.Tools{Policy: p}); len(defs) == 0 {
		key = "tools.policy.allow"
	}
	return &config.Problem{Key: key, Why: "leaves no tool at all", Hint: "name one of them, as " +
		"\"Read\""}
}

// Warnings are what is right and may still be meant otherwise: those of the configuration itself,
// and rules that a look at the file system shows to do nothing.
func Warnings(cfg config.Config) []*config.Problem {
	rooted, _ := cfg.At("") // a rule that nothing can be put into is passed by
	out := cfg.Warnings()
	for _, w := range cfg.Crossing() {
		if !slices.ContainsFunc(out, func(o *config.Problem) bool { return *o == *w }) {
			out = append(out, w)
		}
	}
	if cfg.Tools.Sandbox.All() { // the rules are about paths there
		return out
	}
	return append(out, engine.IdleRules(rooted.Tools.FS, "")...)
}
