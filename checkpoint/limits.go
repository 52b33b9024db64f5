package checkpoint

import (
	"context"
	"time"
)

// Limits are the bounds of a store.
type Limits struct {
	KeepWithin time.Duration // what is younger is kept; 0: nothing for its age
	KeepLast   int           // so many of each path are kept; 0: none for their number
	MaxBytes   int64
}

// Several configurations may share a store: two projects on one data directory, or a person who
// looks at it without naming the file that the server uses. One of them asked for a month, another
// for a day: what the first was promised must not go. So whoever saves notes the limits that it
// saves under, and what cleans by itself keeps to the widest of those in use.

// limitsInUse is how long limits count after the last save under them. They count as long as their
// KeepWithin if that is longer: that save was promised to be kept for so long.
const limitsInUse = 30 * 24 * time.Hour

func (o *Options) limits() Limits { return Limits{o.KeepWithin, o.KeepLast, o.MaxBytes} }

// isLapsed is of a row of limits that does not count any more at ?1, limitsInUse being ?2.
const isLapsed = "?1 - used > max(?2, keep_within)"

// shared are the limits that cleaning by itself keeps to.
func (d *DB) shared(ctx context.Context, q querier) (l Limits, err error) {
	err = q.QueryRowContext(ctx, `SELECT max(?3, ifnull(max(keep_within), 0)),
		max(?4, ifnull(max(keep_last), 0)), max(?5, ifnull(max(max_bytes), 0))
		FROM limits WHERE NOT (`+isLapsed+`)`,
		d.o.Now().UnixNano(), limitsInUse, d.o.KeepWithin, d.o.KeepLast, d.o.MaxBytes).
		Scan(&l.KeepWithin, &l.KeepLast, &l.MaxBytes)
	return l, err
}

// noteLimits notes what this process saves under, once in a while.
func (c *committer) noteLimits(ctx context.Context) error {
	const noted = "limits"
	o, now := &c.db.o, c.db.o.Now().UnixNano()
	if at := c.rows[noted].id; at != 0 && now >= at && now-at < int64(time.Hour) {
		return nil
	}
	err := c.exec(ctx, "INSERT INTO limits VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET used=?4",
		o.KeepWithin, o.KeepLast, o.MaxBytes, now)
	if err == nil {
		c.know(noted, row{id: now})
	}
	return err
}

// dropLimits forgets the limits that do not count any more, or all but our own.
func (c *committer) dropLimits(ctx context.Context, all bool) error {
	o := &c.db.o
	if !all {
		return c.exec(ctx, "DELETE FROM limits WHERE "+isLapsed, o.Now().UnixNano(), limitsInUse)
	}
	if err := c.exec(ctx, "DELETE FROM limits"); err != nil {
		return err
	}
	return c.noteLimits(ctx)
}
