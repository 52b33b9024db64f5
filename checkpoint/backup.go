package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/localdir"
)

// backupTries bounds how often a backup begins anew because retention removed what it was to copy.
const backupTries = 5

// ErrNotEmpty says that there is something where a backup is to be.
var ErrNotEmpty = errors.New("there is something in it already")

// Backup writes a copy of the store into dir, a directory that is empty or not there yet. Others may
// save meanwhile: the copy is the store of one moment, and on stable storage on return. Operations
// that are under way at that moment count as done in it. The copy is a store: Open opens it.
// A store in PostgreSQL is copied operation by operation, up to the first one that is under way: copied
// counts them, as Copy does, and those that stay behind. What retention or a purge takes meanwhile may be
// in the copy or not. For a store in a file copied is zero.
//
// A tree that was moved to the trash as a complete lies beside the workspace and is not in the copy.
func (d *DB) Backup(ctx context.Context, dir string) (copied Copied, err error) {
	if err := d.enter(); err != nil {
		return copied, err
	}
	defer d.active.Done()
	if err := d.c.inPlace(); err != nil {
		return copied, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return copied, fmt.Errorf("making a backup: %w", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		if err == nil {
			err = &fs.PathError{Op: "backup", Path: dir, Err: ErrNotEmpty}
		}
		return copied, err
	}
	to := filesOf(dir)
	err = os.Mkdir(to.Dir, 0o700)
	complete := false
	files := map[string]bool{} // that are copied
	for try := 0; err == nil && !complete; try++ {
		if try == backupTries {
			err = fmt.Errorf("the store lost files %d times while they were copied", backupTries)
			break
		}
		complete, err = d.copyTo(ctx, dir, to, files)
	}
	if errors.Is(err, errNoFile) {
		copied, err = d.copyInto(ctx, dir)
	}
	if err == nil {
		return copied, nil
	}
	names, _ := os.ReadDir(dir) // half a store must not be taken for one
	for _, n := range names {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, n.Name())))
	}
	return copied, fmt.Errorf("making a backup: %w", d.c.failed(err))
}

// errNoFile says that a catalog is in no file that could be written anew.
var errNoFile = errors.New("the catalog is in a database of its own")

// copyInto writes what is in the store into one of its own in dir, operation by operation, up to the first one that is under way.
func (d *DB) copyInto(ctx context.Context, dir string) (copied Copied, err error) {
	to, err := Open(dir, Options{MaxBytes: math.MaxInt64, KeepWithin: math.MaxInt64, Logger: d.o.Logger, Now: d.o.Now})
	if err != nil {
		return copied, err
	}
	copied, err = Copy(ctx, d, to)
	return copied, errors.Join(err, to.Close(), localdir.Sync(dir))
}

// copyTo writes the catalog as it is at this moment, and the large contents that it names and that are
// not in copied. Not complete: something of that is gone from the store by now.
func (d *DB) copyTo(ctx context.Context, dir string, to *blob.Files, copied map[string]bool) (complete bool, err error) {
	file := filepath.Join(dir, fileName)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite keeps the mode
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // it is synced
	if err := d.c.dump(ctx, file); err != nil {
		return false, err
	}
	db, err := openCopy(file)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close(), f.Sync(), localdir.Sync(dir)) }()
	// Recovery is for the tree that the store itself belongs to, at that moment.
	if _, err := db.ExecContext(ctx, "DELETE FROM open_op"); err != nil {
		return false, err
	}
	complete = true
	named := map[string]bool{}
	err = each(ctx, db, "SELECT name, bytes FROM content WHERE name IS NOT NULL", nil, func(row scanner) error {
		var name string
		var size int64
		if err := row.Scan(&name, &size); err != nil {
			return err
		}
		if named[name] = true; copied[name] {
			return nil
		}
		z, err := d.blobs.Get(ctx, name, size)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			complete = false
			return nil
		case err != nil:
			return ctx.Err() // it is damaged: the check of the copy says so
		}
		err = to.Put(ctx, name, z)
		copied[name] = true
		return err
	})
	if err != nil || !complete {
		return false, err
	}
	for name := range copied {
		if !named[name] {
			err = errors.Join(err, to.Delete(ctx, name))
		}
	}
	return true, err
}
