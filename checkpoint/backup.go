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
//
// A tree that was moved to the trash as a whole lies beside the workspace and is not in the copy.
func (d *DB) Backup(ctx context.Context, dir string) (err error) {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	if err := d.inPlace(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a backup: %w", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		if err == nil {
			err = &fs.PathError{Op: "backup", Path: dir, Err: ErrNotEmpty}
		}
		return err
	}
	defer func() {
		if err != nil { // half a store must not be taken for one
			err = fmt.Errorf("making a backup: %w", named(err))
			names, _ := os.ReadDir(dir)
			for _, n := range names {
				err = errors.Join(err, os.RemoveAll(filepath.Join(dir, n.Name())))
			}
		}
	}()
	to := blobsOf(dir)
	if err := os.Mkdir(to.Dir, 0o700); err != nil {
		return err
	}
	// Most files first, so that few can be gone when the catalog that names them is written.
	if _, err := d.copyFiles(ctx, d.r, to); err != nil {
		return err
	}
	for range backupTries {
		whole, err := d.copyOnce(ctx, dir, to)
		if whole || err != nil {
			return err
		}
	}
	return fmt.Errorf("the store lost files %d times while they were copied", backupTries)
}

// copyOnce writes the catalog as it is at this moment, and what it names and is not there yet. Not
// whole: something of that is gone from the store by now.
func (d *DB) copyOnce(ctx context.Context, dir string, to *blob.Files) (whole bool, err error) {
	file := filepath.Join(dir, fileName)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite keeps the mode
	if err != nil {
		return false, err
	}
	defer f.Close()                       //nolint:errcheck // it is synced
	if err := d.com.flush(); err != nil { // outcomes that wait for the next save
		return false, err
	}
	if err := vacuumInto(ctx, filepath.Join(d.dir, fileName), file); err != nil {
		return false, err
	}
	db, err := sql.Open("sqlite", uriOf(file, "_pragma=journal_mode(DELETE)"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close(), f.Sync(), localdir.Sync(dir)) }()
	// Recovery is for the tree that the store itself belongs to, at that moment.
	if _, err := db.ExecContext(ctx, "DELETE FROM open_op"); err != nil {
		return false, err
	}
	missing, err := d.copyFiles(ctx, db, to)
	if err != nil || missing > 0 {
		return false, err
	}
	unnamed, err := loose(ctx, db, dir)
	for _, name := range unnamed {
		err = errors.Join(err, to.Remove(name))
	}
	return true, errors.Join(err, syncBelow(to.Dir))
}

// vacuumInto writes a snapshot of a database into an empty file. Others may write meanwhile.
func vacuumInto(ctx context.Context, from, to string) error {
	db, err := sql.Open("sqlite", uriOf(from, "_pragma=busy_timeout("+busyTimeout+")"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return errors.Join(err, db.Close())
}

func syncBelow(dir string) error {
	subs, err := os.ReadDir(dir)
	for _, s := range subs {
		err = errors.Join(err, localdir.Sync(filepath.Join(dir, s.Name())))
	}
	return errors.Join(err, localdir.Sync(dir))
}

// copyFiles copies the files that the rows of q name. missing are those that are not there.
func (d *DB) copyFiles(ctx context.Context, q querier, to *blob.Files) (missing int, err error) {
	names, err := column[[]byte](ctx, q, "SELECT z FROM data INDEXED BY data_ext WHERE codec & 4")
	if err != nil {
		return 0, err
	}
	from := blobsOf(d.dir)
	for i, name := range names {
		d.progress("copying contents", i, len(names))
		if err := ctx.Err(); err != nil {
			return missing, err
		}
		if !blob.IsName(string(name)) {
			continue // the check of the copy says so
		}
		switch err := copyFile(to.Path(string(name)), from.Path(string(name))); {
		case errors.Is(err, fs.ErrNotExist):
			missing++
		case err != nil:
			return missing, err
		}
	}
	return missing, nil
}

// copyFile copies a file that never changes, unless that was done before.
func copyFile(to, from string) (err error) {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		os.Remove(to)
	}
	return err
}
