// Package tools is the suite that agents call by name: Read, Write, Edit,
// MultiEdit, NotebookEdit, Glob, Grep, the checkpoint tools and Bash, with the
// arguments that Claude Code and Moltis trained models on, behind one policy.
//
//	cfg, err := config.Decode(data, "moltis.toml") // or config.Default()
//	suite, err := tools.Open(cfg, tools.Options{DataDir: dir, Approver: ask})
//	defer suite.Close()
//	call := tools.Call{Principal: "ci", Session: "s1", Tool: "Edit", Args: raw}
//	payload, err := suite.Call(ctx, call)
//	data, err := tools.Encode(payload)      // JSON whose first key is "kind"
//	text := payload.Text()                  // the same for a model that reads text
//	defs := suite.Definitions()             // of the tools that may be called, as JSON Schemas
//
// A host that makes calls of its own writes them with types, and asks its users by an [Approver]:
//
//	done, err := tools.Do[*tools.Edit](ctx, suite, tools.EditArgs{…}, tools.Call{Session: "s1"})
//	_, err = suite.Undo(ctx, tools.Call{Session: "s1"})
//
// A host in an editor hands in that one's unsaved text with each call, see [Editor].
//
// # Answers
//
// A call answers one of a sealed set of payloads. A *Refusal is an answer too. Its Error says what
// is so, and its Hint is the next move in one sentence. Next, where there is one, is a call that
// can be sent as it stands.
//
// Call returns an error when the host is broken: a full disk under our own data directory, an audit
// log that can't be written. *UnknownToolError means that there is no such tool, ErrClosed that
// Close was called, context.Canceled that the call was cancelled. An error never means that the model asked for something impossible.
//
// # Guarantees
//
//   - A refused call has changed nothing. (When a hook withholds an answer, the answer says that
//     the call has ended.)
//   - Every path is judged by its true name, by handle, at the moment of use. Links lead nowhere
//     that the policy doesn't allow. A denied path answers the same whether or not it exists.
//   - A change lands whole or not at all, only over the bytes that it was computed from, and only
//     after the person saw exactly that change, where approval is required.
//   - Every call, refused ones included, is in the audit log before its answer.
//   - An answer counts the things that it leaves out.
//
// # Not guaranteed
//
//   - It guards its own calls. An agent that has another shell than Bash is not held by it.
//   - A foreign program that writes to a file in the instant of the exchange is noticed, and the
//     call is a conflict. A program that keeps the old file open goes on writing to that file.
//   - Outside Linux a path is held as firmly as os.Root does it; Suite.Containment says so.
//
// # Concurrency
//
// A Suite is safe for concurrent use, and many processes may share a data
// directory: changes of one file wait for each other. Approvers are asked with no
// lock held. Close waits for the calls under way, takes back their questions, and
// may be called again.
//
// One tool is one file, one row of table and its golden calls under
// testdata/calls.
package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/grep/ignore"
	"moltisfs/internal/args"
	"moltisfs/internal/datadir"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
)

// Suite is the tools over one policy, one audit record and one checkpoint
// history. It is safe for concurrent use.
type Suite struct {
	cfg    config.FS
	tools  policy.Tools
	engine *engine.Engine
	loops  *loops       // nil when reads are not tracked
	page   dialect.Page // that the text of an answer has to fit
	client bool         // it is a client's, which may show no more
	logger *slog.Logger
	close  func() error // the engine's, once; nil for one of others
}

// ErrClosed is the error of every call after Close, and of one that Close met while it waited for
// its approver. Such a call has changed nothing.
var ErrClosed = engine.ErrClosed

