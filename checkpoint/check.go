package checkpoint

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Report is what Check found.
type Report struct {
	Checkpoints, Changes, Contents int
	Read                           int   // contents that were decoded and compared with their hash
	Bytes                          int64 // of those
	Sealed                         int   // contents that could not be read because they are encrypted to a key not at hand
	Problems                       []Problem
	// Unfinished are operations that a crash left half-way and nobody has taken back yet, the newest first. The host does that, and may have to leave it. They are no
	// problem of the store.
	Unfinished []ID
}

// Problem is one thing that is wrong with the store.
type Problem struct {
	What  string // "catalog", "content", "checkpoint"
	Hash  string // of a content
	Paths []string
	Why   string
}

// Check looks whether the store is sound: the pages of the file, the references of the catalog and, with readData, every
// content against its hash. It changes nothing, works on one snapshot, and does not hold up saves.
// An error means that the check could not be made; what is wrong is in the report.
func (d *DB) Check(ctx context.Context, readData bool) (*Report, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.active.Done()
	tx, err := d.r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("checking the store: %w", err)
	}
	defer tx.Rollback()
	c := &checker{d: d, tx: tx}
	if err := c.run(ctx, readData); err != nil {
		return nil, fmt.Errorf("checking the store: %w", err)
	}
	c.r.Unfinished, err = Unfinished(d.dir)
	return &c.r, err
}

const maxProblems = 1000

type checker struct {
	d      *DB
	tx     *sql.Tx
	r      Report
	walked int
}

func (c *checker) problem(p Problem) {
	if len(c.r.Problems) < maxProblems {
		c.r.Problems = append(c.r.Problems, p)
	}
}

func (c *checker) run(ctx context.Context, readData bool) error {
	if err := c.pages(ctx); err != nil {
		return err
	}
	err := c.tx.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM op), (SELECT count(*) FROM change), (SELECT count(*) FROM data)").
		Scan(&c.r.Checkpoints, &c.r.Changes, &c.r.Contents)
	if err != nil {
		return err
	}
	// Each query counts rows that point nowhere.
	for _, q := range []struct{ why, sql string }{
		{"changes without their checkpoint", "SELECT count(*) FROM change WHERE NOT EXISTS (SELECT 1 FROM op WHERE seq=change.op)"},
		{"changes without their path", "SELECT count(*) FROM change WHERE NOT EXISTS (SELECT 1 FROM path WHERE id=change.path)"},
		{"changes without their old content's hash", "SELECT count(*) FROM change WHERE bobj IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object WHERE id=change.bobj)"},
		{"changes without their new content's hash", "SELECT count(*) FROM change WHERE aobj IS NOT NULL AND NOT EXISTS (SELECT 1 FROM object WHERE id=change.aobj)"},
		{"open operations without their checkpoint", "SELECT count(*) FROM open_op WHERE op NOT IN (SELECT seq FROM op)"},
		{"checkpoints without their session", "SELECT count(*) FROM op WHERE NOT EXISTS (SELECT 1 FROM session WHERE id=op.session)"},
		{"contents without their hash", "SELECT count(*) FROM data WHERE NOT EXISTS (SELECT 1 FROM object WHERE id=data.id)"},
		{"deltas without their base", "SELECT count(*) FROM data WHERE base IS NOT NULL AND NOT EXISTS (SELECT 1 FROM data b WHERE b.id=data.base)"},
		{"deltas that are not above their base", "SELECT count(*) FROM data JOIN data b ON b.id=data.base WHERE data.depth<=b.depth"},
		{"encrypted contents without their key", "SELECT count(*) FROM data WHERE codec & 8 AND NOT EXISTS (SELECT 1 FROM seal WHERE id=data.key)"},
	} {
		var n int
		if err := c.tx.QueryRowContext(ctx, q.sql).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			c.problem(Problem{What: "catalog", Why: fmt.Sprintf("%d %s", n, q.why)})
		}
	}
	if err := c.files(ctx); err != nil {
		return err
	}
	if err := c.lost(ctx); err != nil {
		return err
	}
	if readData {
		if err := c.data(ctx); err != nil {
			return err
		}
	}
	for i := range c.r.Problems {
		if p := &c.r.Problems[i]; p.Hash != "" {
			if err := c.name(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// pages lets SQLite check the file.
func (c *checker) pages(ctx context.Context) error {
	rows, err := c.tx.QueryContext(ctx, "PRAGMA quick_check(20)")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return err
		}
		if s != "ok" {
			c.problem(Problem{What: "catalog", Why: s})
		}
	}
	return rows.Err()
}

// lost looks for pre-states of files whose content is neither stored nor accounted for.
func (c *checker) lost(ctx context.Context) error {
	rows, err := c.tx.QueryContext(ctx, `SELECT change.op, path.path FROM change JOIN path ON path.id=change.path
		WHERE bkind=1 AND bobj IS NOT NULL AND skipped IS NULL AND NOT EXISTS (SELECT 1 FROM data WHERE id=change.bobj) LIMIT 100`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var p []byte
		if err := rows.Scan(&seq, &p); err != nil {
			return err
		}
		c.problem(Problem{What: "checkpoint", Paths: []string{string(p)}, Why: "the content before " + string(idOf(seq)) + " is gone"})
	}
	return rows.Err()
}

// files looks whether external files are there and have their size.
func (c *checker) files(ctx context.Context) error {
	rows, err := c.tx.QueryContext(ctx, "SELECT o.hash, d.bytes, d.z FROM data d INDEXED BY data_ext JOIN object o ON o.id=d.id WHERE d.codec & 4")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var h, z []byte
		var n int64
		if err := rows.Scan(&h, &n, &z); err != nil {
			return err
		}
		why := ""
		if !checkExtName(string(z)) {
			why = errExtName.Error()
		} else if fi, err := os.Lstat(c.d.extPath(string(z))); err != nil {
			why = "its file is gone"
		} else if !fi.Mode().IsRegular() || fi.Size() != n {
			why = fmt.Sprintf("its file has %d bytes where %d belong", fi.Size(), n)
		}
		if why != "" {
			c.problem(Problem{What: "content", Hash: fmt.Sprintf("%x", h), Why: why})
		}
	}
	return rows.Err()
}

