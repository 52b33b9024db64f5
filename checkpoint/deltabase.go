package checkpoint

import (
	"context"
	"database/sql"
	"errors"
)

// newest returns the newest stored content of path for use as a base: from memory, else from the store. nil when there is
// none or it would not pay.
func (d *DB) newest(ctx context.Context, path string, gen int64, size int) (*version, error) {
	if v := d.mem.find(path); v != nil && v.gen == gen {
		return v, nil
	}
	if size > maxDelta {
		return nil, nil
	}
	v := &version{path: path, gen: gen}
	var h []byte
	var have int64
	// The newest change of the path; of its two states the later one that has content.
	err := d.r.QueryRowContext(ctx, `SELECT o.id, o.hash, o.size, a.depth, ifnull(a.key,0) FROM
		(SELECT bobj, aobj FROM change WHERE path=(SELECT id FROM path WHERE path=?) ORDER BY op DESC LIMIT 1) c
		JOIN data a ON a.id IN (c.aobj, c.bobj) JOIN object o ON o.id=a.id ORDER BY a.id=c.aobj DESC LIMIT 1`,
		[]byte(path)).Scan(&v.id, &h, &have, &v.depth, &v.key)
	if errors.Is(err, sql.ErrNoRows) || (err == nil && have > maxDelta) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	copy(v.h[:], h)
	v.content, err = d.content(ctx, v.h)
	if err != nil {
		// Damaged, sealed or just cleaned away: then it is no base. Restores report it; a save must not fail for it.
		return nil, nil
	}
	return v, nil
}

// lookUp completes v from the row of its hash, if there is one.
func (d *DB) lookUp(ctx context.Context, v *version) (stored bool, err error) {
	err = d.r.QueryRowContext(ctx, "SELECT d.depth, ifnull(d.key,0) FROM object o JOIN data d ON d.id=o.id WHERE o.hash=?", v.h[:]).Scan(&v.depth, &v.key)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// aheadAbove is the size from which it pays to pack on the other processor what this one is hashing.
const aheadAbove = 32 << 10

// packedAhead is a content that is being packed while nobody has checked yet whether it may be stored.
type packedAhead struct {
	content []byte
	base    *version
	done    chan struct{}
	packed  packed
}

// packAhead begins to pack the new content of an operation that changes one file whose content before is at hand. Hashing it takes as
// long, and neither needs the other. nil when it would not pay.
func (d *DB) packAhead(op *Op) *packedAhead {
	if len(op.Changes) != 1 {
		return nil
	}
	c := &op.Changes[0]
	if len(c.AfterContent) < aheadAbove || len(c.AfterContent) > maxDelta || c.Content == nil {
		return nil
	}
	base := d.mem.find(c.Path)
	if base == nil || len(base.content) != len(c.Content) {
		return nil
	}
	a := &packedAhead{content: c.AfterContent, base: base, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.packed = d.pack.pack(a.content, a.base)
	}()
	return a
}

// take returns what was packed if it is content against base, else the zero packed.
func (a *packedAhead) take(content []byte, base *version) packed {
	if a == nil || a.base != base || len(content) != len(a.content) || &content[0] != &a.content[0] {
		return packed{}
	}
	<-a.done
	return a.packed
}

// wait returns when the bytes are not looked at any more.
func (a *packedAhead) wait() {
	if a != nil {
		<-a.done
	}
}
