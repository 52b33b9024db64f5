package checkpoint

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
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
	dir     string
	settles bool // Options.Settles

	mu   sync.Mutex
	f    *os.File
	seqs []int64 // ascending
}

// noteLen is what such a file holds: the number, and 1 if all that is saved is settled too.
const noteLen = 9

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
	if len(u.seqs) > maxUnderWay && !u.settles {
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
	var b [noteLen]byte
	if len(u.seqs) > 0 {
		binary.LittleEndian.PutUint64(b[:], uint64(u.seqs[0]))
	}
	if u.settles {
		b[8] = 1
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

// oldest is the number of the oldest operation that any living process has under way, and promised that of those who promise to settle
// theirs; 0 for none. It runs inside a writing transaction.
func (u *underway) oldest() (oldest, promised int64, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entries, err := os.ReadDir(filepath.Join(u.dir, writersName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	note := func(seq int64, settles bool) {
		if seq > 0 && (oldest == 0 || seq < oldest) {
			oldest = seq
		}
		if seq > 0 && settles && (promised == 0 || seq < promised) {
			promised = seq
		}
	}
	for _, e := range entries {
		name := filepath.Join(u.dir, writersName, e.Name())
		if u.f != nil && name == u.f.Name() {
			if len(u.seqs) > 0 {
				note(u.seqs[0], u.settles)
			}
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // just removed
		}
		if err != nil {
			note(1, true) // it may be that of somebody alive, who may have anything under way
			continue
		}
		dead, err := tryLock(f)
		if err == nil && dead {
			os.Remove(name)
		} else {
			var b [noteLen]byte
			switch n, err := f.ReadAt(b[:], 0); {
			case n >= 8:
				note(int64(binary.LittleEndian.Uint64(b[:])), b[8] != 0)
			case err != nil && n == 0 && !errors.Is(err, io.EOF):
				note(1, true) // locked against reading too: anything may be under way
			}
		}
		f.Close()
	}
	return oldest, promised, nil
}

// progress is what cleaning must spare: the operations with a mark, a JSON list, and of those that nobody has settled the ones from promised on,
// and from oldest on if they are not older than since (Unix nanoseconds). MaxInt64 for no such.
type progress struct {
	marked                  string
	promised, oldest, since int64
}

// inProgress looks what is under way. It runs inside a writing transaction, else it may be overtaken.
func (d *DB) inProgress() (progress, error) {
	p := progress{since: clampNs(d.o.Now().Add(-underWay))}
	marks, err := d.marked()
	if err != nil {
		return p, err
	}
	list, err := json.Marshal(append([]int64{}, marks...))
	if err != nil {
		return p, err
	}
	p.marked = string(list)
	if p.oldest, p.promised, err = d.under.oldest(); err != nil {
		return p, err
	}
	for _, n := range []*int64{&p.oldest, &p.promised} {
		if *n == 0 {
			*n = math.MaxInt64
		}
	}
	return p, nil
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