// Options are supplied by the host. The zero value is safe: nobody can approve, so with require_approval every
// change is refused.
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
	// Logger gets warnings and errors for an operator. nil: silent. Never file contents.
	Logger *slog.Logger
	// GitUser says where the user's own git configuration is. Glob and Grep obey its core.excludesFile
	// with respect_gitignore. It also says where "~/" leads in a repository's. The zero value:
	// nowhere.
	GitUser ignore.User
	// Program names the program that opens the suite, for the audit log.
	Program Program
	// Identities are age identities ("AGE-SECRET-KEY-1…") to read encrypted checkpoints with.
	Identities []string
	// Environ is the environment of the programs that Bash runs, as os.Environ gives it. Sockets of sessions and our own variables are taken out.
	Environ []string
	// Root is an absolute directory: workspace_root, the ${ROOT} of rules, and the only tree that may be touched, of
	// which allow_paths may leave less. "": the configuration says it all.
	Root string
	// RootMayBeGone opens the suite although workspace_root can't be searched, so that a restore can bring it back.
	RootMayBeGone bool
	// Hooks run around every call, before those that [tools.fs.hooks] names. Their Observer follows calls,
	// for metrics and traces: *[Metrics] is one.
	Hooks Hooks
	// Worker is the command line that runs a reader in a process of its own; see readers.RunWorker.
	// Empty: such readers are off.
	Worker []string

	fault func(op string) *guardfs.Fault // of tests
	at    engine.Location                // of tests
}

// Program names the program that opens a suite, with its version, as the audit log has them at its start and
// stop. Reloads says that it goes on for another suite, after a change of the configuration: that is
// on record as a reload, not a start.
type Program struct {
	Name    string // "host" when empty
	Reloads bool
	Where   string // as the audit log names this machine; "": not at all
	Guest   bool   // it serves one call of a program that has its own start and stop on record
}

// DataDirError is a data directory that can't be ours. Its fields are Dir, Why and Do; Hint says where it could be instead.
type DataDirError = datadir.Error

// Open readies the suite. Problems of the configuration come back all at
// once; nothing of the agent's tree is touched.
func Open(cfg config.Config, o Options) (*Suite, error) {
	e, err := OpenEngine(cfg, o, nil, nil)
	if err != nil {
		return nil, err
	}
	s := Over(e)
	s.close = sync.OnceValue(e.Close)
	return s, nil
}

// OpenEngine opens the engine of a suite, as Open does, for a host that offers other dialects on it too: others are
// their definitions. Over makes the suite. policies evaluates tools.fs.policies. Open has no evaluator, because one is
// large, and refuses such a configuration. fleet is the one of the configuration that the host has joined; nil: the engine joins it.
func OpenEngine(cfg config.Config, o Options, policies engine.Policies, fleet *engine.Fleet, others ...Definition) (*engine.Engine, error) {
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
	o.at.Where = o.Program.Where
	name := cmp.Or(o.Program.Name, "host")
	if o.Program.Guest {
		name = ""
	}
	return engine.Open(cfg, engine.Host{
		DataDir: o.DataDir, Approver: o.Approver, Protect: o.Protect, Logger: o.Logger, GitUser: o.GitUser,
		Environ: o.Environ, Identities: o.Identities, Hooks: o.Hooks, Fault: o.fault, Fleet: fleet,
		Program:  engine.Program{Name: name, Reloads: o.Program.Reloads, Worker: o.Worker, Policies: policies},
		Root:     engine.Root{Only: wall, MayBeGone: o.RootMayBeGone, Location: o.at},
		ReadOnly: !slices.ContainsFunc(defs, func(d Definition) bool { return !d.ReadOnly }),
	})
}

