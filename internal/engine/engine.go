// Package engine carries out the guarded operations. Everything that any
// dialect can do to the agent's tree is one of two straight chains, each one
// function, readable from top to bottom:
//
//	view    policy → open → read or walk → remember what was seen
//	change  policy → load → seen and unchanged? → make the plan → ask, with the diff in hand
//	        → lock → nothing moved? → checkpoint ‖ temp files → replace → remember
//
// Guarantees: a call that is refused has changed nothing; the pre-state is
// durable before a change is visible; what was approved is what runs; a
// change is swapped in only over the very bytes that it was computed from,
// across goroutines, sessions and processes. If policy, audit, approval,
// checkpoint or ledger cannot answer, the call is refused.
//
// One change is made in place: an append to a file that the store can't hold. Nothing that is there
// is touched by it, and others may append at the same time.
//
// Not guaranteed: between the last look and the exchange a foreign program
// may still write; its bytes are found in what the exchange displaced, put
// back, and the call ends as a conflict. A foreign program that has the old
// file open and writes to it after the exchange writes to the displaced file.
//
// Lock order: file locks in sorted order of their keys, one call at a time;
// nothing else is locked while a person is asked.
//
// An Engine is safe for concurrent use.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/audit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
)

// Options are the parts of an Engine, once its rules are ready. Config, Judge and DataDir are
// needed.
type Options struct {
	Config   config.FS
	Judge    guardfs.Judge
	Classes  *policy.Classes // what runs code is asked about; nil: it is not
	DataDir  string          // exists, 0700, ours
	Approver approval.Approver
	Logger   *slog.Logger
	Fault    func(op string) *guardfs.Fault // for tests: see guardfs.Options

	Identities []string                           // of encrypted checkpoints
	Progress   func(what string, done, total int) // of long work; may be nil
	Calls      guardfs.Calls                      // on the tree: see guardfs.Options
}

// Engine is one policy, one audit record and one checkpoint history over the agent's tree.
type Engine struct {
	*shared
	fs    *guardfs.FS
	judge guardfs.Judge // of fs
	whole *Engine       // the engine itself, where this one is under the scope of a call
}

// shared is the part of an engine that the engines under scopes have in common with it.
type shared struct {
	opened

	cfg         config.FS
	trash       *guardfs.FS // sees the directories of the trash, and nothing else
	temps       *guardfs.Temporaries
	locks       *guardfs.Locks
	lockWait    time.Duration
	expiry      expiry
	ledger      *session.ReadLog // nil when reads are not tracked
	excluded    func(path string) bool
	log         *audit.Log
	checkpoints *checkpointStore
	approver    approval.Approver
	classes     *policy.Classes
	logger      *slog.Logger
	now         func() time.Time
	outside     outside
	sums        sums
	editors     editors
	unrecovered unrecovered
	progress    func(what string, done, total int)
	calls       underway
	stuck       stuck
	mayHang     func() bool      // see guardfs.FS.MayHang
	patience    [2]time.Duration // of a view, and of a change that is under way
	limits      limits
}

