package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// GCResult counts the things that GC removed.
type GCResult struct {
	Checkpoints int   `json:"checkpoints"` // expired or evicted
	Evicted     int   `json:"evicted"`     // of those: for MaxBytes, though retention keeps them
	Contents    int   `json:"contents"`    // stored contents that nothing refers to any more
	Files       int   `json:"files"`       // large ones, rubbish of crashes included
	Bytes       int64 `json:"bytes"`       // given back

	Limits Limits `json:"-"` // that were kept to
}

// Limits are the bounds of a store.
type Limits struct {
	KeepWithin time.Duration // younger checkpoints are kept; 0: none for its age
	KeepLast   int           // so many of each path are kept; 0: none for their number
	MaxBytes   int64
}

// GC removes what retention lets go. First the checkpoints that are older than KeepWithin, not
// among the KeepLast newest of any of their paths, not pinned and not wanted by the trash. If the
// store is still larger than MaxBytes, then the oldest that are not pinned and not wanted by the trash. With each go the contents that nothing refers to any more.
//
// Saves go on between its transactions, and it may be stopped at any time. In processes that save it runs
// by itself; call it to have it now. A dry run only counts what would go; saves wait meanwhile.
//
// An open operation stays whatever retention and MaxBytes say, also when its host is no more: see
// DB.Open. A label is a name and protects nothing; Pin does.
func (d *DB) GC(ctx context.Context, dry bool) (r GCResult, err error) {
	if err := d.enter(); err != nil {
		return r, err
	}
	defer d.active.Done()
	err = d.clean(ctx, func() error {
		r, err = d.gc(ctx, dry, 0)
		return err
	})
	if err != nil {
		err = fmt.Errorf("cleaning the checkpoint store: %w", d.c.failed(err))
	}
	return r, err
}

// gcEvery is the time after which a process that saves lets retention run, if no other did.
const gcEvery = time.Hour

// saved looks once in a while, after a save, whether retention is due.
func (d *DB) saved() {
	d.wrote.Store(true)
	now, last := time.Now().UnixNano(), d.looked.Load()
	if now-last < int64(time.Minute) || !d.looked.CompareAndSwap(last, now) || d.enter() != nil {
		return
	}
	go func() {
		defer d.active.Done()
		d.retain(d.live)
	}()
}

// retain runs gc if this process has saved and gc is due. Errors are logged: each save that depends
// on the outcome finds out for itself.
func (d *DB) retain(ctx context.Context) {
	if !d.wrote.Load() {
		return // a process that only looks takes nothing away
	}
	at, err := one[int64](ctx, d.r, "SELECT v FROM meta WHERE k='gc_at'")
	if age := d.o.Now().Sub(time.Unix(0, at)); err != nil || age >= 0 && age <= gcEvery {
		return
	}
	var r GCResult
	err = d.clean(ctx, func() error {
		r, err = d.gc(ctx, false, 0)
		return err
	})
	if err != nil && ctx.Err() == nil {
		d.o.Logger.Warn("cleaning the checkpoint store", "error", err)
	} else if r.Checkpoints+r.Contents > 0 {
		d.o.Logger.Info("cleaned the checkpoint store", "checkpoints", r.Checkpoints,
			"contents", r.Contents, "bytes", r.Bytes)
	}
}

// makeRoom evicts checkpoints for a save that did not fit.
func (d *DB) makeRoom(ctx context.Context, full *FullError) error {
	return d.clean(ctx, func() error {
		used, _, err := d.c.size(ctx, d.r)
		if err != nil {
			return err
		}
		need := full.Bytes - used
		if need > d.o.MaxBytes {
			return full
		}
		_, err = d.gc(ctx, false, need)
		return err
	})
}

// clean runs fn while no other GC or Purge runs, of this process or of another gateway.
func (d *DB) clean(ctx context.Context, fn func() error) error {
	d.cleaning.Lock()
	defer d.cleaning.Unlock()
	done, err := d.c.clean(ctx)
	if err != nil {
		return err
	}
	defer done()
	return fn()
}

