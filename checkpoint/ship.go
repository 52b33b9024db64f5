package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A Shipper sends the operations of a local store to a remote one, behind the calls that make them: in order, each once it is settled.
// Until the remote store has acknowledged an operation the local one keeps it. Several processes may ship one store.
type Shipper struct {
	local, remote *DB
	stop          context.CancelFunc
	done          chan struct{} // closed once the loop is over
	failed        atomic.Pointer[error]
}

// idle is the longest time between two looks for what another process has saved.
const idle = 2 * time.Second

// closeShip bounds the time that Shipper.Close sends what is left.
const closeShip = time.Second

// Ship begins to send the operations of local, which has Options.Ships, to remote. The first time it copies all that comes after the newest
// one that remote has, as Copy does. Where remote can't be reached it is tried again: after a tenth of a second, then after twice as long, up to 15
// seconds. Close ends it; closing the stores does not.
func Ship(ctx context.Context, local, remote *DB) (*Shipper, error) {
	if !local.o.Ships {
		return nil, &BadOpError{"", "the store was not opened to be shipped"}
	}
	s := &Shipper{local: local, remote: remote, done: make(chan struct{})}
	ctx, s.stop = context.WithCancel(ctx)
	go s.loop(ctx)
	return s, nil
}

func (s *Shipper) loop(ctx context.Context) {
	defer close(s.done)
	const first, most = 100 * time.Millisecond, 15 * time.Second
	retry := first
	for {
		err := s.round(ctx)
		wait, woken := idle, s.local.toSend
		if err != nil && ctx.Err() == nil {
			if retry == first {
				s.local.o.Logger.Warn("sending checkpoints to the store of the fleet; it is tried again", "error", err)
			}
			wait, woken = retry, nil
			retry = min(2*retry, most)
		} else {
			retry = first
		}
		if err != nil || s.failed.Load() != nil {
			s.failed.Store(&err)
		}
		select {
		case <-woken:
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// Failed gives the error of the last try to send; nil when that went well.
func (s *Shipper) Failed() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Close ends the shipping. It sends for at most a second what is left.
func (s *Shipper) Close() error {
	s.stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeShip)
	defer cancel()
	over := make(chan error, 1)
	go func() { // a connection may hang for longer
		select {
		case <-s.done:
			over <- s.round(ctx)
		case <-ctx.Done():
			over <- ctx.Err()
		}
	}()
	select {
	case err := <-over:
		if err == nil || errors.Is(err, ErrClosed) {
			return nil
		}
		return fmt.Errorf("sending the last checkpoints: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("sending the last checkpoints: %w", ctx.Err())
	}
}

// round sends all that may be sent.
func (s *Shipper) round(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	var all []int64
	err := s.local.view(ctx, func(h *history) (err error) {
		all, err = column[int64](ctx, h.q, "SELECT op FROM unsent ORDER BY op")
		return err
	})
	held := &held{footprint{}, map[Scope]bool{}}
	for _, seq := range all {
		if err == nil {
			err = ctx.Err()
		}
		var r *record
		if err == nil {
			r, err = s.send(ctx, seq, held)
		}
		if err == nil && r != nil {
			err = s.sent(ctx, r)
		}
	}
	return err
}

// held are the paths and sessions of operations that can't be sent yet. What comes after them there waits for them, so that nothing is out
// of order.
type held struct {
	paths    footprint
	sessions map[Scope]bool
}

// holds reports whether the operation c has to wait: it is open, or behind another one that waits.
func (h *held) holds(c *Checkpoint, open bool) bool {
	who := Scope{Principal: c.Principal, Session: c.Session}
	waits := open || h.sessions[who]
	for _, ch := range c.Changes {
		waits = waits || h.paths.touches(ch.Path)
	}
	if waits {
		h.sessions[who] = true
		for _, ch := range c.Changes {
			h.paths.add(ch.Path)
		}
	}
	return waits
}

// errChanged says that an operation was changed, or sent by another process, since it was read.
var errChanged = errors.New("it was changed meanwhile")

// send sends the operation seq, or what has changed of it. It gives what it has sent, nil if there is nothing to be sent.
func (s *Shipper) send(ctx context.Context, seq int64, held *held) (r *record, err error) {
	c := &copier{from: s.local, to: s.remote, who: anybody, evict: true, marks: true, still: s.still}
	if err := s.remote.pack.NeedKey(ctx); err != nil {
		return nil, err
	}
	for try := 0; try < 4; try++ {
		r = nil
		err = s.local.view(ctx, func(h *history) error {
			const unsent = `SELECT u.draw, u.fresh, EXISTS (SELECT 1 FROM open_op o WHERE o.op=u.op) FROM unsent u WHERE u.op=?`
			var draw int64
			var fresh, open bool
			err := each(ctx, h.q, unsent, []any{seq}, func(row scanner) error { return row.Scan(&draw, &fresh, &open) })
			if err != nil || draw == 0 {
				return err
			}
			e, err := h.entry(ctx, "seq", seq)
			if err != nil || held.holds(e.c, open) {
				return err
			}
			if r, err = c.take(ctx, h, seq, try > 0); err == nil {
				r.draw, r.sent = draw, !fresh
			}
			return err
		})
		if err == nil && r != nil {
			err = c.put(ctx, r)
		}
		if !errors.Is(err, errMoved) && !errors.Is(err, errChanged) {
			break
		}
	}
	if errors.Is(err, errChanged) { // the next round sends it
		held.holds(r.c, true)
		return nil, nil
	}
	return r, err
}

// still is errChanged unless the operation is unsent and as it was when r was read. It is asked in the transaction of the remote store:
// of several processes that send one operation, none puts an older state over a newer one.
func (s *Shipper) still(ctx context.Context, r *record) error {
	draw, err := one[int64](ctx, s.local.r, "SELECT draw FROM unsent WHERE op=?", r.seq)
	if err == nil && draw != r.draw {
		err = errChanged
	}
	return err
}

// sent notes that the remote store has r, if nothing of it changed since it was read. That need not be durable: an operation that is sent
// again is found there.
func (s *Shipper) sent(ctx context.Context, r *record) error {
	return s.local.write(ctx, "noting what was sent", false, func(ctx context.Context, tx *tx) error {
		return tx.exec(ctx, "DELETE FROM unsent WHERE op=? AND draw=?", r.seq, r.draw)
	})
}

// begin copies, once in the life of a store, what the remote one does not have of it, and notes what is left then.
func (s *Shipper) begin(ctx context.Context) error {
	const begun = "SELECT EXISTS (SELECT 1 FROM meta WHERE k='ships')"
	if yes, err := one[bool](ctx, s.local.r, begun); err != nil || yes {
		return err
	}
	c := &copier{from: s.local, to: s.remote, who: anybody, holes: true, evict: true}
	newest, err := c.newest(ctx)
	if err == nil {
		err = c.run(ctx, newest)
	}
	if err != nil {
		return err
	}
	return s.local.write(ctx, "beginning to ship", true, func(ctx context.Context, tx *tx) error {
		err := tx.exec(ctx, "INSERT INTO unsent(op, draw, fresh) SELECT seq, ?, 1 FROM op WHERE seq > ? ON CONFLICT DO NOTHING", drawn(), c.through)
		if err == nil {
			err = tx.exec(ctx, "INSERT INTO meta(k, v) VALUES('ships', 1) ON CONFLICT DO NOTHING")
		}
		return err
	})
}

// drawn is a number above 0 that is not drawn twice.
func drawn() int64 { return 1 + rand.Int64N(1<<62) }

// unsent notes in the transaction of a change of the operation id that it is to be sent, if the store is shipped. fresh: it is new.
func (d *DB) unsent(ctx context.Context, tx *tx, id ID, fresh bool) error {
	if !d.o.Ships {
		return nil
	}
	return tx.exec(ctx, `INSERT INTO unsent(op, draw, fresh) SELECT seq, ?, ? FROM op WHERE id=?
		ON CONFLICT(op) DO UPDATE SET draw=excluded.draw`, drawn(), count(fresh), id)
}

// tell wakes the shipper of this process.
func (d *DB) tell() {
	select {
	case d.toSend <- struct{}{}:
	default:
	}
}

// sayUnsent is err; if it says that the store is full, with how much of it is unsent.
func (d *DB) sayUnsent(ctx context.Context, err error) error {
	if full, ok := errors.AsType[*FullError](err); ok {
		full.Unsent, _, _ = d.behind(ctx) //nolint:errcheck // the store is full all the same
	}
	return err
}

// Behind counts the operations that the store which this one is shipped to does not have yet, or not as they are. oldest is the time of
// the oldest of them, zero if there is none.
func (d *DB) Behind(ctx context.Context) (operations int, oldest time.Time, err error) {
	if err := d.enter(); err != nil {
		return 0, oldest, err
	}
	defer d.active.Done()
	return d.behind(ctx)
}

func (d *DB) behind(ctx context.Context) (operations int, oldest time.Time, err error) {
	var ts int64
	err = d.r.QueryRowContext(ctx, "SELECT count(*), coalesce(min(op.ts), 0) FROM unsent u JOIN op ON op.seq=u.op").Scan(&operations, &ts)
	if operations > 0 {
		oldest = time.Unix(0, ts)
	}
	return operations, oldest, d.c.failed(err)
}

// Fetched counts the operations that Shipper.Fetch brought.
type Fetched struct {
	Operations int
	// Left are operations that other gateways have sent, and that can't come any more: the session has changed something here before it was
	// known of them, and after that they would be out of order. An undo here does not know them. They are in the remote store.
	Left int
}

// Fetch brings the operations here that the session has made on other gateways, as far as these have sent them. It is for the first call
// of a session on this gateway, before that begins a turn or changes anything: they come after all that is here. Marks that were set elsewhere since an
// operation came are not brought. With an error, what was here before can be used, and is not all.
func (s *Shipper) Fetch(ctx context.Context, principal, session string) (f Fetched, err error) {
	if err := s.begin(ctx); err != nil { // what is fetched must not count as sent
		return f, err
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
	c := &copier{from: s.remote, to: s.local, who: who, holes: true, evict: true}
	var since int64 // the newest operation there that was here
	if err == nil && here > 0 {
		since, err = c.newest(ctx)
	}
	if err == nil && here > 0 {
		err = s.remote.view(ctx, func(h *history) error {
			w, err := h.scope(ctx, who, "op.session")
			if err == nil && since == 0 && here > waiting { // retention took them there
				since, err = one[int64](ctx, h.q, "SELECT coalesce(gone, 0) FROM session WHERE principal=? AND name=?", principal, session)
			}
			if err == nil && waiting > 0 {
				w.and("op.seq > ?", since)
				f.Left, err = one[int](ctx, h.q, "SELECT count(*) FROM op"+w.sql(), w.args...)
			}
			return err
		})
	}
	if err == nil && waiting == 0 {
		err = c.run(ctx, since)
	}
	if err != nil {
		err = fmt.Errorf("fetching the checkpoints of a session: %w", err)
	}
	f.Operations = c.r.Operations
	return f, err
}

// Forget purges contents from the remote store, too: it is for Purge.Forget of the local one.
func (s *Shipper) Forget(hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	_, err := s.remote.Purge(context.Background(), Purge{Hashes: hashes})
	return err
}
