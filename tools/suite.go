package tools

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"moltisfs/approval"
	"moltisfs/config"
	"moltisfs/dialect"
	"moltisfs/grep/ignore"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/nearest"
	"moltisfs/internal/policy"
	"moltisfs/readers"
)

// The words of an approval, for a host that answers it. A Question carries
// the diff; an Answer is bound to the question's digest.
type (
	Question = approval.Question
	Answer   = approval.Answer
	Decision = approval.Decision
	// An Approver decides about one change. It is asked with no lock held and may take minutes; ctx ends with the
	// approval timeout. It must be safe for concurrent use.
	Approver = approval.Approver
)

// What an Approver may answer.
const (
	Approved    = approval.Approved
	Denied      = approval.Denied
	TimedOut    = approval.TimedOut
	NobodyToAsk = approval.NobodyToAsk
)

// Options is what the host supplies. The zero value is safe: nobody can
// approve, so with require_approval every change is refused.
type Options struct {
	// DataDir is our own directory: audit, checkpoints, locks, read ledger. Required; made 0700 when missing. One that
	// exists is ours or empty, nobody else may write in it, and its mode stays as it is: else it is a *DataDirError.
	DataDir string
	// Approver answers for calls that bring none of their own. nil: nobody can be asked.
	Approver Approver
	// Protect lists files and trees that no tool may touch besides DataDir: the config file, the binary. They, and DataDir,
	// are held under each of their names: as spelled, by each link on the way, and where it ends.
	Protect []string
	// Logger gets what an operator should know. nil: silent. Never file contents.
	Logger *slog.Logger
	// GitUser says where the user's own git configuration is, whose core.excludesFile Glob and Grep obey with respect_gitignore, and
	// where "~/" leads in a repository's. The zero value: nowhere.
	GitUser ignore.User
	// Identities are age identities ("AGE-SECRET-KEY-1…") to read encrypted checkpoints with.
	Identities []string
	// Progress hears how far long work is, see checkpoint.Options. May be nil.
	Progress func(what string, done, total int)
	// RootMayBeGone opens the suite although workspace_root can't be searched: for who brings it back.
	RootMayBeGone bool
	// Worker is the command line that runs a reader in a process of its own (see readers.RunWorker). Empty: such readers are off.
	Worker []string
}

// What the suite shares with every dialect.
type (
	Call             = dialect.Call
	Definition       = dialect.Definition
	UnknownToolError = dialect.UnknownToolError
)

// Suite is the tools over one policy, one audit record and one checkpoint
// history. It is safe for concurrent use.
type Suite struct {
	cfg     config.Config
	tools   policy.Tools
	policy  *policy.Policy
	free    *guardfs.FS // for the policy's own looks; no tool has it
	search  searching
	engine  *engine.Engine
	readers *readers.Readers
	loops   *loops // nil when reads are not tracked
	readCap int64
	logger  *slog.Logger
	close   func() error // end, once
}

// ErrClosed is the error of every call that comes after Close, and of one that Close met while it waited for its approver:
// it has changed nothing.
var ErrClosed = engine.ErrClosed

// Open readies the suite. Problems of the configuration come back all at
// once; nothing of the agent's tree is touched.
func Open(cfg config.Config, o Options) (*Suite, error) { return open(cfg, o, nil) }

