package checkpoint

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"moltisfs/checkpoint/blob"
)

// sealRows are the data keys of the catalog.
type sealRows struct{ d *DB }

func (s sealRows) Newest(ctx context.Context) (id int64, err error) {
	err = s.d.r.QueryRowContext(ctx, "SELECT ifnull(max(id),0) FROM seal").Scan(&id)
	return id, err
}

func (s sealRows) Wrapped(ctx context.Context, id int64) (wrapped []byte, err error) {
	err = s.d.r.QueryRowContext(ctx, "SELECT wrapped FROM seal WHERE id=?", id).Scan(&wrapped)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return wrapped, err
}

func (s sealRows) Add(ctx context.Context, wrapped []byte) (id int64, err error) {
	err = s.d.com.do(ctx, func(ctx context.Context, c *committer) error {
		id, err = c.insert(ctx, "INSERT INTO seal(wrapped) VALUES(?)", wrapped)
		return err
	})
	return id, err
}

// newest returns the newest stored content of path for use as a base: from memory, else from the
// store. nil when there is none or it would not pay.
func (d *DB) newest(ctx context.Context, path string, size int) (*blob.Version, error) {
	if v := d.mem.Find(path); v != nil {
		return v, nil
	}
	if size > blob.MaxDelta {
		return nil, nil
	}
	v := &blob.Version{Path: path}
	var h []byte
	var have int64
	// The newest change of the path; of its two states the later one that has content.
	err := d.r.QueryRowContext(ctx, `SELECT o.hash, o.size, a.depth, ifnull(a.key,0) FROM
		(SELECT bobj, aobj FROM change WHERE path=(SELECT id FROM path WHERE path=?)
			ORDER BY op DESC LIMIT 1) c
		JOIN data a ON a.id IN (c.aobj, c.bobj) JOIN object o ON o.id=a.id
		ORDER BY a.id=c.aobj DESC LIMIT 1`,
		[]byte(path)).Scan(&h, &have, &v.Depth, &v.Key)
	if errors.Is(err, sql.ErrNoRows) || (err == nil && have > blob.MaxDelta) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	copy(v.Hash[:], h)
	v.Content, err = d.content(ctx, v.Hash)
	if err != nil {
		// Damaged, sealed or just cleaned away: then it is no base. Restores report it; a save must not
		// fail for it.
		return nil, nil
	}
	return v, nil
}

// rowOf finds the row of a content; the zero row when its bytes are not stored.
func rowOf(ctx context.Context, q querier, h blob.Hash) (r row, err error) {
	const find = `SELECT d.id, d.depth, ifnull(d.key,0)
		FROM object o JOIN data d ON d.id=o.id WHERE o.hash=?`
	err = q.QueryRowContext(ctx, find, h[:]).Scan(&r.id, &r.depth, &r.key)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return r, err
}

// chainQuery reads a content and what it is a delta against in one statement, hence from one
// snapshot.
const chainQuery = `WITH RECURSIVE c(id, codec, base, key, bytes, z, size, hash, n) AS (
	SELECT d.id, d.codec, d.base, d.key, d.bytes, d.z, o.size, o.hash, 0
	FROM object o JOIN data d ON d.id=o.id WHERE o.hash=?
	UNION ALL
	SELECT d.id, d.codec, d.base, d.key, d.bytes, d.z, o.size, o.hash, n+1
	FROM c JOIN data d ON d.id=c.base JOIN object o ON o.id=d.id WHERE n < 64)
	SELECT codec, base IS NOT NULL, ifnull(key, 0), bytes, z, size, hash FROM c ORDER BY n`

const linkColumns = "d.codec, d.base IS NOT NULL, ifnull(d.key, 0), d.bytes, d.z, o.size, o.hash"

// link is one row of a chain.
type link struct {
	blob.Row
	based bool // on the next one
}

// scan reads linkColumns.
func (l *link) scan(row scanner) error {
	var h []byte
	err := row.Scan(&l.Codec, &l.based, &l.Key, &l.Bytes, &l.Z, &l.Size, &h)
	if len(h) == len(l.Hash) {
		l.Hash = blob.Hash(h)
	}
	return err
}

func (d *DB) content(ctx context.Context, h blob.Hash) ([]byte, error) {
	var chain []link
	err := each(ctx, d.r, chainQuery, []any{h[:]}, func(row scanner) error {
		var l link
		err := l.scan(row)
		chain = append(chain, l)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading content: %w", err)
	}
	if len(chain) == 0 {
		return nil, ErrNoContent
	}
	if chain[len(chain)-1].based {
		return nil, &CorruptError{h.String(), "the base of its delta is missing"}
	}
	var out []byte
	for i := len(chain) - 1; i >= 0; i-- {
		out, err = d.pack.Unpack(ctx, &chain[i].Row, out)
		if errors.Is(err, ErrSealed) || errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil {
			return nil, &CorruptError{h.String(), err.Error()}
		}
	}
	if sha256.Sum256(out) != h {
		return nil, &CorruptError{h.String(), "the hash is another one"}
	}
	return out, nil
}

// blobsOf are the files of large contents of the store in dir.
func blobsOf(dir string) *blob.Files { return &blob.Files{Dir: filepath.Join(dir, blobsName)} }

// loose are the files of contents in dir that no row names.
func loose(ctx context.Context, q querier, dir string) (names []string, err error) {
	named := map[string]bool{}
	const all = "SELECT z FROM data INDEXED BY data_ext WHERE codec & 4"
	err = each(ctx, q, all, nil, func(row scanner) error {
		var z []byte
		err := row.Scan(&z)
		named[string(z)] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	err = blobsOf(dir).Walk(func(name string, _ fs.DirEntry) error {
		if !named[name] && blob.IsName(name) {
			names = append(names, name)
		}
		return ctx.Err()
	})
	return names, err
}

// removeNamed removes files that rows named until now.
func (d *DB) removeNamed(names []string) error {
	if len(names) == 0 {
		return nil
	}
	if err := d.inPlace(); err != nil { // of another store by now
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, d.pack.Remove(name))
	}
	return errors.Join(errs...)
}
