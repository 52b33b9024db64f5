package audit

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"moltisfs/internal/guardfs/flock"
)

const (
	// FileName is the current file in a directory. Older ones have .1, .2 … at the end.
	FileName = "audit.jsonl"
	// lastName is where the end of the chain is kept. Whoever writes a record has its lock.
	lastName = "audit.last"
)

// ChangesDir is the directory, beside dir, of the records of changes.
func ChangesDir(dir string) string { return filepath.Clean(dir) + "-changes" }

// Options is how a log is kept. The zero value is useful.
type Options struct {
	// MaxBytes is the size of one file, 64 MiB when 0; a record may go beyond. Below 0 nothing is
	// moved away: something else does that, as logrotate.
	MaxBytes int64
	Keep     int // older files, 4 when 0, all when below
}

// Log appends records.
type Log struct{ calls, changes *chain }

// Open opens the log in dir with the zero Options.
func Open(dir string) (*Log, error) { return Options{}.Open(dir) }

// Open opens the log in dir and in ChangesDir(dir), which it makes if missing.
func (o Options) Open(dir string) (*Log, error) {
	o.MaxBytes, o.Keep = cmp.Or(o.MaxBytes, 64<<20), cmp.Or(o.Keep, 4)
	l := &Log{newChain(dir, o), newChain(ChangesDir(dir), o)}
	for _, c := range []*chain{l.calls, l.changes} {
		err := privateDir(filepath.Dir(c.path))
		if err == nil {
			err = c.open()
		}
		if err != nil {
			_ = l.Close() // nothing was written
			return nil, fmt.Errorf("opening audit log: %w", err)
		}
	}
	return l, nil
}

// Append writes one record. After an error the record is not in the log, or not whole. The caller
// must treat the event as not recorded.
func (l *Log) Append(r Record) error { return l.calls.append(r) }

// AppendChange is Append for a record of a change, of an operator's deed or of a start.
func (l *Log) AppendChange(r Record) error { return l.changes.append(r) }

// Close closes the files. Append fails afterwards, and closing again does nothing.
func (l *Log) Close() error { return errors.Join(l.calls.close(), l.changes.close()) }

// privateDir makes dir. It takes an existing directory as it is, unless anybody may write in it.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
	}
	if info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows" {
		why := errors.New("anybody may write in it (" + info.Mode().String() + ")")
		return &fs.PathError{Op: "open", Path: dir, Err: why}
	}
	return nil
}

// A chain is the files of one directory: the current one, those that rotation moved away, and
// audit.last.
type chain struct {
	o    Options
	path string // of the current file
	pid  int
	user string

	mu         sync.Mutex
	file, last *os.File
	at         end
	full       bool  // the last record ends its file, which is still the current one
	size       int64 // of the file when at was its end; below 0: not known
	buf        []byte
	closed     bool
	step       func()                             // for tests: between any two changes of files
	named      func(f *os.File, path string) bool // isNamed
}

func newChain(dir string, o Options) *chain {
	return &chain{o: o, path: filepath.Join(dir, FileName), pid: os.Getpid(), user: account(), named: isNamed}
}

// account is the user of the system under whom we run: the name, or else the number.
func account() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func (c *chain) lastPath() string { return filepath.Join(filepath.Dir(c.path), lastName) }

func (c *chain) older(i int) string { return c.path + "." + strconv.Itoa(i) }

func (c *chain) stepped() {
	if c.step != nil {
		c.step()
	}
}

var errClosed = errors.New("audit log is closed")

// maxAttempts bounds how often a file is opened again because it was removed meanwhile.
const maxAttempts = 8

