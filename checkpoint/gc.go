package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// GCOptions of GC. The zero value does what Options says.
type GCOptions struct {
	// Slice is how long one transaction may hold up the saves of others; 50 ms when 0.
	Slice  time.Duration
	DryRun bool // only count what would go
	// Shared keeps to the widest of the limits that anybody has saved under lately, as cleaning by
	// itself does: see Limits. Without it those of Options hold, now and from now on: what others
	// saved under counts again when they save again.
	Shared bool

	need int64 // make room for that many bytes beyond what retention says
}

// GCResult counts the things that GC removed.
type GCResult struct {
	Checkpoints int    `json:"checkpoints"` // expired or evicted
	Evicted     int    `json:"evicted"`     // of those: for MaxBytes, though retention keeps them
	Contents    int    `json:"contents"`    // stored contents that nothing refers to any more
	Rekeyed     int    `json:"-"`           // deltas written anew, so that what they were based on could go
	Files       int    `json:"files"`       // external files, rubbish of crashes included
	Bytes       int64  `json:"bytes"`       // given back
	Limits      Limits `json:"-"`           // that were kept to

	spent bool // it was not enough, and what is left is pinned or open
}

// GC removes what retention lets go. First the checkpoints that are older than KeepWithin, not
// among the KeepLast newest of any of their paths, not pinned and not wanted by the trash. If the
// store is still larger than MaxBytes, then the oldest that are not pinned, and at the very last
// what the trash wants. Then the contents that nothing refers to.
//
// Saves go on between its slices, and it may be stopped at any time. In processes that save it runs
// by itself; call it to have it now.
//
// What is open stays whatever retention and MaxBytes say, whether or not whoever opened it is
// alive: see DB.Open.
//
// A label is a name and protects nothing; Pin does.
func (d *DB) GC(ctx context.Context, o GCOptions) (GCResult, error) {
	if err := d.enter(); err != nil {
		return GCResult{}, err
	}
	defer d.active.Done()
	d.keep.making.Lock()
	defer d.keep.making.Unlock()
	r, err := d.gc(ctx, o)
	return r, named(err)
}

const (
	sliceRows = 400 // rows between two looks at the clock
)

func (d *DB) gc(ctx context.Context, o GCOptions) (GCResult, error) {
	if err := d.inPlace(); err != nil { // it would remove the files of what is in its place now
		return GCResult{}, fmt.Errorf("cleaning the checkpoint store: %w", err)
	}
	if o.Slice <= 0 {
		o.Slice = 50 * time.Millisecond
	}
	g := &collector{d: d, o: o, limits: d.o.limits()}
	if o.Shared {
		var err error
		if g.limits, err = d.shared(ctx, d.r); err != nil {
			return g.r, fmt.Errorf("cleaning the checkpoint store: %w", err)
		}
	}
	g.r.Limits = g.limits
	if o.DryRun {
		err := g.dryRun(ctx)
		return g.r, err
	}
	before, err := d.held(ctx, d.r)
	if err == nil {
		err = g.run(ctx)
	}
	after, err2 := d.measure(ctx, d.r)
	if err == nil {
		err = err2
	}
	g.r.Bytes = max(0, before.used()-after.used())
	if err != nil {
		return g.r, fmt.Errorf("cleaning the checkpoint store: %w", err)
	}
	return g.r, nil
}

type collector struct {
	d      *DB
	o      GCOptions
	r      GCResult
	limits Limits
	trash  bool // evict what the trash wants too
	// floors has the oldest of the KeepLast newest checkpoints of each path, 0 where there are
	// fewer.
	floors map[int64]int64
}

