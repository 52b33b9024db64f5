package guardfs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"moltisfs/internal/guardfs/flock"
)

// Temporaries is the record of the names that the processes of one data directory give beside the
// agent's files for a moment. A name of ours is known by it and by nothing else: what no record
// names is somebody's file, and stays.
//
// Each process that gives such names has a file here, called like the tag that all its names carry,
// with one path for each directory that it gave names in. It is locked as long as the process
// lives, so that no age decides what is litter. What could not be put back in its place and has a
// name ending in ".kept" is on record too. Safe for concurrent use; nil keeps no record.
type Temporaries struct {
	dir string

	mu     sync.Mutex
	file   *os.File // nil until the first name is given
	tag    string
	dirs   map[string]bool
	left   bool // a name may have stayed behind
	behind bool // the same, or the record was abandoned, and nobody was told
	closed bool
	synced bool // the record itself is on stable storage
}

// OpenTemporaries is the record in a directory of its own, which SHOULD be in the data directory.
// It is made when it is needed.
func OpenTemporaries(dir string) *Temporaries { return &Temporaries{dir: dir} }

const keptDir = "kept"

// give is called before a name is given beside what is at the true path.
func (t *Temporaries) give(name string) (tag string, err error) {
	if t == nil {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.begin(); err != nil {
		return "", err
	}
	dir := path.Dir(name)
	if !t.dirs[dir] {
		if _, err := t.file.WriteString(strconv.Quote(name) + "\n"); err != nil {
			return "", &RecordError{err}
		}
		if len(t.dirs) >= maxNoted {
			clear(t.dirs)
		}
		t.dirs[dir] = true
	}
	return t.tag, nil
}

// begin makes the record of this process, if there is none.
func (t *Temporaries) begin() error {
	if t.closed {
		return &RecordError{fs.ErrClosed}
	}
	if t.file == nil {
		if err := t.open(); err != nil {
			return &RecordError{err}
		}
	}
	return nil
}

// Tag is that of this process, which is on record from here on.
func (t *Temporaries) Tag() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.begin()
	return t.tag, err
}

// maxNoted is how many directories are remembered; then some are recorded twice.
const maxNoted = 4096

// open makes the file of this process. Whoever looks for the dead may lock it before we do, and
// takes it away then.
func (t *Temporaries) open() error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	for range 8 {
		var b [TagLen / 2]byte
		rand.Read(b[:]) //nolint:errcheck // never fails
		tag := hex.EncodeToString(b[:])
		name := filepath.Join(t.dir, tag)
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		held, err := flock.TryLock(f)
		if err == nil && held {
			held, err = isAt(f, name)
		}
		if err == nil && held {
			t.file, t.tag, t.dirs, t.synced = f, tag, map[string]bool{}, false
			return nil
		}
		f.Close() //nolint:errcheck // nothing was written to it
		if err != nil {
			return err
		}
	}
	return errors.New("its record could not be locked")
}

// Stays notes that a name may be left behind when this process ends.
func (t *Temporaries) Stays() {
	if t != nil {
		t.mu.Lock()
		t.left, t.behind = true, true
		t.mu.Unlock()
	}
}

// Abandon leaves this process's record to whoever looks for the dead, as if it had ended: it has to
// do later what could not be done now. Names that are given after that are on another record. What
// is under way goes on; those who look tell it by the lock of its operation.
func (t *Temporaries) Abandon() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behind = true
	if t.file != nil {
		flock.Close(t.file) //nolint:errcheck // closing is what lets go
		t.file, t.tag = nil, ""
	}
}

// Behind says, once, whether something may have been left behind, and leaves it to whoever looks for
// the dead.
func (t *Temporaries) Behind() bool {
	t.mu.Lock()
	behind := t.behind
	t.mu.Unlock()
	if behind {
		t.Abandon()
		t.mu.Lock()
		t.behind = false
		t.mu.Unlock()
	}
	return behind
}

// Sync puts the record of this process on stable storage.
func (t *Temporaries) Sync() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil || t.synced {
		return nil
	}
	err := t.file.Sync()
	for _, dir := range []string{t.dir, filepath.Dir(t.dir)} {
		if err == nil {
			err = syncDir(dir)
		}
	}
	if err != nil {
		return &RecordError{err}
	}
	t.synced = true
	return nil
}