func open(cfg config.Config, o Options, fault func(op string) *guardfs.Fault) (_ *Suite, err error) {
	if err := checkValues(cfg); err != nil {
		return nil, err
	}
	s := &Suite{cfg: cfg, logger: o.Logger, readCap: readers.WindowBytes(cfg.Tools.FS.ContextWindowTokens)}
	s.close = sync.OnceValue(s.end)
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.tools, err = policy.NewTools(cfg.Tools.Policy.Allow, cfg.Tools.Policy.Deny); err != nil {
		return nil, err
	}
	dir, err := s.dataDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	if err := s.newPolicy(o.DataDir, o.Protect); err != nil {
		return nil, err
	}
	if !o.RootMayBeGone {
		if err := s.checkRoot(); err != nil {
			return nil, errors.Join(err, s.free.Close())
		}
	}
	if cfg.Tools.FS.TrackReads {
		s.loops = &loops{sessions: map[[2]string]*lastRead{}}
	}
	if s.readers, err = readers.New(readers.Config{CacheDir: filepath.Join(dir, "cache"), Worker: o.Worker}); err != nil {
		return nil, errors.Join(err, s.free.Close())
	}
	s.engine, err = engine.Open(engine.Options{Config: cfg.Tools.FS, Judge: s.policy, DataDir: dir, Approver: o.Approver, Logger: s.logger, Identities: o.Identities, Progress: o.Progress, Fault: fault})
	if err != nil {
		return nil, errors.Join(err, s.readers.Close(), s.free.Close())
	}
	if err := s.openSearch(o.GitUser); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close lets no call in any more, takes back the questions that wait for an answer, waits for the calls under way, and gives
// back what Open took. A call whose question was taken back changes nothing and ends with ErrClosed; every other one runs to
// its end, so whoever is in a hurry cancels the contexts of its calls. Closing again, at the same time too, waits
// likewise and answers the same. It must not be called by Options.Progress, which a call under way waits for.
func (s *Suite) Close() error { return s.close() }

func (s *Suite) end() error {
	var errs []error
	if s.engine != nil { // nil when Open failed before it
		s.engine.Shut()
		errs = append(errs, s.search.close(), s.engine.Close())
	}
	return errors.Join(append(errs, s.readers.Close(), s.free.Close())...)
}

// Containment says how firmly paths are held on this system: "kernel", "walk"
// or "best_effort".
func (s *Suite) Containment() string { return s.engine.Containment() }

// Definitions are the tools that may be called, in the order of All. A tool
// that [tools.policy] denies is not among them.
func (s *Suite) Definitions() []Definition {
	var out []Definition
	for i := range All {
		if All[i].allowed(s.tools) {
			out = append(out, All[i].definition())
		}
	}
	return out
}

// Definitions are those of every tool, for a host that shows them without a
// suite.
func Definitions() []Definition { return (&Suite{}).Definitions() }

// DefinitionsUnder are those of the tools that a policy leaves.
func DefinitionsUnder(p config.Policy) ([]Definition, error) {
	lists, err := policy.NewTools(p.Allow, p.Deny)
	if err != nil {
		return nil, err
	}
	return (&Suite{tools: lists}).Definitions(), nil
}

// Call runs one tool. Whatever the model asked for comes back as a payload, a
// *Refusal included. An error means that the host is broken, or, as an
// *UnknownToolError, that there is no such tool, or, as ErrClosed, that the suite is closed.
func (s *Suite) Call(ctx context.Context, in Call) (p Payload, err error) {
	c := &engine.Call{Principal: in.Principal, Session: in.Session, Turn: in.Turn, Tool: in.Tool, Approver: in.Approver, ByUser: in.ByUser}
	tool := s.tool(in.Tool)
	if tool == nil {
		unknown := s.unknown(in.Tool)
		err := s.engine.Do(ctx, c, engine.Operation{
			Decode: func() error { return cmp.Or(s.deniedTool(in.Tool), error(unknown)) },
			Refuse: func(context.Context, error) string { return "unknown_tool" },
		})
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		return nil, errors.Join(unknown, err)
	}
	var args any
	err = s.engine.Do(ctx, c, engine.Operation{
		Changes: tool.Effect != Reads, Time: s.timeOf(tool),
		Decode: func() (err error) {
			if args, err = tool.decode(in.Args); err != nil {
				return err
			}
			if path := pathOf(args); path != "" {
				c.Trace.Paths = []string{path}
			}
			if d, ok := args.(dryRunner); ok {
				c.Trace.DryRun = d.dryRun()
			}
			return nil
		},
		Run: func(ctx context.Context) (err error) {
			if p, err = tool.run(ctx, s, c, args); err == nil && tool.Effect != Reads {
				s.loops.reset(c)
			}
			return err
		},
		Refuse: func(ctx context.Context, err error) string {
			r := s.refuse(ctx, tool.Name, args, err)
			if r == nil {
				return ""
			}
			p = r
			return r.Reason
		},
	})
	if err != nil {
		return nil, err
	}
	if w, ok := p.(interface{ warn(string) }); ok && c.Trace.Unrecorded {
		w.warn("the outcome could not be written to the audit log")
	}
	return p, nil
}

// timeOf gives a call a minute to work in, and as long as an approver may take beside it.
func (s *Suite) timeOf(t *Tool) time.Duration {
	switch {
	case t.OwnTime:
		return 0
	case t.Effect != Reads && s.cfg.Tools.FS.RequireApproval:
		return time.Minute + time.Duration(s.cfg.Tools.FS.ApprovalTimeout)
	}
	return time.Minute
}

func (s *Suite) tool(name string) *Tool {
	for i := range All {
		if All[i].Name == name && All[i].allowed(s.tools) {
			return &All[i]
		}
	}
	return nil
}

// deniedTool says for the audit log, and for nobody else, that a tool is there and denied.
func (s *Suite) deniedTool(name string) error {
	for i := range All {
		if All[i].Name == name {
			return &policy.Denied{Path: name, Rule: "tools.policy", Why: s.tools.Why(name, All[i].Follows...)}
		}
	}
	return nil
}

func (s *Suite) unknown(name string) *UnknownToolError {
	var names []string
	for _, d := range s.Definitions() {
		names = append(names, d.Name)
	}
	return &UnknownToolError{Tool: name, Nearest: nearest.Of(name, names)}
}
