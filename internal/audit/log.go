package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// FileName is the current file in the directory; older ones have .1, .2 … behind it.
const FileName = "audit.jsonl"

const lockName = "audit.lock"

// Options is how a log is kept. The zero value is useful.
type Options struct {
	MaxBytes int64 // of one file, 64 MiB when 0. The file may grow over it by the records under way
	Keep     int   // older files, 4 when 0
}

// Open opens the log in dir with the zero Options.
func Open(dir string) (*Log, error) { return Options{}.Open(dir) }

// Open opens the log in dir, which is made if it is missing.
func (o Options) Open(dir string) (*Log, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Keep <= 0 {
		o.Keep = 4
	}
	if err := private(dir); err != nil {
		return nil, fmt.Errorf("opening audit log: %w", err)
	}
	l := &Log{o: o, dir: dir, path: filepath.Join(dir, FileName)}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("opening audit log: %w", err)
	}
	return l, nil
}

// private makes dir, or takes one that is there as it is, unless anybody may write in it.
func private(dir string) error {
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
		return &fs.PathError{Op: "open", Path: dir, Err: errors.New("anybody may write in it (" + info.Mode().String() + ")")}
	}
	return nil
}

// Log appends records.
type Log struct {
	o    Options
	dir  string
	path string

	mu     sync.Mutex
	file   *os.File
	fd     uintptr   // of file
	torn   bool      // the file ends in a part of a record
	looked time.Time // when path was last seen to be file
	buf    []byte
	closed bool
}

var errClosed = errors.New("audit log is closed")

// lookEvery is how often the log makes sure that nobody has moved the file away. Our own rotation is noticed at once,
// by the size.
const lookEvery = time.Second

// attempts bounds how often a record is written again because its file was removed meanwhile.
const attempts = 8

// Append writes one record. After an error the record is not in the log, or not whole; the caller has to treat what
// it is about as not recorded.
func (l *Log) Append(r Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	l.buf = appendRecord(l.buf[:0], &r)
	if cap(l.buf) > 1<<20 {
		defer func() { l.buf = nil }()
	}
	for range attempts {
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

// write writes one record to the current file. lost says that the file had no name any more afterwards, so that the record is
// nowhere.
func (l *Log) write(record []byte) (lost bool, err error) {
	if now := time.Now(); l.file == nil || now.Sub(l.looked) > lookEvery || now.Before(l.looked) {
		if err := l.look(now); err != nil {
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
	// Looking after the write tells what looking before it can't: that the record is in a file with a name. A file that was
	// rotated has one still, and has it until Keep more files have filled up.
	size, named, err := measure(l.file, l.fd)
	if err != nil {
		return false, err
	}
	if !named {
		return true, l.reopen()
	}
	if size >= l.o.MaxBytes {
		// The record is safe, whatever becomes of this.
		if err := l.rotate(); err != nil {
			return false, nil
		}
	}
	return false, nil
}

// look makes sure that file is what path names.
func (l *Log) look(now time.Time) error {
	if l.file != nil {
		there, err := os.Lstat(l.path)
		if err == nil {
			var here os.FileInfo
			if here, err = l.file.Stat(); err == nil && os.SameFile(there, here) {
				l.looked = now
				return nil
			}
		}
	}
	return l.reopen()
}

func (l *Log) reopen() error {
	_ = l.drop() // nothing is buffered
	return l.open()
}

// drop closes the file, and forgets its number with it: another file gets that next.
func (l *Log) drop() error {
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
	l.file, l.fd, l.looked, l.torn = f, f.Fd(), time.Now(), false
	if size := info.Size(); size > 0 { // a process may have died in the middle of a record
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			l.torn = true
		}
	}
	return nil
}

// rotate moves the full file away and begins another, unless somebody has done so already.
func (l *Log) rotate() error {
	lock, err := os.OpenFile(filepath.Join(l.dir, lockName), os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // gives the lock back as well
	if err := exclusive(lock); err != nil {
		return err
	}
	info, err := os.Lstat(l.path)
	if err == nil && info.Size() >= l.o.MaxBytes {
		for i := l.o.Keep; i > 1; i-- {
			if err := os.Rename(l.older(i-1), l.older(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

func (l *Log) older(i int) string { return l.path + "." + strconv.Itoa(i) }

// Close closes the file. Append fails afterwards, and closing again does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.drop()
}
