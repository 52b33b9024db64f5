package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A number that was given out, as an id in a model's context, must not name another checkpoint ever, also after the catalog was lost. So
// beside it lies how far the numbers may have come, always a block ahead, so that a save seldom has to write it. The file also says that
// there was a store: it is made with the first number, long after the catalog.
const (
	numbersName = "numbers"
	numberBlock = 4096
	lostNumbers = 1 << 20 // how far the numbers jump when the file is lost too
)

// numbers are the highest that checkpoints and entries of the trash may have.
type numbers struct{ op, trash int64 }

func (n numbers) covers(m numbers) bool { return n.op >= m.op && n.trash >= m.trash }

func (n numbers) max(m numbers) numbers { return numbers{max(n.op, m.op), max(n.trash, m.trash)} }

// Each line of the file is a promise; a new one is added behind a line's end, so that one torn by a power cut spoils no other.
const numbersLine = "checkpoints %d trash %d\n"

// readNumbers answers zeros where there is no such file, or no line in it that makes sense.
func readNumbers(dir string) (n numbers, err error) {
	b, err := os.ReadFile(filepath.Join(dir, numbersName))
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	for line := range strings.Lines(string(b)) {
		var m numbers
		if _, err := fmt.Sscanf(line, numbersLine, &m.op, &m.trash); err == nil && line == fmt.Sprintf(numbersLine, m.op, m.trash) {
			n = n.max(m)
		}
	}
	return n, nil
}

func (n numbers) write(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, numbersName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\n"+numbersLine, n.op, n.trash)
	return errors.Join(err, f.Sync(), f.Close(), syncDir(dir))
}

// reach makes sure that the file covers n. It runs inside a writing transaction, so that nobody else writes it.
func (c *committer) reach(n numbers) error {
	if c.reached.covers(n) {
		return nil
	}
	have, err := readNumbers(c.db.dir)
	if err == nil && !have.covers(n) {
		have = have.max(numbers{n.op + numberBlock, n.trash + numberBlock})
		err = have.write(c.db.dir)
	}
	if err != nil {
		return fmt.Errorf("noting the numbers: %w", err)
	}
	c.reached = have
	return nil
}

// wasStore says whether dir holds what only a store that was used leaves there.
func wasStore(dir string) (bool, error) {
	if _, err := os.Lstat(filepath.Join(dir, numbersName)); err == nil {
		return true, nil
	}
	found := false
	err := walkBlobs(dir, func(string, fs.DirEntry) error {
		found = true
		return fs.SkipAll
	})
	return found, err
}

var errEmptied = fmt.Errorf("%w: the catalog is empty, but there are contents or numbers of one", ErrDamaged)

// walkBlobs calls fn with the name below blobs of each file there.
func walkBlobs(dir string, fn func(name string, e fs.DirEntry) error) error {
	root := filepath.Join(dir, blobsName)
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // just removed
		}
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return fn(filepath.ToSlash(rel), e)
	})
	return err
}

// loose calls fn with the name below blobs of each file there that no row names.
func loose(ctx context.Context, q querier, dir string, fn func(name string, e fs.DirEntry) error) error {
	named := map[string]bool{}
	err := each(ctx, q, "SELECT z FROM data INDEXED BY data_ext WHERE codec & 4", nil, func(row scanner) error {
		var z []byte
		err := row.Scan(&z)
		named[string(z)] = true
		return err
	})
	if err != nil {
		return err
	}
	return walkBlobs(dir, func(name string, e fs.DirEntry) error {
		if named[name] {
			return nil
		}
		return errors.Join(fn(name, e), ctx.Err())
	})
}

// keepLoose puts the files that the new catalog names no more beside the old one, which names them. The database is exchanged after that; what
// then still lies in blobs is rubbish.
func (r *Repaired) keepLoose(ctx context.Context, q querier, dir string) error {
	made := map[string]bool{}
	err := loose(ctx, q, dir, func(name string, e fs.DirEntry) error {
		if !checkExtName(name) {
			return nil
		}
		from, to := filepath.Join(dir, blobsName, filepath.FromSlash(name)), filepath.Join(r.Kept, blobsName, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		made[filepath.Dir(to)], made[filepath.Join(r.Kept, blobsName)], made[r.Kept] = true, true, true
		if os.Link(from, to) == nil {
			return nil
		}
		return os.Rename(from, to) // no hard links here
	})
	for sub := range made {
		err = errors.Join(err, syncDir(sub))
	}
	return err
}

// goOn makes the numbers of the new catalog q go on above whatever may have been given out by the old one.
func (r *Repaired) goOn(ctx context.Context, q *sql.DB, dir string) error {
	var found numbers
	if err := q.QueryRowContext(ctx, "SELECT (SELECT ifnull(max(seq),0) FROM op), (SELECT ifnull(max(id),0) FROM trash)").Scan(&found.op, &found.trash); err != nil {
		return err
	}
	have, err := readNumbers(dir)
	if err != nil {
		return err
	}
	if !have.covers(found) || have == (numbers{}) {
		have = have.max(numbers{found.op + lostNumbers, found.trash + lostNumbers})
	}
	_, err = q.ExecContext(ctx, "INSERT INTO meta VALUES('after', ?), ('trash_after', ?)", have.op, have.trash)
	return err
}
