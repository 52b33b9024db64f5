package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/catalog"
	"moltisfs/checkpoint/localdir"
	"moltisfs/internal/guardfs/flock"
)

// Repaired is the result of Repair.
type Repaired struct {
	Kept string `json:"kept,omitempty"` // where the store's files are as they were; "" when nothing had to be done
	// The contents of the store now.
	Checkpoints int       `json:"checkpoints"`
	Changes     int       `json:"changes"`
	Contents    int       `json:"contents"`
	Lost        []Problem `json:"lost"` // contents with their paths, checkpoints, damage of the catalog
}

// Repair makes a sound store of what can still be read of the one in dir. It does nothing to a
// store that Check finds sound, every content included. Otherwise it first copies the database
// beside (Repaired.Kept; only a person removes that). If the catalog is damaged it is written anew
// row by row, with the same ids and fresh indexes, and put in place by one rename. Contents that
// are not what their hash says are taken out, their files moved beside, and the changes that lose
// one say SkipDamaged.
//
// Nobody else may have the store open: ErrInUse says that somebody does. It takes up to three times
// the space of the database meanwhile.
func Repair(ctx context.Context, dir string, o Options) (*Repaired, error) {
	r, err := repair(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("repairing the checkpoint store: %w", err)
	}
	return r, nil
}

func repair(ctx context.Context, dir string, o Options) (*Repaired, error) {
	if _, err := os.Lstat(filepath.Join(dir, fileName)); err != nil {
		if was, err2 := wasStore(dir); err2 != nil || !was {
			return nil, err
		}
	}
	lock, err := holdOpen(dir, true)
	if errors.Is(err, syscall.EROFS) {
		err = ErrReadOnly
	}
	if err != nil {
		return nil, err
	}
	defer flock.Close(lock)
	o.repairing = true
	out := &Repaired{}
	if out.Kept, err = os.MkdirTemp(dir, "damaged-"); err != nil {
		return nil, err
	}
	// Before anything opens it: that alone may change it.
	if err := copyDatabase(dir, out.Kept); err != nil {
		os.RemoveAll(out.Kept)
		return nil, err
	}
	report, err := inspect(ctx, dir, o)
	if err == nil && len(report.Problems) == 0 {
		out.count(report)
		kept := out.Kept
		out.Kept = ""
		return out, os.RemoveAll(kept)
	}
	if errors.As(err, new(*VersionError)) || errors.As(err, new(*NetworkError)) ||
		errors.Is(err, fs.ErrPermission) || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err(), os.RemoveAll(out.Kept))
	}
	sound := err == nil && report != nil // the catalog
	if report != nil {
		for _, p := range report.Problems {
			sound = sound && p.What != "catalog"
		}
	}
	if !sound {
		if err := out.rewrite(ctx, dir); err != nil {
			return nil, err
		}
	}
	d, err := Open(dir, o)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := out.dropDamaged(ctx, d); err != nil {
		return nil, err
	}
	if report, err = d.Check(ctx, true); err == nil && len(report.Problems) > 0 {
		err = fmt.Errorf("the store is not sound yet: %s", report.Problems[0].Why)
	}
	if err != nil {
		return nil, err
	}
	out.count(report)
	return out, nil
}

func (r *Repaired) count(c *Report) {
	r.Checkpoints, r.Changes, r.Contents = c.Checkpoints, c.Changes, c.Contents
}

func (r *Repaired) lose(p Problem) {
	if len(r.Lost) < maxProblems {
		r.Lost = append(r.Lost, p)
	}
}

func inspect(ctx context.Context, dir string, o Options) (*Report, error) {
	d, err := Open(dir, o)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Check(ctx, true)
}

func copyDatabase(from, to string) error {
	for _, side := range []string{"", "-wal"} {
		err := func() error {
			r, err := os.Open(filepath.Join(from, fileName+side))
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			defer r.Close()
			name := filepath.Join(to, fileName+side)
			w, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			_, err = io.Copy(w, r)
			return errors.Join(err, w.Sync(), w.Close())
		}()
		if err != nil {
			return err
		}
	}
	return errors.Join(localdir.Sync(to), localdir.Sync(from))
}

