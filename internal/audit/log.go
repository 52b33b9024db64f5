package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// FileName is the current file in the directory. Older ones have .1, .2 … at the end.
const FileName = "audit.jsonl"

// ChangesDir is the directory, beside that of a log, in which the records of changes stand once more.
func ChangesDir(dir string) string { return filepath.Clean(dir) + "-changes" }

// keyName is where the chain stands. Whoever writes a record has the lock of this file.
const keyName = "audit.key"

// Options is how a log is kept. The zero value is useful.
type Options struct {
	// MaxBytes is the size of one file, 64 MiB when 0; a record may go beyond. Below 0 nothing is
	// moved away: something else does that, as logrotate.
	MaxBytes int64
	Keep     int // older files, 4 when 0, all when below
}

// Open opens the log in dir with the zero Options.
func Open(dir string) (*Log, error) { return Options{}.Open(dir) }

// Open opens the log in dir, which it makes if missing.
func (o Options) Open(dir string) (*Log, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Keep == 0 {
		o.Keep = 4
	}
	l, err := o.one(dir)
	if err == nil {
		if l.changes, err = o.one(ChangesDir(dir)); err != nil {
			_ = l.Close() // nothing was written
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening audit log: %w", err)
	}
	return l, nil
}

// one opens the log in dir, without one of changes.
func (o Options) one(dir string) (*Log, error) {
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	l := &Log{o: o, path: filepath.Join(dir, FileName), pid: os.Getpid(), user: account()}
	return l, l.open()
}

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

// Log appends records.
type Log struct {
	o    Options
	path string
	pid  int
	user string

	changes *Log // nil in that of changes itself

	mu      sync.Mutex
	file    opened
	keys    opened
	at      link      // as it was last saved by us
	checked time.Time // when the names of both were last seen to be theirs
	buf     []byte
	closed  bool
	step    func() // for tests: between any two changes of files
}

// An opened is one of our files.
type opened struct {
	*os.File
	fd uintptr // asked once: Fd changes how a file is read
}

// A looked is what there is to know of a file.
type looked struct {
	size  int64
	named bool // it still has a name
	id    fileID
}

func (f opened) look() (looked, error) { return look(f.File, f.fd) }

var errClosed = errors.New("audit log is closed")

// checkInterval is how often the log makes sure that its files were not moved away. Our own
// rotation is noticed at once, by where the chain stands.
const checkInterval = time.Second

// maxAttempts bounds how often a record is written again because its file was removed meanwhile.
const maxAttempts = 8

// Append writes one record. After an error the record is not in the log, or not whole. The caller
// must treat the event as not recorded.
func (l *Log) Append(r Record) error {
	_, err := l.append(r, false)
	return err
}

// AppendChange is Append for a record of a change: it goes into the log of changes too.
func (l *Log) AppendChange(r Record) error {
	if err := l.changes.Append(r); err != nil {
		return err
	}
	return l.Append(r)
}

// NewKey writes a record after which the chain has a new key, and gives that key. It is nowhere
// else: from the next record on, the log holds what follows from it.
func (l *Log) NewKey(r Record) (Key, error) { return l.append(r, true) }

// Changes is the log of changes, which has a chain of its own.
func (l *Log) Changes() *Log { return l.changes }

func (l *Log) append(r Record, rekey bool) (k Key, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return k, errClosed
	}
	r.PID, r.User = cmp.Or(r.PID, l.pid), cmp.Or(r.User, l.user)
	l.buf = appendRecord(l.buf[:0], &r)
	if cap(l.buf) > 1<<20 {
		defer func() { l.buf = nil }()
	}
	body := len(l.buf)
	for range maxAttempts {
		l.buf = l.buf[:body]
		lost, at, err := l.write(rekey)
		if err != nil {
			return k, fmt.Errorf("writing audit record: %w", err)
		}
		if !lost {
			return Key{at.chain, at.seq, at.key}, nil
		}
	}
	return k, fmt.Errorf("writing audit record: %s is removed again and again", l.path)
}

