package engine

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"moltisfs/config"
	"moltisfs/grep/ignore"
	"moltisfs/internal/approval"
	"moltisfs/internal/datadir"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
	"moltisfs/internal/policy"
	"moltisfs/readers"
)

// Host holds the parts that a program supplies besides the configuration. DataDir is needed.
type Host struct {
	DataDir    string                             // made where it is missing, see datadir.Take
	Approver   approval.Approver                  // of calls that bring none; nil: nobody can be asked
	Protect    []string                           // what no call may touch besides DataDir
	Logger     *slog.Logger                       // nil: silent
	GitUser    ignore.User                        // whose core.excludesFile searches obey
	Identities []string                           // of encrypted checkpoints
	Progress   func(what string, done, total int) // of long work; may be nil
	Hooks      hook.Set                           // run before those of the configuration
	Fault      func(op string) *guardfs.Fault     // for tests: see guardfs.Options

	Program  Program // what has the engine
	Root     Root
	ReadOnly bool // nothing that may be called changes a file: the agent can't reach DataDir
}

// A Program has an engine. Name, with its version, is for the records of its start and stop; "":
// there are none. Reloads: it goes on for another engine of the program, which is handed over. Worker
// runs a reader in a process of its own. Policies makes the chain that a configuration asks for;
// nil: one that does can't be used.
type Program struct {
	Name     string
	Reloads  bool
	Worker   []string
	Policies Policies
}

// Policies makes a chain of what tools.fs.policies_mode and tools.fs.policies say.
type Policies func(mode string, policies []string) (policy.Chain, error)

// Root is the workspace_root of a host, and its place.
type Root struct {
	Only      string // nothing outside of this directory may be touched; "": the configuration says it
	MayBeGone bool   // open although workspace_root can't be searched
	Place
}

// Place is where the files are: on this machine, or where Calls lead. Then DataDir, hooks and policies are still here,
// all other paths are of there, and Protect is not asked for, which names what is here.
type Place struct {
	Calls guardfs.Calls // see guardfs.Options
	Where string        // what it is called in the audit log; "": not at all
	End   func() error  // what is called when the engine has been closed; may be nil
}

// opened holds the parts that Open adds to an engine over its rules.
type opened struct {
	dataDir string
	place   Place
	root    string      // nothing outside may be touched, whatever the allow list says; or ""
	free    *guardfs.FS // for the policy's own looks; no call has it
	tools   policy.Tools
	readers *readers.Readers
	search  searching
	hooks   hook.Set
	start   start

	chain policy.Chain // nil: none is asked

	recorded bool // what does not come by Do is refused; tests over OpenOver call the chains alone
}

