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

	"moltisfs/internal/guardfs/flock"
)

// FileName is the current file in the directory. Older ones have .1, .2 … at the end.
const FileName = "audit.jsonl"

const lockName = "audit.lock"

// Options is how a log is kept. The zero value is useful.
type Options struct {
	// MaxBytes is the size of one file, 64 MiB when 0; records being written may go beyond. Below 0
	// nothing is moved away: something else does that, as logrotate.
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
	if err := privateDir(dir); err != nil {
		return nil, fmt.Errorf("opening audit log: %w", err)
	}
	l := &Log{o: o, dir: dir, path: filepath.Join(dir, FileName), pid: os.Getpid(), user: account()}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("opening audit log: %w", err)
	}
	return l, nil
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
	dir  string
	path string
	pid  int
	user string

	mu      sync.Mutex
	file    *os.File
	fd      uintptr   // of file
	torn    bool      // the file ends in a part of a record
	checked time.Time // when path was last seen to be file
	buf     []byte
	closed  bool
}

var errClosed = errors.New("audit log is closed")

// checkInterval is how often the log makes sure that the file was not moved away. Our own rotation
// is noticed at once, by the size.
const checkInterval = time.Second

// maxAttempts bounds how often a record is written again because its file was removed meanwhile.
const maxAttempts = 8

// Append writes one record. After an error the record is not in the log, or not whole. The caller
// must treat the event as not recorded.
func (l *Log) Append(r Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	r.PID, r.User = cmp.Or(r.PID, l.pid), cmp.Or(r.User, l.user)
	l.buf = appendRecord(l.buf[:0], &r)
	if cap(l.buf) > 1<<20 {
		defer func() { l.buf = nil }()
	}
	for range maxAttempts {
		lost, err := l.write(l.buf)
		if err != nil {
			return fmt.Errorf("writing audit record: %w", err)
		}
		if !lost {
			return nil
		}
	}
	return fmt.Errorf("writing audit record: %s is removed again and again", l.path)
}

// write writes one record to the current file. lost says that the file had no name afterwards, so
// the record is nowhere.
func (l *Log) write(record []byte) (lost bool, err error) {
	now := time.Now()
	if l.file == nil || now.Sub(l.checked) > checkInterval || now.Before(l.checked) {
		if err := l.checkNamed(now); err != nil {
			return false, err
		}
	}
	if l.torn { // end the broken line in the same write
		record = append([]byte("\n"), record...)
	}
	n, err := l.file.Write(record)
	if err != nil {
		l.torn = l.torn || n > 0
		return false, err
	}
	l.torn = false
	// Only a look after the write tells that the record is in a file with a name. A file that was
	// just rotated still has one, and keeps it until Keep more files are full.
	size, named, err := sizeAndName(l.file, l.fd)
	if err != nil {
		return false, err
	}
	if !named {
		return true, l.reopen()
	}
	if l.o.MaxBytes > 0 && size >= l.o.MaxBytes {
		// The record is safe even if this fails; the next one tries again.
		if err := l.rotate(); err != nil {
			return false, nil
		}
	}
	return false, nil
}

// checkNamed makes sure that the open file is the one that path names.
func (l *Log) checkNamed(now time.Time) error {
	if l.file != nil {
		there, err := os.Lstat(l.path)
		if err == nil {
			var here os.FileInfo
			if here, err = l.file.Stat(); err == nil && os.SameFile(there, here) {
				l.checked = now
				return nil
			}
		}
	}
	return l.reopen()
}

// Reopen opens the file anew, which somebody may have moved away. Append notices that by itself, at
// most a second later.
func (l *Log) Reopen() error {
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

func (l *Log) reopen() error {
	_ = l.closeFile() // nothing is buffered
	return l.open()
}

// closeFile closes the file and forgets its descriptor: the system gives the same number to the
// next file.
func (l *Log) closeFile() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file, l.fd = nil, noFile
	return f.Close()
}

const noFile = ^uintptr(0)

func (l *Log) open() error {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: l.path, Err: errors.New("not a regular file")}
	}
	if err == nil && info.Mode().Perm() != 0o600 {
		err = privateFile(f)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	l.file, l.fd, l.checked, l.torn = f, f.Fd(), time.Now(), false
	if size := info.Size(); size > 0 { // a process may have died in the middle of a record
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			l.torn = true
		}
	}
	return nil
}

// rotate moves the full file away and begins another, unless another process has just done so.
func (l *Log) rotate() error {
	lock, err := os.OpenFile(filepath.Join(l.dir, lockName), os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // releases the lock, too
	if err := flock.Lock(lock); err != nil {
		return err
	}
	info, err := os.Lstat(l.path)
	if err == nil && info.Size() >= l.o.MaxBytes {
		for i := l.kept(); i > 1; i-- {
			err := os.Rename(l.older(i-1), l.older(i))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		err = os.Rename(l.path, l.older(1))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.reopen()
}

// kept is the number of older files that there may be from now on.
func (l *Log) kept() int {
	n := l.o.Keep
	for n < 0 {
		if _, err := os.Lstat(l.older(-n)); err != nil {
			return -n
		}
		n--
	}
	return n
}

func (l *Log) older(i int) string { return l.path + "." + strconv.Itoa(i) }

// Close closes the file. Append fails afterwards, and closing again does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.closeFile()
}
