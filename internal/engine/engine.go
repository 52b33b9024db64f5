// Package engine carries out the guarded operations. Everything that any
// dialect can do to the agent's tree is one of two straight chains, each one
// function, readable from top to bottom:
//
//	view    policy → open → read or walk → remember what was seen
//	change  policy → load → seen and unchanged? → make the plan → ask, with the diff in hand
//	        → lock → nothing moved? → stage → save → publish → settle → remember
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
// A change that fails, or whose process dies, is brought to an end by what stands at the two names of each
// step: see recover.go.
//
// Lock order: file locks in sorted order of their keys, one call at a time;
// nothing else is locked while a person is asked.
//
// An Engine is safe for concurrent use.
package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/grep/ignore"
	"moltisfs/internal/approval"
	"moltisfs/internal/audit"
	"moltisfs/internal/datadir"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
	encodings "moltisfs/internal/text"
	"moltisfs/internal/texts"
	"moltisfs/readers"
)

// Options are the parts of an Engine, once its rules are ready. Config, Judge and DataDir are
// needed.
type Options struct {
	Config   config.FS
	Judge    guardfs.Judge
	Classes  *policy.Classes // what runs code is asked about; nil: it is not
	DataDir  string          // exists, 0700, ours
	Fleet    *Fleet          // nil: all is in DataDir
	Approver approval.Approver
	Logger   *slog.Logger
	Fault    func(op string) *guardfs.Fault // for tests: see guardfs.Options

	Identities []string      // of encrypted checkpoints
	Calls      guardfs.Calls // on the tree: see guardfs.Options
}

// Engine is one policy, one audit record and one checkpoint history over the agent's tree. It opens and
// holds all that calls need; a [Call] works with it.
type Engine struct {
	opened

	cfg         config.FS
	tree        *guardfs.FS   // the agent's, under the rules alone
	rules       guardfs.Judge // of tree
	trash       *guardfs.FS   // sees the directories of the trash, and nothing else
	journal     *guardfs.Journal
	fleet       *Fleet
	machine     string      // its name in the fleet
	live        sync.Map    // the tags of the changes that are carried out
	left        atomic.Bool // one of them was left to recovery
	late        sync.Map    // those that may have been published when their lease was over, by tag
	locks       *guardfs.Locks
	lockWait    time.Duration
	expired     atomic.Int64     // the time of the last look for what has expired in the trash, in nanoseconds
	ledger      *session.ReadLog // nil when reads are not tracked
	encodingLog encodingLog
	excluded    func(path string) bool
	log         *audit.Log
	checkpoints *checkpointStore
	approver    approval.Approver
	classes     *policy.Classes
	logger      *slog.Logger
	now         func() time.Time
	outside     outside
	sums        sums
	documents   documents
	editors     editors
	fetched     fetched
	unrecovered sync.Map // the interrupted changes that this process could not take back
	waiting     sync.Map // those of which it was told that their paths are locked
	calls       underway
	stuck       stuck
	mayHang     func() bool      // see guardfs.FS.MayHang
	patience    [2]time.Duration // of a view, and of a change that is under way
	limits      limits
	shells      shells
}

// OpenOver is Open over rules that are ready. It opens our own files under the data directory and
// readies the tree; readers it does without.
func OpenOver(o Options) (_ *Engine, err error) {
	e := &Engine{
		cfg: o.Config, rules: o.Judge, approver: o.Approver, classes: o.Classes, logger: o.Logger, now: time.Now, fleet: o.Fleet,
		lockWait: 15 * time.Second,
		patience: [2]time.Duration{viewPatience, changePatience},
		limits:   limits{Limits: o.Config.Limits},
		editors:  editors{seen: session.Recent[*session.Buffers]{Most: 1000}}, // they are large
	}
	e.dataDir, e.place.Calls = o.DataDir, o.Calls
	e.documents.open(textsDir(o.DataDir))
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
	e.journal = guardfs.OpenJournal(filepath.Join(o.DataDir, journalName))
	if e.tree, err = guardfs.New(guardfs.Options{Judge: o.Judge, Fault: o.Fault,
		Journal: e.journal, Underway: e.underway, Calls: o.Calls}); err != nil {
		return nil, fmt.Errorf("opening the tree: %w", err)
	}
	if e.trash, err = guardfs.New(guardfs.Options{Judge: ownTrash{}, Fault: o.Fault,
		Journal: e.journal, Calls: o.Calls}); err != nil {
		return nil, fmt.Errorf("opening the trash: %w", err)
	}
	if e.mayHang = e.tree.MayHang; o.Calls != nil {
		e.mayHang = func() bool { return true }
	}
	if e.locks, err = guardfs.OpenLocks(filepath.Join(o.DataDir, "locks")); err != nil {
		return nil, fmt.Errorf("opening the locks: %w", err)
	}
	if e.fleet.HasStore() {
		e.locks, e.lockWait = e.locks.Further(e.fleet.Gateway), 20*time.Second // longer than a lease: the holder may be dead
	}
	if e.log, err = auditLog(o.DataDir, o.Config.Audit); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	if o.Fleet != nil {
		if e.machine, err = datadir.Machine(o.DataDir, true); err != nil {
			return nil, fmt.Errorf("naming the machine: %w", err)
		}
		if err = o.Fleet.sendHeads(e.machine, o.DataDir, o.Config.Audit); err != nil {
			return nil, fmt.Errorf("opening the audit log: %w", err)
		}
	}
	if e.excluded, err = excludes(e.cfg.Checkpoint.Exclude, e.tree.Canonical); err != nil {
		return nil, err
	}
	if e.cfg.TrackReads {
		if e.ledger, err = readLog(o.DataDir, o.Fleet); err != nil {
			return nil, err
		}
	}
	if e.cfg.Checkpoint.EncryptTo != "" { // what was kept before that was set
		if err = PurgeKept(o.DataDir); err != nil {
			return nil, err
		}
	}
	e.checkpoints = &checkpointStore{dir: filepath.Join(o.DataDir, "checkpoints"),
		cfg: e.cfg.Checkpoint, fleet: e.fleet, logger: e.logger, identities: o.Identities,
		excluded: e.excluded}
	until := time.Now().Add(e.lockWait)
	if e.fleet.HasStore() {
		err = e.fleet.Cut()
	}
	if err == nil {
		err = e.own().recover(context.Background(), until)
	}
	if e.fleet != nil && CutOff(err) { // calls that read need nothing of it, and those that change something recover what is in their way
		e.logger.Warn("the fleet can't be reached; until it can, nothing is changed", "err", err)
		err = nil
	}
	return e, err
}

