package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/fleet"
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
	if err != nil && in.command.records == "token_revoke" { // that must not wait for a configuration
		return nil, nil
	}
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
	if u, err := url.Parse(c.Database); err == nil && u.Query().Has("passfile") { // else the driver goes on without a password
		if _, err := os.ReadFile(u.Query().Get("passfile")); err != nil {
			return nil, misuse("the user that moltis-fs runs as has to be able to read it", "the passfile= of [tools.fs.fleet]: %v", err)
		}
	}
	logger := in.logger(slog.LevelWarn)
	if !in.command.serves { // its answer says what it could not reach
		logger = nil
	}
	f, err := engine.JoinFleet(context.Background(), c, logger)
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
		if err = f.Cut(); in.command.serves || in.remote != nil { // it may come back
			err = nil
		}
		return f.Files(kind), "", storeError(err)
	}
	data, derr := in.dataDir()
	return nil, filepath.Join(data, kind), cmp.Or(err, derr)
}

// A fleetStatus is how this process is in its fleet. It has no secrets.
type fleetStatus struct {
	Database string     `json:"database"` // host and name
	Contents string     `json:"contents"` // bucket and prefix
	Durable  string     `json:"durable"`
	Gateway  string     `json:"gateway"`                // its name
	ID       string     `json:"id,omitempty"`           // of its lease; "": it has none
	Lease    float64    `json:"lease_seconds"`          // until it stops changing things by itself, unless the lease is renewed
	Why      string     `json:"why,omitempty"`          // the database or the bucket can't be reached
	Behind   int        `json:"behind"`                 // changes that are on this machine only, with durable = "local"
	Since    *time.Time `json:"behind_since,omitempty"` // the oldest of them

	health fleet.Health
}

// fleetStatus asks for the bucket, too, where nothing has yet.
func (in *invocation) fleetStatus(cfg config.Config) (*fleetStatus, error) {
	f, err := in.join(cfg)
	if f == nil || err != nil {
		return nil, err
	}
	st := &fleetStatus{Durable: f.Durable, health: f.Gateway.Health()}
	st.Database, st.Contents = f.Place()
	st.Gateway, st.ID, st.Lease = st.health.Name, st.health.ID, st.health.Lease.Seconds()
	if err := f.Unreachable(true); err != nil {
		st.Why = err.Error()
	}
	return st, nil
}

// look counts what is not in the fleet yet.
func (st *fleetStatus) look(ctx context.Context, db *checkpoint.DB) error {
	if st.Durable != "local" {
		return nil
	}
	n, oldest, err := db.Behind(ctx)
	if st.Behind = n; n > 0 {
		st.Since = &oldest
	}
	return err
}

// rows gives the rows for people.
func (st *fleetStatus) rows(row func(name, format string, args ...any)) {
	row("fleet", "%s, %s; durable = %q", visible(st.Database), visible(st.Contents), st.Durable)
	if st.Why != "" {
		row("", "%s", visible(st.Why))
	}
	row("gateway", "%s, lease of %.0f s", visible(st.Gateway), st.Lease)
	if st.Since != nil {
		row("behind", "%s not in the fleet yet, the oldest %s", plural(st.Behind, "change is", "changes are"), ageText(time.Since(*st.Since)))
	}
}
