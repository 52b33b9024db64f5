package tools

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"moltisfs/approval"
	"moltisfs/config"
	"moltisfs/dialect"
	"moltisfs/grep/ignore"
	"moltisfs/hook"
	"moltisfs/internal/datadir"
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
	// Hooks run around every call, before those that [tools.fs.hooks] names. Their Observer is for metrics and traces: package
	// telemetry makes one.
	Hooks hook.Set
	// Worker is the command line that runs a reader in a process of its own (see readers.RunWorker). Empty: such readers are off.
	Worker []string
}

// What the suite shares with every dialect.
type (
	Call             = dialect.Call
	Definition       = dialect.Definition
	UnknownToolError = dialect.UnknownToolError
)

// DataDirError is a data directory that can't be ours.
type DataDirError struct{ Dir, Why, Do string }

func (e *DataDirError) Error() string { return "data directory " + e.Dir + ": " + e.Why }

// Hint says where it could be instead.
func (e *DataDirError) Hint() string { return e.Do }

// Suite is the tools over one policy, one audit record and one checkpoint
// history. It is safe for concurrent use.
type Suite struct {
	cfg     config.FS
	tools   policy.Tools
	engine  *engine.Engine
	loops   *loops // nil when reads are not tracked
	readCap int64
	logger  *slog.Logger
	close   func() error // the engine's, once
}

// ErrClosed is the error of every call that comes after Close, and of one that Close met while it waited for its approver:
// it has changed nothing.
var ErrClosed = engine.ErrClosed

// Open readies the suite. Problems of the configuration come back all at
// once; nothing of the agent's tree is touched.
func Open(cfg config.Config, o Options) (*Suite, error) { return open(cfg, o, nil) }

func open(cfg config.Config, o Options, fault func(op string) *guardfs.Fault) (*Suite, error) {
	if err := checkValues(cfg); err != nil {
		return nil, err
	}
	defs, err := DefinitionsUnder(cfg.Tools.Policy)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	changes := slices.ContainsFunc(defs, func(d Definition) bool { return !d.ReadOnly })
	e, err := engine.Open(cfg, engine.Host{
		DataDir: o.DataDir, Approver: o.Approver, Protect: o.Protect, Logger: o.Logger, GitUser: o.GitUser,
		Identities: o.Identities, Progress: o.Progress, Worker: o.Worker, Hooks: o.Hooks, Fault: fault,
		RootMayBeGone: o.RootMayBeGone, ReadOnly: !changes,
	})
	if d, ok := errors.AsType[*datadir.Error](err); ok {
		return nil, (*DataDirError)(d)
	}
	if err != nil {
		return nil, err
	}
	s := &Suite{cfg: cfg.Tools.FS, tools: e.Tools(), engine: e, logger: o.Logger, close: sync.OnceValue(e.Close)}
	s.readCap = readers.WindowBytes(s.cfg.ContextWindowTokens)
	if s.cfg.TrackReads {
		s.loops = &loops{sessions: map[[2]string]*lastRead{}}
	}
	return s, nil
}

// Close lets no call in any more, takes back the questions that wait for an answer, waits for the calls under way, and gives
// back what Open took. A call whose question was taken back changes nothing and ends with ErrClosed; every other one runs to
// its end, so whoever is in a hurry cancels the contexts of its calls. Closing again, at the same time too, waits
// likewise and answers the same. It must not be called by Options.Progress, which a call under way waits for.
func (s *Suite) Close() error { return s.close() }

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
	c := &engine.Call{Principal: in.Principal, Session: in.Session, Turn: in.Turn, Dialect: "tools", Tool: in.Tool,
		Approver: in.Approver, Tier: in.Tier, ByUser: in.ByUser}
	tool := row(in.Tool)
	if tool == nil || !tool.allowed(s.tools) {
		unknown := s.unknown(in.Tool)
		op := engine.Operation{
			Unknown: true,
			Decode:  func(json.RawMessage) error { return unknown },
			Refuse:  func(context.Context, error) string { return "unknown_tool" },
		}
		if tool != nil { // for the record, and for nobody else, that it is there and denied
			op.Follows = tool.Follows
		}
		err := s.engine.Do(ctx, c, op)
		if errors.Is(err, ErrClosed) {
			return nil, err
		}
		return nil, errors.Join(unknown, err)
	}
	var args any
	err = s.engine.Do(ctx, c, engine.Operation{
		Changes: tool.Effect != Reads, Follows: tool.Follows, Time: s.timeOf(tool, in.Tier),
		Args: in.Args,
		Decode: func(raw json.RawMessage) (err error) {
			if args, err = tool.decode(raw); err != nil {
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
			r := s.refuse(tool.Name, args, err)
			if r == nil {
				return ""
			}
			p = r
			return r.Reason
		},
		Answer: func() (json.RawMessage, error) { return Encode(p) },
		Replace: func(raw json.RawMessage) error {
			r, err := replaced(raw, Refused(p))
			if err == nil {
				p = r
			}
			return err
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
func (s *Suite) timeOf(t *Tool, tier approval.Tier) time.Duration {
	switch {
	case t.OwnTime:
		return 0
	case t.Effect != Reads && (s.cfg.RequireApproval || tier == approval.TierAsk):
		return time.Minute + time.Duration(s.cfg.ApprovalTimeout)
	}
	return time.Minute
}

func row(name string) *Tool {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
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