// gc removes what retention lets go, until the store and need more bytes are within MaxBytes or nothing more
// may go. A dry run does the same in one transaction, and takes that back.
func (d *DB) gc(ctx context.Context, dry bool, need int64) (GCResult, error) {
	c := &collector{d: d, need: need, transact: d.transact, q: d.r}
	c.r.Limits = Limits{d.o.KeepWithin, d.o.KeepLast, d.o.MaxBytes}
	if dry {
		errEnough := errors.New("dry run")
		listed, err := d.blobNames(ctx)
		if err != nil {
			return c.r, err
		}
		err = d.transact(ctx, func(ctx context.Context, t *tx) error {
			c.transact = func(ctx context.Context, fn func(context.Context, *tx) error) error { return fn(ctx, t) }
			c.q = t
			if err := c.collect(ctx); err != nil {
				return err
			}
			names, err := unnamed(ctx, t, listed)
			c.r.Files = len(names)
			return cmp.Or(err, errEnough)
		})
		if err == errEnough {
			err = nil
		}
		return c.r, err
	}
	err := d.transact(ctx, func(ctx context.Context, tx *tx) error {
		now := clampNs(d.o.Now())
		return tx.exec(ctx, "INSERT INTO meta(k, v) VALUES('gc_at', ?) ON CONFLICT(k) DO UPDATE SET v=excluded.v", now)
	})
	if err == nil {
		err = c.collect(ctx)
	}
	if err == nil && c.r.Checkpoints > 0 {
		err = d.transact(ctx, d.forgetSessions)
	}
	if err == nil {
		c.r.Files, err = d.removeUnnamed(ctx)
	}
	for more := true; more && err == nil; {
		err = d.transact(ctx, func(ctx context.Context, tx *tx) (err error) {
			more, err = d.c.shrink(ctx, tx)
			return err
		})
	}
	return c.r, err
}

// A collector removes checkpoints for gc: transact and q are those of the store, or of the transaction of a
// dry run.
type collector struct {
	d        *DB
	need     int64
	used     int64 // bytes of MaxBytes, as they were measured last
	transact func(context.Context, func(context.Context, *tx) error) error
	q        querier
	r        GCResult
}

// mayGo are the checkpoints that are not pinned, not open, not wanted by the trash, not unsent or named by what is, and not the newest: its
// number must not be given out again. (The plus keeps the database from going through all by that.)
const mayGo = ` pin=0 AND +seq < (SELECT max(seq) FROM op)
	AND NOT EXISTS (SELECT 1 FROM open_op WHERE open_op.op=op.seq)
	AND NOT EXISTS (SELECT 1 FROM trash WHERE trash.op=op.seq)
	AND seq NOT IN (SELECT op FROM unsent UNION SELECT undo_of FROM op WHERE seq IN (SELECT op FROM unsent) AND +undo_of IS NOT NULL
		UNION SELECT restore_of FROM op WHERE seq IN (SELECT op FROM unsent) AND restore_of IS NOT NULL)`

// agedQuery finds the checkpoints that retention may let go by their age, those among the newest of one of their
// paths excepted.
const agedQuery = `WITH newest(path, op) AS (SELECT path, op FROM
		(SELECT path, op, row_number() OVER (PARTITION BY path ORDER BY op DESC) AS n FROM change
			WHERE path IN (SELECT path FROM change WHERE op IN (SELECT seq FROM op WHERE ts < ?))) c
		WHERE n <= ?)
	SELECT seq FROM op WHERE seq IN (SELECT seq FROM op WHERE ts < ?) AND` + mayGo + `
		AND seq NOT IN (SELECT op FROM newest) ORDER BY seq`

// Bytes of the catalog that a checkpoint, each of its changes and each content take beside the bytes of the content, about.
const (
	opBytes      = 250
	changeBytes  = 150
	contentBytes = 100
)

// oldestQuery lists what may go for MaxBytes, the oldest first, and about how much each takes.
const oldestQuery = `SELECT seq, (SELECT coalesce(sum(? + coalesce(b.bytes, 0) + coalesce(a.bytes, 0)), 0) FROM change c
		LEFT JOIN content b ON b.id=c.bobj LEFT JOIN content a ON a.id=c.aobj WHERE c.op=op.seq)
	FROM op WHERE` + mayGo + ` ORDER BY seq`

// collect removes what is too old, and then the oldest for MaxBytes.
func (c *collector) collect(ctx context.Context) error {
	d := c.d
	if err := c.measure(ctx); err != nil {
		return err
	}
	before, cut := c.used, clampNs(d.o.Now().Add(-d.o.KeepWithin))
	seqs, err := column[int64](ctx, c.q, agedQuery, cut, d.o.KeepLast, cut)
	if err == nil {
		err = c.remove(ctx, seqs)
	}
	for err == nil && c.used+c.need > d.o.MaxBytes {
		over := c.used + c.need - d.o.MaxBytes/10*9
		seqs = nil
		err = each(ctx, c.q, oldestQuery, []any{changeBytes}, func(row scanner) error {
			var seq, bytes int64
			err := row.Scan(&seq, &bytes)
			seqs = append(seqs, seq)
			if over -= opBytes + bytes; err == nil && over <= 0 {
				err = fs.SkipAll
			}
			return err
		})
		if err != nil || len(seqs) == 0 {
			break
		}
		kept := c.r.Checkpoints
		err = c.remove(ctx, seqs)
		c.r.Evicted += c.r.Checkpoints - kept
	}
	c.r.Bytes = max(0, before-c.used)
	return err
}

