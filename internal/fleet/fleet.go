// Package fleet makes several gateways one: it has their leases, their locks, the small files that they share, the ends of their audit logs,
// and what wakes them, in a PostgreSQL database.
//
// A [Gateway] is a process with a lease, a row of the database that it renews with each heartbeat. Only the database's clock says when a
// lease is over; the gateway stops before that, by its own clock, which it reads before it asks for more time. A lease that is over never
// comes back: its locks are void, and the saves of its calls are refused. The gateway begins anew under another id as soon as the
// database answers. A call is bound to the lease that it began under (Begin), so that one that has lost its locks changes nothing more.
//
// Locks and leases are in unlogged tables. After a crash of the database all are gone, and no lock is given until every lease of before
// must be over.
package fleet

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"moltisfs/internal/outage"
)

// Options are the arguments of Open. Database is needed.
type Options struct {
	Database string // "postgres://…"; passwords come from where libpq has them
	Name     string // of the gateway, for people; "": the host's name and the process's number
	Logger   *slog.Logger

	Lease time.Duration // 0: 15 s. All gateways of a database have the same; others are for tests
}

// Gateway is this process in its fleet. Safe for concurrent use.
type Gateway struct {
	db     *sql.DB
	beats  *sql.DB // one connection for heartbeats, which wait for no call
	config *pgx.ConnConfig
	name   string
	logger *slog.Logger
	lease  time.Duration

	open context.Context // until Close
	end  context.CancelFunc
	done sync.WaitGroup
	kick chan struct{} // a heartbeat is due at once
	free chan struct{} // locks are to be given back
	turn chan struct{} // as full as there are files.Update

	mu      sync.Mutex
	id      string    // of the lease; "": there is none
	until   time.Time // when this process stops by itself
	beaten  time.Time // the last heartbeat that the database confirmed
	failed  int64     // heartbeats
	failure error     // of the last one; nil: it was confirmed
	begun   int64     // leases
	calls   int64     // that have asked for locks
	held    map[int64]bool
	freed   []int64 // calls whose locks may still be there

	listening sync.Once
	listeners sync.Map // chan struct{}: the prefix of what wakes it
}

// patience is how long an answer of the database is waited for.
const patience = 5 * time.Second

// Bounds of the connections of one gateway: all of its calls, and those of files.Update, which keep one while they wait for each other.
const (
	mostConns   = 8
	mostUpdates = 4
)

