// Package queue keeps questions for people who are not at hand. Ask puts a question on record in a
// directory of its own, which SHOULD be in the data directory, and waits. Other processes of the
// same user list the questions that wait and answer them: the command line, a server. The package
// touches that directory and nothing else.
//
//	asker := queue.Open(dir)                        // an approval.Approver
//	waiting, _ := queue.Open(dir).List(false)       // in another process
//	whole, _ := queue.Open(dir).Get(waiting[0].ID)  // with the diff, to be shown to ann
//	queue.Open(dir).Saw(whole.ID, queue.By{Name: "ann"})
//	queue.Open(dir).Answer(whole.ID, approval.Approved, queue.By{Name: "ann"}, "")
//
// A question is a file that its asker holds a lock on for as long as it waits. An answer is a file
// beside it, which is made under the lock of the queue: the first one counts, also between processes,
// and everybody else is told what was answered. So the states are these:
//
//	pending    there is no answer, and somebody holds the lock
//	approved, denied    somebody answered
//	expired    nobody did in time; the asker put that on record
//	cancelled  the asker hung up, and put that on record
//	gone       there is no answer, and nobody holds the lock: the asker's process has ended
//
// No age decides any of it. When a question is over is up to its asker, whose clock is monotonic.
// An answer is for the one question with its ID and its digest, and only the call that asked takes
// it: after a restart nothing is left to approve.
//
// Every failure refuses: a question that can't be stored is not put, and an answer that can't
// be read does not approve. Files in that directory that are not ours are skipped, and never
// followed.
//
// An answer has the question in it, without the diff, and stays on record for a while: seven days, the
// newest 500, 64 MB. The file of the question goes when it is over; where the asker was killed, when
// the next question is put. The audit log has the outcome of the change.
//
// A Queue is safe for concurrent use. It starts nothing: while a question waits, its asker looks
// for one file five times a second, which takes some 10 µs.
package queue

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/gob"
	"encoding/hex"
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
	"moltisfs/internal/share"
)

// lookEvery is the time between two looks for an answer: short for people, long for a machine.
const lookEvery = 200 * time.Millisecond

// The limits of the questions that wait.
const (
	maxQuestion = 8 << 20 // bytes of a question; nobody reads more
	maxWaiting  = 100     // questions of all processes together, of which one principal has its share
)

// Bounds of the record of questions that are over: time, number and bytes. The newest are kept.
const (
	keptFor   = 7 * 24 * time.Hour
	keptMost  = 500
	keptBytes = 64 << 20
)

// The files of a question are called by its ID, which is random, and these.
const (
	questionFile = ".question" // an Entry, and then the diff: content, which nobody is to find later
	shownFile    = ".shown"    // names the people who were shown it whole, one a line
	answerFile   = ".answer"   // an Entry without the diff
	tempFile     = "answer.tmp"
	idLen        = 12 // hex digits
)

// Queue is one directory of questions.
type Queue struct {
	// Waits, where set, hears of each question that this Queue has put, before Ask waits for its answer.
	Waits func(Entry)

	dir  string
	step func(what string) error // for tests: it is told of each step, and can make it fail
}

var _ approval.Approver = (*Queue)(nil)

// Open is the queue in dir, which is made when it is needed.
func Open(dir string) *Queue {
	return &Queue{dir: dir, step: func(string) error { return nil }}
}

// Ask puts a question and waits until it is answered, or until ctx ends.
func (q *Queue) Ask(ctx context.Context, question approval.Question) (approval.Answer, error) {
	if a, over := approval.ContextAnswer(ctx); over {
		return a, nil
	}
	if err := os.MkdirAll(q.dir, 0o700); err != nil {
		return approval.Answer{}, fmt.Errorf("making the queue: %w", err)
	}
	e, file, full, err := q.take(ctx, question)
	if a, over := approval.ContextAnswer(ctx); over && err != nil {
		return a, nil
	}
	if err != nil || full != "" {
		return approval.Answer{Reason: full}, err
	}
	defer q.forget(e.ID)
	defer flock.Close(file) //nolint:errcheck // closing gives the lock back
	if q.Waits != nil {
		q.Waits(e)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		a, err := q.answered(e)
		if !errors.Is(err, fs.ErrNotExist) {
			return a, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return q.end(ctx, e)
		}
	}
}

// take puts a question where there is room for it, one at a time, or says why there is none.
func (q *Queue) take(ctx context.Context, question approval.Question) (e Entry, file *os.File, full string, err error) {
	turn, err := q.turn(ctx)
	if err != nil {
		return e, nil, "", fmt.Errorf("locking the queue: %w", err)
	}
	defer flock.Close(turn) //nolint:errcheck // closing gives the lock back
	waiting, err := q.sweep(time.Now())
	if err != nil {
		return e, nil, "", fmt.Errorf("looking into the queue: %w", err)
	}
	all, own, most := 0, waiting[question.Principal], int(share.Part(maxWaiting))
	for _, n := range waiting {
		all += n
	}
	switch {
	case own >= most:
		return e, nil, fmt.Sprintf("%d of your questions wait already, and that is the most", own), nil
	case all >= maxWaiting:
		return e, nil, fmt.Sprintf("%d questions wait already", all), nil
	}
	return q.put(question)
}

