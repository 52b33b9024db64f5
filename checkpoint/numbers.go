package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"moltisfs/checkpoint/localdir"
)

// A number that was given out, as an id in a model's context, must not name another checkpoint
// ever, also after the catalog was lost. So beside it lies how far the numbers may have come,
// always a block ahead, so that a save seldom has to write it. The file also says that there was a
// store: it is made with the first number, long after the catalog.
const (
	numbersName = "numbers"
	numberBlock = 4096
	lostNumbers = 1 << 20 // how far the numbers jump when the file is lost too
)

// numbers are the highest that checkpoints and entries of the trash may have.
type numbers struct{ op, trash int64 }

func (n numbers) covers(m numbers) bool { return n.op >= m.op && n.trash >= m.trash }

func (n numbers) max(m numbers) numbers { return numbers{max(n.op, m.op), max(n.trash, m.trash)} }

// Each line of the file is a promise; a new one is added behind a line's end, so that one torn by a
// power cut spoils no other.
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
		_, err := fmt.Sscanf(line, numbersLine, &m.op, &m.trash)
		if err == nil && line == fmt.Sprintf(numbersLine, m.op, m.trash) {
			n = n.max(m)
		}
	}
	return n, nil
}

func (n numbers) write(dir string) error {
	name := filepath.Join(dir, numbersName)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\n"+numbersLine, n.op, n.trash)
	return errors.Join(err, f.Sync(), f.Close(), localdir.Sync(dir))
}

// reach makes sure that the file covers n. It runs inside a writing transaction, so that nobody
// else writes it.
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
	err := blobsOf(dir).Walk(func(string, fs.DirEntry) error {
		found = true
		return fs.SkipAll
	})
	return found, err
}

var errEmptied = fmt.Errorf("%w: the catalog is empty, but there are contents or numbers of one",
	ErrDamaged)
