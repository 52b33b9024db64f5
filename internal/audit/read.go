package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// begun is the beginning of the line of a record.
const begun = `{"time":"`

// timeIn is when a record was written, in a form that sorts; "" where a line does not begin with it.
func timeIn(line []byte) string {
	if rest, ok := bytes.CutPrefix(line, []byte(begun)); ok && len(rest) > len(timeForm) && rest[len(timeForm)] == '"' {
		return string(rest[:len(timeForm)])
	}
	return ""
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
	err = ReadBack(context.Background(), dir, Mark{}, time.Time{}, false, func(line []byte, _ *Entry, _ Mark, _ bool) bool {
		for word := range bytes.FieldsFuncSeq(line, func(c rune) bool { return (c < '0' || '9' < c) && (c < 'a' || 'f' < c) }) {
			if wanted[string(word)] {
				n++
				break
			}
		}
		return false
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, err
}
