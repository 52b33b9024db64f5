package checkpoint

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"

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
}

// Problem is one thing that is wrong with the store.
type Problem struct {
	What  string   `json:"what"`             // "catalog", "content", "checkpoint"
	Hash  string   `json:"sha256,omitempty"` // of a content
	Paths []string `json:"paths,omitempty"`
	Why   string   `json:"why"`
}

// Check looks whether the store is sound: the pages of the file, the references of the catalog and,
// with readData, every content against its hash. It changes nothing, works on one snapshot, and
// does not hold up saves. An error means that the check could not be made; what is wrong is in the
// report.
func (d *DB) Check(ctx context.Context, readData bool) (*Report, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.active.Done()
	c := &checker{d: d}
	err := d.readers.snapshot(ctx, func(q querier) error {
		c.q = q
		return c.run(ctx, readData)
	})
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
	d      *DB
	q      querier
	r      Report
	walked int
}

func (c *checker) problem(p Problem) {
	if len(c.r.Problems) < maxProblems {
		c.r.Problems = append(c.r.Problems, p)
	}
}

func (c *checker) run(ctx context.Context, readData bool) error {
	looks := []func(context.Context) error{c.pages, c.references, c.files, c.lost}
	if readData {
		looks = append(looks, c.data)
	}
	for _, look := range append(looks, c.name) {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// references counts what there is, and what points nowhere.
func (c *checker) references(ctx context.Context) error {
	const count = `SELECT (SELECT count(*) FROM op), (SELECT count(*) FROM change),
		(SELECT count(*) FROM data)`
	err := c.q.QueryRowContext(ctx, count).Scan(&c.r.Checkpoints, &c.r.Changes, &c.r.Contents)
	if err != nil {
		return err
	}
	for _, q := range []struct{ why, rows string }{
		{"changes without their checkpoint",
			"change WHERE NOT EXISTS (SELECT 1 FROM op WHERE seq=change.op)"},
		{"changes without their path",
			"change WHERE NOT EXISTS (SELECT 1 FROM path WHERE id=change.path)"},
		{"changes without their old content's hash", `change WHERE bobj IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM object WHERE id=change.bobj)`},
		{"changes without their new content's hash", `change WHERE aobj IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM object WHERE id=change.aobj)`},
		{"open operations without their checkpoint",
			"open_op WHERE op NOT IN (SELECT seq FROM op)"},
		{"checkpoints without their session",
			"op WHERE NOT EXISTS (SELECT 1 FROM session WHERE id=op.session)"},
		{"contents without their hash",
			"data WHERE NOT EXISTS (SELECT 1 FROM object WHERE id=data.id)"},
		{"deltas without their base", `data WHERE base IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM data b WHERE b.id=data.base)`},
		{"deltas that are not above their base",
			"data JOIN data b ON b.id=data.base WHERE data.depth<=b.depth"},
		{"encrypted contents without their key",
			"data WHERE codec & 8 AND NOT EXISTS (SELECT 1 FROM seal WHERE id=data.key)"},
	} {
		var n int
		if err := c.q.QueryRowContext(ctx, "SELECT count(*) FROM "+q.rows).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			c.problem(Problem{What: "catalog", Why: fmt.Sprintf("%d %s", n, q.why)})
		}
	}
	return nil
}

// pages lets SQLite check the file.
func (c *checker) pages(ctx context.Context) error {
	found, err := column[string](ctx, c.q, "PRAGMA quick_check(20)")
	for _, why := range found {
		if why != "ok" {
			c.problem(Problem{What: "catalog", Why: why})
		}
	}
	return err
}

// lost looks for pre-states of files whose content is neither stored nor accounted for.
func (c *checker) lost(ctx context.Context) error {
	const find = `SELECT change.op, path.path FROM change JOIN path ON path.id=change.path
		WHERE bkind=1 AND bobj IS NOT NULL AND skipped IS NULL
			AND NOT EXISTS (SELECT 1 FROM data WHERE id=change.bobj) LIMIT 100`
	return each(ctx, c.q, find, nil, func(row scanner) error {
		var seq int64
		var p []byte
		err := row.Scan(&seq, &p)
		if err == nil {
			why := "the content before " + string(idOf(seq)) + " is gone"
			c.problem(Problem{What: "checkpoint", Paths: []string{string(p)}, Why: why})
		}
		return err
	})
}

// files looks whether external files are there and have their size.
func (c *checker) files(ctx context.Context) error {
	const all = `SELECT o.hash, d.bytes, d.z FROM data d INDEXED BY data_ext
		JOIN object o ON o.id=d.id WHERE d.codec & 4`
	return each(ctx, c.q, all, nil, func(row scanner) error {
		var h, z []byte
		var n int64
		if err := row.Scan(&h, &n, &z); err != nil {
			return err
		}
		why := ""
		if !blob.IsName(string(z)) {
			why = blob.ErrName.Error()
		} else if fi, err := os.Lstat(c.d.pack.Path(string(z))); err != nil {
			why = "its file is gone"
		} else if !fi.Mode().IsRegular() || fi.Size() != n {
			why = fmt.Sprintf("its file has %d bytes where %d belong", fi.Size(), n)
		}
		if why != "" {
			c.problem(Problem{What: "content", Hash: fmt.Sprintf("%x", h), Why: why})
		}
		return nil
	})
}

// name adds to the problems the paths that have the content.
func (c *checker) name(ctx context.Context) error {
	const paths = `SELECT DISTINCT path.path FROM change JOIN path ON path.id=change.path
		WHERE bobj=(SELECT id FROM object WHERE hash=?1)
			OR aobj=(SELECT id FROM object WHERE hash=?1) LIMIT 10`
	for i := range c.r.Problems {
		p := &c.r.Problems[i]
		h, err := blob.ParseHash(p.Hash)
		if err != nil {
			continue // it is none of a content
		}
		if p.Paths, err = column[string](ctx, c.q, paths, h[:]); err != nil {
			return err
		}
	}
	return nil
}

// data decodes every content once, each from its base that was decoded just before. Those that hang
// in the air are not reached; the catalog's check has said so.
func (c *checker) data(ctx context.Context) error {
	roots, err := column[int64](ctx, c.q, "SELECT id FROM data WHERE base IS NULL")
	for _, id := range roots {
		if err == nil {
			err = c.walk(ctx, id, nil, nil)
		}
	}
	return err
}

var errBase = errors.New("what it is based on is damaged")

// walk decodes the content id, and all that stands on it; broken is why base could not be.
func (c *checker) walk(ctx context.Context, id int64, base []byte, broken error) error {
	var r link
	const one = "SELECT " + linkColumns + " FROM data d JOIN object o USING(id) WHERE id=?"
	err := r.scan(c.q.QueryRowContext(ctx, one, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil // without its hash; likewise
	}
	if err != nil {
		return err
	}
	c.walked++
	c.d.progress("reading contents", c.walked, c.r.Contents)
	var body []byte
	if broken == nil {
		body, broken = c.d.pack.Unpack(ctx, &r.Row, base)
		if broken == nil && sha256.Sum256(body) != r.Hash {
			broken = errors.New("the hash is another one")
		}
	}
	switch {
	case errors.Is(broken, os.ErrNotExist):
		return nil // reported by files, or moved by gc since the snapshot
	case errors.Is(broken, ErrSealed):
		c.r.Sealed++
	case broken != nil:
		c.problem(Problem{What: "content", Hash: r.Hash.String(), Why: broken.Error()})
		broken = errBase
	default:
		c.r.Read++
		c.r.Bytes += int64(len(body))
	}
	r.Z = nil // not held while the others are read
	next, err := column[int64](ctx, c.q, "SELECT id FROM data WHERE base=? AND id<>base", id)
	for _, k := range next {
		if err == nil {
			err = c.walk(ctx, k, body, broken)
		}
	}
	return err
}
