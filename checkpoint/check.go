package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"moltisfs/checkpoint/blob"
)

// Report is the result of Check.
type Report struct {
	Checkpoints int       `json:"checkpoints"`
	Changes     int       `json:"changes"`
	Contents    int       `json:"contents"`
	Read        int       `json:"read"`   // contents that were decoded and compared with their hash
	Bytes       int64     `json:"bytes"`  // of those
	Sealed      int       `json:"sealed"` // contents that could not be read because they are encrypted to a key not at hand
	Problems    []Problem `json:"problems"`
	// Unfinished are operations that a crash left half-way and nobody has taken back yet, the newest
	// first: see Options.Alive. The host does that, and may have to leave it. They are no problem of
	// the store.
	Unfinished []ID `json:"unfinished,omitempty"`
	// Beside are directories in which a damaged store lies that this one took the place of: see Open.
	Beside []string `json:"beside,omitempty"`
}

// Problem is one thing that is wrong with the store.
type Problem struct {
	What  string   `json:"what"`             // "catalog", "content", "checkpoint"
	Hash  string   `json:"sha256,omitempty"` // of a content
	Paths []string `json:"paths,omitempty"`
	Why   string   `json:"why"`
}

// Check looks whether the store is sound: the pages of the file, the references of the catalog, the
// large contents and, with readData, every content against its hash. It works on one snapshot, and does
// not hold up saves. It changes nothing, but if it finds damage in the pages the next Open moves the
// store aside. An error means that the check could not be made; the report has the faults that were found.
func (d *DB) Check(ctx context.Context, readData bool) (*Report, error) {
	c := &checker{d: d}
	err := d.view(ctx, func(h *history) error {
		c.q = h.q
		looks := []func(context.Context) error{c.catalog, c.files, c.lost}
		if readData {
			looks = append(looks, c.data)
		}
		for _, look := range append(looks, c.name) {
			if err := look(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == ErrClosed {
		return nil, err
	}
	if err == nil {
		c.r.Beside, err = d.c.beside()
	}
	if err != nil {
		return nil, fmt.Errorf("checking the store: %w", err)
	}
	open, err := d.Open(ctx)
	for _, o := range open {
		if d.o.Alive != nil && !d.o.Alive(o.Tag) {
			c.r.Unfinished = append(c.r.Unfinished, o.ID)
		}
	}
	return &c.r, err
}

const maxProblems = 1000

type checker struct {
	d *DB
	q querier
	r Report
}

func (c *checker) problem(p Problem) {
	if len(c.r.Problems) < maxProblems {
		c.r.Problems = append(c.r.Problems, p)
	}
}

// catalog counts what there is, and finds what points nowhere.
func (c *checker) catalog(ctx context.Context) error {
	faults, err := c.d.c.check(ctx, c.q)
	if err != nil {
		return err
	}
	for _, why := range faults {
		c.problem(Problem{What: "catalog", Why: why})
	}
	err = c.q.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM op), (SELECT count(*) FROM change),
		(SELECT count(*) FROM content WHERE codec IS NOT NULL)`).Scan(&c.r.Checkpoints, &c.r.Changes, &c.r.Contents)
	if err != nil {
		return err
	}
	for _, q := range []struct{ why, rows string }{
		{"changes without their checkpoint", "change WHERE NOT EXISTS (SELECT 1 FROM op WHERE seq=change.op)"},
		{"changes without their path", "change WHERE NOT EXISTS (SELECT 1 FROM path WHERE id=change.path)"},
		{"changes without their old content's hash", `change WHERE bobj IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM content WHERE id=change.bobj)`},
		{"changes without their new content's hash", `change WHERE aobj IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM content WHERE id=change.aobj)`},
		{"checkpoints without their session", "op WHERE NOT EXISTS (SELECT 1 FROM session WHERE id=op.session)"},
		{"open operations without their checkpoint", "open_op WHERE NOT EXISTS (SELECT 1 FROM op WHERE seq=open_op.op)"},
		{"deltas without their base", `content WHERE base IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM content b WHERE b.id=content.base AND b.codec IS NOT NULL)`},
		{"encrypted contents without their key", `content WHERE key IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM seal WHERE id=content.key)`},
	} {
		n, err := one[int](ctx, c.q, "SELECT count(*) FROM "+q.rows)
		if err != nil {
			return err
		}
		if n > 0 {
			c.problem(Problem{What: "catalog", Why: fmt.Sprintf("%d %s", n, q.why)})
		}
	}
	return nil
}

// lost looks for pre-states of files whose content is neither stored nor accounted for.
func (c *checker) lost(ctx context.Context) error {
	const find = `SELECT op.id, path.path FROM change JOIN path ON path.id=change.path JOIN op ON op.seq=change.op
		JOIN content ON content.id=change.bobj
		WHERE bkind=1 AND skipped IS NULL AND content.codec IS NULL LIMIT 100`
	return each(ctx, c.q, find, nil, func(row scanner) error {
		var id, path string
		err := row.Scan(&id, &path)
		if err == nil {
			c.problem(Problem{What: "checkpoint", Paths: []string{path}, Why: "the content before " + id + " is gone"})
		}
		return err
	})
}

// files looks whether large contents are there and have their size.
func (c *checker) files(ctx context.Context) error {
	sizes := map[string]int64{}
	err := c.d.blobs.List(ctx, func(name string, size int64) error {
		sizes[name] = size
		return nil
	})
	if err != nil {
		return err
	}
	const all = "SELECT hash, bytes, name FROM content WHERE name IS NOT NULL"
	return each(ctx, c.q, all, nil, func(row scanner) error {
		var h []byte
		var n int64
		var name string
		if err := row.Scan(&h, &n, &name); err != nil {
			return err
		}
		switch size, ok := sizes[name]; {
		case !ok:
			// Retention may have taken it since the snapshot: the row first, then the file.
			left, err := one[int](ctx, c.d.r, "SELECT count(*) FROM content WHERE hash=? AND name=?", h, name)
			if err != nil || left == 0 {
				return err
			}
			c.problem(Problem{What: "content", Hash: fmt.Sprintf("%x", h), Why: "its file is gone"})
		case size != n:
			why := fmt.Sprintf("its file has %d bytes where %d belong", size, n)
			if size < 0 {
				why = "its file is no regular file"
			}
			c.problem(Problem{What: "content", Hash: fmt.Sprintf("%x", h), Why: why})
		}
		return nil
	})
}

// name adds to the problems the paths that have the content.
func (c *checker) name(ctx context.Context) error {
	const paths = `SELECT DISTINCT path.path FROM change JOIN path ON path.id=change.path
		WHERE bobj=(SELECT id FROM content WHERE hash=?) OR aobj=(SELECT id FROM content WHERE hash=?) LIMIT 10`
	for i := range c.r.Problems {
		p := &c.r.Problems[i]
		h, err := blob.ParseHash(p.Hash)
		if err != nil {
			continue // it is none of a content
		}
		if p.Paths, err = column[string](ctx, c.q, paths, h[:], h[:]); err != nil {
			return err
		}
	}
	return nil
}

// data decodes every content in the order of saving. A delta's base was decoded a short while before,
// as a rule, and is still here.
func (c *checker) data(ctx context.Context) error {
	const most = 16 << 20 // of contents that are held
	recent := map[int64][]byte{}
	var order []int64
	held, n := 0, 0
	const all = `SELECT codec, coalesce(base, 0), coalesce(key, 0), bytes, coalesce(name, ''), z, size, hash, id
		FROM content WHERE codec IS NOT NULL ORDER BY id`
	return each(ctx, c.q, all, nil, func(row scanner) error {
		var id int64
		var r blob.Row
		base, err := scanContent(row, &r, &id)
		if err != nil {
			return err
		}
		n++
		var body []byte
		if on, ok := recent[base]; ok || base == 0 {
			if body, err = c.d.pack.Unpack(ctx, &r, on); err == nil && sha256.Sum256(body) != r.Hash {
				err = errors.New("the hash is another one")
			}
		} else {
			body, err = c.d.content(ctx, c.d.r, r.Hash)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// reported by files, or moved by gc since the snapshot
		case errors.Is(err, ErrSealed):
			c.r.Sealed++
		case err != nil:
			c.problem(Problem{What: "content", Hash: r.Hash.String(), Why: err.Error()})
		default:
			c.r.Read++
			c.r.Bytes += int64(len(body))
			recent[id], order, held = body, append(order, id), held+len(body)
			for ; held > most; order = order[1:] {
				held -= len(recent[order[0]])
				delete(recent, order[0])
			}
		}
		return ctx.Err()
	})
}

// Stats describes the store.
type Stats struct {
	Checkpoints  int       `json:"checkpoints"`
	Paths        int       `json:"paths"`
	Sessions     int       `json:"sessions"`
	Pinned       int       `json:"pinned"`
	Trashed      int       `json:"trashed"`
	Contents     int       `json:"contents"`
	Deltas       int       `json:"deltas"`
	External     int       `json:"external"`
	ContentBytes int64     `json:"content_bytes"` // of the stored contents, as they were
	StoredBytes  int64     `json:"stored_bytes"`  // as they are stored
	UsedBytes    int64     `json:"used_bytes"`    // of MaxBytes: catalog, indexes and contents
	LogBytes     int64     `json:"log_bytes"`     // of the log beside it, as long as it is now
	MaxBytes     int64     `json:"max_bytes"`
	ParkedBytes  int64     `json:"parked_bytes"` // of the trash, which lies beside the store, on whatever volume
	Oldest       time.Time `json:"oldest"`
	Newest       time.Time `json:"newest"`
}

// Stats counts.
func (d *DB) Stats(ctx context.Context) (Stats, error) {
	s := Stats{MaxBytes: d.o.MaxBytes}
	err := d.view(ctx, func(h *history) (err error) {
		var oldest, newest int64
		err = h.q.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM op), (SELECT count(*) FROM path),
			(SELECT count(*) FROM session), (SELECT count(*) FROM op WHERE pin=1),
			(SELECT count(*) FROM trash),
			(SELECT coalesce(sum(size),0) FROM trash),
			(SELECT coalesce(min(ts),0) FROM op), (SELECT coalesce(max(ts),0) FROM op)`).
			Scan(&s.Checkpoints, &s.Paths, &s.Sessions, &s.Pinned, &s.Trashed, &s.ParkedBytes, &oldest, &newest)
		if err != nil {
			return err
		}
		if s.Checkpoints > 0 {
			s.Oldest, s.Newest = time.Unix(0, oldest), time.Unix(0, newest)
		}
		err = h.q.QueryRowContext(ctx, `SELECT count(*), count(base), count(name), coalesce(sum(size),0),
			coalesce(sum(bytes),0) FROM content WHERE codec IS NOT NULL`).
			Scan(&s.Contents, &s.Deltas, &s.External, &s.ContentBytes, &s.StoredBytes)
		if err == nil {
			s.UsedBytes, s.LogBytes, err = d.c.size(ctx, h.q)
		}
		return err
	})
	if err != nil {
		return Stats{}, fmt.Errorf("counting the store: %w", err)
	}
	return s, nil
}
