package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// A Shipper sends the operations of a local store to a remote one, behind the calls that make them: in order, each once it is settled and all
// before it are sent. Until the remote store has acknowledged an operation the local one keeps it. Several processes may ship one store. A nil
// Shipper sends nothing.
type Shipper struct {
	local *DB
	cut   func() error
	open  func() (*DB, error)
	stop  context.CancelFunc
	over  chan error // the error of the last attempt

	mu     sync.Mutex
	remote *DB // nil: it was not reached yet
}

// A Shipper looks soon after it has sent all, and after an attempt that failed ever later.
const soon, late = 100 * time.Millisecond, 2 * time.Second

// closeShip bounds the time that Shipper.Close sends what is left, fetchTime that of Shipper.Fetch.
const closeShip, fetchTime = time.Second, 10 * time.Second

// Ship begins to send the operations of local, which has Options.Ships, to the store that open opens. cut says without asking that store why
// it can't be reached; then nothing waits for it. The first time it copies all that comes
// after the newest one that this has, as Copy does. It looks each tenth of a second what is to be sent. What can't be reached is tried again,
// at least each 2 seconds. Close ends it, and closes the remote store.
func Ship(local *DB, cut func() error, open func() (*DB, error)) *Shipper {
	s := &Shipper{local: local, cut: cut, open: open, over: make(chan error, 1)}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	go s.loop(ctx)
	return s
}

