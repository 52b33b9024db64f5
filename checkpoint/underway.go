package checkpoint

import (
	"context"
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
	"syscall"
	"time"

	"moltisfs/internal/guardfs/flock"
)

// Between a Save and its Settle the change is being made, and its pre-state must be there whatever the store lacks room for. Who else
// cleans the store has to know that, and also when the one who saved is no more: so each process that saves has a file in the directory
// writers, locked as long as it lives, with the numbers of the operations that it has under way, the oldest first. The file of one that was killed
// tells those of which nobody can say whether they were made: see CutOff.
const writersName = "writers"

// maxUnderWay bounds what is remembered for a host that never settles anything.
const maxUnderWay = 1024

// cutOffKept is how long a killed process is remembered if nobody asks.
const cutOffKept = 24 * time.Hour

// lockedWithin is how long a process may take from making a file to locking it.
const lockedWithin = time.Minute

type underway struct {
	dir     string
	settles bool // Options.Settles

	mu   sync.Mutex
	f    *os.File
	seqs []int64 // ascending
}

// Such a file holds the oldest number, flags, how many numbers follow, and these.
const (
	noteLen = 9
	maxNote = 32 // numbers

	flagsAt     = 8
	flagSettles = 1 // all that is saved is settled too
	flagDead    = 2 // its process is no more: whoever has the lock looks what was cut off
)

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
	}
	return u.write()
}

func (u *underway) open() error {
	dir := filepath.Join(u.dir, writersName)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := createLocked(dir, "")
	u.f = f
	return err
}

// createLocked makes an empty file of a new name that begins with prefix, which stays locked as long as it is open. It has to be made before it can be locked,
// and whoever looks tells by the lock whether its process is alive: so those who look leave alone what may be justMade.
func createLocked(dir, prefix string) (*os.File, error) {
	for range 8 {
		f, err := os.OpenFile(filepath.Join(dir, prefix+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		held, err := flock.TryLock(f)
		if _, gone := os.Lstat(f.Name()); err == nil && held && gone == nil {
			return f, nil
		}
		os.Remove(f.Name()) // this process stood still for so long that somebody took it for dead
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the file that says what is under way could not be locked")
}

// justMade reports whether the process that made f may not have come to lock it: to lock it first would take it from its maker. It says nothing yet.
func justMade(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Size() == 0 && time.Since(fi.ModTime()).Abs() < lockedWithin
}

// write writes the numbers; the oldest is 0 for none. It need not get to the disk: it is for those who come after a process, not after the system.
func (u *underway) write() error {
	var flags byte
	if u.settles {
		flags = flagSettles
	}
	_, err := u.f.WriteAt(noteOf(u.seqs[:min(len(u.seqs), maxNote)], flags), 0)
	return err
}

// noteOf is what the file of a process says.
func noteOf(listed []int64, flags byte) []byte {
	b := make([]byte, noteLen, noteLen+1+8*maxNote)
	if len(listed) > 0 {
		binary.LittleEndian.PutUint64(b, uint64(listed[0]))
	}
	b[flagsAt] = flags
	b = append(b, byte(len(listed)))
	for _, seq := range listed {
		b = binary.LittleEndian.AppendUint64(b, uint64(seq))
	}
	return b
}

// noted reads the numbers in the file of a process.
func noted(f *os.File) (seqs []int64) {
	var b [noteLen + 1 + 8*maxNote]byte
	n, _ := f.ReadAt(b[:], 0) //nolint:errcheck // what is not there is not counted
	for i := range int(b[noteLen]) {
		at := noteLen + 1 + 8*i
		if at+8 > n {
			break
		}
		seqs = append(seqs, int64(binary.LittleEndian.Uint64(b[at:])))
	}
	return seqs
}

// abandoned hands over the file of every process that was killed while it had operations under way. Who looks shares the lock with the others who look. Before
// anybody may have it alone, the file says that its process is dead: then nobody takes who has the lock for that process.
func abandoned(dir string, found func(name string, seqs []int64) error) error {
	dir = filepath.Join(dir, writersName)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR, 0)
		if err != nil {
			continue // just removed, or not ours to look at
		}
		if justMade(f) {
			f.Close()
			continue
		}
		dead, err := flock.TryLockShared(f)
		seqs := noted(f)
		var flags [1]byte
		f.ReadAt(flags[:], flagsAt) //nolint:errcheck // what can't be read is not set
		switch known := flags[0]&flagDead != 0; {
		case err != nil:
			dead = false
		case dead && !known && len(seqs) > 0:
			flags[0] |= flagDead
			f.WriteAt(flags[:], flagsAt) //nolint:errcheck // without it, others who look at this very moment take it for alive
		case known:
			dead = true
		}
		f.Close()
		if dead && len(seqs) > 0 {
			errs = append(errs, found(f.Name(), seqs))
		}
	}
	return errors.Join(errs...)
}

// doubt is of which operations without an outcome nobody can say yet whether they were made.
type doubt struct {
	seqs  map[int64]bool
	above int64 // these may have begun since
}

func (d *doubt) of(seq int64) bool { return seq > d.above || d.seqs[seq] }

// inDoubt looks what a process has under way or had when it was killed, and what has a mark. Who settles an operation puts its outcome on record before it
// takes it off these lists.
func (d *DB) inDoubt(ctx context.Context) (doubt, error) {
	out := doubt{seqs: map[int64]bool{}}
	if err := d.r.QueryRowContext(ctx, "SELECT ifnull(max(seq),0) FROM op").Scan(&out.above); err != nil {
		return out, err
	}
	marks, err := d.marked()
	if err != nil {
		return out, err
	}
	open, err := queryIDs(ctx, d.r, "SELECT op FROM open_op WHERE NOT made")
	if err != nil {
		return out, err
	}
	for _, seq := range slices.Concat(open, marks, d.under.listed()) {
		out.seqs[seq] = true
	}
	dir := filepath.Join(d.dir, writersName)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // just removed, or not ours to look at
		}
		seqs := noted(f)
		f.Close()
		for _, seq := range seqs {
			out.seqs[seq] = true
		}
		if len(seqs) == maxNote { // there may be more
			out.above = min(out.above, seqs[maxNote-1])
		}
	}
	return out, err
}

