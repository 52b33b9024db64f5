package checkpoint

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An operation with a tag is open from its Save until Settle says what became of it. Its row in
// open_op is written in the transaction of the save, so that no kill and no power cut leaves the
// one without the other. The store does not know whether the host that opened it is alive: hosts
// tell each other by the tag. It only sees to it that nothing takes what is open.
//
// Beside the catalog the directory open has an empty file for each tag, made before the row and
// removed after it, so that whoever asks whether anything is open need not open the store.
const openName = "open"

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

// OpenTags lists the tags of what may be open in the store in dir. The store need not be open, and
// no store at all is no error.
func OpenTags(dir string) (tags []string, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, openName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking what is open: %w", err)
	}
	for _, e := range entries {
		if tag, err := hex.DecodeString(e.Name()); err == nil {
			tags = append(tags, string(tag))
		}
	}
	return tags, nil
}

// Forget takes a tag off the list of OpenTags whose host is no more and that Open does not name: it
// never came to save.
func (d *DB) Forget(tag string) {
	os.Remove(d.openPath(tag)) //nolint:errcheck // then it is asked about again
}

func (d *DB) openPath(tag string) string {
	return filepath.Join(d.dir, openName, hex.EncodeToString([]byte(tag)))
}

// announce puts a tag on the list of OpenTags, on stable storage.
func (d *DB) announce(tag string) error {
	dir := filepath.Join(d.dir, openName)
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if _, ok := d.subs.Load(dir); err == nil && !ok { // whoever made it may not have come to sync it
		if err = d.sync(d.dir); err == nil {
			d.subs.Store(dir, true)
		}
	}
	if err == nil {
		err = os.WriteFile(d.openPath(tag), nil, 0o600)
	}
	if err == nil {
		err = d.sync(dir)
	}
	if err != nil {
		return fmt.Errorf("noting that an operation is open: %w", err)
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
	var tag string
	err := c.QueryRowContext(ctx, "DELETE FROM open_op WHERE op=? RETURNING tag", seq).Scan(&tag)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	c.closed = append(c.closed, tag)
	return err
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
