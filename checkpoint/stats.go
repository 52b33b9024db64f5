package checkpoint

import (
	"context"
	"fmt"
	"time"
)

// Stats describes the store.
type Stats struct {
	Checkpoints  int       `json:"checkpoints"`
	Changes      int       `json:"changes"`
	Paths        int       `json:"paths"`
	Sessions     int       `json:"sessions"`
	Pinned       int       `json:"pinned"`
	Trashed      int       `json:"trashed"`
	Contents     int       `json:"contents"`
	Deltas       int       `json:"deltas"`
	External     int       `json:"external"`
	DeepestChain int       `json:"deepest_chain"`
	ContentBytes int64     `json:"content_bytes"` // of the stored contents, as they were
	StoredBytes  int64     `json:"stored_bytes"`  // as they are stored
	UsedBytes    int64     `json:"used_bytes"`    // of MaxBytes: catalog, indexes, contents and the log
	LogBytes     int64     `json:"log_bytes"`     // the log alone, as long as it is now
	MaxBytes     int64     `json:"max_bytes"`     // the widest in use: see Limits
	ParkedBytes  int64     `json:"parked_bytes"`  // what the trash holds beside the store, on whatever volume
	FreeBytes    int64     `json:"free_bytes"`    // in the file, for coming saves
	Oldest       time.Time `json:"oldest"`
	Newest       time.Time `json:"newest"`
	SQLite       string    `json:"sqlite"`
}

// Stats counts.
func (d *DB) Stats(ctx context.Context) (Stats, error) {
	s := Stats{MaxBytes: d.keep.limits.Load().MaxBytes}
	err := d.view(ctx, func(h *history) (err error) {
		var oldest, newest, free, page int64
		err = h.q.QueryRowContext(ctx, `SELECT
			(SELECT count(*) FROM op), (SELECT count(*) FROM change), (SELECT count(*) FROM path),
			(SELECT count(*) FROM session), (SELECT count(*) FROM op WHERE pin),
			(SELECT count(*) FROM trash WHERE phase IN (0,1)),
			(SELECT ifnull(sum(size),0) FROM trash WHERE phase < 3 AND parked <> x''),
			(SELECT ifnull(min(ts),0) FROM op), (SELECT ifnull(max(ts),0) FROM op),
			(SELECT freelist_count FROM pragma_freelist_count),
			(SELECT page_size FROM pragma_page_size), sqlite_version()`).
			Scan(&s.Checkpoints, &s.Changes, &s.Paths, &s.Sessions, &s.Pinned,
				&s.Trashed, &s.ParkedBytes, &oldest, &newest, &free, &page, &s.SQLite)
		if err != nil {
			return err
		}
		if s.Checkpoints > 0 {
			s.Oldest, s.Newest = time.Unix(0, oldest), time.Unix(0, newest)
		}
		s.FreeBytes = free * page
		err = h.q.QueryRowContext(ctx, `SELECT count(*), ifnull(sum(d.base IS NOT NULL),0),
			ifnull(sum(d.codec & 4 <> 0),0), ifnull(max(d.depth),0), ifnull(sum(o.size),0),
			ifnull(sum(d.bytes),0) FROM data d JOIN object o ON o.id=d.id`).
			Scan(&s.Contents, &s.Deltas, &s.External, &s.DeepestChain,
				&s.ContentBytes, &s.StoredBytes)
		if err != nil {
			return err
		}
		held, err := d.held(ctx, h.q)
		if err == nil {
			s.LogBytes, err = d.logBytes()
			s.UsedBytes = held.used() + s.LogBytes
		}
		return err
	})
	if err != nil {
		return Stats{}, fmt.Errorf("counting the store: %w", err)
	}
	return s, nil
}