// Open joins the fleet of a database: it connects, makes the tables if they are not there, and takes a lease. It fails if the address can't
// be read, or if the tables are of a newer version. If the database can't be reached it does not fail: the Gateway goes on trying, and Fenced
// says why it may not change anything yet.
func Open(ctx context.Context, o Options) (*Gateway, error) {
	config, err := pgx.ParseConfig(o.Database)
	if err != nil {
		return nil, fmt.Errorf("the address of the fleet's database: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = patience
	}
	config.RuntimeParams["default_transaction_isolation"] = "read committed" // lock_all looks again after it has waited
	g := &Gateway{db: stdlib.OpenDB(*config), beats: stdlib.OpenDB(*config), config: config, name: o.Name, logger: o.Logger, lease: o.Lease,
		kick: make(chan struct{}, 1), free: make(chan struct{}, 1), turn: make(chan struct{}, mostUpdates), held: map[int64]bool{}}
	g.db.SetMaxOpenConns(mostConns) // many calls at once wait here, and do not take what the server has for all gateways
	g.db.SetMaxIdleConns(4)
	g.beats.SetMaxOpenConns(1)
	if g.logger == nil {
		g.logger = slog.New(slog.DiscardHandler)
	}
	if g.lease == 0 {
		g.lease = 15 * time.Second
	}
	if g.name == "" {
		host, _ := os.Hostname() //nolint:errcheck // then the number has to do
		g.name = fmt.Sprintf("%s %d", host, os.Getpid())
	}
	if v, ok := errors.AsType[*VersionError](g.beat(ctx)); ok {
		g.db.Close()    //nolint:errcheck // nothing was written
		g.beats.Close() //nolint:errcheck // nor here
		return nil, v
	}
	g.open, g.end = context.WithCancel(context.WithoutCancel(ctx))
	g.done.Go(func() { g.run(g.open) })
	g.done.Go(func() { g.release(g.open) })
	return g, nil
}

// Close ends what the Gateway has started, and gives the lease back, with all locks. Calls MUST be over.
func (g *Gateway) Close() error {
	g.end()
	g.done.Wait()
	id := g.Health().ID
	g.drop(id)
	var err error
	if id != "" {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err = g.beats.ExecContext(ctx, "DELETE FROM gateway WHERE id = $1", id) // else it ends by itself
	}
	g.db.Close()    //nolint:errcheck // a connection that was cut says so, and nothing is lost with it
	g.beats.Close() //nolint:errcheck // nor with this one
	return outage.OfDatabase(err)
}

// Name is the gateway's name for people.
func (g *Gateway) Name() string { return g.name }

// OnThisMachine reports whether the gateway with that name runs, or ran, on this machine: whether its host has the same name.
func (g *Gateway) OnThisMachine(name string) bool {
	host := func(name string) string { return name[:max(0, strings.LastIndexByte(name, ' '))] }
	return name == g.name || host(name) != "" && host(name) == host(g.name)
}

// run sends a heartbeat three times in a lease, and more often as long as there is none.
func (g *Gateway) run(ctx context.Context) {
	for start := time.Now(); ; {
		pause := g.lease / 3
		if g.Health().Err != nil {
			pause = g.lease / 15
		}
		select {
		case <-ctx.Done():
			return
		case <-g.kick:
		case <-time.After(pause - time.Since(start)):
		}
		start = time.Now()
		g.beat(ctx)
	}
}

// beat renews the lease, or takes a new one where there is none.
func (g *Gateway) beat(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	g.mu.Lock()
	id := g.id
	g.mu.Unlock()
	if id != "" {
		err = g.renew(ctx, id)
	}
	if id == "" || errors.Is(err, ErrFenced) {
		err = g.begin(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.failure
	if g.failure = outage.OfDatabase(err); err != nil && context.Cause(ctx) != context.Canceled {
		if g.failed++; was == nil { // an outage is said once
			g.logger.Warn("a heartbeat of the fleet failed", "gateway", g.name, "err", err)
		}
	} else if err == nil && was != nil {
		g.logger.Warn("heartbeats of the fleet are confirmed again", "gateway", g.name)
	}
	return err
}

// renew renews the lease id. It also removes locks of calls that have ended, should any be left. A lease that is over is dropped.
func (g *Gateway) renew(ctx context.Context, id string) error {
	g.mu.Lock()
	calls, held := g.calls, make([]int64, 0, len(g.held))
	for n := range g.held {
		held = append(held, n)
	}
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, g.lease/6)
	defer cancel()
	sent := time.Now()
	var ok bool
	err := g.beats.QueryRowContext(ctx, `WITH renewed AS (
			UPDATE gateway SET lease = clock_timestamp() + make_interval(secs => $2) WHERE id = $1 AND lease > clock_timestamp() RETURNING 1),
		left_over AS (DELETE FROM lock WHERE ctid IN (
			SELECT ctid FROM lock WHERE gateway = $1 AND call <= $3 AND NOT call = ANY ($4) FOR UPDATE SKIP LOCKED))
		SELECT EXISTS (SELECT FROM renewed)`, id, g.lease.Seconds(), calls, held).Scan(&ok)
	switch {
	case err != nil:
		return err
	case !ok:
		g.drop(id)
		return ErrFenced
	}
	g.confirm(id, sent)
	return nil
}

// begin takes a lease under a new id.
func (g *Gateway) begin(ctx context.Context) error {
	if err := migrate(ctx, g.beats); err != nil {
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" { // it may not do that
			err = fmt.Errorf("%w; the account that owns the tables makes them with %q, and grants this one its rights: docs/fleet.md, The two accounts",
				err, "moltis-fs store check")
		}
		return err
	}
	sent, id := time.Now(), rand.Text()
	if _, err := g.beats.ExecContext(ctx, "SELECT begin_lease($1, $2, $3)", id, g.name, g.lease.Seconds()); err != nil {
		return err // should it be there, nobody knows its id
	}
	g.mu.Lock()
	g.id, g.begun = id, g.begun+1
	again := g.begun > 1
	g.mu.Unlock()
	g.confirm(id, sent)
	if again {
		g.logger.Warn("the lease of this gateway was over; it has begun anew, and calls that were under way are refused", "gateway", g.name)
	}
	return nil
}

// confirm notes that the lease id was renewed by a request that was sent then. A third of it is the margin for a change that is being made.
func (g *Gateway) confirm(id string, sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.id == id {
		g.until, g.beaten = sent.Add(g.lease-g.lease/3), time.Now()
	}
}

// drop forgets the lease id, which is over, and has another one taken soon.
func (g *Gateway) drop(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.id == id {
		g.id, g.until, g.freed = "", time.Time{}, nil
		clear(g.held)
	}
	select {
	case g.kick <- struct{}{}:
	default:
	}
}

// ErrFenced: the gateway may change nothing, since the lease that the call began under is over, or there is none. With an *outage.Error beside
// it the database can't be reached; without, the same call succeeds when it is sent again.
var ErrFenced = errors.New("this gateway has no valid lease")

type leaseKey struct{}

// Begin binds a call to the lease that the gateway has now: Lock, Guard and Check of ctx fail once that one is over.
func (g *Gateway) Begin(ctx context.Context) (context.Context, error) {
	id, err := g.current(ctx)
	return context.WithValue(ctx, leaseKey{}, id), err
}

// current gives the id of ctx's lease, or of the gateway's if ctx has none, if that lease is valid by our own clock.
func (g *Gateway) current(ctx context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id, ok := ctx.Value(leaseKey{}).(string)
	if !ok {
		id = g.id
	}
	now := time.Now()
	// The clock on the wall knows of a machine that slept, the other one not of a wall clock that is set back.
	if id == "" || id != g.id || !now.Before(g.until) || !now.Round(0).Before(g.until.Round(0)) {
		if g.failure != nil {
			return id, fmt.Errorf("%w (%w)", g.failure, ErrFenced)
		}
		return id, ErrFenced
	}
	return id, nil
}

// Check says, by our own clock and without asking the database, that the lease of ctx (see Begin) is valid: ErrFenced if not.
func (g *Gateway) Check(ctx context.Context) error {
	_, err := g.current(ctx)
	return err
}

// Fenced is Check of a call that would begin now.
func (g *Gateway) Fenced() error { return g.Check(context.Background()) }

// Guard is ErrFenced unless the lease of ctx is valid. It is called in a transaction that writes, right before that commits:
// nobody can end the lease until it has. row asks one question in that transaction.
func (g *Gateway) Guard(ctx context.Context, row func(query string, args ...any) *sql.Row) error {
	id, err := g.current(ctx)
	if err != nil {
		return err
	}
	var one int
	err = row("SELECT 1 FROM gateway WHERE id = $1 AND lease > clock_timestamp() FOR KEY SHARE", id).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		g.drop(id)
		return ErrFenced
	}
	return err
}