// Open opens everything that a configuration asks for: data directory, policy, readers, store,
// ledger. cfg has been checked. The agent's tree is not touched. The error is a
// *datadir.Error, one or more *config.Problem, or that of a broken host.
func Open(cfg config.Config, h Host) (_ *Engine, err error) {
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	o := opened{recorded: true, root: h.Root.Only, place: h.Root.Place}
	if o.tools, err = policy.NewTools(cfg.Tools.Policy.Names(), cfg.Tools.Policy.Deny,
		cfg.Tools.FS.ReadOnly); err != nil {
		return nil, err
	}
	if o.hooks, err = hooksOf(cfg.Tools.FS.Hooks, h.Hooks); err != nil {
		return nil, err
	}
	if o.chain, err = h.chain(cfg.Tools.FS); err != nil {
		return nil, err
	}
	if o.dataDir, err = h.dataDir(cfg.Tools.FS); err != nil {
		return nil, err
	}
	free, judge, classes, err := newPolicy(cfg.Tools.FS, &h)
	if err != nil {
		return nil, err
	}
	o.free = free
	if h.Root.Calls == nil { // else they are elsewhere, and who opens that has opened this machine's
		if err := checkHooks(cfg.Tools.FS.Hooks, free); err != nil {
			return nil, errors.Join(err, o.close())
		}
	}
	switch {
	case h.Root.MayBeGone:
	case h.Root.Calls != nil:
		err = checkRoot("tools.sandbox.root", cfg.Tools.FS.WorkspaceRoot, free, judge)
	case !cfg.Tools.Sandbox.All():
		err = checkRoots(cfg.Tools, free, judge)
	}
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	cache := filepath.Join(o.dataDir, "cache")
	if o.readers, err = readers.New(readers.Config{CacheDir: cache, Worker: h.Program.Worker,
		Memory: config.Memory / 2}); err != nil {
		return nil, errors.Join(err, o.close())
	}
	e, err := OpenOver(Options{
		Config: cfg.Tools.FS, Judge: judge, Classes: classes, DataDir: o.dataDir,
		Approver: h.Approver, Logger: h.Logger, Identities: h.Identities, Progress: h.Progress,
		Fault: h.Fault, Calls: h.Root.Calls,
	})
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	e.opened = o
	name := "start"
	if h.Program.Reloads {
		name = "reload"
	}
	e.search.of(h.GitUser)
	e.start = start{h.Program.Name, cfg.Hash(h.Root.Only)}
	if err = e.event(name); err != nil {
		e.HandOver()
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (o *opened) close() error {
	var errs []error
	if o.readers != nil {
		errs = append(errs, o.readers.Close())
	}
	if o.free != nil {
		errs = append(errs, o.free.Close())
	}
	return errors.Join(errs...)
}

// Readers make content of bytes.
func (e *Engine) Readers() *readers.Readers { return e.readers }

// Root is the directory that the allow list is narrowed to, or "".
func (e *Engine) Root() string { return e.root }

// Config is [tools.fs], and Logger the host's, for dialects.
func (e *Engine) Config() config.FS { return e.cfg }

func (e *Engine) Logger() *slog.Logger { return e.logger }

// Place is where the files are.
func (e *Engine) Place() Place { return e.place }

// Tools is [tools.policy].
func (e *Engine) Tools() policy.Tools { return e.tools }

// dataDir takes the data directory. It must not be where the agent could write to it by name.
func (h *Host) dataDir(cfg config.FS) (string, error) {
	if h.DataDir == "" {
		return "", &datadir.Error{Dir: `""`, Why: "none is named", Do: "name one; it is made where it is missing"}
	}
	if !filepath.IsAbs(h.DataDir) {
		return "", &datadir.Error{Dir: h.DataDir, Why: "the path is relative", Do: "give an absolute one"}
	}
	dir := guardfs.Canonical(h.DataDir)
	if !h.ReadOnly && h.Root.Calls == nil {
		if err := outOfReach(dir, cfg, h.Root.Only); err != nil {
			return "", err
		}
	}
	return dir, datadir.Take(dir, h.Logger)
}

// PolicyOf is the policy that Open would make of a configuration, for whoever has it held by others:
// the judge, and which names are asked about when they change, nil for none, for one look at them.
// free must be closed after the last use of the judge.
func PolicyOf(cfg config.FS, h Host) (free *guardfs.FS, judge *policy.Policy,
	asked func(name string) bool, err error) {
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	free, judge, classes, err := newPolicy(cfg, &h)
	if cfg.ProtectExec != "allow" {
		e, known := Engine{shared: &shared{classes: classes}}, map[string][]string{}
		e.free = free
		e.search.of(h.GitUser)
		asked = func(name string) bool { return e.RunsCode(name) || e.isHook(name, known) }
	}
	return free, judge, asked, err
}

// chain is the policy chain that a configuration asks for; nil for none.
func (h *Host) chain(cfg config.FS) (policy.Chain, error) {
	if !cfg.HasPolicies() {
		return nil, nil
	}
	problem := &config.Problem{Key: "tools.fs.policies", Why: "this program can't evaluate policies",
		Hint: "leave them out, or use moltis-fs"}
	if h.Program.Policies == nil {
		return nil, problem
	}
	chain, err := h.Program.Policies(cfg.PoliciesMode, cfg.Policies)
	if err != nil {
		problem.Why, problem.Hint = err.Error(), ""
		return nil, problem
	}
	return chain, nil
}

// newPolicy adds what is ours to the operator's rules, and the looks that hold bind mounts and hard
// links to them.
func newPolicy(cfg config.FS, h *Host) (*guardfs.FS, *policy.Policy, *policy.Classes, error) {
	free, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}, Calls: h.Root.Calls})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("opening the file system: %w", err)
	}
	o := rules(cfg, h.Root.Only)
	if o.Classes, err = classesOf(cfg, h.Root.Only, free); err != nil {
		return nil, nil, nil, errors.Join(err, free.Close())
	}
	o.Canonical, o.Identify, o.Census = free.Canonical, policy.Identify(free), policy.Census(free)
	o.CensusFailed = func(err error) {
		h.Logger.Warn("files with several hard links are refused", "err", err)
	}
	var protect []string
	if h.Root.Calls == nil {
		protect = slices.Concat([]string{h.DataDir}, h.Protect, programsOf(cfg.Hooks, free), cfg.PolicyFiles())
	}
	for _, p := range protect {
		if p == "" {
			continue
		}
		// Whoever can replace a link among these names decides what the next start reads.
		for _, name := range guardfs.Names(p) {
			o.Protected = append(o.Protected,
				policy.Protected{Path: name, Why: "our own data, configuration or program"})
		}
	}
	p, err := policy.New(o)
	if err != nil {
		return nil, nil, nil, errors.Join(err, free.Close())
	}
	return free, p, o.Classes, nil
}

