package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"moltisfs/checkpoint/blob"
)

// GCOptions of GC. The zero value does what Options says.
type GCOptions struct {
	// Slice is how long one transaction may hold up the saves of others; 50 ms when 0.
	Slice  time.Duration
	DryRun bool // only count what would go
}

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
	KeepWithin time.Duration // what is younger is kept; 0: nothing for its age
	KeepLast   int           // so many of each path are kept; 0: none for their number
	MaxBytes   int64
}

// GC removes what retention lets go. First the checkpoints that are older than KeepWithin, not
// among the KeepLast newest of any of their paths, not pinned and not wanted by the trash. If the
// store is still larger than MaxBytes, then the oldest that are not pinned and not wanted by the trash. With each go the contents that nothing refers to any more.
//
// Saves go on between its slices, and it may be stopped at any time. In processes that save it runs
// by itself; call it to have it now.
//
// An open operation stays whatever retention and MaxBytes say, also when its host is no more: see
// DB.Open. A label is a name and protects nothing; Pin does.
func (d *DB) GC(ctx context.Context, o GCOptions) (r GCResult, err error) {
	if err := d.enter(); err != nil {
		return r, err
	}
	defer d.active.Done()
	if err = d.inPlace(); err == nil {
		d.cleaning.Lock()
		defer d.cleaning.Unlock()
		r, err = d.gc(ctx, o, 0, true)
	}
	if err != nil {
		err = fmt.Errorf("cleaning the checkpoint store: %w", named(err))
	}
	return r, err
}

// gcEvery is how often a process that saves lets retention run, if no other did.
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
		return // whoever only looks takes nothing away
	}
	at, err := one[int64](ctx, d.r, "SELECT v FROM meta WHERE k='gc_at'")
	if age := d.o.Now().Sub(time.Unix(0, at)); err != nil || age >= 0 && age <= gcEvery {
		return
	}
	d.cleaning.Lock()
	defer d.cleaning.Unlock()
	if r, err := d.gc(ctx, GCOptions{}, 0, false); err != nil && ctx.Err() == nil {
		d.o.Logger.Warn("cleaning the checkpoint store", "error", err)
	} else if r.Checkpoints+r.Contents > 0 {
		d.o.Logger.Info("cleaned the checkpoint store", "checkpoints", r.Checkpoints,
			"contents", r.Contents, "bytes", r.Bytes)
	}
}

// measure notes how many bytes of MaxBytes the store takes.
func (d *DB) measure(ctx context.Context, q querier) error {
	used, _, err := size(ctx, q)
	if err != nil {
		return err
	}
	files, err := one[int64](ctx, q, "SELECT coalesce(sum(bytes), 0) FROM content WHERE name IS NOT NULL")
	if err == nil {
		d.used.Store(used + files)
	}
	return err
}

// room makes sure that what is new in op fits, and evicts what retention would have kept when it
// must. look: whatever is known of the store, look at it.
func (d *DB) room(ctx context.Context, op *Op, look bool) error {
	rows := int64(64<<10 + changeBytes*len(op.Changes) + len(op.Steps)) // and pages that are half empty
	most := rows
	for i := range op.Changes {
		most += int64(len(op.Changes[i].Content) + len(op.Changes[i].AfterContent))
	}
	if d.frozen || !look && d.used.Load()+most <= d.o.MaxBytes {
		return nil
	}
	d.cleaning.Lock()
	defer d.cleaning.Unlock()
	if err := d.measure(ctx, d.r); err != nil {
		return err
	}
	need, err := d.newBytes(ctx, op)
	need += rows
	if err != nil || d.used.Load()+need <= d.o.MaxBytes { // somebody else made room
		return err
	}
	if need > d.o.MaxBytes {
		return &FullError{need, d.o.MaxBytes}
	}
	if _, err := d.gc(ctx, GCOptions{}, need, false); err != nil {
		return err
	}
	if need, err = d.newBytes(ctx, op); err != nil { // what was there may be gone now
		return err
	}
	if used := d.used.Load(); used+need > d.o.MaxBytes { // the rows may do with less
		return &FullError{used + need, d.o.MaxBytes}
	}
	return nil
}

// newBytes counts the contents of op that are not stored yet, each once.
func (d *DB) newBytes(ctx context.Context, op *Op) (n int64, err error) {
	seen := map[string]bool{}
	for i := range op.Changes {
		c := &op.Changes[i]
		for _, side := range []struct {
			hash string
			body []byte
		}{{c.Before.Hash, c.Content}, {c.After.Hash, c.AfterContent}} {
			if side.body == nil || seen[side.hash] {
				continue
			}
			seen[side.hash] = true
			h, err := blob.ParseHash(side.hash)
			if err != nil {
				return 0, err
			}
			there, err := one[int64](ctx, d.r, "SELECT id FROM content WHERE hash=? AND codec IS NOT NULL", h[:])
			if err != nil {
				return 0, err
			}
			if there == 0 {
				n += int64(len(side.body))
			}
		}
	}
	return n, nil
}

