package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"moltisfs/checkpoint/localdir"
	"moltisfs/internal/guardfs/flock"
)

// A change of one path is one rename and needs no journal. A change of several is many steps, so before the first of them
// a mark is put beside the catalog: the directory journal holds one file for each operation under way, named by its id and
// locked by its process. The kernel lets go of the lock when the process dies, in whatever way; a mark that nobody
// holds is work for the next Open, which finds both states of every path in the catalog.
const journalName = "journal"

// An Intent is the mark of an operation that is being carried out.
type Intent struct {
	dir string
	id  ID
	f   *os.File
	db  *DB
}

// Intend marks the operation id as under way. The mark is on stable storage when it returns (unless the store is Relaxed).
// Done takes it away; a process that dies before that leaves it to Unfinished.
func (d *DB) Intend(id ID) (_ *Intent, err error) {
	if _, err := id.seq(); err != nil {
		return nil, err
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.active.Done()
	dir := filepath.Join(d.dir, journalName)
	failed := func(err error) (*Intent, error) { return nil, fmt.Errorf("marking an operation as under way: %w", err) }
	if err = os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if _, ok := d.subs.Load(dir); err == nil && !ok { // whoever made it may not have come to sync it
		if err = d.sync(d.dir); err == nil {
			d.subs.Store(dir, true)
		}
	}
	if err != nil {
		return failed(err)
	}
	// Under a name of no meaning until it is locked: else it looks like that of a dead process for a moment.
	f, err := createLocked(dir, "new-")
	if err != nil {
		return failed(err)
	}
	temp := f.Name()
	if d.o.Durability == Strict {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(temp, filepath.Join(dir, string(id)))
	}
	if err == nil {
		err = d.sync(dir)
	}
	if err != nil {
		os.Remove(temp)
		os.Remove(filepath.Join(dir, string(id)))
		f.Close()
		return failed(err)
	}
	return &Intent{dir, id, f, d}, nil
}

// ID is the operation.
func (i *Intent) ID() ID { return i.id }

// Note writes beside the mark what whoever takes the operation over should know of one thing that it does; of notes on the same thing the
// last one counts. It outlives the process, and is not synced: the system it need not outlive.
func (i *Intent) Note(thing, what string) error {
	_, err := i.f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = i.f.WriteString(strconv.Quote(thing) + " " + strconv.Quote(what) + "\n")
	}
	if err != nil {
		return fmt.Errorf("noting what an operation does: %w", err)
	}
	return nil
}

// Notes is what was noted, and when that was last written to; without a note, when the mark was set. A note that was cut off is none.
func (i *Intent) Notes() (notes map[string]string, last time.Time, err error) {
	failed := func(err error) (map[string]string, time.Time, error) {
		return nil, time.Time{}, fmt.Errorf("reading what an operation did: %w", err)
	}
	fi, err := i.f.Stat()
	if err != nil {
		return failed(err)
	}
	all, err := io.ReadAll(io.NewSectionReader(i.f, 0, fi.Size()))
	if err != nil {
		return failed(err)
	}
	notes = map[string]string{}
	for line := range strings.Lines(string(all)) {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil || !strings.HasSuffix(line, "\n") {
			continue
		}
		what, err := strconv.Unquote(strings.TrimSpace(line[len(quoted):]))
		if err != nil {
			continue
		}
		if thing, err := strconv.Unquote(quoted); err == nil {
			notes[thing] = what
		}
	}
	return notes, fi.ModTime(), nil
}

// Done takes the mark away: every path is what the operation announced, or everything is as it was. After an error the mark may be found again, be it
// after a power cut. It is held until Leave then, so that the outcome can be put on record first: see DB.Flush.
func (i *Intent) Done() error {
	// Removed while it is locked: whoever looks in between sees either a held mark or none.
	err := removeFile(filepath.Join(i.dir, string(i.id)))
	if err == nil && i.db.o.Durability == Strict {
		err = localdir.Sync(i.dir)
	}
	if err == nil {
		err = i.f.Close()
	}
	if err != nil {
		return fmt.Errorf("removing the mark of an operation: %w", err)
	}
	return nil
}

// Leave gives the mark up without removing it: the next one to look finds the operation unfinished.
func (i *Intent) Leave() error {
	if seq, err := i.id.seq(); err == nil {
		i.db.under.done(seq) // from here on the mark protects it
	}
	return i.f.Close()
}

// Unfinished lists the operations that processes which are no more left half-way in the store in dir, the newest first, which is the
// order to take them back in. The store need not be open, and no
// store at all is no error: a host looks here at every start, which costs one look at a directory.
func Unfinished(dir string) ([]ID, error) {
	entries, err := os.ReadDir(filepath.Join(dir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for unfinished operations: %w", err)
	}
	var ids []ID
	for _, e := range entries {
		full := filepath.Join(dir, journalName, e.Name())
		id, err := ParseID(e.Name())
		if err != nil && !strings.HasPrefix(e.Name(), "new-") {
			continue
		}
		f, lerr := os.OpenFile(full, os.O_RDWR, 0)
		if lerr != nil {
			continue // just removed
		}
		if err == nil || !justMade(f) {
			// Beside the others who look: for one of them a mark held by another would be that of a living process.
			if held, lerr := flock.TryLockShared(f); lerr == nil && held {
				if err != nil {
					os.Remove(full) // never became a mark
				} else {
					ids = append(ids, id)
				}
			}
		}
		f.Close()
	}
	slices.SortFunc(ids, func(a, b ID) int {
		x, _ := a.seq() // ParseID has read both
		y, _ := b.seq()
		return cmp.Compare(y, x)
	})
	return ids, nil
}

// Marked lists the operations of the store in dir that are under way or were left half-way, in no order. The store need not be open, and no store at all is
// no error.
func Marked(dir string) (ids []ID, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, journalName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for operations under way: %w", err)
	}
	for _, e := range entries {
		if id, err := ParseID(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// TakeOver makes the unfinished operation id the caller's to finish or undo. nil without an error: it is finished, or somebody
// else has taken it.
func (d *DB) TakeOver(id ID) (*Intent, error) {
	if _, err := id.seq(); err != nil {
		return nil, err
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.active.Done()
	dir := filepath.Join(d.dir, journalName)
	name := filepath.Join(dir, string(id))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("taking over an unfinished operation: %w", err)
	}
	held, err := flock.TryLock(f)
	if err == nil && held {
		// Its last holder may have removed it between the two calls.
		if _, err = os.Lstat(name); err == nil {
			return &Intent{dir, id, f, d}, nil
		}
	}
	f.Close()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("taking over an unfinished operation: %w", err)
	}
	return nil, nil
}
