package checkpoint

import (
	"context"
	"fmt"
	"time"
)

// Limits are what a store is bounded by.
type Limits struct {
	KeepWithin time.Duration // what is younger is kept; 0: nothing for its age
	KeepLast   int           // so many of each path are kept; 0: none for their number
	MaxBytes   int64
}

// Several configurations may share a store: two projects on one data directory, or a person who looks at it without naming the file
// that the server uses. What one of them asked to be kept must not go because another asked for less. So whoever saves notes the limits
// that it saves under, and what cleans by itself keeps to the widest of those in use.

// limitsInUse is how long limits count after the last save under them; as long as their KeepWithin, if that is longer, because so long
// that save was promised to be kept.
const limitsInUse = 30 * 24 * time.Hour

func (o *Options) limits() Limits { return Limits{o.KeepWithin, o.KeepLast, o.MaxBytes} }

func (l Limits) widen(m Limits) Limits {
	return Limits{max(l.KeepWithin, m.KeepWithin), max(l.KeepLast, m.KeepLast), max(l.MaxBytes, m.MaxBytes)}
}

const limitsKey = "limits %d %d %d" // in meta; the value is when they were last used, in Unix nanoseconds

func (l Limits) key() string { return fmt.Sprintf(limitsKey, l.KeepWithin, l.KeepLast, l.MaxBytes) }

const (
	isLimits    = "k >= 'limits ' AND k < 'limits!'"
	limitsNoted = "SELECT k, v FROM meta WHERE " + isLimits
	noteLimits  = "INSERT INTO meta(k, v) VALUES(?1, ?2) ON CONFLICT(k) DO UPDATE SET v=?2"
)

// noted reads what others noted: the widest of what counts, and the keys of what does not any more.
func (d *DB) noted(ctx context.Context, q querier) (widest Limits, lapsed []string, err error) {
	rows, err := q.QueryContext(ctx, limitsNoted)
	if err != nil {
		return widest, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var k string
		var at int64
		if err := rows.Scan(&k, &at); err != nil {
			return widest, nil, err
		}
		var l Limits
		if _, err := fmt.Sscanf(k, limitsKey, &l.KeepWithin, &l.KeepLast, &l.MaxBytes); err != nil {
			continue // of a newer program, or damaged
		}
		if d.o.Now().Sub(time.Unix(0, at)) > max(limitsInUse, l.KeepWithin) {
			lapsed = append(lapsed, k)
			continue
		}
		widest = widest.widen(l)
	}
	return widest, lapsed, rows.Err()
}

// shared are the limits that cleaning by itself keeps to.
func (d *DB) shared(ctx context.Context, q querier) (Limits, error) {
	l, _, err := d.noted(ctx, q)
	return l.widen(d.o.limits()), err
}

// noteLimits notes what this process saves under, once in a while.
func (c *committer) noteLimits(ctx context.Context) error {
	now := c.db.o.Now()
	if age := now.Sub(c.noted); age >= 0 && age < time.Hour {
		return nil
	}
	l := c.db.o.limits()
	if err := c.exec(ctx, noteLimits, l.key(), now.UnixNano()); err != nil {
		return err
	}
	c.noted = now
	return nil
}

// dropLimits forgets the limits that do not count any more, or all but our own.
func (c *committer) dropLimits(ctx context.Context, all bool) error {
	if all {
		others, err := c.ids(ctx, "DELETE FROM meta WHERE k >= 'limits ' AND k < 'limits!' AND k <> ? RETURNING 1", c.db.o.limits().key())
		if err != nil {
			return err
		}
		if len(others) > 0 { // they have noted them within the hour, perhaps, and do it again in a new generation only
			if err := c.bump(ctx); err != nil {
				return err
			}
		}
		c.noted = time.Time{}
		return c.noteLimits(ctx)
	}
	_, lapsed, err := c.db.noted(ctx, c)
	for _, k := range lapsed {
		if err == nil {
			err = c.exec(ctx, "DELETE FROM meta WHERE k=?", k)
		}
	}
	return err
}