// readLog opens what sessions have read, which the gateways of a fleet share.
func readLog(dataDir string, f *Fleet) (*session.ReadLog, error) {
	dir := filepath.Join(dataDir, ledgerName)
	if f == nil {
		return session.Open(dir)
	}
	return session.OpenIn(f.Files(ledgerName), dir), nil
}

// ledgerName is the name of the directory of the read log.
const ledgerName = "ledger"

// Close shuts the engine and closes our own files. The Engine must not be used afterwards.
func (e *Engine) Close() error {
	e.Shut()
	e.documents.texts.Wait()
	errs := []error{e.shells.end(func(session.Key) bool { return true })}
	if e.ledger != nil {
		errs = append(errs, e.ledger.Close())
	}
	if e.encodingLog.log != nil {
		errs = append(errs, e.encodingLog.log.Close())
	}
	if e.log != nil {
		errs = append(errs, e.event("stop"), e.log.Close())
	}
	if e.checkpoints != nil {
		errs = append(errs, e.checkpoints.Close())
	}
	for _, f := range []*guardfs.FS{e.tree, e.trash} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	errs = append(errs, e.opened.close())
	if e.place.End != nil {
		errs = append(errs, e.place.End())
	}
	return errors.Join(errs...)
}

// Containment says how firmly paths are held on this system: "kernel", "walk" or "best_effort".
func (e *Engine) Containment() string { return e.tree.Containment() }

// Call is one call on its way through a chain, and what is to be recorded of it. Its methods work only while [Do]
// carries it out: outside of that it has no engine.
type Call struct {
	ID, Principal, Session, Turn string
	Dialect, Tool                string
	Client
	Tier   approval.Tier
	Scope  *Scope // nil: as the configuration has it
	ByUser bool   // a person calls, not an agent: the trash keeps what goes as long as a user's
	Trace  Trace

	*Engine               // while Do carries the call out, as all that follows
	fs      *guardfs.FS   // the agent's tree, as the call may see it
	judge   guardfs.Judge // of fs
	chain   *policyCache  // what the policy chain was asked; nil without a chain
	stage   *atomic.Int32 // see begin
	changed bool          // it has begun a change, so that its outcome is one
	givesUp checkpoint.ID // see rollback.giveUp
}

// own is a call of the engine's own, as recovery is one: the rules alone hold for it, no scope.
func (e *Engine) own() *Call { return &Call{Engine: e, fs: e.tree, judge: e.rules} }

// ownFor is own, and gives up what c does.
func (c *Call) ownFor() *Call {
	own := c.own()
	own.givesUp = c.givesUp
	return own
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
			r.RuleText, r.RuleAt = patternOf(&e.cfg, denied)
		} else if Pseudo.In(cause) {
			r.Rule, r.Decision = "pseudo", "denied"
		} else if ChainFailed.In(cause) {
			r.Rule, r.Decision = policy.RuleChain, "denied"
		}
	}
	if c.changed {
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

// shortened is text, of which the middle is left out where it has more than most bytes.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most*3/4], "") + "…" + strings.ToValidUTF8(text[len(text)-most/4:], "")
}

// madeUp is how many bytes are recorded of a name that may be made up.
const madeUp = 256

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

// ReadRecord is the part of a file that was shown.
type ReadRecord struct {
	Hash   string // SHA-256 of the whole content in hex; "" when it was not read whole
	Unit   string // what Lines and Ranges count, see session.Seen
	Lines  int
	Ranges []session.Range
	Whole  bool
	// See session.Seen.
	Lossy    bool
	Sources  []session.Range
	Encoding string // in which text was shown, as session.Seen has it; "": nothing is said of that
}

