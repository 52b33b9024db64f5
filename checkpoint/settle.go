package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// An operation with a tag is open from its Save until Settle says what became of it. Its row in
// open_op is written in the transaction of the save, so that no kill and no power cut leaves the
// one without the other. The store does not know whether the host that opened it is alive: hosts
// tell each other by the tag. It only sees to it that nothing takes what is open: GC and Purge
// leave it alone. An operation without a tag is over when it is saved.

// OpenOp is an operation that nobody has settled. Its states of each path are those of the
// checkpoint.
type OpenOp struct {
	ID    ID
	Tag   string // as in the Op
	Steps []byte // as in the Op
	Made  bool   // see DB.Made
}

// Open lists the open operations, the newest first: they are taken back in this order.
func (d *DB) Open(ctx context.Context) (ops []OpenOp, err error) {
	if err = d.enter(); err != nil {
		return nil, err
	}
	defer d.active.Done()
	if err = d.inPlace(); err != nil {
		return nil, err
	}
	pending := d.settled.pending() // first: what is not pending any more is in the catalog
	const q = `SELECT op.id, o.tag, o.steps, o.made FROM open_op o JOIN op ON op.seq=o.op ORDER BY o.op DESC`
	err = d.suspect(d.r.use(ctx, func(ctx context.Context, c *conn) error {
		return each(ctx, c, q, nil, func(row scanner) error {
			var o OpenOp
			err := row.Scan(&o.ID, &o.Tag, &o.Steps, &o.Made)
			if _, settled := pending[o.ID]; err == nil && !settled {
				ops = append(ops, o)
			}
			return err
		})
	}))
	if err != nil {
		return nil, fmt.Errorf("listing open operations: %w", err)
	}
	return ops, nil
}

// Made notes that all steps of the open operation id are done: from here on it is brought to its
// end, not taken back. It is durable on return. ErrNotFound: the operation is not open.
func (d *DB) Made(ctx context.Context, id ID) error {
	id, err := ParseID(string(id))
	if err != nil {
		return err
	}
	const made = "UPDATE open_op SET made=1 WHERE op=(SELECT seq FROM op WHERE id=?)"
	return d.update(ctx, "noting that an operation was made", made, id)
}

// Settle writes the outcome of the operation id, which is not open any more then. One without a tag
// need not be settled: it is presumed to have taken place. Committed costs nothing now; it is
// written along with the next save, or in a moment. Until then other processes take an operation
// with a tag for open. Aborted and Foreign are durable on return.
func (d *DB) Settle(ctx context.Context, id ID, o Outcome) error {
	id, err := ParseID(string(id))
	if err != nil {
		return err
	}
	switch o {
	case Committed:
		if err := d.enter(); err != nil {
			return err
		}
		defer d.active.Done()
		d.settled.add(id, o, d.flushLater)
		return nil
	case Aborted, Foreign:
	default:
		return &BadOpError{"", fmt.Sprintf("%q is no outcome", o)}
	}
	return d.write(ctx, "settling checkpoint", func(ctx context.Context, tx *tx) error {
		if o == Aborted { // then it put nothing into the trash either
			err := tx.exec(ctx, "UPDATE trash SET phase=3 WHERE op=(SELECT seq FROM op WHERE id=?) AND phase<>3", id)
			if err != nil {
				return err
			}
		}
		return tx.settle(ctx, id, o)
	})
}

// settle writes what became of an operation, which is not open any more.
func (tx *tx) settle(ctx context.Context, id ID, o Outcome) error {
	if err := tx.must(ctx, "UPDATE op SET outcome=? WHERE id=?", outcomeCode(o), id); err != nil {
		return err
	}
	return tx.exec(ctx, "DELETE FROM open_op WHERE op=(SELECT seq FROM op WHERE id=?)", id)
}

// settled are the outcomes that wait for the next save to take them along.
type settled struct {
	mu    sync.Mutex
	of    map[ID]Outcome
	quiet *time.Timer // runs when no save has come for a while
}

// settleAfter is how long an outcome waits for the next save to take it along.
const settleAfter = 200 * time.Millisecond

// add has later called when no save has taken the outcome along.
func (s *settled) add(id ID, o Outcome, later func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[id] = o
	if s.quiet == nil {
		s.quiet = time.AfterFunc(settleAfter, later)
		return
	}
	s.quiet.Reset(settleAfter)
}

func (s *settled) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet != nil {
		s.quiet.Stop()
	}
}

func (s *settled) pending() map[ID]Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.of)
}

// forget forgets what a transaction has written, once it is committed. Not sooner: readers find it
// only here until then, and when the commit fails it has to be written again.
func (s *settled) forget(written map[ID]Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, o := range written {
		if s.of[id] == o {
			delete(s.of, id)
		}
	}
}

// flushLater is Flush by itself.
func (d *DB) flushLater() {
	if err := d.Flush(); err != nil && !errors.Is(err, ErrClosed) {
		d.o.Logger.Warn("writing outcomes of checkpoints", "error", err)
	}
}

// Flush makes durable what Settle has left to the next save.
func (d *DB) Flush() error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	return d.flush(context.Background())
}

func (d *DB) flush(ctx context.Context) error {
	if len(d.settled.pending()) == 0 {
		return nil
	}
	if err := d.transact(ctx, func(context.Context, *tx) error { return nil }); err != nil {
		return fmt.Errorf("writing outcomes: %w", named(err))
	}
	return nil
}
