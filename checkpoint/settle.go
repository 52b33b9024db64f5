package checkpoint

import (
	"context"
	"fmt"
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
	const q = `SELECT op.id, o.tag, o.steps, o.made FROM open_op o JOIN op ON op.seq=o.op ORDER BY o.op DESC`
	err = d.view(ctx, func(h *history) error {
		return each(ctx, h.q, q, nil, func(row scanner) error {
			var o OpenOp
			err := row.Scan(&o.ID, &o.Tag, &o.Steps, &o.Made)
			ops = append(ops, o)
			return err
		})
	})
	if err != nil && err != ErrClosed {
		return nil, fmt.Errorf("listing open operations: %w", err)
	}
	return ops, err
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

// Settle writes the outcome o of the operation id, which is not open any more then. One without a tag
// need not be settled: it is presumed to have taken place. Aborted and Foreign are durable on return.
// Committed is seen by every process on return, and durable with the next save: after a power cut before
// that the operation is open again.
func (d *DB) Settle(ctx context.Context, id ID, o Outcome) error {
	id, err := ParseID(string(id))
	if err != nil {
		return err
	}
	if o != Committed && o != Aborted && o != Foreign {
		return &BadOpError{"", fmt.Sprintf("%q is no outcome", o)}
	}
	if o == Committed {
		ctx = context.WithoutCancel(ctx) // it is so, whether or not the caller still waits
	}
	return d.write(ctx, "settling checkpoint", o != Committed, func(ctx context.Context, tx *tx) error {
		if o == Aborted { // then it put nothing into the trash either
			if err := tx.exec(ctx, "DELETE FROM trash WHERE op=(SELECT seq FROM op WHERE id=?)", id); err != nil {
				return err
			}
		}
		if err := tx.must(ctx, "UPDATE op SET outcome=? WHERE id=?", outcomeCode(o), id); err != nil {
			return err
		}
		if o == Aborted { // of an undo: what it was to take back is not undone
			seq, err := tx.seqOf(ctx, id)
			if err == nil {
				err = tx.undo(ctx, seq)
			}
			if err != nil {
				return err
			}
		}
		if err := d.unsent(ctx, tx, false, "id=?", id); err != nil {
			return err
		}
		return tx.exec(ctx, "DELETE FROM open_op WHERE op=(SELECT seq FROM op WHERE id=?)", id)
	})
}