func (s *Shipper) loop(ctx context.Context) {
	for wait := soon; ctx.Err() == nil; {
		err := s.round(ctx)
		switch {
		case err == nil:
			wait = soon
		case wait == soon && ctx.Err() == nil:
			s.local.o.Logger.Warn("sending checkpoints to the store of the fleet; it is tried again", "error", err)
			fallthrough
		default:
			wait = min(2*wait, late)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.Background(), closeShip)
	defer cancel()
	err := s.round(last)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.remote != nil {
		err = errors.Join(err, s.remote.Close())
	}
	s.over <- err
}

// Close ends the shipping. It sends for at most a second what is left.
func (s *Shipper) Close() (err error) {
	if s == nil {
		return nil
	}
	s.stop()
	select {
	case err = <-s.over:
	case <-time.After(closeShip): // a connection may hang for longer
		err = context.DeadlineExceeded
	}
	if err != nil {
		err = fmt.Errorf("sending the last checkpoints: %w", err)
	}
	return err
}

// store gives the remote store.
func (s *Shipper) store() (_ *DB, err error) {
	if !s.local.o.Ships {
		return nil, &BadOpError{"", "the store was not opened to be shipped"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cut(); err != nil {
		return nil, err
	}
	if s.remote == nil {
		s.remote, err = s.open()
	}
	return s.remote, err
}

// begin copies, once in the life of the local store, what the remote one does not have of it, and notes what is left then.
func (s *Shipper) begin(ctx context.Context) (remote *DB, err error) {
	const begun = "SELECT EXISTS (SELECT 1 FROM meta WHERE k='ships')"
	yes := false
	if remote, err = s.store(); err == nil {
		yes, err = one[bool](ctx, s.local.r, begun)
	}
	if err != nil || yes {
		return remote, err
	}
	c := &copier{from: s.local, to: remote, who: anybody, evict: true}
	if err := c.goOn(ctx); err != nil {
		return nil, err
	}
	return remote, s.local.write(ctx, "beginning to ship", true, func(ctx context.Context, tx *tx) error {
		// If another process was first, what was fetched since then is not unsent.
		err := tx.exec(ctx, "INSERT INTO unsent(op, draw, fresh) SELECT seq, ?, 1 FROM op WHERE seq > ? AND NOT EXISTS (SELECT 1 FROM meta"+
			" WHERE k='ships') ON CONFLICT DO NOTHING", drawn(), c.through)
		if err == nil { // they are copied, and retention may take them there before their marks are sent
			err = tx.exec(ctx, "UPDATE unsent SET fresh=0 WHERE op <= ?", c.through)
		}
		if err == nil {
			err = tx.exec(ctx, "INSERT INTO meta(k, v) VALUES('ships', 1) ON CONFLICT DO NOTHING")
		}
		return err
	})
}

// round sends all that may be sent.
func (s *Shipper) round(ctx context.Context) error {
	remote, err := s.begin(ctx)
	if err == nil {
		c := &copier{from: s.local, to: remote, who: anybody, evict: true, ships: true}
		err = c.run(ctx)
	}
	return err
}

// drawn is a number above 0 that is not drawn twice.
func drawn() int64 { return 1 + rand.Int64N(1<<62) }

// unsent notes in the transaction of a change that the operation for which term holds is to be sent, if the store is shipped. fresh: it is new.
func (d *DB) unsent(ctx context.Context, tx *tx, fresh bool, term string, arg any) error {
	if !d.o.Ships {
		return nil
	}
	return tx.exec(ctx, "INSERT INTO unsent(op, draw, fresh) SELECT seq, ?, ? FROM op WHERE "+term+
		" ON CONFLICT(op) DO UPDATE SET draw=excluded.draw", drawn(), count(fresh), arg)
}

// sayUnsent is err; if it says that the store is full, with how much of it is unsent.
func (d *DB) sayUnsent(ctx context.Context, err error) error {
	if full, ok := errors.AsType[*FullError](err); ok {
		full.Unsent, _, _ = d.Behind(ctx) //nolint:errcheck // the store is full all the same
	}
	return err
}

// Behind counts the operations that the store which this one is shipped to does not have yet, or not as they are. oldest is the time of
// the oldest of them, zero if there is none.
func (d *DB) Behind(ctx context.Context) (operations int, oldest time.Time, err error) {
	err = d.view(ctx, func(h *history) error {
		var ts int64
		err := h.q.QueryRowContext(ctx, "SELECT count(*), coalesce(min(op.ts), 0) FROM unsent u JOIN op ON op.seq=u.op").Scan(&operations, &ts)
		if operations > 0 {
			oldest = time.Unix(0, ts)
		}
		return err
	})
	return operations, oldest, err
}

// ErrElsewhere says that other gateways have sent operations of a session that can't come any more: the session has changed something here
// before it was known of them, and after that they would be out of order. An undo here does not know them. They are in the remote store.
var ErrElsewhere = errors.New("the session has changed something here before it knew of what other gateways have made in it")

// Fetch brings the operations here that the session has made on other gateways, as far as these have sent them, and gives their number. It is
// for the first call of a session on this gateway, before that begins a turn or changes anything: they come after all that is here. Marks
// that were set elsewhere since an operation came are not brought. It waits for at most 10 seconds. With an error, what is here can be used, and
// is not all.
func (s *Shipper) Fetch(ctx context.Context, principal, session string) (operations int, err error) {
	if s == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	remote, err := s.begin(ctx) // what is fetched must not count as unsent
	if err != nil {
		return 0, err
	}
	who := Scope{Principal: principal, Session: session}
	var here, waiting int // operations of the session, and of these those that the remote store does not have
	err = s.local.view(ctx, func(h *history) error {
		w, err := h.scope(ctx, who, "op.session")
		if err != nil {
			return err
		}
		const counts = "SELECT count(*), count(u.op) FROM op LEFT JOIN unsent u ON u.op=op.seq AND u.fresh=1"
		return h.q.QueryRowContext(ctx, counts+w.sql(), w.args...).Scan(&here, &waiting)
	})
	c := &copier{from: remote, to: s.local, who: who, far: true, evict: true}
	if err == nil && here > 0 {
		c.through, err = c.newest(ctx)
	}
	if err == nil && c.through == 0 && here > waiting { // retention took them there
		c.through, err = one[int64](ctx, remote.r, "SELECT coalesce(gone, 0) FROM session WHERE principal=? AND name=?", principal, session)
	}
	if err == nil {
		err = c.run(ctx)
	}
	if err != nil {
		err = fmt.Errorf("fetching the checkpoints of a session: %w", err)
	}
	return c.r.Operations, err
}

// Forget purges contents from the remote store, too: it is for Purge.Forget of the local one.
func (s *Shipper) Forget(hashes []string) error {
	if s == nil || len(hashes) == 0 {
		return nil
	}
	remote, err := s.store()
	if err == nil {
		_, err = remote.Purge(context.Background(), Purge{Hashes: hashes})
	}
	return err
}
