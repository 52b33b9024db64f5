package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Settle says what became of the operation id, which is not open any more then. One without a tag
// need not be settled: it is presumed to have taken place. Committed costs nothing now; it is
// written along with the next save, or in a moment. Until then other processes take an operation
// with a tag for open. Aborted and Foreign are durable on return.
func (d *DB) Settle(ctx context.Context, id ID, o Outcome) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	seq, err := id.seq()
	if err != nil {
		return err
	}
	switch o {
	case Committed:
		d.com.omu.Lock()
		d.com.outcomes[seq] = o
		d.com.omu.Unlock()
		d.settleSoon()
		return nil
	case Aborted, Foreign:
	default:
		return &BadOpError{"", fmt.Sprintf("%q is no outcome", o)}
	}
	err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
		if err := c.must(ctx, "UPDATE op SET outcome=? WHERE seq=?", outcomeCode(o), seq); err != nil {
			return err
		}
		if o == Aborted { // then it put nothing into the trash either
			if err := c.exec(ctx, "UPDATE trash SET phase=3 WHERE op=? AND phase<>3", seq); err != nil {
				return err
			}
		}
		return c.settle(ctx, seq, o)
	})
	if err != nil {
		return fmt.Errorf("settling checkpoint: %w", err)
	}
	return nil
}

// Flush makes durable what Settle has left to the next save.
func (d *DB) Flush() error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	if err := d.com.flush(); err != nil {
		return fmt.Errorf("writing outcomes: %w", named(err))
	}
	return nil
}

// update runs one statement that must change a row.
func (d *DB) update(ctx context.Context, doing, q string, args ...any) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	err := d.com.do(ctx, func(ctx context.Context, c *committer) error {
		return c.must(ctx, q, args...)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, named(err))
	}
	return nil
}

// must is exec for what has to change a row; ErrNotFound when there is none.
func (c *committer) must(ctx context.Context, q string, args ...any) error {
	r, err := c.change(ctx, q, args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, ErrNotFound)
	}
	return nil
}

// BeginTurn marks the beginning of a turn: everything that the session saves from here on belongs to it or to a later
// one. Beginning the turn again that the session is in changes nothing; began says whether this call was the one. A name that the session had
// before that begins another turn of that name: each conversation may count its turns from one.
func (d *DB) BeginTurn(ctx context.Context, who Scope, name string) (began bool, err error) {
	if err := d.enter(); err != nil {
		return false, err
	}
	defer d.active.Done()
	if name == "" || len(name) > maxName {
		return false, &BadOpError{"", "a turn needs a name of reasonable length"}
	}
	var last string
	err = d.r.QueryRowContext(ctx, "SELECT name FROM turn WHERE session=(SELECT id FROM session WHERE principal=? AND name=?) ORDER BY id DESC LIMIT 1",
		who.Principal, who.Session).Scan(&last)
	if err == nil && last == name {
		return false, nil // a process for every call asks for every call: no transaction for that
	}
	err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
		s, err := c.session(ctx, who.Principal, who.Session)
		if err != nil {
			return err
		}
		var last string
		err = c.QueryRowContext(ctx, "SELECT name FROM turn WHERE session=? ORDER BY id DESC LIMIT 1", s).Scan(&last)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if began = err != nil || last != name; !began {
			return nil
		}
		_, err = c.newTurn(ctx, s, name)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("beginning turn: %w", err)
	}
	return began, nil
}

// Pin protects a checkpoint from retention; Unpin takes that back.
func (d *DB) Pin(ctx context.Context, id ID, who Scope) error { return d.mark(ctx, id, who, "pin=1") }

// Unpin lets retention have the checkpoint.
func (d *DB) Unpin(ctx context.Context, id ID, who Scope) error {
	return d.mark(ctx, id, who, "pin=0")
}

// Label names the checkpoint; an empty label takes the name away.
func (d *DB) Label(ctx context.Context, id ID, who Scope, label string) error {
	if len(label) > maxName {
		return &BadOpError{"", "the label is too long"}
	}
	if label == "" {
		return d.mark(ctx, id, who, "label=NULL")
	}
	return d.mark(ctx, id, who, "label=?2", label)
}

func (d *DB) mark(ctx context.Context, id ID, who Scope, set string, args ...any) error {
	if _, err := d.Get(ctx, id, who); err != nil {
		return err
	}
	seq, err := id.seq()
	if err != nil {
		return err
	}
	return d.update(ctx, "marking checkpoint", "UPDATE op SET "+set+" WHERE seq=?1", append([]any{seq}, args...)...)
}