// listed are the operations that this process has under way: more than its file may name.
func (u *underway) listed() []int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.seqs)
}

// AnyCutOff reports whether CutOff has anything to tell, or is telling somebody. The store need not be open, and no store at all is no error.
func AnyCutOff(dir string) bool { return len(CutOffIDs(dir)) > 0 }

// CutOffIDs lists what CutOff has to tell, or is telling somebody, in no order.
func CutOffIDs(dir string) (ids []ID) {
	abandoned(dir, func(_ string, seqs []int64) error { //nolint:errcheck // what can't be looked at is not known
		for _, seq := range seqs {
			ids = append(ids, idOf(seq))
		}
		return nil
	})
	return ids
}

// CutOff asks about every operation that a process had under way when it was killed, the newest first: it may have been made or not, and the host can look. decide
// says what came of it, with Settle where it was not made; what it reports to be over is not asked about again, all else is, by whoever looks next. Of an operation that
// is not asked about, its process has said what became of it: with nothing on record, it was made. After a crash of the system that is not certain.
// One process at a time is asked about the same: what another is asked about is passed over, and stays among CutOffIDs until that is over.
func (d *DB) CutOff(decide func(ID) (over bool)) error {
	return abandoned(d.dir, func(name string, _ []int64) error {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return nil //nolint:nilerr // another has just removed it
		}
		defer f.Close()
		if held, err := flock.TryLock(f); err != nil || !held {
			return err
		}
		if _, err := os.Lstat(name); err != nil {
			return nil //nolint:nilerr // likewise
		}
		seqs := noted(f) // others may have decided some of them meanwhile
		var left []int64
		for _, seq := range slices.Backward(seqs) {
			if !decide(idOf(seq)) {
				left = append(left, seq)
			}
		}
		slices.Reverse(left)
		switch {
		case len(left) == 0:
			os.Remove(name) //nolint:errcheck // then it is asked about again
		case len(left) < len(seqs):
			var flags [1]byte
			f.ReadAt(flags[:], flagsAt)          //nolint:errcheck // what can't be read is not set
			f.WriteAt(noteOf(left, flags[0]), 0) //nolint:errcheck // as above
		}
		return nil
	})
}

// done notes that the operation is over.
func (u *underway) done(seq int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i, ok := slices.BinarySearch(u.seqs, seq); ok {
		u.seqs = slices.Delete(u.seqs, i, i+1)
		u.write() // should it fail, what is over is protected too
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
		if errors.Is(err, syscall.EROFS) {
			f, err = os.Open(name) // enough to lock it
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // just removed
		}
		if err != nil {
			note(1, true) // it may be that of somebody alive, who may have anything under way
			continue
		}
		if justMade(f) {
			f.Close()
			continue // its process is in begin and waits for this transaction to end
		}
		dead, err := flock.TryLockShared(f) // as those who look what was cut off
		if err == nil && dead {
			// With numbers in it, it is for those who look what was cut off; they may never come.
			if fi, err := f.Stat(); err != nil || len(noted(f)) == 0 || time.Since(fi.ModTime()) > cutOffKept {
				os.Remove(name)
			}
		} else {
			var b [noteLen]byte
			switch n, err := f.ReadAt(b[:], 0); {
			case n >= 8:
				note(int64(binary.LittleEndian.Uint64(b[:])), b[flagsAt]&flagSettles != 0)
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
	ids, err := Marked(d.dir)
	if len(ids) == 0 || err != nil {
		return nil, err
	}
	seqs := []int64{}
	for _, id := range ids {
		if seq, err := id.seq(); err == nil {
			seqs = append(seqs, seq)
		}
	}
	return seqs, nil
}
