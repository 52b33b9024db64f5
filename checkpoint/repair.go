package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Repaired says what Repair did.
type Repaired struct {
	Kept string `json:"kept,omitempty"` // the directory that holds the store's files as they were; "" when nothing had to be done
	// What the store holds now.
	Checkpoints int       `json:"checkpoints"`
	Changes     int       `json:"changes"`
	Contents    int       `json:"contents"`
	Lost        []Problem `json:"lost"` // what could not be saved: contents with their paths, checkpoints, damage of the catalog
}

// Repair makes a sound store of what can still be read of the one in dir. It does nothing to a store that Check finds sound, every content
// included. Otherwise it first copies the database beside (Repaired.Kept; only a person removes that). If the catalog is damaged it is
// written anew row by row, with the same ids and fresh indexes, and put in place by one rename. Contents that are not what their hash says
// are taken out, their files moved beside, and the changes that lose one say SkipDamaged.
//
// Nobody else may have the store open: ErrInUse says that somebody does. It takes up to three times the space of the database meanwhile.
func Repair(ctx context.Context, dir string, o Options) (*Repaired, error) {
	o.Durability = Strict
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
	defer lock.Close()
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
		return &Repaired{Checkpoints: report.Checkpoints, Changes: report.Changes, Contents: report.Contents}, os.RemoveAll(out.Kept)
	}
	if errors.As(err, new(*VersionError)) || errors.As(err, new(*NetworkError)) || errors.Is(err, fs.ErrPermission) || ctx.Err() != nil {
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
	out.Checkpoints, out.Changes, out.Contents = report.Checkpoints, report.Changes, report.Contents
	return out, nil
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
			w, err := os.OpenFile(filepath.Join(to, fileName+side), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
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
	return errors.Join(syncDir(to), syncDir(from))
}

// dropDamaged takes out contents that cannot be read, and what is based on them.
func (r *Repaired) dropDamaged(ctx context.Context, d *DB) error {
	for range 1000 { // a report names a thousand contents at most
		report, err := d.Check(ctx, true)
		if err != nil {
			return err
		}
		bad := map[string]Problem{}
		for _, p := range report.Problems {
			switch p.What {
			case "content":
				bad[p.Hash] = p
			case "checkpoint":
				r.lose(p)
			}
		}
		var files []string
		dropped := 0
		err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
			files, dropped = nil, 0
			var ids []int64
			for hx := range bad {
				h, err := parseHash(hx)
				if err != nil {
					return err
				}
				more, err := queryIDs(ctx, c, "SELECT id FROM object WHERE hash=?", h[:])
				if err != nil {
					return err
				}
				ids = append(ids, more...)
			}
			loose, err := queryIDs(ctx, c, "SELECT id FROM data WHERE base IS NOT NULL AND base NOT IN (SELECT id FROM data)")
			if err != nil {
				return err
			}
			for _, id := range loose {
				var h []byte
				if err := c.QueryRowContext(ctx, "SELECT hash FROM object WHERE id=?", id).Scan(&h); err != nil {
					return err
				}
				bad[fmt.Sprintf("%x", h)] = Problem{What: "content", Hash: fmt.Sprintf("%x", h), Why: "what it is based on is gone"}
			}
			for _, id := range append(ids, loose...) {
				name, err := c.dropData(ctx, id)
				if err != nil {
					return err
				}
				if name != "" {
					files = append(files, name)
				}
				if err := c.exec(ctx, "UPDATE change SET askipped=? WHERE aobj=? AND askipped IS NULL", SkipDamaged, id); err != nil {
					return err
				}
				dropped++
			}
			return c.exec(ctx, `UPDATE change SET skipped=? WHERE bkind=1 AND bobj IS NOT NULL AND skipped IS NULL
				AND NOT EXISTS (SELECT 1 FROM data WHERE id=change.bobj)`, SkipDamaged)
		})
		if err != nil {
			return err
		}
		for _, p := range bad {
			r.lose(p)
		}
		for _, f := range files {
			if err := r.moveAside(d, f); err != nil {
				return err
			}
		}
		if dropped == 0 {
			return nil
		}
	}
	return nil
}

func (r *Repaired) moveAside(d *DB, name string) error {
	if !checkExtName(name) {
		return nil
	}
	to := filepath.Join(r.Kept, blobsName, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := os.Rename(d.extPath(name), to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
