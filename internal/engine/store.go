package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/audit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
)

// checkpointStore opens the store at its first use: a session that only reads
// does not pay for a database.
type checkpointStore struct {
	dir    string
	cfg    config.Checkpoint
	logger *slog.Logger

	identities []string
	progress   func(what string, done, total int)
	excluded   func(path string) bool

	mu     sync.Mutex
	db     *checkpoint.DB
	closed bool
}

// existing is the store, or nil where none was ever made.
func (s *checkpointStore) existing() (*checkpoint.DB, error) {
	if !checkpoint.Exists(s.dir) {
		return nil, nil
	}
	return s.open()
}

func (s *checkpointStore) open() (*checkpoint.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, checkpoint.ErrClosed
	}
	if s.db != nil {
		return s.db, nil
	}
	o, err := StoreOptions(s.cfg)
	if err != nil {
		return nil, err
	}
	o.Logger, o.Identities, o.Progress = s.logger, s.identities, s.progress
	if o.Exclude != nil {
		o.Exclude = s.excluded // links in it lead where the files are
	}
	db, err := checkpoint.Open(s.dir, o)
	if _, full := errors.AsType[*checkpoint.DiskFullError](err); full ||
		errors.Is(err, checkpoint.ErrBusy) || errors.Is(err, checkpoint.ErrReadOnly) ||
		errors.Is(err, checkpoint.ErrInUse) {
		return nil, err // nothing is broken that room, or another process, would not mend
	}
	if err != nil {
		return nil, &hostError{"opening the checkpoint store", err}
	}
	s.db = db
	return db, nil
}

// Close closes the store. An error is logged, not returned: every change was confirmed when it was
// saved, so whoever heard of an error would take for lost what is not.
func (s *checkpointStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db == nil {
		return nil
	}
	if err := s.db.Close(); err != nil {
		s.logger.Error("the checkpoint store could not be closed in order; "+
			"what was answered stands, and is on record",
			"err", err)
	}
	return nil
}

// StoreOptions gives the options of the store, from [tools.fs.checkpoint].
func StoreOptions(c config.Checkpoint) (checkpoint.Options, error) {
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
	return checkpoint.Options{
		MaxBytes: c.MaxBytes, MaxFileBytes: c.MaxFileBytes,
		KeepWithin: time.Duration(c.KeepWithin), KeepLast: c.KeepLast,
		Exclude: excluded, EncryptTo: c.EncryptTo,
	}, nil
}

// PurgeKept removes the contents that are kept beside the store under the data directory, and says
// how many there were. They are what sessions read, for the diff of a conflict. Nothing depends on
// them, so sessions may be at work.
func PurgeKept(dataDir string) (int, error) {
	return session.PurgeContents(filepath.Join(dataDir, "ledger"))
}

// PurgeHashes makes the read histories under the data directory forget these contents. recorded is
// how many records of the audit log name them: that log is only ever appended to.
func PurgeHashes(dataDir string, hashes []string) (recorded int, err error) {
	if err := session.PurgeHashes(filepath.Join(dataDir, "ledger"), hashes); err != nil {
		return 0, err
	}
	return audit.CountMentions(filepath.Join(dataDir, "audit"), hashes)
}

// Alive tells whether the operation of a tag is being carried out: whoever does that holds a lock.
// It is nil where nobody can tell.
func Alive(dataDir string) func(tag string) bool {
	locks, err := guardfs.OpenLocks(filepath.Join(dataDir, "locks"))
	if err != nil {
		return nil
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
func (e *Engine) scope(c *Call) checkpoint.Scope {
	return checkpoint.Scope{Principal: c.Principal, Session: c.Session, AllSessions: true}
}

// Checkpoints lists what the call's session may see. f.Session picks one of those sessions.
func (e *Engine) Checkpoints(ctx context.Context, c *Call,
	f checkpoint.Filter) (checkpoint.Page, error) {
	e, err := e.begun(c)
	if err != nil {
		return checkpoint.Page{}, err
	}
	db, err := e.checkpoints.open()
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
func (e *Engine) Names(c *Call, path string) []string {
	names := namesOf(path, e.fs.Canonical)
	if e.Denies(c, names[0]) {
		return names[:1]
	}
	return names
}

// Denies says whether today's policy keeps path from being read, and so from being named.
func (e *Engine) Denies(c *Call, path string) bool {
	e, err := e.begun(c)
	return err != nil || e.denied(path) != nil
}

// denied is policy's refusal to let path be looked at; nil when it lets it. A link counts for
// itself, wherever it leads: it can be taken back, as it could be made.
func (e *Engine) denied(path string) error {
	_, _, err := e.fs.Lstat(path)
	if _, no := errors.AsType[*policy.Denied](err); no {
		return err
	}
	return nil
}

// Checkpoint finds one checkpoint that the call's session may see.
func (e *Engine) Checkpoint(ctx context.Context, c *Call,
	id checkpoint.ID) (*checkpoint.Checkpoint, error) {
	e, err := e.begun(c)
	if err != nil {
		return nil, err
	}
	db, err := e.checkpoints.open()
	if err != nil {
		return nil, err
	}
	return db.Get(ctx, id, e.scope(c))
}