// Check finds the faults of a configuration: those that config.Check finds, and those that take the
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
	if rooted, err := cfg.At(""); err == nil { // else --root says where: paths can't be looked at yet
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

// someTool refuses a configuration that leaves no tool to call.
func someTool(cfg config.Tools) error {
	if defs, err := DefinitionsUnder(cfg); err != nil || len(defs) > 0 {
		return err
	}
	p, key := cfg.Policy, "tools.policy.deny"
	if defs, _ := DefinitionsUnder(config.Tools{Policy: p}); len(defs) > 0 {
		key = "tools.fs.read_only"
	} else if len(p.Allow) == 0 && len(p.Names()) > 0 {
		return &config.Problem{Key: "tools.policy.profile", Why: strconv.Quote(p.Profile) + " leaves no tool at all",
			Hint: `add allow = ["Read", …] with the names that are wanted, or write profile = "full"`}
	} else if defs, _ := DefinitionsUnder(config.Tools{Policy: config.Policy{Allow: p.Allow}}); len(defs) == 0 {
		key = "tools.policy.allow"
	}
	return &config.Problem{Key: key, Why: "leaves no tool at all", Hint: `have [tools.policy] allow one, as "Read"`}
}

// Warnings are valid settings that may be meant otherwise: those of the configuration itself, and rules that do
// nothing, as a look at the file system shows.
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

// Over is the suite over an engine that is open already, and that other dialects may stand on: one
// policy, one audit record and one history for all of them. The caller that opened the engine closes it.
func Over(e *engine.Engine) *Suite {
	s := &Suite{cfg: e.Config(), tools: e.Tools(), engine: e, logger: e.Logger()}
	s.page = s.fitted(dialect.Page{}).page
	if s.cfg.TrackReads {
		s.loops = &loops{}
	}
	return s
}

// notes is how many bytes of a client's page are left for what is said of a text.
const notes = 400

// fitted is the suite as it answers a caller with such a page.
func (s *Suite) fitted(p dialect.Page) *Suite {
	f := *s
	f.client = p.Bytes > 0
	p = s.engine.Page(p)
	if s.cfg.LineNumbers == "auto" {
		f.cfg.LineNumbers = cmp.Or(p.Numbers, "arrow")
	}
	f.page = p
	return &f
}

// Close lets no call in any more, takes back the questions that wait for an answer, waits for the
// calls under way, and gives back the locks and files of Open. A call whose question was taken back changes
// nothing and ends with ErrClosed. Every other call runs to its end: to hurry, cancel the contexts of the calls.
//
// Closing again, at the same time too, waits likewise and answers the same. A suite that is Over an engine leaves it open.
func (s *Suite) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// Containment says how firmly paths are held on this system: "kernel", "walk"
// or "best_effort".
func (s *Suite) Containment() string { return s.engine.Containment() }

// Definitions describe every tool, for a host that shows them without a suite.
func Definitions() []Definition { return (&Suite{}).Definitions() }

// DefinitionsUnder describe the tools that a configuration leaves.
func DefinitionsUnder(cfg config.Tools) ([]Definition, error) {
	return (&Suite{tools: engine.ToolsUnder(cfg), cfg: cfg.FS}).Definitions(), nil
}

// Definitions are the tools that may be called, in the order of table. A tool
// that [tools.policy] denies is not among them.
func (s *Suite) Definitions() []Definition {
	var out []Definition
	for i := range table {
		if table[i].allowed(s.tools) {
			out = append(out, table[i].definition(s))
		}
	}
	return out
}

// Do is a call with typed arguments and a typed answer. The struct says which tool is meant: an
// EditArgs, or a pointer to one, is a call of Edit. as says whose call it is; its Tool and Args are
// set here.
//
//	args := tools.EditArgs{FilePath: p, OldString: "a", NewString: "b"}
//	done, err := tools.Do[*tools.Edit](ctx, suite, args, tools.Call{Session: "s1"})
//	if no, ok := errors.AsType[*tools.Refusal](err); ok { … }
//
// A refusal is an error here, the *Refusal itself. So is an answer of another type, as a hook may
// put in the place of the tool's. With Payload for P every answer is taken, refusals excepted.
func Do[P Payload](ctx context.Context, s *Suite, args any, as Call) (P, error) {
	var none P
	for i := range table {
		if table[i].is(args) {
			as.Tool = table[i].Name
			break
		}
		if i == len(table)-1 {
			return none, fmt.Errorf("a %T is the arguments of no tool", args)
		}
	}
	raw, err := plainJSON(args)
	if err != nil {
		return none, fmt.Errorf("encoding the arguments: %w", err)
	}
	as.Args = raw
	p, err := s.Call(ctx, as)
	if err != nil {
		return none, err
	}
	if r, ok := p.(*Refusal); ok {
		return none, r
	}
	answer, ok := p.(P)
	if !ok || Refused(p) {
		return none, fmt.Errorf("%s answered %s, a %T, not a %T", as.Tool, p.Kind(), p, none)
	}
	return answer, nil
}

// Call runs one tool. Whatever the model asked for comes back as a payload, a *Refusal included. An
// error means that the host is broken, or, as an *UnknownToolError, that there is no such tool, or,
// as ErrClosed, that the suite is closed.
//
// A call whose ctx was cancelled before it was done has changed nothing and ends with an error that
// is context.Canceled. One whose deadline passed is a *Refusal of KindDeadline: a model can ask for
// less.
func (s *Suite) Call(ctx context.Context, in Call) (Payload, error) {
	p, err := s.call(ctx, in)
	if err != nil || !Refused(p) || !errors.Is(ctx.Err(), context.Canceled) {
		return p, err
	}
	if r, ok := p.(*Refusal); ok && r.facts != nil && r.facts.Cause == engine.Withheld {
		return p, nil // it may have changed something
	}
	return nil, fmt.Errorf("%s was cancelled: %w", in.Tool, ctx.Err())
}

// call is Call, and a call that was cancelled is a refusal too.
func (s *Suite) call(ctx context.Context, in Call) (Payload, error) {
	name := in.Tool
	if row(name) == nil {
		name = strings.TrimPrefix(name, s.cfg.ToolPrefix)
	}
	c, tool := engine.NewCall(in, "tools", name), row(name)
	if tool != nil {
		c.Tool = tool.Name
	}
	if tool == nil || !tool.allowed(s.tools) {
		var follows, names []string
		if tool != nil {
			follows = tool.Follows
		}
		for _, d := range s.Definitions() {
			names = append(names, d.Name)
		}
		return nil, s.engine.Unknown(ctx, c, in, follows, &UnknownToolError{Tool: in.Tool, Nearest: args.Nearest(in.Tool, names)})
	}
	limit := s.engine.TimeFor(tool.Changes, in.Tier)
	if tool.OwnTime {
		limit = s.engine.OwnTime(tool.Changes)
	}
	out, err := engine.Do(ctx, s.engine, c, engine.Operation[given, answer]{
		Changes: tool.Changes, Follows: tool.Follows, Time: limit,
		Args: in.Args,
		Decode: func(raw json.RawMessage) (given, error) {
			args, note, err := tool.decode(raw)
			if err != nil {
				return given{args, note}, err
			}
			if path := pathOf(args); path != "" {
				c.Trace.Paths = []string{path}
			}
			if d, ok := args.(dryRunner); ok {
				c.Trace.DryRun = d.dryRun()
			}
			if a, ok := args.(asker); ok {
				c.Trace.Asked = a.asked()
			}
			return given{args, note}, nil
		},
		Run: func(ctx context.Context, g given) (answer, error) {
			out, err := tool.run(ctx, s.fitted(in.Page), c, g.args)
			switch {
			case err != nil:
			case tool.Changes:
				s.loops.reset(c)
			case c.Trace.Bytes == 0:
				c.Trace.Bytes = int64(len(out.Text()))
			}
			if n, ok := out.(interface{ noted() *string }); ok {
				*n.noted() = joined(g.note, *n.noted())
			}
			return answer{Payload: out}, err
		},
		Refuse: func(_ context.Context, c *engine.Call, g given, no *engine.Refusal) (answer, string) {
			r := s.refuse(c, tool.Name, g.args, no)
			return answer{Payload: r}, r.Reason
		},
	})
	if err != nil {
		return nil, err
	}
	if w, ok := out.Payload.(interface{ warn(string) }); ok && c.Trace.Unrecorded {
		w.warn("the outcome could not be written to the audit log")
	}
	return out.Payload, nil
}

// given are the arguments of a call, and a note on names that were taken for others.
type given struct {
	args any
	note string
}

// MarshalJSON gives the arguments.
func (g given) MarshalJSON() ([]byte, error) { return plainJSON(g.args) }

func row(name string) *toolRow {
	for i := range table {
		if table[i].Name == name || slices.Contains(table[i].also, name) {
			return &table[i]
		}
	}
	return nil
}

// Undo takes back the last change of the session that as names: checkpoint_restore with the id "undo". Use Do for its
// other arguments.
func (s *Suite) Undo(ctx context.Context, as Call) (*CheckpointRestore, error) {
	return Do[*CheckpointRestore](ctx, s, CheckpointRestoreArgs{ID: new("undo")}, as)
}

// Redo makes the change again that Undo took back.
func (s *Suite) Redo(ctx context.Context, as Call) (*CheckpointRestore, error) {
	return Do[*CheckpointRestore](ctx, s, CheckpointRestoreArgs{ID: new("redo")}, as)
}

// Upkeep gives do the checkpoint store, for the work of a host beside calls: pins, labels, retention
// ([checkpoint.DB.GC]), purges, a look into the trash. name is the name of that work in the audit log, as "pin". The record stands there before do begins; where it can't be written, do is not run.
// do must not keep the store, nor close it.
//
//	err := suite.Upkeep(ctx, "pin", func(ctx context.Context, db *checkpoint.DB) error {
//		return db.Pin(ctx, id, checkpoint.Scope{AllSessions: true})
//	})
//
// Do restores an entry of the trash, by its id in CheckpointRestoreArgs.
func (s *Suite) Upkeep(ctx context.Context, name string,
	do func(context.Context, *checkpoint.DB) error) error {
	return s.engine.Upkeep(ctx, name, do)
}

// EmptyTrash removes entries of the trash for good, those that [checkpoint.DB.TrashList] gives.
func (s *Suite) EmptyTrash(ctx context.Context, entries []checkpoint.Trashed) error {
	return s.Upkeep(ctx, "empty_trash", func(ctx context.Context, db *checkpoint.DB) error {
		return engine.EmptyTrash(ctx, s.engine.Location(), db, entries)
	})
}

// A toolRow is one tool: everything that lists and runs it.
type toolRow struct {
	Name, Title string
	// Description is for a model that knows the tool by heart: it has differences and surprises only.
	Description string
	Changes     bool // it replaces or removes what was there
	Idempotent  bool
	// Follows are tools that this one does the work of by another road. It is denied with the last of
	// them, unless it is allowed by name.
	Follows []string
	also    []string // other names that it is called by

	// OwnTime says that the tool sets its own deadline, as a search does, or has none, as a restore of many files.
	OwnTime bool
	world   bool // it may reach what is not on this machine

	Search dialect.Search

	aliases []args.Alias // other agents' names for the arguments

	// refuses adds to the words of a cause: fields, a call to make next, a guess at the meaning.
	refuses map[engine.Cause]func(*about, *Refusal)

	args *args.Spec        // schema and decoder
	is   func(in any) bool // whether these are its arguments, as a struct
	run  func(context.Context, *Suite, *engine.Call, any) (Payload, error)
}

// table has every tool, in the order in which it is listed. Order matters: models and prompt caches see it.
var table = []toolRow{
	readTool,
	writeTool,
	editTool,
	multiEditTool,
	notebookEditTool,
	globTool,
	grepTool,
	checkpointsListTool,
	checkpointDiffTool,
	checkpointRestoreTool,
	bashTool,
	bashOutputTool,
	killShellTool,
}

// A checker is an argument struct with rules beyond its types. Problems come
// back as *args.Error.
type checker interface{ check() error }

// An asker is an argument struct that names a part of a tree or of a file.
type asker interface{ asked() engine.Asked }

// A dryRunner is an argument struct that can ask for a preview.
type dryRunner interface{ dryRun() bool }

// define makes a row of t out of a typed run function. A is the argument struct.
func define[A any](t toolRow, run func(context.Context, *Suite, *engine.Call, *A) (Payload, error)) toolRow {
	t.args = args.Of[A](&args.Names{Tool: t.Name, Changes: t.Changes, Aliases: t.aliases})
	t.is = func(in any) bool {
		switch in.(type) {
		case A, *A:
			return true
		}
		return false
	}
	t.run = func(ctx context.Context, s *Suite, c *engine.Call, in any) (Payload, error) {
		return run(ctx, s, c, in.(*A))
	}
	return t
}

// decode makes the argument struct of a call, checked. note tells which names were taken for which.
func (t *toolRow) decode(raw json.RawMessage) (in any, note string, err error) {
	in, note, err = t.args.Take(raw)
	if err == nil {
		if a, ok := in.(checker); ok {
			err = a.check()
		}
	}
	return in, note, err
}

type badArgument = args.Error

// bad is an argument that can't be taken.
func bad(hint, format string, a ...any) error { return args.Errorf(hint, format, a...) }

// allowed reports whether [tools.policy] leaves the tool.
func (t *toolRow) allowed(p policy.Tools) bool {
	return p.Allows(t.Name, t.Changes, t.Follows...)
}

// tool gives the name of a tool as the caller knows it.
func (s *Suite) tool(name string) string { return s.cfg.ToolPrefix + name }

// toolNames finds the names of tools in a text of ours.
var toolNames func() *regexp.Regexp

func init() { // the words of refusals, which rows of table have, need it
	toolNames = sync.OnceValue(func() *regexp.Regexp {
		var names []string
		for i := range table {
			names = append(names, table[i].Name)
		}
		return regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	})
}

// worded gives a text of ours with the tools in it as the caller knows them. Read, Write and Edit are verbs where a sentence begins with them:
// no sentence begins with these as names.
func (s *Suite) worded(text string) string {
	if s.cfg.ToolPrefix == "" {
		return text
	}
	var b strings.Builder
	from := 0
	for _, at := range toolNames().FindAllStringIndex(text, -1) {
		before, name := strings.TrimRight(text[:at[0]], " "), text[at[0]:at[1]]
		b.WriteString(text[from:at[0]])
		if begins := before == "" || strings.ContainsAny(before[len(before)-1:], `."`); begins && (name == "Read" || name == "Write" || name == "Edit") {
			b.WriteString(name)
		} else {
			b.WriteString(s.tool(name))
		}
		from = at[1]
	}
	return b.String() + text[from:]
}

// definition gives the texts and schemas that a model is told, as the suite s names the tools.
func (t *toolRow) definition(s *Suite) Definition {
	also := slices.Clone(t.also)
	if s.cfg.ToolPrefix != "" {
		also = append(also, t.Name)
	}
	return Definition{
		Name:         s.tool(t.Name),
		Also:         also,
		Title:        t.Title,
		Description:  s.worded(t.Description),
		InputSchema:  json.RawMessage(s.worded(string(t.args.Schema()))),
		OutputSchema: json.RawMessage(answerSchema),
		ReadOnly:     !t.Changes,
		Destructive:  t.Changes,
		Idempotent:   t.Idempotent || !t.Changes,
		OpenWorld:    t.world,
		Search:       t.Search,
	}
}

// The names that several tools share, as other agents have them. Each tool says which argument of its own a name is.
const (
	fileNames = "path file filename filepath filepathname targetfile absolutepath absolutefilepath " +
		"fullpath fullfilepath pathname targetpath location filetoread filetoedit relativepath " +
		"relativeworkspacepath filelocation inputfile sourcefile uri fileuri document"
	dirNames = "directory dir folder dirpath directorypath folderpath root rootdir rootpath cwd " +
		"basepath basedir searchpath searchdir searchdirectory searchin targetdirectory targetdir " +
		"workdir workingdirectory location absolutepath fullpath filepath file directories " +
		"paths searchpaths startpath startdir relativeworkspacepath"
	notNames = "exclude excludes excludepattern excludepatterns excludeglob excludeglobs ignore " +
		"ignorepattern ignorepatterns ignoreglobs exclusions excludeddirs excludedirs"
	oldNames = "oldtext oldstr old oldcode oldcontent oldvalue oldsnippet oldblock search searchtext " +
		"searchstring searchblock searchfor searchcontent find findtext findstring target targettext " +
		"targetcontent targetstring original originaltext originalcode originalcontent " +
		"originalstring texttoreplace texttofind codetoreplace"
	newNames = "newtext newstr new newcode newcontent newvalue newsnippet newblock replace " +
		"replacetext replacestring replaceblock replacewith replacement replacementtext " +
		"replacementstring replacementcontent replacementcode updatedtext updatedcode with"
	verbNames = "command action operation op"
	maxNames  = "maxresults maxmatches maxcount numresults resultlimit limit maxitems maxhits top " +
		"topk max"
	hiddenName = "hidden includehidden searchhidden showhidden dot"
	gitNames   = "respectgitignore respectignore usegitignore gitignore respectgitignorefiles"
	noGitNames = "noignore includeignored nogitignore"
	idNames    = "checkpointid checkpoint cp cpid snapshot snapshotid checkpointname"
)

// fileAliases are for the path of one file.
var fileAliases = []args.Alias{
	{Theirs: "path", Ours: "file_path", Quiet: true},
	{Theirs: fileNames, Ours: "file_path"},
}

// editAliases are for one replacement, alone or in a list.
var editAliases = []args.Alias{
	{Theirs: "oldstr", Ours: "old_string", Quiet: true},
	{Theirs: "newstr", Ours: "new_string", Quiet: true},
	{Theirs: oldNames, Ours: "old_string"},
	{Theirs: newNames, Ours: "new_string"},
	{Theirs: "before from", Ours: "old_string", Turn: args.Offered},
	{Theirs: "after to text content value updated insert", Ours: "new_string", Turn: args.Offered},
	{Theirs: "all global replaceallmatches replaceallinstances alloccurrences replacealloccurrences " +
		"allowmultiple allowmultiplereplacements allmatches replaceeverywhere", Ours: "replace_all"},
	{Theirs: "expectedreplacements count expectedoccurrences", Says: "1",
		Hint: "set replace_all to change every place"},
}

// timeAliases are for the points in time of checkpoints.
var timeAliases = []args.Alias{
	{Theirs: "turnid", Ours: "turn"},
	{Theirs: "after sincetime starttime newerthan", Ours: "since"},
	{Theirs: "tag", Ours: "label"},
}

// numbers lists the numbers that are given, each behind its name: "offset 3 limit 2".
func numbers(parts ...any) string {
	var b strings.Builder
	for i := 0; i < len(parts); i += 2 {
		if n, ok := parts[i+1].(*int); ok && n != nil {
			fmt.Fprintf(&b, " %s %d", parts[i], *n)
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

func (s served) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	p, err := s.Suite.call(ctx, c)
	if err != nil {
		return nil, err
	}
	a := answer{Payload: p, prefix: s.cfg.ToolPrefix}
	if c.Page.Bytes > 0 {
		a.page = s.engine.Page(c.Page)
	}
	return a, nil
}

type served struct{ *Suite }

// EndSession implements [dialect.Sessions]: programs in the background end with the session.
func (s served) EndSession(_ context.Context, principal, name string, forever bool) error {
	if s.loops != nil {
		s.loops.sessions.End(session.Key{Principal: cmp.Or(principal, "local"), Session: cmp.Or(name, "default")})
	}
	return s.engine.EndSession(principal, name, forever)
}

// Dialect is the suite for whatever serves calls and knows no payloads.
func (s *Suite) Dialect() Dialect { return served{s} }