// outOfReach refuses a data directory inside a tree that the configuration
// opens to the agent for writing. Where everything is open only the protection
// stands, which is what it is for.
func outOfReach(dir string, fs config.FS, root string) error {
	inside := &datadir.Error{Dir: dir, Why: "it lies inside a tree that the agent may write",
		Do: "put it elsewhere with --data-dir or MOLTIS_DATA_DIR, or deny it"}
	if len(fs.AllowPaths) > 0 {
		bare, err := policy.New(rules(fs, root))
		if err != nil {
			return err
		}
		if top := (guardfs.Object{Spelled: "/", True: "/"}); bare.Judge(top, guardfs.Create) == nil {
			return nil
		}
		for _, o := range []string{dir, filepath.Join(dir, "audit")} {
			if bare.Judge(guardfs.Object{Spelled: o, True: o}, guardfs.Create) == nil {
				return inside
			}
		}
		return nil
	}
	if fs.WorkspaceRoot == "" {
		return nil
	}
	if rel, err := filepath.Rel(guardfs.Canonical(fs.WorkspaceRoot), dir); err == nil && filepath.IsLocal(rel) {
		bare, err := policy.New(rules(fs, root))
		if err == nil && bare.Judge(guardfs.Object{Spelled: dir, True: dir}, guardfs.Create) != nil {
			return nil // denied there
		}
		return inside
	}
	return nil
}

// classesOf are the protected classes that hold. The names of the directory where the work is, and
// of those above it, say nothing: the operator chose it.
func classesOf(cfg config.FS, root string, free *guardfs.FS) (*policy.Classes, error) {
	return policy.NewClasses(policy.ClassOptions{
		Holds:  holds(cfg),
		Lifted: cfg.Unprotected, Root: cmp.Or(root, cfg.WorkspaceRoot), Canonical: free.Canonical})
}

func holds(cfg config.FS) policy.Holds {
	return policy.Holds{Secret: cfg.ProtectSecret != "allow", Exec: cfg.ProtectExec != "allow"}
}

// rules are the operator's.
func rules(fs config.FS, root string) policy.Options {
	return policy.Options{Allow: fs.AllowPaths, Deny: fs.DenyPaths, Root: root,
		Canonical: guardfs.Canonical}
}