// gcSlice is about how long one transaction of gc holds up the saves of others.
const gcSlice = 50 * time.Millisecond

// remove removes the checkpoints seqs that may still go, in transactions of a gcSlice.
func (c *collector) remove(ctx context.Context, seqs []int64) error {
	for len(seqs) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		was, rest := c.r, seqs
		err := c.transact(ctx, func(ctx context.Context, tx *tx) error {
			for end := time.Now().Add(gcSlice); len(rest) > 0 && time.Now().Before(end); {
				some := rest[:min(len(rest), 100)]
				if err := tx.remove(ctx, some, &c.r); err != nil {
					return err
				}
				rest = rest[len(some):]
			}
			return nil
		})
		if err != nil {
			c.r = was
			return err
		}
		seqs = rest
	}
	return c.measure(ctx)
}

// measure notes how many bytes of MaxBytes the store takes.
func (c *collector) measure(ctx context.Context) (err error) {
	c.used, _, err = c.d.c.size(ctx, c.q)
	return err
}

// remove removes the checkpoints of asked that may go, and the contents that nothing needs any more.
func (tx *tx) remove(ctx context.Context, asked []int64, r *GCResult) error {
	seqs, err := column[int64](ctx, tx, "SELECT seq FROM op WHERE seq"+in(asked)+" AND"+mayGo)
	if err != nil || len(seqs) == 0 {
		return err
	}
	list := in(seqs)
	paths, err := column[int64](ctx, tx, "SELECT DISTINCT path FROM change WHERE op"+list)
	if err != nil {
		return err
	}
	contents, err := column[int64](ctx, tx, "SELECT bobj FROM change WHERE bobj IS NOT NULL AND op"+list+
		" UNION SELECT aobj FROM change WHERE aobj IS NOT NULL AND op"+list)
	if err != nil {
		return err
	}
	if err := tx.noteGone(ctx, list); err != nil {
		return err
	}
	for _, q := range []string{"DELETE FROM change WHERE op", "DELETE FROM op WHERE seq"} {
		if err := tx.exec(ctx, q+list); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(paths, maxIn) {
		for _, q := range []struct{ from, path string }{{"known", "path"}, {"path", "id"}} {
			err := tx.exec(ctx, "DELETE FROM "+q.from+" WHERE "+q.path+in(some)+
				" AND NOT EXISTS (SELECT 1 FROM change WHERE change.path="+q.from+"."+q.path+")")
			if err != nil {
				return err
			}
		}
	}
	r.Checkpoints += len(seqs)
	return tx.drop(ctx, contents, r)
}

// unreferenced is of contents that nothing refers to.
const unreferenced = ` NOT EXISTS (SELECT 1 FROM change WHERE change.bobj=content.id)
	AND NOT EXISTS (SELECT 1 FROM change WHERE change.aobj=content.id)
	AND NOT EXISTS (SELECT 1 FROM content d WHERE d.base=content.id)`

// drop removes those contents of ids that nothing refers to any more, then likewise what they stood on. Large
// ones are rubbish then: see removeUnnamed.
func (tx *tx) drop(ctx context.Context, ids []int64, r *GCResult) (err error) {
	for len(ids) > 0 && err == nil {
		var bases []int64
		for some := range slices.Chunk(ids, maxIn) {
			q := "DELETE FROM content WHERE id" + in(some) + " AND" + unreferenced +
				" RETURNING codec IS NOT NULL, coalesce(base, 0)"
			err = errors.Join(err, each(ctx, tx, q, nil, func(row scanner) error {
				var stored bool
				var base int64
				err := row.Scan(&stored, &base)
				r.Contents += count(stored)
				if base != 0 {
					bases = append(bases, base)
				}
				return err
			}))
		}
		ids = distinct(bases)
	}
	return err
}

// forgetSessions removes turns and sessions of which nothing is left.
func (d *DB) forgetSessions(ctx context.Context, tx *tx) error {
	for _, q := range []string{
		`DELETE FROM turn WHERE after < (SELECT min(seq) FROM op)
			AND NOT EXISTS (SELECT 1 FROM op WHERE op.session=turn.session)`,
		// Of a name that was used again, what nothing is left of.
		`DELETE FROM turn WHERE after < (SELECT gone FROM session WHERE id=turn.session)
			AND EXISTS (SELECT 1 FROM turn t
				WHERE t.session=turn.session AND t.name=turn.name AND t.id > turn.id)
			AND NOT EXISTS (SELECT 1 FROM op WHERE op.turn=turn.id)`,
	} {
		if err := tx.exec(ctx, q); err != nil {
			return err
		}
	}
	// A session that lost something may come back, and must not take what is left for all.
	// It is remembered for a year.
	return tx.exec(ctx, `DELETE FROM session WHERE (gone_ts IS NULL OR gone_ts < ?)
		AND NOT EXISTS (SELECT 1 FROM op WHERE op.session=session.id)
		AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.session=session.id)`,
		clampNs(d.o.Now().AddDate(-1, 0, 0)))
}

// noteGone remembers whose the checkpoints of list, an IN, are before they are deleted.
func (tx *tx) noteGone(ctx context.Context, list string) error {
	aborted := outcomeCode(Aborted)
	// An operation that was not made, or changed nothing for the session, is no part of a rewind.
	err := tx.exec(ctx, `UPDATE session SET gone=CASE WHEN coalesce(gone, 0) < x.seq THEN x.seq ELSE gone END,
			gone_ts=CASE WHEN gone_ts IS NULL OR gone_ts < x.ts THEN x.ts ELSE gone_ts END
		FROM (SELECT session AS s, max(seq) AS seq, max(ts) AS ts FROM op
			WHERE seq`+list+` AND outcome<>? AND kind NOT IN (?, ?, ?)
				AND EXISTS (SELECT 1 FROM change WHERE change.op=op.seq) GROUP BY session) x
		WHERE session.id=x.s`, aborted, KindExternal, KindRead, KindManual)
	if err != nil {
		return err
	}
	// Of a run that lost a change the rest is not what the script did.
	err = tx.exec(ctx, `UPDATE op SET run=-run WHERE run > 0 AND run IN (SELECT abs(run) FROM op
			WHERE seq`+list+` AND outcome<>? AND undo_of IS NULL AND run IS NOT NULL)`, aborted)
	if err != nil {
		return err
	}
	// As head sees it.
	return tx.exec(ctx, `UPDATE path SET gone=x.seq
		FROM (SELECT c.path AS p, max(c.op) AS seq FROM change c JOIN op ON op.seq=c.op
			WHERE c.op`+list+` AND op.outcome<>? AND op.kind<>? GROUP BY c.path) x
		WHERE path.id=x.p AND NOT EXISTS (SELECT 1 FROM change k JOIN op o ON o.seq=k.op
			WHERE k.path=x.p AND k.op > x.seq AND o.outcome<>? AND o.kind<>?)`,
		aborted, KindRead, aborted, KindRead)
}

// removeUnnamed removes large contents that no row names: their rows are gone, or a save was cut off.
//
// A save puts a large content there before its transaction. Where something was removed in between, the transaction finds that out, and the save
// puts the content there anew, under another name. So what was there before a moment at which nobody was in a transaction, and no row named it
// then, is rubbish for good: a name is given out once.
func (d *DB) removeUnnamed(ctx context.Context) (n int, err error) {
	listed, err := d.blobNames(ctx)
	if err != nil {
		return 0, err
	}
	rubbish, err := unnamed(ctx, d.r, listed)
	if err != nil || len(rubbish) == 0 { // as a rule there is none, and no save has to wait
		return 0, err
	}
	err = d.transact(ctx, func(ctx context.Context, tx *tx) error {
		rubbish, err = unnamed(ctx, tx, rubbish)
		if err != nil || len(rubbish) == 0 {
			return err
		}
		return tx.exec(ctx, "INSERT INTO meta(k, v) VALUES('swept', 1) ON CONFLICT(k) DO UPDATE SET v=meta.v+1")
	})
	for _, name := range rubbish {
		if err == nil {
			err = d.c.inPlace() // they may be of another store by now
		}
		if err == nil {
			err = d.blobs.Delete(ctx, name)
		}
	}
	return len(rubbish), err
}

// sweptQuery counts how often removeUnnamed has removed something, or was about to.
const sweptQuery = "SELECT v FROM meta WHERE k='swept'"

// blobNames lists the large contents that are there.
func (d *DB) blobNames(ctx context.Context) (names []string, err error) {
	err = d.blobs.List(ctx, func(name string, _ int64) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

// unnamed gives those of listed that no row of q names. They were listed before q looks: else it would take for rubbish what was saved in
// between.
func unnamed(ctx context.Context, q querier, listed []string) ([]string, error) {
	if len(listed) == 0 {
		return nil, nil
	}
	all, err := column[string](ctx, q, "SELECT name FROM content WHERE name IS NOT NULL")
	named := make(map[string]bool, len(all))
	for _, name := range all {
		named[name] = true
	}
	return slices.DeleteFunc(listed, func(name string) bool { return named[name] }), err
}
