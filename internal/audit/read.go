package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	"unicode/utf8"

	"moltisfs/internal/guardfs/flock"
)

// Entry is a Record as it is read back from its line, but for Duration.
type Entry struct {
	Record
	Paths []Name `json:"paths"`
}

// Name is a path on record: a string, or {"bytes":"base64"} where it is not UTF-8.
type Name string

// MarshalJSON gives the one or the other form: two names must not become one.
func (n Name) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(n)) {
		return json.Marshal(struct {
			Bytes []byte `json:"bytes"`
		}{[]byte(n)})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(string(n))
	return b.Bytes(), err
}

// UnmarshalJSON takes both forms.
func (n *Name) UnmarshalJSON(b []byte) error {
	var odd struct{ Bytes []byte }
	if len(b) > 0 && b[0] == '{' {
		err := json.Unmarshal(b, &odd)
		*n = Name(odd.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(n))
}

// followEvery is the time between two looks at files that are followed.
const followEvery = 200 * time.Millisecond

// Read gives fn each line of the logs of dir, without its end, in the order of time. Then it calls
// caughtUp, unless that is nil, and with follow it goes on with later records until ctx ends, which
// is no error then.
func Read(ctx context.Context, dir string, follow bool, caughtUp func() error,
	fn func(line []byte) error) (err error) {
	tails := []*tail{{dir: dir}, {dir: ChangesDir(dir)}}
	defer func() {
		for _, t := range tails {
			closeAll(t.files)
		}
		if err != nil {
			err = fmt.Errorf("reading the audit log: %w", err)
		}
	}()
	err = tails[0].more()
	if cerr := tails[1].more(); err == nil || !errors.Is(cerr, fs.ErrNotExist) {
		err = errors.Join(err, cerr)
	}
	if none := errors.Is(err, fs.ErrNotExist); err != nil && !(none && len(tails[0].files)+len(tails[1].files) > 0) {
		return err
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err := drain(ctx, tails, fn); err != nil {
			if follow && ctx.Err() != nil {
				return nil
			}
			return err
		}
		if caughtUp != nil {
			if err := caughtUp(); err != nil {
				return err
			}
			caughtUp = nil
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, t := range tails {
			if err := t.more(); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
}

// drain gives fn the lines that are there now, of all tails in the order of time.
func drain(ctx context.Context, tails []*tail, fn func([]byte) error) error {
	for {
		var next *tail
		for _, t := range tails {
			if err := t.fill(); err != nil {
				return err
			}
			if t.line != nil && (next == nil || t.time < next.time) {
				next = t
			}
		}
		if err := ctx.Err(); next == nil || err != nil {
			return err
		}
		line := next.line
		next.line = nil
		if err := fn(line); err != nil {
			return err
		}
	}
}

// A tail is the log of one directory while it is read.
type tail struct {
	dir   string
	files []*os.File // the first is being read
	r     *bufio.Reader
	part  []byte // of a line whose end is not there yet
	line  []byte // the next one; nil: there is none yet
	time  string // when it was written, or else the one before
}

// fill reads the next line, if there is one.
func (t *tail) fill() error {
	for t.line == nil && len(t.files) > 0 {
		if t.r == nil {
			t.r, t.part = bufio.NewReaderSize(t.files[0], 64<<10), nil
		}
		if n := len(t.part); n > 0 && t.part[n-1] == '\n' {
			t.part = t.part[:0]
		}
		piece, err := t.r.ReadSlice('\n')
		t.part = append(t.part, piece...)
		switch {
		case err == io.EOF && len(t.files) == 1:
			return nil
		case err == io.EOF:
			_ = t.files[0].Close() // nothing was written through it
			t.files, t.r = t.files[1:], nil
		case err != nil && err != bufio.ErrBufferFull:
			return err
		case err == nil && len(t.part) > 1:
			t.line = t.part[:len(t.part)-1]
			t.time = cmp.Or(timeIn(t.line), t.time)
		}
	}
	return nil
}

// begun is the beginning of the line of a record.
const begun = `{"time":"`

// timeIn is when a record was written, in a form that sorts; "" where a line does not begin with it.
func timeIn(line []byte) string {
	if rest, ok := bytes.CutPrefix(line, []byte(begun)); ok && len(rest) > len(timeForm) && rest[len(timeForm)] == '"' {
		return string(rest[:len(timeForm)])
	}
	return ""
}

// more opens the files that were begun after the last one that is open.
func (t *tail) more() error {
	if n := len(t.files); n > 0 && isNamed(t.files[n-1], filepath.Join(t.dir, FileName)) {
		return nil
	}
	logs, _, err := openLogs(t.dir)
	if err != nil {
		return err
	}
	if n := len(t.files); n > 0 {
		last, err := t.files[n-1].Stat()
		if err != nil {
			closeAll(logs)
			return err
		}
		for i, f := range logs {
			if info, err := f.Stat(); err == nil && os.SameFile(info, last) {
				closeAll(logs[:i+1])
				logs = logs[i+1:]
				break
			}
		}
	}
	t.files = append(t.files, logs...)
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written through it
	}
}

// openLogs opens the files of one directory, the oldest first, and reads the end of their chain, at
// one moment. at is the zero end where there is none.
func openLogs(dir string) (logs []*os.File, at end, err error) {
	last, err := os.Open(filepath.Join(dir, lastName))
	if err == nil {
		defer flock.Close(last) //nolint:errcheck // nothing was written through it
		if err = lock(last); err == nil {
			at, _, err = load(last)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, at, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, at, err
	}
	var numbers []int // 0 is the current file
	for _, e := range entries {
		number, older := strings.CutPrefix(e.Name(), FileName+".")
		if n, err := strconv.Atoi(number); older && err == nil && n > 0 {
			numbers = append(numbers, n)
		} else if e.Name() == FileName {
			numbers = append(numbers, 0)
		}
	}
	if len(numbers) == 0 && last == nil {
		return nil, at, &fs.PathError{Op: "open", Path: filepath.Join(dir, FileName), Err: fs.ErrNotExist}
	}
	slices.Sort(numbers)
	for _, n := range slices.Backward(numbers) {
		name := filepath.Join(dir, FileName)
		if n > 0 {
			name += "." + strconv.Itoa(n)
		}
		f, err := os.Open(name)
		if err != nil {
			closeAll(logs)
			return nil, at, err
		}
		logs = append(logs, f)
	}
	return logs, at, nil
}

// CountMentions counts the records in the logs of dir that hold one of these SHA-256, 64 lower-case
// hex digits each. It changes nothing: a record stays what it is.
func CountMentions(dir string, hashes []string) (n int, err error) {
	wanted := map[string]bool{}
	for _, h := range hashes {
		wanted[h] = true
	}
	err = Read(context.Background(), dir, false, nil, func(line []byte) error {
		for word := range bytes.FieldsFuncSeq(line, func(c rune) bool { return (c < '0' || '9' < c) && (c < 'a' || 'f' < c) }) {
			if wanted[string(word)] {
				n++
				break
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, err
}
