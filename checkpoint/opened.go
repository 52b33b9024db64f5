package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An operation with a tag is open from its Save until Settle says what became of it. Its row in
// open_op is written in the transaction of the save, so that no kill and no power cut leaves the
// one without the other. The store does not know whether the host that opened it is alive: hosts
// tell each other by the tag. It only sees to it that nothing takes what is open: GC and Purge leave
// it alone. An operation without a tag is over when it is saved.

// OpenOp is an operation that nobody has settled. Its states of each path are those of the checkpoint.
type OpenOp struct {
	ID    ID
	Tag   string // as in the Op
	Steps []byte // as in the Op
	Made  bool   // see DB.Made
}

const (
	maxTag = 64
	// settleAfter is how long an outcome waits for the next save to take it along.
	settleAfter = 200 * time.Millisecond
)

// checkOpen says what is wrong with the tag or the steps.
func (op *Op) checkOpen() error {
	switch {
	case op.Tag == "" && op.Steps == nil:
		return nil
	case op.Tag == "" || len(op.Tag) > maxTag:
		return &BadOpError{"", "steps need a tag of reasonable length"}
	case !changesFiles(op.Kind):
		return &BadOpError{"", "only what changes files can be open"}
	}
	return nil
}

// Open lists what is open, the newest first, which is the order to take it back in.
func (d *DB) Open(ctx context.Context) (ops []OpenOp, err error) {
	err = d.view(ctx, func(h *history) error {
		const q = "SELECT op, tag, steps, made FROM open_op ORDER BY op DESC"
		return each(ctx, h.q, q, nil, func(row scanner) error {
			var seq int64
			var o OpenOp
			err := row.Scan(&seq, &o.Tag, &o.Steps, &o.Made)
			if _, settled := h.pending[seq]; err == nil && !settled {
				o.ID = idOf(seq)
				ops = append(ops, o)
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("listing open operations: %w", named(err))
	}
	return ops, nil
}

// Made notes that all steps of the open operation id are done: it is not taken back from here on, but brought to its end.
// It is durable on return. ErrNotFound: the operation is not open.
func (d *DB) Made(ctx context.Context, id ID) error {
	seq, err := id.seq()
	if err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	return d.update(ctx, "noting that an operation was made", "UPDATE open_op SET made=1 WHERE op=?", seq)
}

// settle writes what became of an operation, which is not open any more.
func (c *committer) settle(ctx context.Context, seq int64, o Outcome) error {
	if err := c.exec(ctx, "UPDATE op SET outcome=? WHERE seq=?", outcomeCode(o), seq); err != nil {
		return err
	}
	return c.exec(ctx, "DELETE FROM open_op WHERE op=?", seq)
}

// settleSoon writes an outcome when no save has taken it along for a while: until then others take the operation for open.
func (d *DB) settleSoon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.quiet == nil {
		d.quiet = time.AfterFunc(settleAfter, func() {
			if err := d.Flush(); err != nil && !errors.Is(err, ErrClosed) {
				d.o.Logger.Warn("writing outcomes of checkpoints", "error", err)
			}
		})
		return
	}
	d.quiet.Reset(settleAfter)
}

// writeOpen makes the operation open, if it has a tag.
func (s *save) writeOpen(ctx context.Context, c *committer) error {
	if s.op.Tag == "" {
		return nil
	}
	steps := s.op.Steps
	if steps == nil {
		steps = []byte{}
	}
	return c.exec(ctx, "INSERT INTO open_op(op, tag, steps) VALUES(?,?,?)", s.seq, s.op.Tag, steps)
}