func (c *Call) remember(o guardfs.Object, s *ReadRecord) error {
	if c.ledger == nil || c.Engine.fleet.Cut() != nil { // then it counts as unread
		return nil
	}
	err := c.ledger.Saw(c.key(), session.Seen{
		ID: o.Info.ID.String(), Path: o.True, Hash: s.Hash, Stamp: stamp(o.Info, s.Hash), Unit: s.Unit,
		Lines: s.Lines, Ranges: s.Ranges, Whole: s.Whole, Lossy: s.Lossy, Sources: s.Sources,
		When: c.now(),
	})
	if CutOff(err) { // reads go on
		c.logger.Warn("what was read could not be put on record; it counts as unread", "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("remembering what was read: %w", err)
	}
	return nil
}

// encodingLog remembers in which encodings sessions have read and written files: few are not in UTF-8. Its log is opened when it is first asked for.
type encodingLog struct {
	mu  sync.Mutex
	log *session.ReadLog
}

// encodingsOf is the log of encodings, and nil where the session has none in it.
func (c *Call) encodingsOf(begin bool) (*session.ReadLog, error) {
	l := &c.encodingLog
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.log == nil {
		if l.log, err = session.Open(filepath.Join(c.dataDir, "ledger", "encodings")); err != nil {
			return nil, err
		}
	}
	if !begin && !l.log.Began(c.key()) {
		return nil, nil
	}
	return l.log, nil
}

// rememberEncoding has the session know in which encoding it has read or written a file, as session.Seen has it; of UTF-8 that nobody
// named nothing is kept, and "" changes nothing.
func (c *Call) rememberEncoding(o guardfs.Object, hash, name string) error {
	plain := name == encodings.UTF8.Name+encodings.GuessMark
	if name == "" {
		return nil
	}
	log, err := c.encodingsOf(!plain)
	switch {
	case err != nil || log == nil:
	case !plain:
		err = log.Saw(c.key(), session.Seen{ID: o.Info.ID.String(), Path: o.True, Hash: hash, Encoding: name, When: c.now()})
	default:
		var was session.Seen
		if was, _, err = log.Look(c.key(), o.Info.ID.String(), o.True); err == nil {
			err = log.Forget(c.key(), was.Path)
		}
	}
	if err != nil {
		return fmt.Errorf("remembering an encoding: %w", err)
	}
	return nil
}

// stamp stands in for the hash of a file too large to be hashed at every read.
func stamp(i guardfs.Info, hash string) string {
	if hash != "" {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", i.Size, i.ModTime.UnixNano(), i.ChangeTime.UnixNano())
}

// HashOf is the content hash in payloads, ledger and checkpoints: SHA-256 in lower-case hex.
func HashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// sums remembers hashes of files that were read whole, for as long as it is certain that they are
// still those of the content.
type sums struct {
	mu    sync.Mutex
	known map[guardfs.Identity]sum
}

type sum struct{ stamp, hash string }

const (
	maxSums = 16 << 10
	// settled is how old a change must be: older than the coarsest clock of a file system.
	settled = 3 * time.Second
)

// of hashes f, as long as it was when it was opened, or remembers its hash. A hash is remembered
// where any change that comes after it must move the file's times: nobody has it open for writing,
// and its last change is not of this very moment.
func (m *sums) of(ctx context.Context, f *guardfs.File, now func() time.Time) (string, error) {
	was, err := f.Stat()
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	known := m.known[was.ID]
	m.mu.Unlock()
	if known.hash != "" && known.stamp == stamp(was, "") && was.Size == f.Info().Size {
		return known.hash, nil
	}
	sure := now().Sub(was.ChangeTime) > settled && was.Size == f.Info().Size && f.Steady()
	hash, err := hashAll(ctx, f, f.Info().Size)
	if err != nil || !sure || !f.Steady() {
		return hash, err
	}
	if is, err := f.Stat(); err == nil && stamp(is, "") == stamp(was, "") {
		m.mu.Lock()
		if m.known == nil || len(m.known) >= maxSums {
			m.known = map[guardfs.Identity]sum{}
		}
		m.known[is.ID] = sum{stamp(is, ""), hash}
		m.mu.Unlock()
	}
	return hash, nil
}

// hashAll hashes size bytes, or as many as there are, in pieces, until ctx ends.
func hashAll(ctx context.Context, r io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	buf := make([]byte, 256<<10)
	for in := io.NewSectionReader(r, 0, size); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := in.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", fmt.Errorf("hashing what was read: %w", err)
		}
	}
}

// Keep remembers content that the session of c was shown or wrote, so that a later conflict can show what
// changed since. path is its canonical path.
//
// The content is kept in plain. So excluded paths are not kept, and with encrypt_to nothing is.
func (c *Call) Keep(path, hash string, content []byte) {
	if c.ledger == nil || hash == "" || c.cfg.Checkpoint.EncryptTo != "" || c.excluded(path) {
		return
	}
	if err := c.ledger.Keep(c.key(), path, hash, content); err != nil {
		c.logger.Warn("what was read could not be kept; a later conflict will show no diff", "err", err)
	}
}

