package tools

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"moltisfs/config"
	"moltisfs/grep/ignore"
	"moltisfs/internal/approval"
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

// A Call is one tool call as it came in.
type Call struct {
	// Principal is who calls ("local" when empty); Session is whose history counts ("default" when empty).
	Principal, Session string
	// Turn groups the checkpoints of one user prompt; may be empty.
	Turn string
	Tool string
	Args json.RawMessage
	// Approver, when set, is asked instead of Options.Approver: a front that can ask this very caller.
	Approver Approver
	// ByUser says that a person makes the call, not an agent: what it removes stays in the trash as long as a user's.
	ByUser bool
}

// A Definition is what a model is told of a tool.
type Definition struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage // JSON Schema 2020-12, a closed object
	OutputSchema json.RawMessage // JSON Schema 2020-12 of every payload that the tool can answer
	ReadOnly     bool
	Destructive  bool
	Idempotent   bool
	OpenWorld    bool
}

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
	calls   underway
}

// Open readies the suite. Problems of the configuration come back all at
// once; nothing of the agent's tree is touched.
func Open(cfg config.Config, o Options) (*Suite, error) { return open(cfg, o, nil) }

func open(cfg config.Config, o Options, fault func(op string) *guardfs.Fault) (_ *Suite, err error) {
	if err := checkValues(cfg); err != nil {
		return nil, err
	}
	s := &Suite{cfg: cfg, logger: o.Logger, readCap: readers.WindowBytes(cfg.Tools.FS.ContextWindowTokens)}
	s.calls.close = sync.OnceValue(s.end)
	s.calls.closing, s.calls.begin = context.WithCancel(context.Background())
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
	s.engine, err = engine.Open(engine.Options{Config: cfg.Tools.FS, Judge: s.policy, DataDir: dir, Approver: s.approver(o.Approver), Logger: s.logger, Identities: o.Identities, Progress: o.Progress, Fault: fault})
	if err != nil {
		return nil, errors.Join(err, s.readers.Close(), s.free.Close())
	}
	if err := s.openSearch(o.GitUser); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
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

// UnknownToolError is a call of a tool that is not there, or that this caller
// may not call: the two are the same to it.
type UnknownToolError struct {
	Tool    string
	Nearest string // "" when nothing is close
}

func (e *UnknownToolError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("there is no tool %q; did you mean %s?", e.Tool, e.Nearest)
	}
	return fmt.Sprintf("there is no tool %q", e.Tool)
}

// Call runs one tool. Whatever the model asked for comes back as a payload, a
// *Refusal included. An error means that the host is broken, or, as an
// *UnknownToolError, that there is no such tool, or, as ErrClosed, that the suite is closed.
func (s *Suite) Call(ctx context.Context, in Call) (p Payload, err error) {
	if err := s.calls.enter(); err != nil {
		return nil, err
	}
	defer s.calls.leave()
	start := time.Now()
	c := &engine.Call{
		ID: rand.Text()[:16], Principal: or(in.Principal, "local"), Session: or(in.Session, "default"),
		Turn: in.Turn, Tool: in.Tool, Approver: s.approver(in.Approver), ByUser: in.ByUser,
	}
	tool := s.tool(in.Tool)
	if tool == nil {
		err := s.unknown(in.Tool)
		return nil, errors.Join(err, s.engine.Record(c, start, "unknown_tool", cmp.Or(s.deniedTool(in.Tool), error(err))))
	}
	p, cause := s.run(ctx, tool, c, in.Args)
	outcome := "ok"
	switch r := p.(type) {
	case *Refusal:
		outcome = r.Reason
	case nil:
		outcome = "host_error"
	}
	// Every way out passes here. A view that can't be recorded is not answered; a change that has happened is, because
	// its intent is on record and the caller must know.
	if rerr := s.engine.Record(c, start, outcome, cause); rerr != nil {
		s.logger.Error("the audit record could not be written", "tool", in.Tool, "err", rerr)
		if tool.Effect == Reads || p == nil {
			return nil, errors.Join(cause, fmt.Errorf("writing the audit record: %w", rerr))
		}
		if ch, ok := p.(interface{ warn(string) }); ok {
			ch.warn("the outcome could not be written to the audit log")
		}
	}
	if p == nil {
		return nil, cause
	}
	return p, nil
}

// run decodes and runs, and turns what went wrong into a refusal. p is nil
// when the host is broken.
func (s *Suite) run(ctx context.Context, t *Tool, c *engine.Call, raw json.RawMessage) (p Payload, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.logger.Error("a tool panicked", "tool", t.Name, "panic", r, "stack", string(debug.Stack()))
			p, err = nil, fmt.Errorf("%s: internal error: %v", t.Name, r)
		}
	}()
	args, err := t.decode(raw)
	if err == nil {
		err = checkNames(c)
	}
	if err == nil {
		s.engine.BeginTurn(ctx, c)
		if c.Trace.Paths = []string{pathOf(args)}; c.Trace.Paths[0] == "" {
			c.Trace.Paths = nil
		}
		if d, ok := args.(dryRunner); ok {
			c.Trace.DryRun = d.dryRun()
		}
		if p, err = t.run(ctx, s, c, args); err == nil {
			if t.Effect != Reads {
				s.loops.reset(c)
			}
			return p, nil
		}
	}
	r, hostErr := s.refuse(ctx, t.Name, args, err)
	if hostErr != nil {
		return nil, hostErr
	}
	return r, err
}

// checkNames bounds the names that history is kept under. They come from the
// host, but a host may take them from anybody.
func checkNames(c *engine.Call) error {
	const most = 256 // bytes
	for _, n := range []struct{ what, name string }{{"principal", c.Principal}, {"session", c.Session}, {"turn", c.Turn}} {
		if len(n.name) > most {
			return bad(fmt.Sprintf("use a name of at most %d bytes", most), "the name of the %s has %d bytes", n.what, len(n.name))
		}
		if !utf8.ValidString(n.name) || strings.ContainsFunc(n.name, unicode.IsControl) {
			return bad("use printable characters", "the name of the %s holds bytes that are not printable text", n.what)
		}
	}
	return nil
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

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
