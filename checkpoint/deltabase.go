package checkpoint

import (
	"context"
	"database/sql"
	"errors"
)

// newest returns the newest stored content of path for use as a base: from memory, else from the store. nil when there is
// none or it would not pay.
func (d *DB) newest(ctx context.Context, path string, size int) (*version, error) {
	if v := d.mem.find(path); v != nil {
		return v, nil
	}
	if size > maxDelta {
		return nil, nil
	}
	v := &version{path: path}
	var h []byte
	var have int64
	// The newest change of the path; of its two states the later one that has content.
	err := d.r.QueryRowContext(ctx, `SELECT o.hash, o.size, a.depth, ifnull(a.key,0) FROM
		(SELECT bobj, aobj FROM change WHERE path=(SELECT id FROM path WHERE path=?) ORDER BY op DESC LIMIT 1) c
		JOIN data a ON a.id IN (c.aobj, c.bobj) JOIN object o ON o.id=a.id ORDER BY a.id=c.aobj DESC LIMIT 1`,
		[]byte(path)).Scan(&h, &have, &v.depth, &v.key)
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