func (c *chain) append(r Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	r.PID, r.User = cmp.Or(r.PID, c.pid), cmp.Or(r.User, c.user)
	c.buf = slices.Grow(appendRecord(c.buf[:0], &r), 256) // for what stands at its end
	if cap(c.buf) > 1<<20 {
		defer func() { c.buf = nil }()
	}
	for range maxAttempts {
		written, err := c.write(c.buf)
		if err != nil {
			c.size = -1
			return fmt.Errorf("writing audit record: %w", err)
		}
		if written {
			return nil
		}
		if err := c.open(); err != nil {
			return fmt.Errorf("writing audit record: %w", err)
		}
	}
	return fmt.Errorf("writing audit record: %s is removed again and again", c.path)
}

// write writes a record to the current file, and then its number and hash to audit.last. Killed in
// between, the record is there and the next writer takes it as it is. It is false where the files
// that are open have no name any more, so that the record would be nowhere.
func (c *chain) write(record []byte) (written bool, err error) {
	if c.file == nil {
		return false, nil
	}
	if err := lock(c.last); err != nil {
		return false, err
	}
	defer func() {
		if c.last != nil {
			_ = flock.Unlock(c.last) // it is given back with the file in any case
		}
	}()
	if !c.named(c.last, c.lastPath()) || !c.named(c.file, c.path) {
		return false, nil
	}
	head, open, err := c.position()
	if err == nil && c.full {
		if err = c.rotate(); err == nil {
			head, open, err = c.position()
		}
	}
	if err != nil {
		return false, err
	}
	t := tie{Seq: c.at.seq + 1, prev: head}
	line := appendTie(record, &t)
	if c.full = c.o.MaxBytes > 0 && c.size+int64(len(line)) >= c.o.MaxBytes; c.full {
		t.Full, t.Gone = true, c.goes()
		line = appendTie(record, &t)
	}
	at := end{seq: t.Seq, hash: sha256.Sum256(line[:len(line)-1]), from: c.size}
	if open { // the line end that is missing comes in the same write
		line = append([]byte("\n"), line...)
		at.from++
	}
	if _, err := c.file.Write(line); err != nil {
		return false, err
	}
	c.stepped()
	// A file that was just moved away still has a name, and keeps it until Keep more files are full.
	info, err := c.file.Stat()
	if err != nil || !hasName(info) {
		return false, err
	}
	c.size += int64(len(line))
	at.to = c.size - 1
	c.at = at
	if _, err := c.last.WriteAt([]byte(at.String()), 0); err != nil {
		return false, err
	}
	c.stepped()
	if c.full {
		_ = c.rotate() // the record is safe even if this fails; the next one tries again
	}
	return true, nil
}

// position finds the end of the chain, and gives what the next record has as prev. open says that
// the file does not end with a line end.
func (c *chain) position() (head digest, open bool, err error) {
	info, err := c.file.Stat()
	if err != nil || info.Size() == c.size { // nobody has written since we did
		return c.at.hash, false, err
	}
	at, found, err := loadEnd(c.last)
	if err != nil {
		return head, false, err
	}
	c.at = at
	begin := int64(0)
	full, holds := c.holds(&at)
	if holds {
		begin = at.to
	}
	open = info.Size() > 0
	head, c.full = at.hash, full
	err = eachLine(io.NewSectionReader(c.file, begin, info.Size()-begin), func(from int64, line []byte, ended bool) error {
		open = !ended
		if len(line) == 0 {
			return nil
		}
		t, ok := parse(line)
		switch {
		case ok && (t.Seq == at.seq+1 && t.prev == head || !holds && t.Seq > at.seq):
			// Its writer was killed before it could save the end, or that was lost.
			from += begin
			at = end{t.Seq, sha256.Sum256(line), from, from + int64(len(line))}
			head, c.full = at.hash, t.Full
		case ok && !holds && found && t.Seq <= at.seq: // a file that was cut
		default:
			head = link(head, line)
		}
		return nil
	})
	if err == nil && at.seq > c.at.seq { // what was found is not looked for again
		_, err = c.last.WriteAt([]byte(at.String()), 0)
		c.stepped()
	}
	if c.at, c.size = at, info.Size(); err != nil {
		c.size = -1
	}
	return head, open, err
}