// gc plans and carries out, until the store and need more bytes are within MaxBytes or nothing more
// may go. With all it also looks for contents that nothing refers to without anything else going.
func (d *DB) gc(ctx context.Context, o GCOptions, need int64, all bool) (r GCResult, err error) {
	if o.Slice <= 0 {
		o.Slice = 50 * time.Millisecond
	}
	r.Limits = Limits{d.o.KeepWithin, d.o.KeepLast, d.o.MaxBytes}
	if o.DryRun {
		p, err := d.planGC(ctx, need, all)
		if err == nil {
			for _, s := range p.steps {
				r.Checkpoints, r.Evicted = r.Checkpoints+count(s.op != 0), r.Evicted+count(s.evicted)
			}
			r.Contents, r.Bytes = p.stored, p.bytes
		}
		return r, err
	}
	// Trash whose content is in a checkpoint expires here. What is parked in the tree is for the
	// host to remove.
	err = d.transact(ctx, func(ctx context.Context, tx *tx) error {
		now := clampNs(d.o.Now())
		return tx.exec(ctx, "INSERT INTO meta(k, v) VALUES('gc_at', ?) ON CONFLICT(k) DO UPDATE SET v=excluded.v", now)
	})
	if err == nil {
		err = d.measure(ctx, d.r)
	}
	before := d.used.Load()
	for err == nil {
		var p *gcPlan
		if p, err = d.planGC(ctx, need, all); err != nil {
			break
		}
		if err = d.execute(ctx, p, o.Slice, &r); err == nil {
			err = d.measure(ctx, d.r)
		}
		if len(p.steps) == 0 || d.used.Load()+need <= d.o.MaxBytes {
			break
		}
	}
	if err == nil {
		var files int
		files, err = d.removeUnnamed(ctx)
		r.Files += files
	}
	for more := true; more && err == nil; {
		err = d.transact(ctx, func(ctx context.Context, tx *tx) (err error) {
			more, err = tx.shrink(ctx)
			return err
		})
	}
	r.Bytes = max(0, before-d.used.Load())
	return r, err
}

// gcPlan lists the rows and contents that a gc removes, in that order. A dry run makes the plan and does not execute it.
type gcPlan struct {
	steps  []gcStep
	stored int   // contents whose bytes go
	bytes  int64 // about

	q        querier
	gone     map[int64]bool // checkpoints
	contents map[int64]*gcContent
}

// gcStep is a checkpoint that goes, 0 for none, and the contents that nothing needs once it is gone, a
// base after what stands on it.
type gcStep struct {
	op       int64
	evicted  bool // for MaxBytes
	contents []int64
}

// mayGo are the checkpoints that are not pinned, not open, and not the newest: its number must not be
// given out again. (The plus keeps the database from going through all by that.)
const mayGo = ` pin=0 AND +seq < (SELECT max(seq) FROM op)
	AND NOT EXISTS (SELECT 1 FROM open_op WHERE open_op.op=op.seq)`

// agedQuery finds what retention may let go by its age: what is wanted by the trash, and what is
// among the newest of one of its paths, stays.
const agedQuery = `WITH newest(path, op) AS (SELECT path, op FROM
		(SELECT path, op, row_number() OVER (PARTITION BY path ORDER BY op DESC) AS n FROM change
			WHERE path IN (SELECT path FROM change WHERE op IN (SELECT seq FROM op WHERE ts < ?))) c
		WHERE n <= ?)
	SELECT seq FROM op WHERE seq IN (SELECT seq FROM op WHERE ts < ?) AND` + mayGo + `
		AND NOT EXISTS (SELECT 1 FROM trash WHERE trash.op=op.seq)
		AND seq NOT IN (SELECT op FROM newest) ORDER BY seq`

// evictQuery finds the oldest of what may go for MaxBytes.
const evictQuery = `SELECT seq FROM op WHERE seq > ? AND` + mayGo + `
	AND NOT EXISTS (SELECT 1 FROM trash WHERE trash.op=op.seq) ORDER BY seq LIMIT 1000`

// Bytes of the catalog that a checkpoint and each of its changes take, about.
const (
	opBytes     = 250
	changeBytes = 150
)