// dropDamaged takes out contents that cannot be read, and in the next round what is based on them.
func (r *Repaired) dropDamaged(ctx context.Context, d *DB) error {
	for dropped := 1; dropped > 0; { // a report names a thousand contents at most
		report, err := d.Check(ctx, true)
		if err != nil {
			return err
		}
		bad := map[string]bool{}
		for _, p := range report.Problems {
			if p.What != "catalog" {
				r.lose(p)
			}
			bad[p.Hash] = p.What == "content"
		}
		var loose []string
		var files []string
		err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
			var ids []int64
			loose = nil
			const all = `SELECT id, lower(hex(hash)), base IS NOT NULL AND base NOT IN (SELECT id FROM data)
				FROM data JOIN object USING(id)`
			err := each(ctx, c, all, nil, func(row scanner) error {
				var id int64
				var hx string
				var hangs bool
				err := row.Scan(&id, &hx, &hangs)
				if hangs && !bad[hx] {
					loose = append(loose, hx)
				}
				if hangs || bad[hx] {
					ids = append(ids, id)
				}
				return err
			})
			if err != nil {
				return err
			}
			if dropped, files, err = c.dropData(ctx, listOf(ids)); err != nil {
				return err
			}
			for _, q := range []string{
				`UPDATE change SET askipped=?2 WHERE askipped IS NULL
					AND aobj IN (SELECT value FROM json_each(?1))`,
				`UPDATE change SET skipped=?2 WHERE skipped IS NULL AND bkind=1
					AND bobj IS NOT NULL AND bobj NOT IN (SELECT id FROM data)`,
			} {
				if err := c.exec(ctx, q, listOf(ids), SkipDamaged); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, hx := range loose {
			r.lose(Problem{What: "content", Hash: hx, Why: "what it is based on is gone"})
		}
		for _, f := range files {
			if err := r.moveAside(d, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Repaired) moveAside(d *DB, name string) error {
	if !blob.IsName(name) {
		return nil
	}
	to := blobsOf(r.Kept).Path(name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := os.Rename(d.pack.Path(name), to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// rewrite replaces the database in dir by a new one that holds what could be read.
func (r *Repaired) rewrite(ctx context.Context, dir string) error {
	fresh, err := os.MkdirTemp(dir, "repair-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	// From a copy: SQLite writes to what it opens, and what is kept beside stays as it was.
	old := filepath.Join(fresh, "old")
	if err := os.Mkdir(old, 0o700); err != nil {
		return err
	}
	if err := copyDatabase(r.Kept, old); err != nil {
		return err
	}
	from, into := filepath.Join(old, fileName), filepath.Join(fresh, fileName)
	to, err := catalog.Salvage(ctx, from, into, func(why string) {
		r.lose(Problem{What: "catalog", Why: why})
	})
	if e, ok := errors.AsType[*catalog.FormatError](err); ok {
		return &VersionError{"the format of the damaged store",
			strconv.Itoa(e.Format), strconv.Itoa(catalog.Format)}
	}
	if err != nil {
		return err
	}
	if err := errors.Join(r.goOn(ctx, to, dir), r.keepLoose(ctx, to, dir), to.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(into, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
	}
	// The log belongs to the old database, and would be taken for the new one's.
	for _, side := range []string{"-wal", "-shm"} {
		gone := os.Remove(filepath.Join(dir, fileName+side))
		if err == nil && !errors.Is(gone, fs.ErrNotExist) {
			err = gone
		}
	}
	if err == nil {
		err = errors.Join(localdir.Sync(dir), os.Rename(into, filepath.Join(dir, fileName)),
			localdir.Sync(dir))
	}
	return err
}

// keepLoose puts the files that the new catalog names no more beside the old one, which names them.
// The database is exchanged after that; what then still lies in blobs is rubbish.
func (r *Repaired) keepLoose(ctx context.Context, q querier, dir string) error {
	made := map[string]bool{}
	names, err := loose(ctx, q, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		from, to := blobsOf(dir).Path(name), blobsOf(r.Kept).Path(name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		made[filepath.Dir(to)], made[blobsOf(r.Kept).Dir], made[r.Kept] = true, true, true
		if os.Link(from, to) == nil {
			continue
		}
		if err := os.Rename(from, to); err != nil { // no hard links here
			return err
		}
	}
	for sub := range made {
		err = errors.Join(err, localdir.Sync(sub))
	}
	return err
}

// goOn makes the numbers of the new catalog q go on above whatever may have been given out by the
// old one.
func (r *Repaired) goOn(ctx context.Context, q *sql.DB, dir string) error {
	var found numbers
	err := q.QueryRowContext(ctx, `SELECT (SELECT ifnull(max(seq),0) FROM op),
		(SELECT ifnull(max(id),0) FROM trash)`).Scan(&found.op, &found.trash)
	if err != nil {
		return err
	}
	have, err := readNumbers(dir)
	if err != nil {
		return err
	}
	if !have.covers(found) || have == (numbers{}) {
		have = have.max(numbers{found.op + lostNumbers, found.trash + lostNumbers})
	}
	const above = "INSERT INTO meta VALUES('after', ?), ('trash_after', ?)"
	_, err = q.ExecContext(ctx, above, have.op, have.trash)
	return err
}