// turn takes the lock under which the set of questions that wait, and of those that are over, changes.
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

// put stores a question and locks its file. Nobody takes it for one before it is whole: see readQuestion.
func (q *Queue) put(question approval.Question) (e Entry, f *os.File, full string, err error) {
	var id [idLen / 2]byte
	rand.Read(id[:]) //nolint:errcheck // never fails
	diff := question.Diff
	question.Diff = ""
	e = Entry{ID: hex.EncodeToString(id[:]), State: Pending, Question: question, Asked: time.Now(), PID: os.Getpid()}
	text, err := encode(e, diff)
	if err != nil || len(text) > maxQuestion {
		return e, nil, fmt.Sprintf("the question has %d bytes, and the queue takes %d; make smaller changes",
			len(text), maxQuestion), err
	}
	f, err = os.OpenFile(q.file(e.ID, questionFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err = q.did("create"+questionFile, err); err == nil {
		err = flock.Lock(f) // a reader has the lock for a moment
	}
	if err == nil {
		err = q.write(f, text)
	}
	if err == nil {
		err = q.syncDir()
	}
	if err != nil {
		if f != nil {
			os.Remove(f.Name()) //nolint:errcheck // unlocked it is nobody's question
			flock.Close(f)      //nolint:errcheck // it is gone
		}
		return e, nil, "", fmt.Errorf("putting the question on record: %w", err)
	}
	return e, f, "", nil
}

// end takes a question back that nobody answered. If somebody did just now, and was told so, it
// counts; not for a call that was cancelled.
func (q *Queue) end(ctx context.Context, e Entry) (approval.Answer, error) {
	over, _ := approval.ContextAnswer(ctx)
	e.State, e.Answered = Expired, time.Now()
	if over.Decision != approval.TimedOut {
		e.State = Cancelled
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := q.recordEnd(ctx, e)
	if errors.Is(err, fs.ErrExist) && e.State == Expired {
		return q.answered(e)
	}
	return over, nil // where the end could not be put on record, letting go of the lock says it
}

// answered is the answer to a question of ours; fs.ErrNotExist while there is none.
func (q *Queue) answered(e Entry) (approval.Answer, error) {
	a, err := q.readAnswer(e.ID)
	if err != nil {
		return approval.Answer{}, err
	}
	if a.Question.Digest != e.Question.Digest {
		return approval.Answer{}, fmt.Errorf("the answer to question %s is for another change", e.ID)
	}
	out := approval.Answer{By: a.By, Reason: a.Reason}
	switch a.State {
	case Approved:
		out.Decision = approval.Approved
	case Expired:
		out.Decision = approval.TimedOut
	}
	return out, nil
}

// recordEnd puts the end of a question on record. It is fs.ErrExist if there is one already.
func (q *Queue) recordEnd(ctx context.Context, e Entry) error {
	turn, err := q.turn(ctx)
	if err != nil {
		return err
	}
	defer flock.Close(turn) //nolint:errcheck // closing gives the lock back
	return q.record(e)
}

// record is recordEnd for a caller that has the turn.
func (q *Queue) record(e Entry) error {
	name, temp := q.file(e.ID, answerFile), filepath.Join(q.dir, tempFile)
	if _, err := os.Lstat(name); err == nil {
		return fs.ErrExist
	}
	e.Question.Diff = ""
	text, err := encode(e)
	if err != nil {
		return err
	}
	os.Remove(temp) //nolint:errcheck // it is there only if its writer was killed
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err = q.did("create", err); err == nil {
		err = q.write(f, text)
	}
	if f != nil {
		f.Close() //nolint:errcheck // it is on stable storage, or of no use
	}
	if err == nil {
		err = q.did("rename", os.Rename(temp, name))
	}
	if err != nil {
		os.Remove(temp) //nolint:errcheck // then the next writer does it
		return err
	}
	q.syncDir() //nolint:errcheck // the answer counts; a power cut ends its question anyway
	return nil
}

// forget removes a question whose end is on record, and the names of the people who were shown it.
func (q *Queue) forget(id string) {
	if q.there(id, answerFile) {
		os.Remove(q.file(id, questionFile)) //nolint:errcheck // then a sweep does it
		os.Remove(q.file(id, shownFile))    //nolint:errcheck // the same
	}
}

// sweep counts the questions that wait, by principal, and removes questions that are over and too old, and those of
// killed processes. The caller has the turn. Errors of single files leave them to the next sweep.
func (q *Queue) sweep(now time.Time) (waiting map[string]int, err error) {
	n, err := q.names()
	if err != nil {
		return nil, err
	}
	waiting = map[string]int{}
	type past struct {
		name string
		info fs.FileInfo
	}
	var over []past
	for _, id := range n[questionFile] {
		e, waits, err := q.readQuestion(id, nil)
		switch {
		case waits && !q.there(id, answerFile):
			waiting[e.Question.Principal]++ // one that can't be read is nobody's, and waits all the same
		case waits:
		case err == nil:
			e.State = Gone
			_ = q.record(e) // there may be an answer, whose asker was killed
			q.forget(id)
		default:
			if info, err := os.Lstat(q.file(id, questionFile)); err == nil && plausible(info) {
				over = append(over, past{q.file(id, questionFile), info})
			}
		}
	}
	for _, id := range n[answerFile] {
		if info, err := os.Lstat(q.file(id, answerFile)); err == nil && plausible(info) {
			over = append(over, past{q.file(id, answerFile), info})
		}
	}
	slices.SortFunc(over, func(a, b past) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	total := int64(0)
	for i, p := range over {
		total += p.info.Size()
		if i >= keptMost || total > keptBytes || now.Sub(p.info.ModTime()) > keptFor {
			os.Remove(p.name) //nolint:errcheck // then the next sweep does it
		}
	}
	for _, id := range n[shownFile] {
		if !q.there(id, questionFile) {
			os.Remove(q.file(id, shownFile)) //nolint:errcheck // the same
		}
	}
	return waiting, nil
}

// names gives the IDs of the files that are called like ours, by their kind.
func (q *Queue) names() (map[string][]string, error) {
	n := map[string][]string{}
	if err := q.check(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return n, err
	}
	entries, err := os.ReadDir(q.dir)
	for _, e := range entries {
		if id, kind, _ := strings.Cut(e.Name(), "."); isID(id) {
			n["."+kind] = append(n["."+kind], id)
		}
	}
	return n, err
}

// isID reports whether a name could be one that put has given.
func isID(id string) bool {
	return len(id) == idLen && strings.Trim(id, "0123456789abcdef") == ""
}

func (q *Queue) file(id, kind string) string { return filepath.Join(q.dir, id+kind) }

// there reports whether a question has a file of this kind.
func (q *Queue) there(id, kind string) bool {
	_, err := os.Lstat(q.file(id, kind))
	return err == nil
}

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

// did gives err, or else the error that a test wants of this step.
func (q *Queue) did(what string, err error) error {
	if err != nil {
		return err
	}
	return q.step(what)
}

// encode gives values in the form in which they are stored. JSON would change a path that is not UTF-8.
func encode(values ...any) ([]byte, error) {
	var b bytes.Buffer
	enc := gob.NewEncoder(&b)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
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

// open opens a file of ours, and refuses one that is not regular: a fifo would block, and a link
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
	if err != nil {
		return nil, err
	}
	if is, err := f.Stat(); err != nil || !os.SameFile(info, is) {
		f.Close() //nolint:errcheck // nothing was written to it
		return nil, fmt.Errorf("%s is not a file of ours", name)
	}
	return f, nil
}

// plausible reports whether a file may be one of ours.
func plausible(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Size() <= maxQuestion
}

// readQuestion reads a question, and its diff unless that is nil, and says whether its asker still waits.
// One that is not whole yet, or never will be, is an error.
func (q *Queue) readQuestion(id string, diff *string) (e Entry, waits bool, err error) {
	f, err := q.open(id, questionFile)
	if err != nil {
		return e, false, err
	}
	defer flock.Close(f) //nolint:errcheck // closing gives the lock back
	free, err := flock.TryLockShared(f)
	dec := gob.NewDecoder(io.LimitReader(f, maxQuestion))
	if err == nil {
		err = dec.Decode(&e)
	}
	if err == nil && diff != nil {
		err = dec.Decode(diff)
	}
	if err == nil && e.ID != id {
		err = fmt.Errorf("%s is not question %s", f.Name(), id)
	}
	return e, !free, err
}

// waits reports whether the asker of a question still holds the lock of its file, which is not read.
func (q *Queue) waits(id string) bool {
	f, err := q.open(id, questionFile)
	if err != nil {
		return false
	}
	defer flock.Close(f) //nolint:errcheck // closing gives the lock back
	free, err := flock.TryLockShared(f)
	return err == nil && !free
}

func (q *Queue) readAnswer(id string) (e Entry, err error) {
	f, err := q.open(id, answerFile)
	if err != nil {
		return e, err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	err = gob.NewDecoder(io.LimitReader(f, maxQuestion)).Decode(&e)
	if err != nil || e.ID != id || !slices.Contains([]State{Approved, Denied, Expired, Cancelled, Gone}, e.State) {
		return Entry{}, fmt.Errorf("%s is no answer to %s", f.Name(), id)
	}
	return e, nil
}