// write writes the record in l.buf to the current file, and then where the chain stands. Killed in
// between, the record is there and its key is, too: the next writer takes it as it is (see
// position). lost says that the file had no name afterwards, so the record is nowhere.
func (l *Log) write(rekey bool) (lost bool, at link, err error) {
	now := time.Now()
	if l.file.File == nil || now.Sub(l.checked) > checkInterval || now.Before(l.checked) {
		if err := l.checkNamed(now); err != nil {
			return false, at, err
		}
	}
	if err := l.lock(); err != nil {
		return false, at, err
	}
	defer l.unlock()
	at, m, err := l.position()
	if err != nil {
		return false, at, err
	}
	m.Key = rekey
	body, before := len(l.buf), at
	l.buf = at.extend(l.buf, m)
	if l.o.MaxBytes > 0 && before.size+int64(len(l.buf)) >= l.o.MaxBytes {
		at = before
		m.Seals, at.ended = at.count+1, true
		l.buf = at.extend(l.buf[:body], m)
	}
	line := l.buf
	if before.open { // the line end that is missing comes in the same write
		line = append([]byte("\n"), line...)
	}
	if _, err := l.file.Write(line); err != nil {
		return false, at, err // a part of it is stray for the next one
	}
	l.stepped()
	// Only a look after the write tells that the record is in a file with a name. A file that was
	// just rotated still has one, and keeps it until Keep more files are full.
	there, err := l.file.look()
	if err != nil {
		return false, at, err
	}
	if !there.named {
		return true, at, l.reopen()
	}
	at.size, at.open = before.size+int64(len(line)), false
	if err := l.save(&at); err != nil {
		return false, at, err
	}
	l.stepped()
	if at.ended {
		_ = l.rotate(&at) // the record is safe even if this fails; the next one tries again
	}
	return false, at, nil
}

func (l *Log) stepped() {
	if l.step != nil {
		l.step()
	}
}

// checkNamed makes sure that the open files are those that their names mean.
func (l *Log) checkNamed(now time.Time) error {
	if l.file.File != nil && isNamed(l.file.File, l.path) && isNamed(l.keys.File, l.keyPath()) {
		l.checked = now
		return nil
	}
	return l.reopen()
}

func isNamed(f *os.File, path string) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	here, err := f.Stat()
	return err == nil && os.SameFile(there, here)
}

// Reopen opens the file anew, which somebody may have moved away. Append notices that by itself, at
// most a second later.
func (l *Log) Reopen() error {
	if l.changes != nil {
		if err := l.changes.Reopen(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	if err := l.reopen(); err != nil {
		return fmt.Errorf("opening the audit log anew: %w", err)
	}
	return nil
}

// account is the user of the system under whom we run: the name, or else the number.
func account() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// reopen opens both files anew. A lock is given back with the old one.
func (l *Log) reopen() error {
	_ = l.closeFiles() // nothing is buffered
	return l.open()
}

// closeFiles closes the files and forgets their descriptors: the system gives the same numbers to
// the next ones.
func (l *Log) closeFiles() error {
	file, keys := l.file.File, l.keys.File
	l.file, l.keys, l.at = opened{}, opened{}, link{}
	var err error
	for _, f := range []*os.File{file, keys} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

func (l *Log) keyPath() string { return filepath.Join(filepath.Dir(l.path), keyName) }

func (l *Log) open() (err error) {
	if l.keys, err = openPrivate(l.keyPath(), 0); err == nil {
		err = l.openLog()
	}
	if err != nil {
		_ = l.closeFiles()
		return err
	}
	l.checked = time.Now()
	return nil
}

// openLog opens the current file in the place of the one that is open.
func (l *Log) openLog() error {
	if old := l.file.File; old != nil {
		l.file = opened{}
		_ = old.Close() // nothing is buffered
	}
	f, err := openPrivate(l.path, os.O_APPEND)
	l.file = f
	return err
}

func openPrivate(path string, flags int) (opened, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|openFlags|flags, 0o600)
	if err != nil {
		return opened{}, err
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
		return opened{}, err
	}
	return opened{f, f.Fd()}, nil
}

// Close closes the files. Append fails afterwards, and closing again does nothing.
func (l *Log) Close() (err error) {
	if l.changes != nil {
		err = l.changes.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return errors.Join(err, l.closeFiles())
}
