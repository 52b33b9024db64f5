package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/config"
	"moltisfs/internal/audit"
	"moltisfs/internal/datadir"
	"moltisfs/internal/fleet"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/outage"
	"moltisfs/internal/session"
	shared "moltisfs/internal/state"
)

// Fleet is what a process has open of [tools.fs.fleet]. A process joins one and leaves it at its end, whatever number of engines it has.
// A nil Fleet is none: then all is in the data directory. Safe for concurrent use.
type Fleet struct {
	config.Fleet
	Gateway *fleet.Gateway
	bucket  *blob.S3

	mu   sync.Mutex
	logs map[string]*audit.Log // whose ends are sent to the fleet, by data directory
}

// JoinFleet joins the fleet that c names; nil where it names none. What can't be reached is no error: it is tried again when it is needed.
func JoinFleet(ctx context.Context, c config.Fleet, logger *slog.Logger) (*Fleet, error) {
	if !c.On() {
		return nil, nil
	}
	bucket, err := blob.OpenS3(c.Contents)
	if err != nil {
		return nil, err
	}
	g, err := fleet.Open(ctx, fleet.Options{Database: c.Database, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Fleet{Fleet: c, Gateway: g, bucket: bucket, logs: map[string]*audit.Log{}}, nil
}

// Close leaves the fleet.
func (f *Fleet) Close() error {
	if f == nil {
		return nil
	}
	err := f.Gateway.Close()
	for _, log := range f.logs {
		err = errors.Join(err, log.Close())
	}
	return err
}

// sendHeads has the ends of a machine's audit log, which is in dataDir, put on record in the fleet from now on.
func (f *Fleet) sendHeads(machine, dataDir string, cfg config.Audit) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.logs[dataDir] != nil {
		return nil
	}
	log, err := auditLog(dataDir, cfg)
	if err == nil {
		f.logs[dataDir] = log
		f.Gateway.SendHeads(machine, place(dataDir), log.Heads)
	}
	return err
}

// Heads are the ends of a chain of the audit log in a data directory that are on record in the fleet. others says that another log was at
// that place of this host: the directory was made anew, or somebody made the log another one's.
func (f *Fleet) Heads(ctx context.Context, dataDir, chain string) (seen []audit.Seen, others bool, err error) {
	machine, err := datadir.Machine(dataDir, false)
	if err != nil {
		return nil, false, err
	}
	return f.Gateway.Heads(ctx, machine, place(dataDir), chain)
}

// place is the host's name, and the true name of the data directory there.
func place(dataDir string) string {
	host, _ := os.Hostname() // "" does where it has none
	return host + ":" + guardfs.Canonical(dataDir)
}

// Unreachable says why the database or the bucket can't be reached; nil: both can, or nothing has needed the bucket since it could. With
// look it asks for the bucket now, unless that was done before.
func (f *Fleet) Unreachable(look bool) error {
	if look {
		f.bucket.Probe(context.Background()) //nolint:errcheck // Failed has it
	}
	return cmp.Or(f.Cut(), f.bucket.Failed())
}

// Cut says why the database can't be reached, or not yet again; nil: it can, as far as is known without asking it.
func (f *Fleet) Cut() error {
	if f == nil {
		return nil
	}
	return f.Gateway.Fenced()
}

// Files are the small files of one kind that the gateways share.
func (f *Fleet) Files(kind string) shared.Files { return f.Gateway.Files(kind) }

// HasStore says that the history is in the fleet, and not in the data directory.
func (f *Fleet) HasStore() bool { return f != nil && f.Durable == "remote" }

// Ships says that the history is in the data directory, and is copied to the fleet behind it.
func (f *Fleet) Ships() bool { return f != nil && !f.HasStore() }

// remote has o open the store of the fleet.
func (f *Fleet) remote(o *checkpoint.Options) { o.Database, o.Blobs = f.Database, f.bucket }

// Sessions lists what sessions have changed on all machines, as checkpoint.DB.Sessions does: with durable = "local", as far as it was copied.
func (f *Fleet) Sessions(ctx context.Context, c config.Checkpoint, of checkpoint.Filter) (all []checkpoint.SessionChanges, err error) {
	o, err := StoreOptions(c, f)
	if err == nil {
		err = f.Cut() // else it is tried for seconds
	}
	if err != nil {
		return nil, err
	}
	o.Ships = false
	f.remote(&o)
	db, err := checkpoint.Open("", o)
	if err != nil {
		return nil, err
	}
	all, err = db.Sessions(ctx, of)
	return all, errors.Join(err, db.Close())
}

// CutOff says of an error that the fleet's database or bucket does not answer, or not yet again.
func CutOff(err error) bool { return outage.Is(err) || errors.Is(err, fleet.ErrFenced) }

// Ship begins to copy a store that was opened with o to that of the fleet; nil where the fleet has none that is copied.
func (f *Fleet) Ship(local *checkpoint.DB, o checkpoint.Options) *checkpoint.Shipper {
	if !f.Ships() {
		return nil
	}
	o.Ships, o.Alive = false, nil
	f.remote(&o)
	return checkpoint.Ship(local, f.Cut, func() (*checkpoint.DB, error) { return checkpoint.Open("", o) })
}

// fetched has the sessions that have called here.
type fetched struct {
	mu  sync.Mutex
	all session.Recent[*fetching]
}

// fetching is how far it is to bring here what other gateways have made in one session.
type fetching struct {
	mu         sync.Mutex
	done, told bool      // all was fetched; it was told that it was not
	fresh      time.Time // until then nothing is fetched
}

// quiet is the time after which a session that comes back may have been elsewhere. Tests set it.
var quiet = 10 * time.Second

// fetch brings here what other gateways have made in a session: at its first call, and when it has not called for a while. Other calls of
// that session wait for it. What fails is tried again by a later call, the sooner the less time it took.
func (c *Call) fetch(ctx context.Context) {
	if !c.Engine.fleet.Ships() {
		return
	}
	all := &c.fetched
	all.mu.Lock()
	f := all.all.Get(c.key())
	if f == nil {
		f = &fetching{}
		all.all.Set(c.key(), f)
	}
	all.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	start := time.Now()
	if start.Before(f.fresh) {
		if f.done {
			f.fresh = start.Add(quiet)
		}
		return
	}
	_, err := c.checkpoints.open()
	if err == nil {
		_, err = c.checkpoints.shipping.Fetch(ctx, c.Principal, c.Session)
	}
	if f.done = err == nil; f.done {
		f.fresh = time.Now().Add(quiet)
		return
	}
	f.fresh = time.Now().Add(10 * time.Since(start))
	if !f.told {
		f.told = true
		c.logger.Warn("what other gateways have made in this session is not here", "principal", c.Principal, "session", c.Session, "err", err)
	}
}

// leased binds the changes of ctx to the lease that the fleet has given this process: what is saved, locked or published under it is refused
// once that lease is over. Without a store of a fleet it is ctx.
func (e *Engine) leased(ctx context.Context) (context.Context, error) {
	if !e.fleet.HasStore() {
		return ctx, nil
	}
	return e.fleet.Gateway.Begin(ctx)
}

// fenced says, without asking the database, that the lease of ctx is over: then nothing more may be changed. nil: it is not.
func (e *Engine) fenced(ctx context.Context) error {
	if !e.fleet.HasStore() {
		return nil
	}
	return e.fleet.Gateway.Check(ctx)
}