// planGC plans what goes: see GC.
func (d *DB) planGC(ctx context.Context, need int64, all bool) (*gcPlan, error) {
	p := &gcPlan{gone: map[int64]bool{}, contents: map[int64]*gcContent{}}
	err := d.snapshot(ctx, func(h *history) error {
		p.q = h.q
		if all {
			if err := p.takeUnreferenced(ctx); err != nil {
				return err
			}
		}
		cut := clampNs(d.o.Now().Add(-d.o.KeepWithin))
		aged, err := column[int64](ctx, h.q, agedQuery, cut, d.o.KeepLast, cut)
		for some := range slices.Chunk(aged, maxIn) {
			if err == nil {
				err = p.take(ctx, some, false, func() bool { return false })
			}
		}
		if err == nil {
			err = d.measure(ctx, h.q)
		}
		within := func(bytes int64) func() bool {
			return func() bool { return d.used.Load()-p.bytes+need <= bytes }
		}
		if err != nil || within(d.o.MaxBytes)() {
			return err
		}
		for after := int64(0); !within(d.o.MaxBytes / 10 * 9)(); {
			seqs, err := column[int64](ctx, h.q, evictQuery, after)
			if err != nil || len(seqs) == 0 {
				return err
			}
			after = seqs[len(seqs)-1]
			seqs = slices.DeleteFunc(seqs, func(seq int64) bool { return p.gone[seq] })
			if err := p.take(ctx, seqs, true, within(d.o.MaxBytes/10*9)); err != nil {
				return err
			}
		}
		return nil
	})
	return p, err
}

// takeUnreferenced plans to remove contents that nothing refers to.
func (p *gcPlan) takeUnreferenced(ctx context.Context) error {
	ids, err := column[int64](ctx, p.q, "SELECT id FROM content WHERE"+unreferenced)
	if err == nil {
		err = p.load(ctx, ids)
	}
	for _, id := range ids {
		if err == nil {
			p.contents[id].needs = 1
			s := gcStep{}
			err = p.drop(ctx, id, &s)
			p.steps = append(p.steps, s)
		}
	}
	return err
}

// take plans to remove checkpoints, until enough says so.
func (p *gcPlan) take(ctx context.Context, seqs []int64, evicted bool, enough func() bool) error {
	uses := map[int64][]int64{}
	var ids []int64
	q := "SELECT op, coalesce(bobj, 0), coalesce(aobj, 0) FROM change WHERE op" + in(seqs)
	err := each(ctx, p.q, q, nil, func(row scanner) error {
		var op, b, a int64
		err := row.Scan(&op, &b, &a)
		uses[op] = append(uses[op], b, a)
		ids = append(ids, b, a)
		return err
	})
	if err == nil {
		err = p.load(ctx, ids)
	}
	for _, seq := range seqs {
		if err != nil || enough() {
			return err
		}
		s := gcStep{op: seq, evicted: evicted}
		for _, id := range uses[seq] {
			if err == nil {
				err = p.drop(ctx, id, &s)
			}
		}
		p.bytes += opBytes + changeBytes*int64(len(uses[seq])/2)
		p.steps = append(p.steps, s)
		p.gone[seq] = true
	}
	return err
}

// gcContent is a content of which something that needs it may go.
type gcContent struct {
	needs       int // how many changes and deltas that stay need it
	bytes, base int64
}

