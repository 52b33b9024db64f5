package checkpoint

import (
	"cmp"
	"context"
)

// BeginTurn marks the beginning of a turn: checkpoints of the session from here on belong to it or to
// a later one. To begin the turn that the session is in changes nothing; began says whether this
// call was the one. The name of an earlier turn begins another turn of that name: each conversation
// may count its turns from one.
func (d *DB) BeginTurn(ctx context.Context, who Scope, name string) (began bool, err error) {
	if why := badName(name); name == "" || why != "" {
		return false, &BadOpError{"", cmp.Or(why, "a turn needs a name")}
	}
	const newest = `SELECT name FROM turn
		WHERE session=(SELECT id FROM session WHERE principal=? AND name=?) ORDER BY id DESC LIMIT 1`
	current, err := one[string](ctx, d.r, newest, who.Principal, who.Session)
	if err == nil && current == name {
		return false, nil // a process for every call asks for every call: no transaction for that
	}
	err = d.write(ctx, "beginning turn", true, func(ctx context.Context, tx *tx) error {
		current, err := one[string](ctx, tx, newest, who.Principal, who.Session)
		if began = current != name; err != nil || !began {
			return err
		}
		last, err := tx.latest(ctx, &Op{Principal: who.Principal, Session: who.Session})
		if err == nil {
			_, err = tx.newTurn(ctx, last, name, d.o.Now().UnixNano())
		}
		return err
	})
	return began && err == nil, err
}

// Pin protects a checkpoint from retention; Unpin takes that back.
func (d *DB) Pin(ctx context.Context, id ID, who Scope) error { return d.mark(ctx, id, who, "pin", 1) }

// Unpin lets retention have the checkpoint.
func (d *DB) Unpin(ctx context.Context, id ID, who Scope) error {
	return d.mark(ctx, id, who, "pin", 0)
}

// Label names the checkpoint; an empty label takes the name away.
func (d *DB) Label(ctx context.Context, id ID, who Scope, label string) error {
	if why := badName(label); why != "" {
		return &BadOpError{"", why}
	}
	return d.mark(ctx, id, who, "label", orNull(label))
}

func (d *DB) mark(ctx context.Context, id ID, who Scope, column string, v any) error {
	c, err := d.Get(ctx, id, who)
	if err != nil {
		return err
	}
	return d.write(ctx, "marking checkpoint", true, func(ctx context.Context, tx *tx) error {
		if err := tx.must(ctx, "UPDATE op SET "+column+"=? WHERE id=?", v, c.ID); err != nil {
			return err
		}
		return d.unsent(ctx, tx, false, "id=?", c.ID)
	})
}