// OpenOver is Open over rules that are ready. It opens our own files under the data directory and
// readies the tree; readers it does without.
func OpenOver(o Options) (_ *Engine, err error) {
	e := &Engine{judge: o.Judge, shared: &shared{
		cfg: o.Config, approver: o.Approver, classes: o.Classes, logger: o.Logger, now: time.Now,
		lockWait: 15 * time.Second, progress: o.Progress,
		patience: [2]time.Duration{viewPatience, changePatience},
		limits:   limits{Limits: o.Config.Limits},
	}}
	e.whole = e
	e.dataDir, e.place.Calls = o.DataDir, o.Calls
	e.calls.closing, e.calls.begin = context.WithCancel(context.Background())
	if e.approver = e.asking(e.approver); e.approver == nil {
		e.approver = approval.Nobody(nil)
	}
	if e.logger == nil {
		e.logger = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	e.temps = guardfs.OpenTemporaries(filepath.Join(o.DataDir, temporariesName))
	if e.fs, err = guardfs.New(guardfs.Options{Judge: o.Judge, Fault: o.Fault,
		Temporaries: e.temps, Calls: o.Calls}); err != nil {
		return nil, fmt.Errorf("opening the tree: %w", err)
	}
	if e.trash, err = guardfs.New(guardfs.Options{Judge: ownTrash{}, Fault: o.Fault,
		Temporaries: e.temps, Calls: o.Calls}); err != nil {
		return nil, fmt.Errorf("opening the trash: %w", err)
	}
	if e.mayHang = e.fs.MayHang; o.Calls != nil {
		e.mayHang = func() bool { return true }
	}
	if e.locks, err = guardfs.OpenLocks(filepath.Join(o.DataDir, "locks")); err != nil {
		return nil, fmt.Errorf("opening the locks: %w", err)
	}
	if e.log, err = auditLog(o.DataDir, o.Config.Audit); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	if e.excluded, err = excludes(e.cfg.Checkpoint.Exclude, e.fs.Canonical); err != nil {
		return nil, err
	}
	if e.cfg.TrackReads {
		if e.ledger, err = session.Open(filepath.Join(o.DataDir, "ledger")); err != nil {
			return nil, err
		}
	}
	if e.cfg.Checkpoint.EncryptTo != "" { // what was kept before that was set
		if _, err = PurgeKept(o.DataDir); err != nil {
			return nil, err
		}
	}
	e.checkpoints = &checkpointStore{dir: filepath.Join(o.DataDir, "checkpoints"),
		cfg: e.cfg.Checkpoint, logger: e.logger, identities: o.Identities, progress: o.Progress,
		excluded: e.excluded}
	until := time.Now().Add(e.lockWait)
	return e, e.recover(context.Background(), until)
}

// Close shuts the engine and closes our own files. The Engine must not be used afterwards.
func (e *Engine) Close() error {
	e.Shut()
	var errs []error
	if e.ledger != nil {
		errs = append(errs, e.ledger.Close())
	}
	if e.log != nil {
		errs = append(errs, e.event("stop"), e.log.Close())
	}
	if e.checkpoints != nil {
		errs = append(errs, e.checkpoints.Close())
	}
	for _, f := range []*guardfs.FS{e.fs, e.trash} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	errs = append(errs, e.temps.Close(), e.opened.close())
	if e.place.End != nil {
		errs = append(errs, e.place.End())
	}
	return errors.Join(errs...)
}

// Containment says how firmly paths are held on this system: "kernel", "walk" or "best_effort".
func (e *Engine) Containment() string { return e.fs.Containment() }

// Call is one call on its way through a chain, and what is to be recorded of it.
type Call struct {
	ID, Principal, Session, Turn string
	Dialect, Tool                string
	Client
	Tier   approval.Tier
	Scope  *Scope // nil: as the configuration has it
	ByUser bool   // a person calls, not an agent: the trash keeps what goes as long as a user's
	Trace  Trace

	in    *visit // while Do carries it out
	begun bool   // it has begun a change, so that its outcome is one
}

// Trace holds the fields of the audit record of a call, besides its outcome. The chains fill it.
type Trace struct {
	Paths         []string // canonical where known, as spelled else
	Before, After string   // content hashes of the first path
	Bytes         int64    // bytes written, or given in the answer
	Approval      string   // "approved by terminal", "denied", …; "" when nobody was asked
	Digest        string   // of the plan that was put before them
	Checkpoint    string
	DryRun        bool // nothing is to be changed
	Missing       bool // there is nothing of the name that it gave
	Asked         Asked
	Alert         string   // that the caller sent to the operator
	Hooks         []string // what hooks changed, blocked or failed to do
	Unrecorded    bool     // the outcome could not be written to the audit log
}

// Asked is which part of a tree or a file a call is about.
type Asked struct {
	Pattern, Window string   // of a terminal, Pattern is the program
	Injected        []string // arguments of a gateway, see args.Injected
}

// Record writes the outcome of a call. outcome is "ok" or the kind of the refusal.
func (e *Engine) Record(c *Call, start time.Time, outcome string, cause error) error {
	r := e.record(c, "outcome")
	r.Outcome, r.Duration = outcome, e.now().Sub(start)
	if cause != nil {
		r.Error = cause.Error()
		if denied, ok := errors.AsType[*policy.Denied](cause); ok {
			r.Rule, r.Decision = denied.Rule, "denied"
		} else if Pseudo.In(cause) {
			r.Rule, r.Decision = "pseudo", "denied"
		} else if ChainFailed.In(cause) {
			r.Rule, r.Decision = policy.RuleChain, "denied"
		}
	}
	if c.begun {
		return e.log.AppendChange(r)
	}
	if outcome != outcomeOK || c.Trace.Missing { // the caller may have made the names up
		r.Paths, r.Error = slices.Clone(r.Paths), shortened(r.Error, 3*madeUp)
		for i, p := range r.Paths {
			r.Paths[i] = shortened(p, madeUp)
		}
	}
	return e.log.Append(r)
}

// madeUp is how many bytes are recorded of a name that may be made up.
const madeUp = 256

// shortened is text, of which the middle is left out where it has more than most bytes.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most*3/4], "") + "…" + strings.ToValidUTF8(text[len(text)-most/4:], "")
}

func (e *Engine) record(c *Call, phase string) audit.Record {
	t, by := &c.Trace, "agent"
	if c.ByUser {
		by = "person"
	}
	where := e.place.Where
	if c.Unavailable != nil {
		where = c.Unavailable.Where
	}
	return audit.Record{
		Where: where,
		Time:  e.now(), Phase: phase, Call: c.ID, Principal: c.Principal, Session: c.Session,
		Dialect: c.Dialect, Tool: c.Tool, Paths: t.Paths, Before: t.Before, After: t.After,
		Bytes: t.Bytes, Decision: "allowed", Approval: t.Approval, Digest: t.Digest,
		Checkpoint: t.Checkpoint, DryRun: t.DryRun, Hooks: t.Hooks, Alert: t.Alert,
		Injected: t.Asked.Injected, Turn: c.Turn, Client: c.Program, By: by, Pattern: t.Asked.Pattern, Window: t.Asked.Window,
	}
}

func (c *Call) key() session.Key { return session.Key{Principal: c.Principal, Session: c.Session} }