func (g *collector) run(ctx context.Context) error {
	// Trash whose content is in a checkpoint expires here. What is parked in the tree is for the
	// host to remove.
	err := g.d.com.do(ctx, func(ctx context.Context, c *committer) error {
		if err := c.dropLimits(ctx, !g.o.Shared); err != nil {
			return err
		}
		const over = trashGone + " WHERE phase=1 AND parked=x'' AND expires<=?"
		return c.exec(ctx, over, clampNs(g.d.o.Now()))
	})
	if err != nil {
		return err
	}
	if err := g.expire(ctx, g.letGo, nil); err != nil {
		return err
	}
	if err := g.sweep(ctx); err != nil {
		return err
	}
	most := g.limits.besideLog()
	target := most/10*9 - g.o.need
	for {
		h, err := g.d.held(ctx, g.d.r)
		if err != nil {
			return err
		}
		used := h.used()
		if used+g.o.need <= most/20*19 {
			break
		}
		n, err := g.evict(ctx, used, target)
		if err != nil {
			return err
		}
		if n == 0 {
			if g.trash {
				g.r.spent = true
				break
			}
			g.trash = true
			continue
		}
		if err := g.sweep(ctx); err != nil {
			return err
		}
	}
	if err := g.tidy(ctx); err != nil {
		return err
	}
	if err := g.rubbish(ctx); err != nil {
		return err
	}
	return g.vacuum(ctx)
}

