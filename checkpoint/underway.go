package checkpoint

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Between a Save and its Settle the change is being made, and its pre-state must be there whatever the store lacks room for. Who else
// cleans the store has to know that, and also when the one who saved is no more: so each process that saves has a file in the directory
// writers, locked as long as it lives, with the number of the oldest operation that it has under way.
const writersName = "writers"

// maxUnderWay bounds what is remembered for a host that never settles anything.
const maxUnderWay = 1024

type underway struct {
	mu   sync.Mutex
	dir  string
	f    *os.File
	seqs []int64 // ascending
}

// begin notes that the operation seq is under way. It runs inside the transaction that saves it, and those who clean look inside one of
// theirs: they see the note, or the operation is newer than what they look at.
func (u *underway) begin(seq int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.f == nil {
		if err := u.open(); err != nil {
			return err
		}
	}
	u.seqs = append(u.seqs, seq)
	if len(u.seqs) > maxUnderWay {
		u.seqs = u.seqs[1:]
	} else if len(u.seqs) > 1 {
		return nil
	}
	return u.write()
}

func (u *underway) open() error {
	dir := filepath.Join(u.dir, writersName)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if held, err := tryLock(f); err != nil || !held {
		f.Close()
		os.Remove(f.Name())
		return errors.Join(err, errors.New("the file that says what is under way could not be locked"))
	}
	u.f = f
	return nil
}

// write writes the oldest number, 0 for none. It need not get to the disk: it means nothing once the process is gone.
func (u *underway) write() error {
	var b [8]byte
	if len(u.seqs) > 0 {
		binary.LittleEndian.PutUint64(b[:], uint64(u.seqs[0]))
	}
	_, err := u.f.WriteAt(b[:], 0)
	return err
}

// done notes that the operation is over.
func (u *underway) done(seq int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i, ok := slices.BinarySearch(u.seqs, seq); ok {
		u.seqs = slices.Delete(u.seqs, i, i+1)
		if i == 0 {
			u.write() // should it fail, what is over is protected too
		}
	}
}

func (u *underway) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.f != nil {
		os.Remove(u.f.Name()) // while it is locked
		u.f.Close()
		u.f = nil
	}
}

// oldest is the number of the oldest operation that any living process has under way, 0 for none. It runs inside a writing transaction.
func (u *underway) oldest() (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entries, err := os.ReadDir(filepath.Join(u.dir, writersName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var oldest int64
	note := func(n int64) {
		if n > 0 && (oldest == 0 || n < oldest) {
			oldest = n
		}
	}
	for _, e := range entries {
		name := filepath.Join(u.dir, writersName, e.Name())
		if u.f != nil && name == u.f.Name() {
			if len(u.seqs) > 0 {
				note(u.seqs[0])
			}
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // just removed
		}
		dead, err := tryLock(f)
		if err == nil && dead {
			os.Remove(name)
		} else {
			var b [8]byte
			switch n, err := f.ReadAt(b[:], 0); {
			case n == len(b):
				note(int64(binary.LittleEndian.Uint64(b[:])))
			case err != nil && n == 0 && !errors.Is(err, io.EOF):
				note(1) // locked against reading too: anything may be under way
			}
		}
		f.Close()
	}
	return oldest, nil
}

// marked lists the operations whose mark is in the journal, whoever holds it: taking them back needs their checkpoint.
func (d *DB) marked() ([]int64, error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seqs := []int64{}
	for _, e := range entries {
		if id, err := ParseID(e.Name()); err == nil {
			if seq, err := id.seq(); err == nil {
				seqs = append(seqs, seq)
			}
		}
	}
	return seqs, nil
}
