package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/glob"
)

// checkpointStore opens the store at its first use: a session that only reads
// does not pay for a database.
type checkpointStore struct {
	dir    string
	cfg    config.Checkpoint
	logger *slog.Logger

	mu sync.Mutex
	db *checkpoint.DB
}

func (s *checkpointStore) open() (*checkpoint.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		return s.db, nil
	}
	excluded, err := excludes(s.cfg.Exclude)
	if err != nil {
		return nil, err
	}
	db, err := checkpoint.Open(s.dir, checkpoint.Options{
		Durability: checkpoint.Durability(s.cfg.Durability), MaxBytes: s.cfg.MaxBytes, MaxFileBytes: s.cfg.MaxFileBytes,
		KeepWithin: time.Duration(s.cfg.KeepWithin), KeepLast: s.cfg.KeepLast, Exclude: excluded, EncryptTo: s.cfg.EncryptTo, Logger: s.logger,
	})
	if err != nil {
		return nil, &hostError{"opening the checkpoint store", err}
	}
	s.db = db
	return db, nil
}

// excludes compiles the globs whose content must not be stored.
func excludes(patterns []string) (func(string) bool, error) {
	var globs []*glob.Glob
	for _, p := range patterns {
		g, err := glob.Compile(p, glob.Options{})
		if err != nil {
			return nil, fmt.Errorf("checkpoint exclude %q: %w", p, err)
		}
		globs = append(globs, g)
	}
	return func(path string) bool {
		for _, g := range globs {
			if g.Match(path) {
				return true
			}
		}
		return false
	}, nil
}

func (s *checkpointStore) Save(ctx context.Context, op checkpoint.Op) (checkpoint.Saved, error) {
	db, err := s.open()
	if err != nil {
		return checkpoint.Saved{}, err
	}
	return db.Save(ctx, op)
}

func (s *checkpointStore) Get(ctx context.Context, id checkpoint.ID, who checkpoint.Scope) (*checkpoint.Checkpoint, error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	return db.Get(ctx, id, who)
}

func (s *checkpointStore) List(ctx context.Context, f checkpoint.Filter) (checkpoint.Page, error) {
	db, err := s.open()
	if err != nil {
		return checkpoint.Page{}, err
	}
	return db.List(ctx, f)
}

func (s *checkpointStore) Plan(ctx context.Context, r checkpoint.Restore) (*checkpoint.Plan, error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	return db.Plan(ctx, r)
}

func (s *checkpointStore) Content(ctx context.Context, hash string) ([]byte, error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	return db.Content(ctx, hash)
}

func (s *checkpointStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}