// earlier gives a content that a session was shown or wrote, if the store has it or it was kept.
func (e *Engine) earlier(hash string) (content []byte, ok bool) {
	if content, ok = e.ledger.Content(hash); ok || !e.cfg.CheckpointBeforeMutation {
		return content, ok
	}
	db, err := e.checkpoints.open()
	if err == nil {
		content, err = db.Content(context.Background(), hash)
	}
	return content, err == nil // without it there is no diff
}

// EndSession frees what is held for a session that has ended: its background shells, whose changes are dropped, and what it has read. Forever says
// that no session of this name comes again.
func (e *Engine) EndSession(principal, name string, forever bool) error {
	k := session.Key{Principal: cmp.Or(principal, "local"), Session: cmp.Or(name, "default")}
	e.limits.sessions.End(k)
	e.outside.turns.End(k)
	e.editors.seen.End(k)
	errs := []error{e.shells.end(func(of session.Key) bool { return of == k })}
	if e.ledger != nil {
		errs = append(errs, e.ledger.End(k, forever))
	}
	return errors.Join(errs...)
}

// joined is name below the directory dir.
func joined(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}

func below(path, dir string) bool {
	return len(path) > len(dir)+1 && path[:len(dir)] == dir && path[len(dir)] == '/'
}

// inTrash says that a path is in a trash directory.
func inTrash(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if guardfs.IsTrash(part) {
			return true
		}
	}
	return false
}

// text is content as UTF-8 for people to read, whatever its charset.
func text(content []byte) []byte {
	if utf8.Valid(content) && encodings.Sniff(content).Wide == nil {
		return bytes.TrimPrefix(content, []byte("\ufeff"))
	}
	t, _, err := edit.Decode(content, "")
	if err != nil {
		return content
	}
	return t
}