// load looks up the contents of ids that are not known yet.
func (p *gcPlan) load(ctx context.Context, ids []int64) error {
	ids = slices.DeleteFunc(distinct(ids), func(id int64) bool { return id == 0 || p.contents[id] != nil })
	for some := range slices.Chunk(ids, maxIn) {
		q := `SELECT id, (SELECT count(*) FROM change WHERE bobj=content.id) + (SELECT count(*) FROM change WHERE aobj=content.id)
			+ (SELECT count(*) FROM content d WHERE d.base=content.id), coalesce(bytes, -1), coalesce(base, 0)
			FROM content WHERE id` + in(some)
		err := each(ctx, p.q, q, nil, func(row scanner) error {
			var id int64
			var c gcContent
			err := row.Scan(&id, &c.needs, &c.bytes, &c.base)
			p.contents[id] = &c
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// drop notes that one of those that need the content id goes. If it was the last one the content goes
// too, and its base is needed by one less.
func (p *gcPlan) drop(ctx context.Context, id int64, s *gcStep) error {
	for id != 0 {
		c := p.contents[id]
		if c == nil {
			if err := p.load(ctx, []int64{id}); err != nil {
				return err
			}
			if c = p.contents[id]; c == nil {
				return nil // a row that points nowhere: Check tells it
			}
		}
		if c.needs--; c.needs > 0 {
			return nil
		}
		s.contents = append(s.contents, id)
		if c.bytes >= 0 {
			p.stored++
			p.bytes += c.bytes
		}
		id = c.base
	}
	return nil
}

// unreferenced is of contents that nothing refers to.
const unreferenced = ` NOT EXISTS (SELECT 1 FROM change WHERE change.bobj=content.id)
	AND NOT EXISTS (SELECT 1 FROM change WHERE change.aobj=content.id)
	AND NOT EXISTS (SELECT 1 FROM content d WHERE d.base=content.id)`

// execute carries out a plan, in transactions of about that length. What others have come to need
// since stays.
func (d *DB) execute(ctx context.Context, p *gcPlan, slice time.Duration, r *GCResult) error {
	for steps := p.steps; len(steps) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var names []string
		var was GCResult
		rest := steps
		err := d.transact(ctx, func(ctx context.Context, tx *tx) error {
			for end := time.Now().Add(slice); len(rest) > 0 && time.Now().Before(end); {
				some := rest[:min(len(rest), 100)]
				removed, err := tx.remove(ctx, some, &was)
				if err != nil {
					return err
				}
				names, rest = append(names, removed...), rest[len(some):]
			}
			return nil
		})
		if err != nil {
			return err
		}
		steps = rest
		r.Checkpoints, r.Evicted = r.Checkpoints+was.Checkpoints, r.Evicted+was.Evicted
		r.Contents, r.Files = r.Contents+was.Contents, r.Files+len(names)
		// Only now: had the transaction failed, they would still be named. What is not removed here is
		// rubbish later.
		if err := d.deleteBlobs(ctx, names); err != nil {
			return err
		}
	}
	if r.Checkpoints == 0 {
		return nil
	}
	return d.transact(ctx, func(ctx context.Context, tx *tx) error {
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
	})
}

// remove removes the checkpoints of steps, unless they were pinned meanwhile, and their contents. It
// returns the names of large ones.
func (tx *tx) remove(ctx context.Context, steps []gcStep, r *GCResult) (names []string, err error) {
	var asked []int64
	for _, s := range steps {
		asked = append(asked, s.op)
	}
	seqs, err := column[int64](ctx, tx, "SELECT seq FROM op WHERE pin=0 AND seq"+in(asked))
	if err != nil {
		return nil, err
	}
	if len(seqs) > 0 {
		paths, err := column[int64](ctx, tx, "SELECT DISTINCT path FROM change WHERE op"+in(seqs))
		if err == nil {
			err = tx.noteGone(ctx, in(seqs))
		}
		if err == nil {
			err = tx.exec(ctx, trashGone+" WHERE op"+in(seqs), nothing)
		}
		for _, q := range []string{"DELETE FROM change WHERE op", "DELETE FROM op WHERE seq"} {
			if err == nil {
				err = tx.exec(ctx, q+in(seqs))
			}
		}
		for some := range slices.Chunk(paths, maxIn) {
			const dead = " AND NOT EXISTS (SELECT 1 FROM change WHERE change.path="
			if err == nil {
				err = tx.exec(ctx, "DELETE FROM known WHERE path"+in(some)+dead+"known.path)")
			}
			if err == nil {
				err = tx.exec(ctx, "DELETE FROM path WHERE id"+in(some)+dead+"path.id)")
			}
		}
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			r.Evicted += count(s.evicted && slices.Contains(seqs, s.op))
		}
		r.Checkpoints += len(seqs)
	}
	del, err := tx.PrepareContext(ctx, "DELETE FROM content WHERE id=? AND"+unreferenced+
		" RETURNING codec IS NOT NULL, coalesce(name, '')")
	if err != nil {
		return nil, err
	}
	defer del.Close()
	for _, s := range steps {
		for _, id := range s.contents {
			rows, err := del.QueryContext(ctx, id)
			if err != nil {
				return nil, err
			}
			var stored bool
			var name string
			for rows.Next() {
				if err = rows.Scan(&stored, &name); err == nil && stored {
					r.Contents++
				}
			}
			if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
				return nil, err
			}
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names, nil
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

// deleteBlobs removes large contents that rows named until now.
func (d *DB) deleteBlobs(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if err := d.inPlace(); err != nil { // of another store by now
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, d.blobs.Delete(ctx, name))
	}
	return errors.Join(errs...)
}

// removeUnnamed removes large contents that no row names: a save or a purge left them that was cut off.
// Nobody is about to name one, since that happens in the transaction that wrote it.
func (d *DB) removeUnnamed(ctx context.Context) (n int, err error) {
	err = d.transact(ctx, func(ctx context.Context, tx *tx) error {
		names, err := unnamed(ctx, tx, d.blobs)
		n = len(names)
		return errors.Join(err, d.deleteBlobs(ctx, names))
	})
	return n, err
}

// unnamed are the large contents that no row of q names.
func unnamed(ctx context.Context, q querier, blobs blob.Store) (names []string, err error) {
	all, err := column[string](ctx, q, "SELECT name FROM content WHERE name IS NOT NULL")
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, name := range all {
		named[name] = true
	}
	err = blobs.List(ctx, func(name string, _ int64) error {
		if !named[name] {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
