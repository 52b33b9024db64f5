package queue

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/guardfs/flock"
)

// The files of a question are called by its ID, which is random, and these.
const (
	questionFile = ".question"
	diffFile     = ".diff"  // which is removed when its question is over
	shownFile    = ".shown" // names who was shown it whole, one a line; removed with the diff
	answerFile   = ".answer"
	tempFile     = ".tmp" // of an answer that has no name yet
	idLen        = 12     // hex digits
)

// maxRecord is how long a file may be: base64 of the longest list of paths, and what is around it.
const maxRecord = maxQuestion*3/2 + 64<<10

// A record is a question as it is stored. Paths are bytes there: they need not be UTF-8, and JSON
// would change them. The diff has a file of its own: it is content, which nobody is to find after
// the question is over.
type record struct {
	ID, Digest               string
	PID                      int
	Asked, Expires           time.Time
	Call                     string
	Principal, Session, Tool []byte
	Paths, New, Warnings     [][]byte
	Summary                  []byte
	DiffSize                 int
	Added, Removed           int
}

// An answer as it is stored.
type answer struct {
	ID, Digest string
	State      State
	By, Reason string
	At         time.Time
}

func size(q approval.Question) int {
	n := len(q.ID) + len(q.Principal) + len(q.Session) + len(q.Tool) + len(q.Summary) + len(q.Diff) +
		len(q.Digest)
	for _, s := range slices.Concat(q.Paths, q.New, q.Warnings) {
		n += len(s) + 8 // quotes and commas; there may be many short ones
	}
	return n
}

func recordOf(q approval.Question) record {
	return record{
		Digest: q.Digest, PID: os.Getpid(), Asked: time.Now(), Expires: q.Expires, Call: q.ID,
		Principal: []byte(q.Principal), Session: []byte(q.Session), Tool: []byte(q.Tool),
		Paths: mapped(q.Paths, toBytes), New: mapped(q.New, toBytes),
		Warnings: mapped(q.Warnings, toBytes),
		Summary:  []byte(q.Summary), DiffSize: len(q.Diff), Added: q.Added, Removed: q.Removed,
	}
}

func (r *record) question() approval.Question {
	return approval.Question{
		ID: r.Call, Principal: string(r.Principal), Session: string(r.Session), Tool: string(r.Tool),
		Paths: mapped(r.Paths, toString), New: mapped(r.New, toString),
		Warnings: mapped(r.Warnings, toString),
		Summary:  string(r.Summary), Added: r.Added, Removed: r.Removed,
		Digest: r.Digest, Expires: r.Expires,
	}
}

func mapped[A, B any](list []A, f func(A) B) []B {
	var out []B
	for _, a := range list {
		out = append(out, f(a))
	}
	return out
}

func toBytes(s string) []byte  { return []byte(s) }
func toString(b []byte) string { return string(b) }

// check refuses a directory that is not our own.
func (q *Queue) check() error {
	info, err := os.Lstat(q.dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", q.dir)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0: // there the bits say nothing
		return fmt.Errorf("others may write in %s (%v)", q.dir, info.Mode())
	}
	return nil
}

func (q *Queue) file(id, kind string) string { return filepath.Join(q.dir, id+kind) }