// syncDir puts the names in a directory of ours on stable storage, where the system can do that.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	if err = f.Sync(); runtime.GOOS == "windows" {
		return nil
	}
	return err
}

// Alive says whether the process whose names carry that tag has not ended, nor abandoned its record.
func (t *Temporaries) Alive(tag string) bool {
	t.mu.Lock()
	own := tag == t.tag && t.file != nil
	t.mu.Unlock()
	if own {
		return true
	}
	f, err := os.OpenFile(filepath.Join(t.dir, tag), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer flock.Close(f) //nolint:errcheck // closing is what lets go
	free, err := flock.TryLockShared(f)
	return err != nil || !free
}

// AnyDead says whether there is a record of a process that is no more.
func (t *Temporaries) AnyDead() bool {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return false
	}
	t.mu.Lock()
	own := t.tag
	t.mu.Unlock()
	for _, e := range entries {
		if len(e.Name()) == TagLen && e.Name() != own && !t.Alive(e.Name()) {
			return true
		}
	}
	return false
}

// knows says whether a process on record gives names with that tag, or gave them and left some.
func (t *Temporaries) knows(tag string) bool {
	if t == nil || !isTag(tag) {
		return false
	}
	t.mu.Lock()
	own := tag == t.tag
	t.mu.Unlock()
	if own {
		return true
	}
	_, err := os.Lstat(filepath.Join(t.dir, tag))
	return err == nil
}

// Dead hands over what processes have left that are no more: their tag and, for each directory, a
// path in it. What is done with is forgotten.
func (t *Temporaries) Dead(sweep func(tag string, paths []string) (done bool)) error {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, e := range entries {
		if len(e.Name()) != TagLen {
			continue
		}
		name := filepath.Join(t.dir, e.Name())
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // just removed, or not ours to write
		}
		done := false
		// Beside others who look: they would take a record that one of them has alone for that of
		// somebody alive.
		if held, err := flock.TryLockShared(f); err == nil && held {
			if there, err := isAt(f, name); err == nil && there {
				text, err := io.ReadAll(f)
				done = err == nil && sweep(e.Name(), unquoted(string(text)))
			}
		}
		flock.Close(f) //nolint:errcheck // closing is what lets go
		if done {
			os.Remove(name) //nolint:errcheck // then it is done again
		}
	}
	return nil
}

// unquoted are the lines of a record. One that is cut is none.
func unquoted(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if s, err := strconv.Unquote(strings.TrimSuffix(line, "\n")); err == nil {
			lines = append(lines, s)
		}
	}
	return lines
}

// Close forgets this process, unless a name stayed behind: then the next one looks after it. No
// names are given any more.
func (t *Temporaries) Close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.file == nil {
		return nil
	}
	f := t.file
	t.file = nil
	err := flock.Close(f)
	if !t.left {
		os.Remove(f.Name()) //nolint:errcheck // then the next one finds nothing to sweep
	}
	return err
}

// A KeptFile is what could not be put back at Of, where something else is, and is at Path now.
type KeptFile struct {
	Path string `json:"path"`
	Of   string `json:"of"`
}

// keep puts a file on record that has a lasting name now. The answer names it in any case.
func (t *Temporaries) keep(k KeptFile) {
	if t == nil {
		return
	}
	dir := filepath.Join(t.dir, keptDir)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	text := strconv.Quote(k.Path) + "\n" + strconv.Quote(k.Of) + "\n"
	os.WriteFile(filepath.Join(dir, path.Base(k.Path)), []byte(text), 0o600) //nolint:errcheck // see above
}

// Kept lists what is on record; there says of each whether it still is where it was, and what is
// not is forgotten.
func (t *Temporaries) Kept(there func(KeptFile) bool) (kept []KeptFile, err error) {
	dir := filepath.Join(t.dir, keptDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(name)
		if err != nil {
			return kept, err
		}
		lines := unquoted(string(text))
		if len(lines) != 2 {
			continue // it is being written
		}
		if k := (KeptFile{lines[0], lines[1]}); there(k) {
			kept = append(kept, k)
		} else {
			os.Remove(name) //nolint:errcheck // then it is found to be gone again
		}
	}
	return kept, nil
}
