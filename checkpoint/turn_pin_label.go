package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// BeginTurn marks the beginning of a turn: what the session saves from here on belongs to it or to
// a later one. To begin the turn that the session is in changes nothing; began says whether this
// call was the one. The name of an earlier turn begins another turn of that name: each conversation
// may count its turns from one.
func (d *DB) BeginTurn(ctx context.Context, who Scope, name string) (began bool, err error) {
	if err := d.enter(); err != nil {
		return false, err
	}
	defer d.active.Done()
	if name == "" || len(name) > maxName {
		return false, &BadOpError{"", "a turn needs a name of reasonable length"}
	}
	var last string
	err = d.r.QueryRowContext(ctx, `SELECT name FROM turn
		WHERE session=(SELECT id FROM session WHERE principal=? AND name=?) ORDER BY id DESC LIMIT 1`,
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
		const newest = "SELECT name FROM turn WHERE session=? ORDER BY id DESC LIMIT 1"
		err = c.QueryRowContext(ctx, newest, s).Scan(&last)
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
func (d *DB) Pin(ctx context.Context, id ID, who Scope) error {
	return d.mark(ctx, id, who, "pin=1")
}

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
	set = "UPDATE op SET " + set + " WHERE seq=?1"
	return d.update(ctx, "marking checkpoint", set, append([]any{seq}, args...)...)
}
