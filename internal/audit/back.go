package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Mark is a place in both logs, for reading them backwards: the numbers of the records that were read last. The zero Mark is the end,
// behind the newest records. Text and ParseMark write it as "120.34".
type Mark struct{ Calls, Changes uint64 }

// String is the Mark as ParseMark reads it.
func (m Mark) String() string { return fmt.Sprintf("%d.%d", m.Calls, m.Changes) }

// ParseMark reads what String wrote; false where a text is none of that.
func ParseMark(text string) (m Mark, ok bool) {
	calls, changes, ok := strings.Cut(text, ".")
	var bad [2]error
	m.Calls, bad[0] = strconv.ParseUint(calls, 10, 63)
	m.Changes, bad[1] = strconv.ParseUint(changes, 10, 63)
	return m, ok && bad[0] == nil && bad[1] == nil
}

// ReadBack gives fn the records of the logs of dir that are older than from and than until, if that is set, the newest first, each with its
// line, the Mark behind it and whether it is of the log of changes, until fn says that it has seen enough. Lines that are no JSON objects are left out. With changes only the log of changes is read.
func ReadBack(ctx context.Context, dir string, from Mark, until time.Time, changes bool, fn func(line []byte, e *Entry, at Mark, change bool) (enough bool)) (err error) {
	before := ""
	if !until.IsZero() {
		before = until.UTC().Format(timeForm)
	}
	var logs []*backward
	for i, d := range []string{dir, ChangesDir(dir)} {
		if i == 0 && changes {
			continue
		}
		files, _, oerr := openLogs(d)
		defer closeAll(files)
		if errors.Is(oerr, fs.ErrNotExist) {
			continue
		}
		err = errors.Join(err, oerr)
		logs = append(logs, &backward{files: files, below: []*uint64{&from.Calls, &from.Changes}[i], until: before, at: -1})
	}
	if err == nil && len(logs) == 0 {
		err = &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
	}
	for err == nil && ctx.Err() == nil {
		var next *backward
		for _, l := range logs {
			if err = errors.Join(err, l.fill()); l.line != nil && (next == nil || !l.entry.Time.Before(next.entry.Time)) {
				next = l
			}
		}
		if err != nil || next == nil {
			break
		}
		for _, l := range logs { // what comes meanwhile is behind the first mark, also in the log that is not read from yet
			if *l.below == 0 {
				*l.below = l.seq + 1
			}
		}
		line := next.line
		*next.below, next.line = next.seq, nil
		if fn(line, &next.entry, from, next.below == &from.Changes) {
			return nil
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("reading the audit log: %w", err)
	}
	return err
}

// backward is one log while it is read from its end.
type backward struct {
	files []*os.File // the last one is being read
	below *uint64    // the number of the record that was read last; 0: none was
	until string     // as timeIn gives it; "" is any time
	at    int64      // where buf begins in that file; below 0: it was not looked at
	buf   []byte     // whole lines that are still to be read, but for the beginning of the first

	line  []byte // the next record; nil: there is none
	entry Entry
	seq   uint64
}

// backChunk is how much is read at once.
const backChunk = 256 << 10

// fill reads the next record, if there is one.
func (b *backward) fill() error {
	for b.line == nil && len(b.files) > 0 {
		line, err := b.before()
		if err == io.EOF {
			b.files, b.at = b.files[:len(b.files)-1], -1
			continue
		}
		if err != nil {
			return err
		}
		// Most lines that are not wanted are passed by without taking them apart: the time stands at the beginning, the number near the end.
		const number = `,"seq":`
		seq := uint64(0)
		if i := bytes.LastIndex(line, []byte(number)); i >= 0 {
			n, _, _ := bytes.Cut(line[i+len(number):], []byte(","))
			seq, _ = strconv.ParseUint(string(n), 10, 63)
		}
		if seq > 0 && *b.below > 0 && seq >= *b.below || b.until != "" && timeIn(line) >= b.until {
			continue
		}
		b.entry = Entry{}
		if json.Unmarshal(line, &b.entry) != nil {
			continue
		}
		b.line, b.seq = bytes.Clone(line), cmp.Or(seq, *b.below) // a line without a number has no place of its own
	}
	return nil
}

// before gives the line before those that were given; io.EOF at the beginning of the file.
func (b *backward) before() ([]byte, error) {
	f := b.files[len(b.files)-1]
	if b.at < 0 {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		b.at, b.buf = info.Size(), nil
		for whole := -1; whole < 0 && b.at > 0; { // what has no line end yet is being written
			if err := b.more(f); err != nil {
				return nil, err
			}
			if whole = bytes.LastIndexByte(b.buf, '\n'); whole >= 0 {
				b.buf = b.buf[:whole+1]
			} else if b.at == 0 {
				b.buf = nil
			}
		}
	}
	for {
		end := len(b.buf) - 1 // the line end of the last line
		if end < 0 && b.at == 0 {
			return nil, io.EOF
		}
		if begin := bytes.LastIndexByte(b.buf[:max(end, 0)], '\n') + 1; end >= 0 && (begin > 0 || b.at == 0) {
			line := b.buf[begin:end]
			b.buf = b.buf[:begin]
			return line, nil
		}
		if len(b.buf) > maxLine { // it is no record
			b.buf = b.buf[:0]
		}
		if err := b.more(f); err != nil {
			return nil, err
		}
	}
}

// more reads as much again of what is before buf, or a chunk.
func (b *backward) more(f *os.File) error {
	n := min(b.at, int64(max(backChunk, len(b.buf))))
	part := make([]byte, n, n+int64(len(b.buf)))
	if _, err := f.ReadAt(part, b.at-n); err != nil {
		return err
	}
	b.at, b.buf = b.at-n, append(part, b.buf...)
	return nil
}