// Health is how a gateway is, for people and for metrics.
type Health struct {
	ID, Name string        // ID is "" without a lease
	Lease    time.Duration // until this process stops by itself; 0: it has
	Beaten   time.Time     // the last heartbeat that was confirmed
	Failed   int64         // heartbeats since the start
	Begun    int64         // leases since the start; more than one: it was fenced
	Held     int           // calls that hold locks
	Err      error         // of the last heartbeat
}

// Health says how the gateway is. It does not ask the database.
func (g *Gateway) Health() Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Health{g.id, g.name, max(0, time.Until(g.until)), g.beaten, g.failed, g.begun, len(g.held), g.failure}
}

// channel is the channel of PostgreSQL that all notifications of a fleet come by.
const channel = "fleet"

// Listen gives a channel that gets something after each notification that begins with prefix, and whenever some may have been missed.
// Several may come as one.
func (g *Gateway) Listen(prefix string) (woken <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	g.listeners.Store(c, prefix)
	g.listening.Do(func() { g.done.Go(func() { g.listen(g.open) }) })
	return c, func() { g.listeners.Delete(c) }
}

// wake wakes those whose prefix what begins with, or all.
func (g *Gateway) wake(what string, all bool) {
	g.listeners.Range(func(c, prefix any) bool {
		if all || strings.HasPrefix(what, prefix.(string)) {
			select {
			case c.(chan struct{}) <- struct{}{}:
			default: // it is about to look anyway
			}
		}
		return true
	})
}

// listen keeps one connection that hears notifications, until ctx ends.
func (g *Gateway) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := g.hear(ctx); ctx.Err() == nil {
			if g.Health().Err == nil { // else an outage has been told
				g.logger.Warn("the connection that hears notifications of the fleet is gone", "gateway", g.name, "err", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(min(time.Second, g.lease/3)):
			}
		}
	}
}

func (g *Gateway) hear(ctx context.Context) error {
	c, err := pgx.ConnectConfig(ctx, g.config)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was written
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	g.wake("", true)
	for {
		quiet, cancel := context.WithTimeout(ctx, g.lease/3)
		n, err := c.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			g.wake(n.Payload, false)
		case quiet.Err() != nil && ctx.Err() == nil: // a connection that is dead does not say so
			quiet, cancel = context.WithTimeout(ctx, patience)
			err = c.Ping(quiet)
			cancel()
		}
		if err != nil {
			return err
		}
	}
}