// turn is the lock of whoever counts the questions and puts another one.
func (q *Queue) turn(ctx context.Context) (*os.File, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(q.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	for err == nil {
		held, no := flock.TryLock(f)
		if held {
			return f, nil
		}
		select {
		case <-time.After(time.Millisecond):
			err = no
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if f != nil {
		f.Close() //nolint:errcheck // nothing was written to it
	}
	return nil, err
}

// A put question is one that we wait for the answer of. Its file is locked.
type put struct {
	record
	file *os.File
}

// put stores a question. Nobody takes it for one before it is whole: see readRecord.
func (q *Queue) put(question approval.Question) (p put, err error) {
	p.record = recordOf(question)
	if p.file, p.ID, err = q.create(questionFile); err != nil {
		return put{}, err
	}
	if err = q.putDiff(p.ID, question.Diff); err == nil {
		err = q.writeJSON(p.file, p.record)
	}
	if err == nil {
		err = q.syncDir()
	}
	if err != nil {
		q.forget(p.ID)
		os.Remove(p.file.Name()) //nolint:errcheck // unlocked it is nobody's question
		flock.Close(p.file)      //nolint:errcheck // it is gone
		return put{}, err
	}
	return p, nil
}

func (q *Queue) putDiff(id, diff string) error {
	f, err := os.OpenFile(q.file(id, diffFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err = q.did("create"+diffFile, err); err == nil {
		err = q.write(f, []byte(diff))
	}
	if f != nil {
		f.Close() //nolint:errcheck // it is on stable storage, or of no use
	}
	return err
}

// forget removes the diff of a question that is over, and who was shown it.
func (q *Queue) forget(id string) {
	os.Remove(q.file(id, diffFile))  //nolint:errcheck // then a sweep does it
	os.Remove(q.file(id, shownFile)) //nolint:errcheck // the same
}

// readDiff reads the diff of a question that waits.
func (q *Queue) readDiff(r record) (string, error) {
	f, err := q.open(r.ID, diffFile)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err == nil && len(text) != r.DiffSize {
		err = fmt.Errorf("%s has %d bytes in place of %d", f.Name(), len(text), r.DiffSize)
	}
	return string(text), err
}

// settle puts an answer on record. It is fs.ErrExist if there is one already.
func (q *Queue) settle(a answer) error {
	f, id, err := q.create(tempFile)
	if err != nil {
		return err
	}
	if err = q.writeJSON(f, a); err == nil {
		err = q.did("link", os.Link(q.file(id, tempFile), q.file(a.ID, answerFile)))
	}
	f.Close()           //nolint:errcheck // it is on stable storage, or of no use
	os.Remove(f.Name()) //nolint:errcheck // then a sweep does it
	if err == nil {
		q.syncDir() //nolint:errcheck // the answer counts; a power cut ends its question anyway
	}
	return err
}

// create makes a new file and locks it. A sweep may lock it before we do, and takes it away then.
func (q *Queue) create(kind string) (f *os.File, id string, err error) {
	for range 8 {
		var b [idLen / 2]byte
		rand.Read(b[:]) //nolint:errcheck // never fails
		id = hex.EncodeToString(b[:])
		name := q.file(id, kind)
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err = q.did("create"+kind, err); err != nil {
			if f != nil {
				f.Close() //nolint:errcheck // nothing was written to it
			}
			return nil, "", err
		}
		held, err := flock.TryLock(f)
		if err == nil && held && sameFile(f, name) {
			return f, id, nil
		}
		f.Close() //nolint:errcheck // nothing was written to it
		if err != nil {
			return nil, "", err
		}
	}
	return nil, "", errors.New("its file could not be locked")
}

// did is err, or what a test has become of a step.
func (q *Queue) did(what string, err error) error {
	if err != nil {
		return err
	}
	return q.step(what)
}

func (q *Queue) writeJSON(f *os.File, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return q.write(f, text)
}

func (q *Queue) write(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if err = q.did("write", err); err == nil {
		err = q.did("sync", f.Sync())
	}
	return err
}

// syncDir puts the names on stable storage, where the system can do that.
func (q *Queue) syncDir() error {
	d, err := os.Open(q.dir)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	if err = d.Sync(); runtime.GOOS == "windows" {
		err = nil
	}
	return q.did("sync directory", err)
}

func sameFile(f *os.File, name string) bool {
	at, err := os.Lstat(name)
	is, ferr := f.Stat()
	return err == nil && ferr == nil && os.SameFile(at, is)
}

// open opens a file of ours, and refuses what is not a regular one. A fifo would block, and a link
// lead elsewhere.
func (q *Queue) open(id, kind string) (*os.File, error) {
	name := q.file(id, kind)
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !plausible(info) {
		return nil, fmt.Errorf("%s is not a file of ours", name)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err == nil && !sameFile(f, name) {
		f.Close() //nolint:errcheck // nothing was written to it
		return nil, fmt.Errorf("%s is not a file of ours", name)
	}
	return f, err
}

// plausible says whether a file may be one of ours.
func plausible(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Size() <= maxRecord
}

func decode(f *os.File, v any) error {
	text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// readRecord reads a question, and says whether its asker still waits. One that is not whole yet,
// or never will be, is an error.
func (q *Queue) readRecord(id string) (r record, waits bool, err error) {
	f, err := q.open(id, questionFile)
	if err != nil {
		return r, false, err
	}
	defer flock.Close(f) //nolint:errcheck // closing is what lets go
	free, err := flock.TryLockShared(f)
	if err == nil {
		err = decode(f, &r)
	}
	if err == nil && r.ID != id {
		err = fmt.Errorf("%s is not question %s", f.Name(), id)
	}
	return r, !free, err
}

func (q *Queue) readAnswer(id string) (a answer, err error) {
	f, err := q.open(id, answerFile)
	if err != nil {
		return a, err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	if err = decode(f, &a); err == nil && (a.ID != id || !a.State.over()) {
		err = fmt.Errorf("%s is no answer to %s", f.Name(), id)
	}
	return a, err
}

// isID says whether a name could be one that create has given.
func isID(id string) bool {
	return len(id) == idLen && strings.Trim(id, "0123456789abcdef") == ""
}
