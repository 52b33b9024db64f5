package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/state"
)

// joined is the fleet of a process, which it joins when something needs it. All commands of a server have one.
type joined struct {
	mu    sync.Mutex
	fleet *engine.Fleet
}

// fleet gives the fleet of the configuration that holds; nil: there is none.
func (in *invocation) fleet() (*engine.Fleet, error) {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return nil, unusableConfig(err, from)
	}
	return in.join(cfg)
}

// join is fleet under a configuration. A process stays in the fleet that it has joined: a reload that names another one is refused.
func (in *invocation) join(cfg config.Config) (*engine.Fleet, error) {
	c, j := cfg.Tools.FS.Fleet, in.joined
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.fleet != nil && j.fleet.Fleet == c:
		return j.fleet, nil
	case j.fleet != nil, c.On() && in.serving != nil:
		return nil, misuse("stop the server and start it anew", "[tools.fs.fleet] has changed, and it is read at the start only")
	}
	f, err := engine.JoinFleet(context.Background(), c, in.logger(slog.LevelWarn))
	if err != nil {
		return nil, misuse("", "joining the fleet: %v", err)
	}
	j.fleet = f
	return f, nil
}

// leave leaves the fleet, with err as the error of the command.
func (j *joined) leave(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if lerr := j.fleet.Close(); lerr != nil && err == nil {
		err = fmt.Errorf("leaving the fleet: %w", lerr)
	}
	j.fleet = nil
	return err
}

// shared gives the small files of one kind: those of the fleet, or nil and their directory in the data directory.
func (in *invocation) shared(kind string) (files state.Files, dir string, err error) {
	f, err := in.fleet()
	if err == nil && f != nil {
		return f.Files(kind), "", nil
	}
	data, derr := in.dataDir()
	return nil, filepath.Join(data, kind), errors.Join(err, derr)
}