// name adds the paths that have the content.
func (c *checker) name(ctx context.Context, p *Problem) error {
	h, err := parseHash(p.Hash)
	if err != nil {
		return nil
	}
	rows, err := c.tx.QueryContext(ctx, `SELECT DISTINCT path.path FROM change JOIN path ON path.id=change.path
		WHERE bobj=(SELECT id FROM object WHERE hash=?1) OR aobj=(SELECT id FROM object WHERE hash=?1) LIMIT 10`, h[:])
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return err
		}
		p.Paths = append(p.Paths, string(b))
	}
	return rows.Err()
}

// node is a content in the forest of deltas.
type node struct {
	link
	id       int64
	children []*node
}

// data decodes every content once, each from its base that was decoded just before.
func (c *checker) data(ctx context.Context) error {
	rows, err := c.tx.QueryContext(ctx, "SELECT d.id, d.codec, d.base, d.key, d.bytes, o.size, o.hash FROM data d JOIN object o ON o.id=d.id")
	if err != nil {
		return err
	}
	defer rows.Close()
	nodes := map[int64]*node{}
	for rows.Next() {
		n := &node{}
		if err := rows.Scan(&n.id, &n.codec, &n.base, &n.key, &n.bytes, &n.size, &n.h); err != nil {
			return err
		}
		nodes[n.id] = n
	}
	if err := rows.Err(); err != nil {
		return err
	}
	var roots []*node
	for _, n := range nodes {
		if b := nodes[n.base.Int64]; n.base.Valid && b != nil && b != n {
			b.children = append(b.children, n)
		} else if !n.base.Valid {
			roots = append(roots, n) // others hang in the air, which the catalog's check has said
		}
	}
	st, err := c.tx.PrepareContext(ctx, "SELECT z FROM data WHERE id=?")
	if err != nil {
		return err
	}
	defer st.Close()
	for _, n := range roots {
		if err := c.walk(ctx, st, n, nil); err != nil {
			return err
		}
	}
	return nil
}

// walk decodes n and all that stands on it.
func (c *checker) walk(ctx context.Context, st *sql.Stmt, n *node, base []byte) error {
	if err := st.QueryRowContext(ctx, n.id).Scan(&n.z); err != nil {
		return err
	}
	c.walked++
	c.d.progress("reading contents", c.walked, c.r.Contents)
	body, err := c.d.decode(ctx, &n.link, base)
	n.z = nil
	var h hash
	copy(h[:], n.h)
	switch {
	case errors.Is(err, ErrSealed):
		c.r.Sealed += n.chain()
		return nil
	case errors.Is(err, os.ErrNotExist):
		return nil // reported by files, or moved by gc since the snapshot
	case err == nil && sha256.Sum256(body) != h:
		err = errors.New("the hash is another one")
	}
	if err != nil {
		c.problem(Problem{What: "content", Hash: h.String(), Why: err.Error()})
		c.hanging(n)
		return nil
	}
	c.r.Read++
	c.r.Bytes += int64(len(body))
	for _, k := range n.children {
		if err := c.walk(ctx, st, k, body); err != nil {
			return err
		}
	}
	return nil
}

// chain counts n and all that stands on it.
func (n *node) chain() int {
	sum := 1
	for _, k := range n.children {
		sum += k.chain()
	}
	return sum
}

// hanging reports everything that is based on n.
func (c *checker) hanging(n *node) {
	for _, k := range n.children {
		c.problem(Problem{What: "content", Hash: fmt.Sprintf("%x", k.h), Why: "what it is based on is damaged"})
		c.hanging(k)
	}
}
