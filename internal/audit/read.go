package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Entry is a Record as it is read back from its line.
type Entry struct {
	Time  time.Time `json:"time"`
	Phase string    `json:"phase"`
	Call  string    `json:"call"`
	Caller
	About
	Result
}

// Caller is who called.
type Caller struct {
	Principal string `json:"principal"`
	Session   string `json:"session"`
	Turn      string `json:"turn"`
	Where     string `json:"where"`
	Client    string `json:"client"`
	By        string `json:"by"`
	Version   string `json:"version"`
	Policy    string `json:"policy"`
}

// About is what was called, and on what.
type About struct {
	Dialect string `json:"dialect"`
	Tool    string `json:"tool"`
	Paths   []Name `json:"paths"`
	Pattern string `json:"pattern"`
	Window  string `json:"window"`
	DryRun  bool   `json:"dry_run"`
}

// Result is what became of it.
type Result struct {
	Outcome    string `json:"outcome"`
	Rule       string `json:"rule"`
	Approval   string `json:"approval"`
	Checkpoint string `json:"checkpoint"`
	Bytes      int64  `json:"bytes"`
	Alert      string `json:"alert"`
	Error      string `json:"error"`
}

// Name is a path on record: a string, or {"bytes":"base64"} where it is not UTF-8.
type Name string

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

const (
	followEvery = 200 * time.Millisecond // how often a file that is followed is looked at
	// lateWriters is how long a file that was moved away may still be written to: see checkInterval.
	lateWriters = checkInterval + followEvery
)

// Read gives fn each line of the logs in dir, without its end, the oldest first: of the log of changes
// what is older than all that the others still have. Then it calls caughtUp, unless that is nil, and with follow it goes on with what is written until ctx ends, which
// is no error then.
func Read(ctx context.Context, dir string, follow bool, caughtUp func() error,
	fn func(line []byte) error) error {
	files, err := newerThan(dir, nil)
	if err == nil {
		err = earlier(ctx, ChangesDir(dir), firstOf(files), fn)
	}
	for err == nil {
		if len(files) == 0 {
			return nil // the one before has come back
		}
		current := files[len(files)-1]
		for _, f := range files {
			t := tail{r: bufio.NewReaderSize(f, 64<<10)}
			if err = t.drain(ctx, fn); err == nil && f == current {
				if caughtUp != nil {
					err = caughtUp()
				}
				if caughtUp = nil; err == nil && follow {
					err = t.followed(ctx, filepath.Join(dir, FileName), f, fn)
				}
			}
			if f != current {
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				break
			}
		}
		if err == nil && follow {
			files, err = newerThan(dir, current)
		} else if err == nil {
			err = io.EOF
		}
		_ = current.Close() // nothing was written through it
	}
	if err == io.EOF || follow && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return fmt.Errorf("reading the audit log: %w", err)
}

// timeOf is when a line was written; the zero time where that can't be told.
func timeOf(line []byte) time.Time {
	var r struct{ Time time.Time }
	_ = json.Unmarshal(line, &r)
	return r.Time
}

// firstOf is when the first record of files was written; the zero time where there is none.
func firstOf(files []*os.File) (first time.Time) {
	for _, f := range files {
		r := bufio.NewReader(io.NewSectionReader(f, 0, math.MaxInt64))
		for line, err := readLine(r, maxLine); err == nil; line, err = readLine(r, maxLine) {
			if first = timeOf(line); !first.IsZero() {
				return first
			}
		}
	}
	return first
}

// earlier gives fn the lines of the logs in dir that are older than first, if there is one.
func earlier(ctx context.Context, dir string, first time.Time, fn func([]byte) error) error {
	files, err := newerThan(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	past := false
	for _, f := range files {
		if err == nil {
			t := tail{r: bufio.NewReaderSize(f, 64<<10)}
			err = t.drain(ctx, func(line []byte) error {
				if past = past || !first.IsZero() && !timeOf(line).Before(first); past {
					return nil
				}
				return fn(line)
			})
		}
		_ = f.Close() // nothing was written through it
	}
	return err
}

// tail is a log that is being read, up to its end for now.
type tail struct {
	r    *bufio.Reader
	part []byte // of a line whose end is not there yet
}

func (t *tail) drain(ctx context.Context, fn func([]byte) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece, err := t.r.ReadSlice('\n')
		t.part = append(t.part, piece...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		default:
			line := t.part[:len(t.part)-1]
			if t.part = t.part[:0]; len(line) > 0 {
				if err := fn(line); err != nil {
					return err
				}
			}
		}
	}
}

// followed drains f until it is not what name means any more, and nobody writes to it.
func (t *tail) followed(ctx context.Context, name string, f *os.File,
	fn func([]byte) error) error {
	here, err := f.Stat()
	if err != nil {
		return err
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	var moved time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-tick.C:
			there, err := os.Lstat(name)
			switch {
			case err == nil && os.SameFile(here, there):
				moved = time.Time{}
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return err
			case moved.IsZero():
				moved = now
			}
			if err := t.drain(ctx, fn); err != nil {
				return err
			}
			if err == nil && !moved.IsZero() && now.Sub(moved) > lateWriters {
				return nil
			}
		}
	}
}

// newerThan opens the logs that were begun after one, the oldest first; of nil, all.
func newerThan(dir string, than *os.File) (files []*os.File, err error) {
	var old fs.FileInfo
	if than != nil {
		if old, err = than.Stat(); err != nil {
			return nil, err
		}
	}
	var before fs.FileInfo
	for i := 0; ; i++ {
		name := filepath.Join(dir, FileName)
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		f, err := os.Open(name)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err == nil {
			var info fs.FileInfo
			info, err = f.Stat()
			switch {
			case err == nil && old != nil && os.SameFile(info, old):
				_ = f.Close()
				slices.Reverse(files)
				return files, nil
			case err == nil && before != nil && os.SameFile(info, before): // it was moved just now
				_ = f.Close()
				continue
			}
			before, files = info, append(files, f)
		}
		if err != nil {
			for _, f := range files {
				_ = f.Close()
			}
			return nil, err
		}
	}
	slices.Reverse(files)
	return files, nil
}