// holds says whether the record at the end of the chain is where it should be in the current file,
// and whether it is the last of that.
func (c *chain) holds(at *end) (full, ok bool) {
	if at.seq == 0 || at.to-at.from > maxLine || at.from < 0 || at.to <= at.from {
		return false, false
	}
	line := make([]byte, at.to-at.from)
	if n, _ := c.file.ReadAt(line, at.from); n < len(line) || sha256.Sum256(line) != at.hash {
		return false, false
	}
	t, ok := parse(line)
	return t.Full, ok && t.Seq == at.seq
}

// loadEnd reads audit.last. It is false where that holds no end.
func loadEnd(last *os.File) (at end, ok bool, err error) {
	var b [endLen]byte
	n, err := last.ReadAt(b[:], 0)
	at, ok = parseEnd(b[:n])
	if !ok {
		at = end{}
	}
	return at, ok, ignoreEOF(err)
}

// goes is the number of the last record in the file that the next rotation removes, 0 for none.
func (c *chain) goes() uint64 {
	if c.o.Keep < 0 || c.free() < c.o.Keep {
		return 0
	}
	return lastRecord(c.older(c.o.Keep))
}

// free is the first number that no older file has: a process may have died and left a gap. If all
// are taken it is the number of the file that goes.
func (c *chain) free() int {
	i := 1
	for ; c.o.Keep < 0 || i < c.o.Keep; i++ {
		if _, err := os.Lstat(c.older(i)); err != nil {
			break
		}
	}
	return i
}

// rotate moves the full file away and opens another. The caller has the lock.
func (c *chain) rotate() error {
	_ = c.file.Close() // nothing is buffered
	c.file, c.size, c.full = nil, -1, false
	var err error
	for i := c.free(); i > 1 && err == nil; i-- {
		err = os.Rename(c.older(i-1), c.older(i))
		c.stepped()
	}
	if err == nil {
		_ = os.Rename(c.path, c.older(1)) // where it could not be moved it takes more than it should
		c.stepped()
	}
	c.file, err = openPrivate(c.path, os.O_APPEND)
	return err
}

// lastRecord is the number of the last record in a file, 0 where there is none.
func lastRecord(path string) (last uint64) {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	_ = eachLine(f, func(_ int64, line []byte, _ bool) error {
		if t, ok := parse(line); ok {
			last = t.Seq
		}
		return nil
	})
	return last
}

// lockWait is how long a record waits for other processes. Each has the lock for some 10 µs; one
// that was stopped has it until it goes on.
const lockWait = 15 * time.Second

var errLocked = errors.New("another process holds the lock of " + lastName)

// lock takes a log for one record.
func lock(last *os.File) error {
	began := time.Time{}
	for wait := 10 * time.Microsecond; ; wait = min(2*wait, 2*time.Millisecond) {
		got, err := flock.TryLock(last)
		if got || err != nil {
			return err
		}
		if began.IsZero() {
			began = time.Now()
		} else if time.Since(began) > lockWait {
			return errLocked
		}
		time.Sleep(wait)
	}
}

func isNamed(f *os.File, path string) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	here, err := f.Stat()
	return err == nil && os.SameFile(there, here)
}

// open opens both files anew. A lock is given back with the old one.
func (c *chain) open() (err error) {
	_ = c.closeFiles() // nothing is buffered
	if c.last, err = openPrivate(c.lastPath(), 0); err == nil {
		c.file, err = openPrivate(c.path, os.O_APPEND)
	}
	if err != nil {
		_ = c.closeFiles()
	}
	return err
}

func (c *chain) closeFiles() (err error) {
	for _, f := range []*os.File{c.file, c.last} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	c.file, c.last, c.size = nil, nil, -1
	return err
}

func (c *chain) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.closeFiles()
}

func openPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|openFlags|flags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err == nil && info.Mode().Perm() != 0o600 {
		err = privateFile(f)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