// readWhole is the content of a file of at most max bytes.
func readWhole(fs *guardfs.FS, path string, max int64) ([]byte, error) {
	h, err := fs.Resolve(path, guardfs.Read)
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	f, err := h.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	size := f.Info().Size
	if size > max {
		return nil, &guardfs.TooLargeError{Path: path, Size: size, Max: max}
	}
	content := make([]byte, size)
	n, err := f.ReadAt(content, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return content[:n], err
}

func leaf(k checkpoint.Kind) bool { return k == checkpoint.File || k == checkpoint.Symlink }

// Host holds the parts that a program supplies besides the configuration. DataDir is needed.
type Host struct {
	DataDir    string                         // made where it is missing, see datadir.Take
	Approver   approval.Approver              // of calls that bring none; nil: nobody can be asked
	Protect    []string                       // what no call may touch besides DataDir
	Logger     *slog.Logger                   // nil: silent
	GitUser    ignore.User                    // whose core.excludesFile searches obey
	Identities []string                       // of encrypted checkpoints
	Hooks      hook.Set                       // run before those of the configuration
	Fleet      *Fleet                         // of the program; nil: the engine joins that of the configuration for itself
	Fault      func(op string) *guardfs.Fault // for tests: see guardfs.Options
	Environ    []string                       // of programs that are run for calls

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
	Location
}

// Location is where the files are: on this machine, or where Calls lead. Then DataDir, hooks and policies are still here,
// all other paths are of there, and Protect is not asked for, which names what is here.
type Location struct {
	Calls guardfs.Calls // see guardfs.Options
	Where string        // its name in the audit log; "": none
	End   func() error  // is called when the engine has been closed; may be nil
}

// opened holds the parts that Open adds to an engine over its rules.
type opened struct {
	dataDir string
	place   Location
	root    string      // nothing outside may be touched, whatever the allow list says; or ""
	free    *guardfs.FS // for the policy's own looks; no call has it
	tools   policy.Tools
	readers *readers.Readers
	search  searching
	hooks   hook.Set
	start   start

	chain    policy.Chain // nil: none is asked
	programs Programs
	own      *Fleet // that nobody else has; nil: there is none
}

// Open opens everything that a configuration asks for: data directory, policy, readers, store,
// ledger. cfg has been checked. The agent's tree is not touched. The error is a
// *datadir.Error, one or more *config.Problem, or that of a broken host.
func Open(cfg config.Config, h Host) (_ *Engine, err error) {
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	o := opened{root: h.Root.Only, place: h.Root.Location}
	o.programs = Programs{Run: cfg.Tools.Run, Environ: h.Environ, Home: h.GitUser.Home, Own: h.covered()}
	o.programs.Write = nil
	for _, dir := range cfg.Tools.Run.Write {
		o.programs.Write = append(o.programs.Write, strings.TrimSuffix(dir, "/**"))
	}
	o.tools = ToolsUnder(cfg.Tools)
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
	if h.Fleet == nil {
		if o.own, err = JoinFleet(context.Background(), cfg.Tools.FS.Fleet, h.Logger); err != nil {
			return nil, errors.Join(err, o.close())
		}
		h.Fleet = o.own
	}
	e, err := OpenOver(Options{
		Config: cfg.Tools.FS, Fleet: h.Fleet, Judge: judge, Classes: classes, DataDir: o.dataDir,
		Approver: h.Approver, Logger: h.Logger, Identities: h.Identities,
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

// hooksOf adds the programs that the configuration names to the hooks of the host.
func hooksOf(cfg config.Hooks, h hook.Set) (hook.Set, error) {
	h.Before, h.After, h.Persist = slices.Clone(h.Before), slices.Clone(h.After), slices.Clone(h.Persist)
	for _, list := range []struct {
		lines []string
		add   func(hook.Command)
	}{
		{cfg.BeforeToolCall, func(c hook.Command) { h.Before = append(h.Before, c) }},
		{cfg.AfterToolCall, func(c hook.Command) { h.After = append(h.After, c) }},
		{cfg.ToolResultPersist, func(c hook.Command) { h.Persist = append(h.Persist, c) }},
	} {
		for _, line := range list.lines {
			c, err := hook.ParseCommand(line)
			if err != nil {
				return h, err
			}
			list.add(c)
		}
	}
	if h.Timeout == 0 {
		h.Timeout = time.Duration(cfg.Timeout)
	}
	h.Allow = h.Allow || cfg.OnError == "allow"
	return h, nil
}

func (o *opened) close() error {
	var errs []error
	if o.readers != nil {
		errs = append(errs, o.readers.Close())
	}
	if o.free != nil {
		errs = append(errs, o.free.Close())
	}
	return errors.Join(append(errs, o.own.Close())...)
}

// Readers make content of bytes.
func (e *Engine) Readers() *readers.Readers { return e.readers }

// Page gives the page p under the configuration. One that the client cuts only becomes smaller by context_window_tokens.
func (e *Engine) Page(p dialect.Page) dialect.Page {
	tokens := e.cfg.ContextWindowTokens
	window := int(readers.WindowBytes(tokens))
	if p.Bytes <= 0 || tokens > 0 && !p.Hard {
		p.Bytes = window
	}
	p.Bytes = min(p.Bytes, window)
	return p
}

// Root is the directory that the allow list is narrowed to, or "".
func (e *Engine) Root() string { return e.root }

// Config is [tools.fs], and Logger the host's, for dialects.
func (e *Engine) Config() config.FS { return e.cfg }

func (e *Engine) Logger() *slog.Logger { return e.logger }

// Location is where the files are.
func (e *Engine) Location() Location { return e.place }

// ToolsUnder are the tools that a configuration leaves, by their names.
func ToolsUnder(cfg config.Tools) policy.Tools {
	allow, deny := cfg.Lists()
	return policy.NewTools(allow, deny, cfg.FS.ReadOnly)
}

// Changing are the tools that stand for all changes: what does their work by another road is denied with the last of them.
var Changing = []string{"Write", "Edit", "MultiEdit"}

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

// covered are our own files and directories, but for our program, which a run may call.
func (h *Host) covered() []string {
	own := append([]string{h.DataDir}, h.Protect...)
	return slices.DeleteFunc(own, func(name string) bool {
		return name == "" || len(h.Program.Worker) > 0 && guardfs.Canonical(name) == guardfs.Canonical(h.Program.Worker[0])
	})
}

// RunsCode says that a file runs code later by its name, so that a change of it is asked about.
func (e *Engine) RunsCode(path string) bool {
	return e.classes.Of(path) == policy.Exec
}

// isHook says whether a path is, or is in, what git reads and runs under names that say nothing: what
// the configuration names, and git's own directory where .git only leads there. known has those of
// directories.
func (e *Engine) isHook(name string, known map[string][]string) bool {
	return slices.ContainsFunc(e.gitPlaces(path.Dir(name), known), func(at string) bool {
		dir, whole := strings.CutSuffix(at, "/")
		return name == dir || whole && below(name, dir)
	}) && !e.classes.Lifted(name)
}

// gitPlaces are the code places of the repository that holds dir, and of the user, and where .git
// leads, each as it is named and as it truly is. A directory of which all counts ends in a slash. A
// configuration that can't be read names none: git can't read it either.
func (e *Engine) gitPlaces(dir string, known map[string][]string) (out []string) {
	out, ok := known[dir]
	if ok || e.free == nil {
		return out
	}
	defer func() { known[dir] = out }()
	add := func(name string) {
		if name == "" || len(name) > 4096 {
			return
		}
		slash := ""
		if strings.HasSuffix(name, "/") {
			slash = "/"
		}
		name = path.Clean(name)
		out = append(out, name+slash)
		if h, err := e.free.Resolve(name, guardfs.Walk); err == nil {
			out = append(out, h.Object().True+slash)
			h.Close() //nolint:errcheck // nothing was written through it
		}
	}
	read := func(name string) ([]byte, error) { return readWhole(e.free, name, ignore.MaxFile) }
	git := path.Join(dir, ".git")
	var h *guardfs.Handle
	err := fs.ErrNotExist
	if !e.free.Nothing(git) {
		h, err = e.free.Resolve(git, guardfs.Look)
	}
	top := dir == "/" || dir == "." || e.place.Calls != nil && dir == e.cfg.WorkspaceRoot
	if err != nil && !top { // above the root of a sandbox, the workspace there, nothing can be read
		return e.gitPlaces(path.Dir(dir), known)
	}
	code := e.search.code
	if err == nil {
		kind := h.Object().Info.Kind
		h.Close() //nolint:errcheck // nothing was written through it
		common := git
		if kind == guardfs.KindFile {
			git, common = linked(dir, read)
			add(common + "/")
		}
		add(git + "/")
		u := ignore.User{Home: e.search.home, Read: read,
			Files: []string{common + "/config", git + "/config.worktree"}}
		code = slices.Concat(code, u.CodePlaces())
	}
	for _, to := range code {
		if to != "" && !filepath.IsAbs(to) {
			if err != nil { // no repository
				continue
			}
			to = dir + "/" + to
		}
		add(to)
	}
	return out
}

// linked follows the .git file of a worktree or a submodule: to its own directory, and to the one
// that has the configuration.
func linked(top string, read func(string) ([]byte, error)) (git, common string) {
	data, _ := read(top + "/.git") //nolint:errcheck // nothing is named then
	to, _ := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
	if git = strings.TrimSpace(to); !path.IsAbs(git) {
		git = path.Join(top, git)
	}
	common = git
	if data, err := read(git + "/commondir"); err == nil {
		if common = strings.TrimSpace(string(data)); !path.IsAbs(common) {
			common = path.Join(git, common)
		}
	}
	return git, common
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
	var names []string
	for _, p := range protect {
		if p != "" { // a process that can replace a link among its names decides what the next start reads
			names = append(names, guardfs.Names(p)...)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) { // each is looked at again and again
		o.Protected = append(o.Protected, policy.Protected{Path: name, Why: "our own data, configuration or program"})
	}
	p, err := policy.New(o)
	if err != nil {
		return nil, nil, nil, errors.Join(err, free.Close())
	}
	return free, p, o.Classes, nil
}

// classesOf are the protected classes that hold. The names of the directory where the work is, and
// of those above it, say nothing: the operator chose it.
func classesOf(cfg config.FS, root string, free *guardfs.FS) (*policy.Classes, error) {
	return policy.NewClasses(policy.ClassOptions{
		Holds:  holds(cfg),
		Lifted: cfg.Unprotected, Root: cmp.Or(root, cfg.WorkspaceRoot), Canonical: free.Canonical})
}

// programsOf are the files that the commands of the configuration are made of, and the secrets of webhooks. A process that can write them
// decides the answers of a hook.
func programsOf(cfg config.Hooks, free *guardfs.FS) (out []string) {
	for _, line := range cfg.Lines() {
		for i, word := range strings.Fields(line) {
			if kind, _ := kindOf(free, word); i == 0 && !strings.Contains(word, "://") ||
				strings.HasPrefix(word, "/") && kind == guardfs.KindFile {
				out = append(out, word)
			}
		}
	}
	return out
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

func holds(cfg config.FS) policy.Holds {
	return policy.Holds{Secret: cfg.ProtectSecret != "allow", Exec: cfg.ProtectExec != "allow"}
}

// rules are the operator's.
func rules(fs config.FS, root string) policy.Options {
	return policy.Options{Allow: fs.AllowPaths, Deny: fs.DenyPaths, Root: root,
		Canonical: guardfs.Canonical}
}

// checkpointStore opens the store at its first use: a session that only reads
// does not pay for a database.
type checkpointStore struct {
	dir    string
	cfg    config.Checkpoint
	fleet  *Fleet
	logger *slog.Logger

	identities []string
	excluded   func(path string) bool

	mu       sync.Mutex
	db       *checkpoint.DB
	shipping *checkpoint.Shipper
	closed   bool
}

func (s *checkpointStore) open() (*checkpoint.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, checkpoint.ErrClosed
	}
	if s.fleet.HasStore() { // each call would wait for a server that does not answer
		if err := s.fleet.Cut(); err != nil {
			return nil, err
		}
	}
	if s.db != nil {
		return s.db, nil
	}
	o, err := StoreOptions(s.cfg, s.fleet)
	if err != nil {
		return nil, err
	}
	o.Logger, o.Identities = s.logger, s.identities
	if o.Exclude != nil {
		o.Exclude = s.excluded // links in it lead where the files are
	}
	db, err := checkpoint.Open(s.dir, o)
	if _, full := errors.AsType[*checkpoint.DiskFullError](err); full ||
		errors.Is(err, checkpoint.ErrBusy) || errors.Is(err, checkpoint.ErrReadOnly) ||
		errors.Is(err, checkpoint.ErrInUse) || CutOff(err) {
		return nil, err // nothing is broken that room, or another process, would not mend
	}
	if err != nil {
		return nil, &hostError{"opening the checkpoint store", err}
	}
	s.db, s.shipping = db, s.fleet.Ship(db, o)
	return db, nil
}

// Close closes the store. An error is logged, not returned: every change was confirmed when it was
// saved, so an error would tell of a loss that there is not.
func (s *checkpointStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db == nil {
		return nil
	}
	s.shipping.Close() //nolint:errcheck // what was not sent is in the store that it waits in
	if err := s.db.Close(); err != nil {
		s.logger.Error("the checkpoint store could not be closed in order; "+
			"what was answered stands, and is on record",
			"err", err)
	}
	return nil
}

// StoreOptions gives the options of the store, from [tools.fs.checkpoint]: of that of the fleet f, or where f has none of the one in a
// data directory.
func StoreOptions(c config.Checkpoint, f *Fleet) (checkpoint.Options, error) {
	excluded, err := excludes(c.Exclude, guardfs.Canonical)
	if err != nil {
		return checkpoint.Options{}, err
	}
	if len(c.Exclude) == 0 {
		excluded = nil // the store says so then
	}
	// One zero is what the operator wrote. Two are a Config that nobody filled in: a check refuses
	// two.
	switch {
	case c.KeepWithin == 0 && c.KeepLast != 0:
		c.KeepWithin = checkpoint.KeepNone
	case c.KeepLast == 0 && c.KeepWithin != 0:
		c.KeepLast = checkpoint.KeepNone
	}
	o := checkpoint.Options{
		MaxBytes: c.MaxBytes, MaxFileBytes: c.MaxFileBytes,
		KeepWithin: time.Duration(c.KeepWithin), KeepLast: c.KeepLast,
		Exclude: excluded, EncryptTo: c.EncryptTo,
	}
	o.Ships = f.Ships()
	if f.HasStore() {
		f.remote(&o)
		o.Guard = f.Gateway.Guard
	}
	return o, nil
}

// textsDir is where the texts of documents are kept.
func textsDir(dataDir string) string { return filepath.Join(dataDir, "texts") }

// PurgeKept removes the contents that are kept beside the store under the data directory: what sessions read, for the diff of a conflict, and
// the texts of documents. Nothing depends on them, so sessions may be at work.
func PurgeKept(dataDir string) error {
	return errors.Join(session.PurgeContents(filepath.Join(dataDir, "ledger")), texts.Purge(textsDir(dataDir)))
}

// PurgeHashes makes the read histories under the data directory forget these contents. recorded is
// how many records of the audit log name them: that log is only ever appended to.
// f has those of a fleet.
func PurgeHashes(dataDir string, f *Fleet, hashes []string) (recorded int, err error) {
	for _, log := range []string{ledgerName, ledgerName + "/encodings"} {
		if err := session.PurgeHashes(filepath.Join(dataDir, log), hashes); err != nil {
			return 0, err
		}
	}
	if f != nil {
		if err := session.PurgeHashesIn(f.Files(ledgerName), hashes); err != nil {
			return 0, err
		}
	}
	return audit.CountMentions(filepath.Join(dataDir, "audit"), hashes)
}

// lockTry is how long at least it is waited for a lock: those of calls that are about to end.
const lockTry = 20 * time.Millisecond

// opKey is the lock of an operation: its holder is alive.
var opKey = func(tag string) string { return "op:" + tag }

// Alive tells whether the operation of a tag is being carried out: its process holds a lock then.
// It is nil where nobody can tell.
func Alive(dataDir string, f *Fleet) func(tag string) bool {
	locks, err := guardfs.OpenLocks(filepath.Join(dataDir, "locks"))
	if err != nil {
		return nil
	}
	if f.HasStore() {
		locks = locks.Further(f.Gateway)
	}
	return func(tag string) bool {
		ctx, cancel := context.WithTimeout(context.Background(), lockTry)
		defer cancel()
		unlock, err := locks.For("purge").Lock(ctx, opKey(tag))
		if err == nil {
			unlock()
		}
		return err != nil
	}
}

// Named are the paths that globs name in the way of [tools.fs.checkpoint] exclude.
func Named(globs []string) (*policy.Paths, error) {
	return policy.NewPaths(globs, guardfs.Canonical)
}

// excludes says of a canonical path whether its content must not be stored. Links are followed anew
// each time, because they may lead elsewhere by now.
func excludes(globs []string, canonical func(string) string) (func(string) bool, error) {
	named, err := policy.NewPaths(globs, canonical)
	if err != nil {
		return nil, fmt.Errorf("checkpoint exclude: %w", err)
	}
	if len(globs) == 0 {
		return func(string) bool { return false }, nil
	}
	return func(path string) bool {
		if named.Covers(path) {
			return true
		}
		named.Follow()
		return named.Covers(path)
	}, nil
}

// scope gives the part of the history that the call's session may see.
func (c *Call) scope() checkpoint.Scope {
	return checkpoint.Scope{Principal: c.Principal, Session: c.Session, AllSessions: true}
}

// Checkpoints lists what the call's session may see. f.Session picks one of those sessions.
func (c *Call) Checkpoints(ctx context.Context, f checkpoint.Filter) (checkpoint.Page, error) {
	db, err := c.checkpoints.open()
	if err != nil {
		return checkpoint.Page{}, err
	}
	f.Principal, f.AllSessions = c.Principal, true // with AllSessions f.Session is a filter
	return db.List(ctx, f)
}

// Names are the names under which the store may have what is, or was, at an absolute path: as it is
// spelled, with the links above it followed as they lead today, and with the last one followed too.
func Names(p string) []string { return namesOf(p, guardfs.Canonical) }

func namesOf(p string, canonical func(string) string) []string {
	p = filepath.Clean(p)
	names := []string{p}
	dir, last := filepath.Split(p)
	for _, name := range []string{filepath.Join(canonical(filepath.Clean(dir)), last),
		filepath.Clean(canonical(p))} {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Names gives the names of a path that today's policy lets be read. Of any other it is only the path as
// spelled, because where it leads must not be told.
func (c *Call) Names(path string) []string {
	names := namesOf(path, c.fs.Canonical)
	if c.Denies(names[0]) {
		return names[:1]
	}
	return names
}

// Denies says whether today's policy keeps path from being read, and so from being named.
func (c *Call) Denies(path string) bool {
	return c.denied(path) != nil
}

// denied is policy's refusal to let path be looked at; nil when it lets it. A link counts for
// itself, wherever it leads: it can be taken back, as it could be made.
func (c *Call) denied(path string) error {
	_, _, err := c.fs.Lstat(path)
	if _, no := errors.AsType[*policy.Denied](err); no {
		return err
	}
	return nil
}

// Checkpoint finds one checkpoint that the call's session may see.
func (c *Call) Checkpoint(ctx context.Context, id checkpoint.ID) (*checkpoint.Checkpoint, error) {
	db, err := c.checkpoints.open()
	if err != nil {
		return nil, err
	}
	return db.Get(ctx, id, c.scope())
}

// A change of our own files is on record like a call, under this name in the place of a
// dialect.
const operator = "operator"

// An OperatorAction is an act of an operator on our own files, as a purge or a pin. It is no call, and no agent's.
type OperatorAction struct {
	Name               string // as it stands on record
	Principal, Session string // whose files are meant, where that is said
	What               string // which: options, as they were given
	Client             string // the program, or the operator who sent it from afar
	Checkpoint         string
}

// Recorded carries the action out between two records, in the log under the data directory. Without the
// first it is not begun. refused names an error that is a "no", for the record; "" is a broken host.
func (d OperatorAction) Recorded(dataDir string, cfg config.Audit, do func() error,
	refused func(error) string) (err error) {
	log, err := auditLog(dataDir, cfg)
	if err != nil {
		return &hostError{"opening the audit log", err}
	}
	defer log.Close() //nolint:errcheck // nothing is buffered
	return d.on(log, do, refused)
}

func auditLog(dataDir string, cfg config.Audit) (*audit.Log, error) {
	const keep = 4
	return audit.Options{MaxBytes: cmp.Or(cfg.MaxBytes/(keep+1), -1), Keep: keep}.Open(filepath.Join(dataDir, "audit"))
}

func (d OperatorAction) on(log *audit.Log, do func() error, refused func(error) string) error {
	start := time.Now()
	r := audit.Record{Time: start, Phase: "intent", Call: rand.Text()[:16], By: "person",
		Dialect: operator, Tool: d.Name, Principal: d.Principal, Session: d.Session,
		Pattern: d.What, Client: d.Client, Checkpoint: d.Checkpoint, Decision: "allowed"}
	if err := log.AppendChange(r); err != nil {
		return &hostError{"writing the audit record", err}
	}
	err := do()
	r.Time, r.Phase, r.Outcome = time.Now(), "outcome", outcomeOK
	if r.Duration = r.Time.Sub(start); err != nil {
		r.Outcome, r.Error = cmp.Or(refused(err), outcomeHost), err.Error()
	}
	if rerr := log.AppendChange(r); rerr != nil && err == nil { // it has happened, and its intent is on record
		err = fmt.Errorf("%s is done, but its outcome could not be written to the audit log: %w",
			d.Name, rerr)
	}
	return err
}

// Upkeep gives do the checkpoint store, for what a host does to it: pins, labels, retention. name is
// how it is on record; where that can't be written, do is not run.
func (e *Engine) Upkeep(ctx context.Context, name string,
	do func(context.Context, *checkpoint.DB) error) error {
	if err := e.calls.enter(); err != nil {
		return err
	}
	defer e.calls.leave()
	db, err := e.checkpoints.open()
	if err != nil {
		return err
	}
	return OperatorAction{Name: name}.on(e.log, func() error { return do(ctx, db) }, func(err error) string {
		if r := Reason(err); r != nil {
			return string(r.Code)
		}
		return ""
	})
}

// start holds the fields of the start record of a program: its name and version, and the
// configuration that holds.
type start struct{ program, policy string }

// event puts on record that calls are taken from now on ("start", or "reload" where the engine takes
// over from another), or not any more ("stop"). A program without a name has no such records.
func (e *Engine) event(name string) error {
	if e.start.program == "" {
		return nil
	}
	err := e.log.AppendChange(audit.Record{Time: e.now(), Phase: "outcome", Dialect: operator, Tool: name,
		Where: e.place.Where, Outcome: outcomeOK, Version: e.start.program, Policy: e.start.policy})
	if err != nil {
		return &hostError{"writing the audit record", err}
	}
	return nil
}

// Policy is the SHA-256 of the configuration that holds, in hex, as it is on record.
func (e *Engine) Policy() string { return e.start.policy }

// HandOver says that another engine of this program goes on: Close then records no stop. It must
// not run beside Close.
func (e *Engine) HandOver() { e.start = start{} }