// slices calls fn in one transaction after the other until it reports that nothing is left. fn
// looks at the clock itself.
func (g *collector) slices(ctx context.Context,
	fn func(ctx context.Context, c *committer, end time.Time) (more bool, err error)) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := g.write(ctx, func(ctx context.Context, c *committer) (err error) {
			more, err = fn(ctx, c, time.Now().Add(g.o.Slice))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write runs one transaction that takes about rows() rows away.
func (g *collector) write(ctx context.Context, fn func(context.Context, *committer) error) error {
	room := growth{log: g.limits.logMost() / 2}
	return g.d.com.submit(ctx, &job{kind: single, run: fn, grow: room})
}

// rows is how many rows one transaction may take away, so that they fit into half of the log.
func (g *collector) rows() int {
	pages := int(g.limits.logMost()/2/frame) - savePages/2
	return max(1, pages/rowPages)
}

const spared = ` AND pin=0 AND NOT EXISTS (SELECT 1 FROM trash WHERE trash.op=op.seq)`

// atWork spares what is open.
const atWork = ` AND seq NOT IN (SELECT op FROM open_op)`

// agedQuery finds what retention may let go by its age. The newest row always stays, because its
// number must not be given out again.
const agedQuery = `SELECT seq FROM op
	WHERE seq > ?1 AND seq < (SELECT max(seq) FROM op) AND ts < ?2` +
	atWork + spared + ` ORDER BY seq LIMIT ?3`

const evictQuery = `SELECT seq FROM op
	WHERE seq > ?1 AND seq < (SELECT max(seq) FROM op) AND pin=0` +
	atWork + ` AND NOT EXISTS (SELECT 1 FROM trash WHERE trash.op=op.seq
	AND (?3 OR parked<>x'')) ORDER BY seq LIMIT ?2`

// A pick finds up to n of the checkpoints above after that may go, the oldest first.
type pick func(ctx context.Context, q querier, after int64, n int) ([]int64, error)

// letGo finds the next of what retention lets go, at most n. It keeps g.floors, which hold for one
// state of the catalog only.
func (g *collector) letGo(ctx context.Context, q querier, after int64, n int) ([]int64, error) {
	cut := clampNs(g.d.o.Now().Add(-g.limits.KeepWithin))
	for {
		aged, err := column[int64](ctx, q, agedQuery, after, cut, n)
		if err != nil || len(aged) == 0 {
			return nil, err
		}
		kept, err := g.amongNewest(ctx, q, aged)
		if err != nil {
			return nil, err
		}
		after = aged[len(aged)-1]
		gone := slices.DeleteFunc(aged, func(seq int64) bool { return kept[seq] })
		if len(gone) > 0 {
			return gone, nil
		}
	}
}

// amongNewest says which of the checkpoints are among the KeepLast newest of one of their paths.
// Where those begin is looked up once a path: to count what is newer, checkpoint by checkpoint, was
// a third of the time of a gc.
func (g *collector) amongNewest(ctx context.Context, q querier,
	seqs []int64) (map[int64]bool, error) {
	kept := map[int64]bool{}
	if g.limits.KeepLast == 0 {
		return kept, nil
	}
	pairs, err := queryPairs(ctx, q, `SELECT c.op, c.path FROM json_each(?) j
		CROSS JOIN change c ON c.op=j.value`, listOf(seqs))
	if err != nil {
		return nil, err
	}
	if g.floors == nil {
		g.floors = map[int64]int64{}
	}
	for _, p := range pairs {
		seq, path := p[0], p[1]
		floor, ok := g.floors[path]
		if !ok {
			const nth = "SELECT op FROM change WHERE path=? ORDER BY op DESC LIMIT 1 OFFSET ?"
			err := q.QueryRowContext(ctx, nth, path, g.limits.KeepLast-1).Scan(&floor)
			if err != nil && !errors.Is(err, sql.ErrNoRows) { // no such row: all are
				return nil, err
			}
			g.floors[path] = floor
		}
		if seq >= floor {
			kept[seq] = true
		}
	}
	return kept, nil
}

// evict removes the oldest checkpoints that may go, about as many as hold the bytes to be freed.
func (g *collector) evict(ctx context.Context, used, target int64) (int, error) {
	var n int64
	if err := g.d.r.QueryRowContext(ctx, "SELECT count(*) FROM op").Scan(&n); err != nil {
		return 0, err
	}
	share := float64(used-target) / float64(max(used, 1))
	// Each round looks through the whole store, so that it takes some. Of few, which are large
	// then, it takes one: the newest must not go for room that nobody needs.
	left := max(int(share*float64(n)), min(int(n/16), 16), 1)
	before := g.r.Checkpoints
	err := g.expire(ctx, func(ctx context.Context, q querier, after int64, n int) ([]int64, error) {
		return column[int64](ctx, q, evictQuery, after, min(n, left), !g.trash)
	}, &left)
	g.r.Evicted += g.r.Checkpoints - before
	return g.r.Checkpoints - before, err
}

// expire deletes the checkpoints that next picks; left, if not nil, bounds how many.
func (g *collector) expire(ctx context.Context, next pick, left *int) error {
	after := int64(0)
	return g.slices(ctx, func(ctx context.Context, c *committer, end time.Time) (bool, error) {
		g.floors = nil // between two transactions others may remove what is newer
		for rows := g.rows(); ; {
			if left != nil && *left <= 0 {
				return false, nil
			}
			seqs, err := next(ctx, c, after, min(rows, sliceRows))
			if err != nil || len(seqs) == 0 {
				return false, err
			}
			seqs, list, changes, err := c.few(ctx, seqs, rows)
			if err != nil {
				return false, err
			}
			if err := c.noteGone(ctx, list); err != nil {
				return false, err
			}
			for _, q := range []string{trashGone + " WHERE op IN ",
				"DELETE FROM change WHERE op IN ", "DELETE FROM op WHERE seq IN "} {
				if err := c.exec(ctx, q+ofList, list); err != nil {
					return false, err
				}
			}
			g.r.Checkpoints += len(seqs)
			g.d.progress("removing checkpoints", g.r.Checkpoints, 0)
			after = seqs[len(seqs)-1]
			if left != nil {
				*left -= len(seqs)
			}
			if rows -= changes; rows <= 0 || time.Now().After(end) {
				return true, nil
			}
		}
	})
}

// few is the first of seqs, as many as have at most so many changes together, but one at least;
// also as a JSON list.
func (c *committer) few(ctx context.Context, seqs []int64, most int) (_ []int64, list string,
	changes int, err error) {
	for ; ; seqs = seqs[:len(seqs)/2] {
		list = listOf(seqs)
		const count = "SELECT count(*) FROM change WHERE op IN " + ofList
		err = c.QueryRowContext(ctx, count, list).Scan(&changes)
		if err != nil || changes <= most || len(seqs) == 1 {
			return seqs, list, max(changes, len(seqs)), err
		}
	}
}

// tidy removes names that nothing refers to.
func (g *collector) tidy(ctx context.Context) error {
	if g.r.Checkpoints > 0 {
		if err := g.tidyPaths(ctx); err != nil {
			return err
		}
	}
	return g.write(ctx, func(ctx context.Context, c *committer) error {
		if g.r.Checkpoints > 0 {
			for _, q := range []string{
				`DELETE FROM turn WHERE after < (SELECT min(seq) FROM op)
					AND NOT EXISTS (SELECT 1 FROM op WHERE op.session=turn.session)`,
				// Of a name that was used again, what nothing is left of.
				`DELETE FROM turn WHERE after < (SELECT gone FROM session WHERE id=turn.session)
					AND EXISTS (SELECT 1 FROM turn t
						WHERE t.session=turn.session AND t.name=turn.name AND t.id > turn.id)
					AND id NOT IN (SELECT turn FROM op WHERE turn IS NOT NULL)`,
			} {
				if err := c.exec(ctx, q); err != nil {
					return err
				}
			}
			// A session that lost something may come back, and must not take what is left for all.
			// It is remembered for a year.
			err := c.exec(ctx, `DELETE FROM session WHERE ifnull(gone_ts < ?, true)
				AND NOT EXISTS (SELECT 1 FROM op WHERE op.session=session.id)
					AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.session=session.id)`,
				clampNs(g.d.o.Now().AddDate(-1, 0, 0)))
			if err != nil {
				return err
			}
		}
		return c.exec(ctx, `INSERT INTO meta(k, v) VALUES('gc_at', ?1)
			ON CONFLICT(k) DO UPDATE SET v=?1`, g.d.o.Now().UnixNano())
	})
}

func (g *collector) tidyPaths(ctx context.Context) error {
	const dead = "FROM path WHERE NOT EXISTS (SELECT 1 FROM change WHERE change.path=path.id)"
	ids, err := column[int64](ctx, g.d.r, "SELECT id "+dead)
	if err != nil || len(ids) == 0 {
		return err
	}
	return g.slices(ctx, func(ctx context.Context, c *committer, _ time.Time) (bool, error) {
		n := min(len(ids), g.rows(), sliceRows)
		// Asked again: somebody may have changed one of them meanwhile.
		err := c.exec(ctx, "DELETE "+dead+" AND id IN "+ofList, listOf(ids[:n]))
		ids = ids[n:]
		return len(ids) > 0, err
	})
}

// rubbish removes external files that no row names and that are too old to be on their way to one.
func (g *collector) rubbish(ctx context.Context) error {
	old := time.Now().Add(-time.Hour)
	names, err := loose(ctx, g.d.r, g.d.dir)
	for _, name := range names {
		if err := g.d.inPlace(); err != nil {
			return err
		}
		file := g.d.pack.Path(name)
		fi, err := os.Lstat(file)
		if err == nil && fi.ModTime().Before(old) && os.Remove(file) == nil {
			g.r.Files++
		}
	}
	return err
}

// vacuum gives free pages back to the file system, some at a time.
func (g *collector) vacuum(ctx context.Context) error {
	for {
		var free, pages int64
		err := g.d.r.QueryRowContext(ctx, `SELECT (SELECT freelist_count FROM pragma_freelist_count),
			(SELECT page_count FROM pragma_page_count)`).Scan(&free, &pages)
		if err != nil || free <= pages/20+16 { // a little is left for the next saves
			return err
		}
		err = g.write(ctx, func(ctx context.Context, c *committer) error {
			vacuum := fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(g.rows(), 1024))
			_, err := c.conn.ExecContext(ctx, vacuum)
			return err
		})
		if err != nil {
			return err
		}
	}
}

// dryRun counts what retention would let go now. What MaxBytes would take beyond that depends on
// what is freed.
func (g *collector) dryRun(ctx context.Context) error {
	return g.d.readers.snapshot(ctx, func(q querier) error { return g.count(ctx, q) })
}

func (g *collector) count(ctx context.Context, q querier) error {
	gone := map[int64]bool{}
	for after := int64(0); ; {
		seqs, err := g.letGo(ctx, q, after, sliceRows)
		if err != nil {
			return err
		}
		if len(seqs) == 0 {
			break
		}
		for _, seq := range seqs {
			gone[seq] = true
		}
		after = seqs[len(seqs)-1]
	}
	g.r.Checkpoints = len(gone)
	m, err := mark(ctx, q, gone)
	if err != nil {
		return err
	}
	for _, c := range m.data {
		if !m.has(c.id, isNeeded) {
			g.r.Contents++
			g.r.Bytes += c.bytes
		}
	}
	return nil
}
