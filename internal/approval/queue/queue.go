// Package queue keeps questions for people who are not at hand. Ask puts a question on record in a
// directory of its own, which SHOULD be in the data directory, and waits. Other processes of the
// same user list the questions that wait and answer them: the command line, a server. The package
// touches that directory and nothing else.
//
// OpenIn keeps the questions elsewhere, as the gateways of a fleet do, in their database. There a gateway stands for a process below, and its
// lease for the lock of a file.
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
// for one file five times a second, which takes some 10 µs, or is woken where the files do that.
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
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/outage"
	"moltisfs/internal/share"
	"moltisfs/internal/state"
)

// lookEvery is the time between two looks for an answer: short for people, long for a machine. Where the files tell of changes it is
// looked seldom, should they have failed to.
const (
	lookEvery  = 200 * time.Millisecond
	lookSeldom = 2 * time.Second
)

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

	files state.Files
}

var _ approval.Approver = (*Queue)(nil)

// Open is the queue in dir, which is made when it is needed.
func Open(dir string) *Queue {
	return OpenIn(state.Dir{Path: dir, Temp: tempFile, Most: maxQuestion})
}

// OpenIn is the queue in files.
func OpenIn(files state.Files) *Queue { return &Queue{files: files} }

// Ask puts a question and waits until it is answered, or until ctx ends. A question that nobody can answer any more, since its gateway was out
// of touch with its fleet for longer than its lease, ends as one that was not answered in time.
func (q *Queue) Ask(ctx context.Context, question approval.Question) (approval.Answer, error) {
	if a, over := approval.ContextAnswer(ctx); over {
		return a, nil
	}
	e, release, full, err := q.take(ctx, question)
	if a, over := approval.ContextAnswer(ctx); over && err != nil {
		return a, nil
	}
	if err != nil || full != "" {
		return approval.Answer{Reason: full}, err
	}
	defer q.forget(e.ID)
	defer release()
	if q.Waits != nil {
		q.Waits(e)
	}
	changed, stop := q.files.Changes(e.ID)
	defer stop()
	every := lookEvery
	if changed != nil {
		every = lookSeldom
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for lost := false; ; {
		a, err := q.answered(e)
		if !errors.Is(err, fs.ErrNotExist) && !outage.Is(err) { // out of reach for now: it may come back
			return a, err
		}
		if lost {
			return approval.Answer{Decision: approval.TimedOut}, nil
		}
		select {
		case <-changed:
		case <-tick.C:
			if changed != nil { // it may have been answered before it was lost: that is looked at once more
				held, err := q.files.Held(e.ID + questionFile)
				lost = err == nil && !held[0]
			}
		case <-ctx.Done():
			return q.end(ctx, e)
		}
	}
}

// take puts a question where there is room for it, one at a time, or says why there is none.
func (q *Queue) take(ctx context.Context, question approval.Question) (e Entry, release func(), full string, err error) {
	err = q.turn(ctx, func(q *Queue) error {
		waiting, err := q.sweep(time.Now())
		if err != nil {
			return fmt.Errorf("looking into the queue: %w", err)
		}
		all, own, most := 0, waiting[question.Principal], int(share.Part(maxWaiting))
		for _, n := range waiting {
			all += n
		}
		switch {
		case own >= most:
			full = fmt.Sprintf("%d of your questions wait already, and that is the most", own)
		case all >= maxWaiting:
			full = fmt.Sprintf("%d questions wait already", all)
		default:
			e, release, full, err = q.put(question)
		}
		return err
	})
	if err != nil && release != nil {
		release()
	}
	return e, release, full, err
}

// turn runs do alone, with the files as they are meanwhile: the set of questions that wait, and of those that are over, changes nowhere else.
func (q *Queue) turn(ctx context.Context, do func(*Queue) error) error {
	return q.files.Update(ctx, "lock", func(files state.Files) error { return do(OpenIn(files)) })
}

// put stores a question and holds its file. Nobody takes it for one before it is whole: see readQuestion.
func (q *Queue) put(question approval.Question) (e Entry, release func(), full string, err error) {
	var id [idLen / 2]byte
	rand.Read(id[:]) //nolint:errcheck // never fails
	diff := question.Diff
	question.Diff = ""
	e = Entry{ID: hex.EncodeToString(id[:]), State: Pending, Question: question, Asked: time.Now(), PID: os.Getpid()}
	pieces, err := encode(e, diff)
	if n := len(pieces[0]) + len(pieces[1]); err != nil || n > maxQuestion {
		return e, nil, fmt.Sprintf("the question has %d bytes, and the queue takes %d; make smaller changes", n, maxQuestion), err
	}
	if release, err = q.files.Hold(e.ID+questionFile, pieces...); err != nil {
		err = fmt.Errorf("putting the question on record: %w", err)
	}
	return e, release, "", err
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
	return q.turn(ctx, func(q *Queue) error { return q.record(e) })
}

// record is recordEnd for a caller that has the turn.
func (q *Queue) record(e Entry) error {
	if there, err := q.there(e.ID, answerFile); err != nil {
		return err
	} else if there {
		return fs.ErrExist
	}
	e.Question.Diff = ""
	pieces, err := encode(e)
	if err != nil {
		return err
	}
	return q.files.Replace(e.ID+answerFile, pieces[0])
}

// forget removes a question whose end is on record, and the names of the people who were shown it. Where that fails a sweep does it.
func (q *Queue) forget(id string) {
	if there, err := q.there(id, answerFile); there && err == nil {
		_ = q.files.Remove(id + questionFile)
		_ = q.files.Remove(id + shownFile)
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
	var over []string // names of files that are kept for a while
	ids := slices.Sorted(maps.Keys(n[questionFile]))
	waits, err := q.waits(ids)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		e, err := q.readQuestion(id, nil)
		switch {
		case waits[i] && !n[answerFile][id]:
			waiting[e.Question.Principal]++ // one that can't be read is nobody's, and waits all the same
		case waits[i]:
		case err == nil:
			e.State = Gone
			_ = q.record(e) // there may be an answer, whose asker was killed
			q.forget(id)
		default:
			over = append(over, id+questionFile)
		}
	}
	for id := range n[answerFile] {
		over = append(over, id+answerFile)
	}
	is, err := q.files.Look(over...)
	if err != nil {
		return nil, err
	}
	newest := make([]int, len(over))
	for i := range newest {
		newest[i] = i
	}
	slices.SortFunc(newest, func(a, b int) int { return is[b].At.Compare(is[a].At) })
	total := int64(0)
	for n, i := range newest {
		total += is[i].Size
		if !is[i].At.IsZero() && (n >= keptMost || total > keptBytes || now.Sub(is[i].At) > keptFor) { // foreign ones stay
			_ = q.files.Remove(over[i])
		}
	}
	for id := range n[shownFile] {
		if there, err := q.there(id, questionFile); !there && err == nil {
			_ = q.files.Remove(id + shownFile)
		}
	}
	return waiting, nil
}

// names gives the IDs of the files that are called like ours, by kind.
func (q *Queue) names() (map[string]map[string]bool, error) {
	n := map[string]map[string]bool{questionFile: {}, shownFile: {}, answerFile: {}}
	files, err := q.files.List()
	for _, name := range files {
		id, kind, _ := strings.Cut(name, ".")
		if of := n["."+kind]; of != nil && isID(id) {
			of[id] = true
		}
	}
	return n, err
}

// isID reports whether a name could be one that put has given.
func isID(id string) bool {
	return len(id) == idLen && strings.Trim(id, "0123456789abcdef") == ""
}

// there reports whether a question has a file of this kind.
func (q *Queue) there(id, kind string) (bool, error) {
	f, err := q.files.Open(id + kind)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// encode gives values in the form in which they are stored, a piece for each. JSON would change a path that is not UTF-8.
func encode(values ...any) (pieces [][]byte, err error) {
	pieces = make([][]byte, len(values))
	var b bytes.Buffer
	enc := gob.NewEncoder(&b)
	for i, v := range values {
		err = errors.Join(err, enc.Encode(v))
		pieces[i] = bytes.Clone(b.Bytes())
		b.Reset()
	}
	return pieces, err
}

// waits tells for each question whether its asker still waits.
func (q *Queue) waits(ids []string) ([]bool, error) {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id + questionFile
	}
	return q.files.Held(names...)
}

// readQuestion reads a question, and its diff unless that is nil. One that is not whole yet, or never will be, is an error.
func (q *Queue) readQuestion(id string, diff *string) (e Entry, err error) {
	f, err := q.files.Open(id + questionFile)
	if err != nil {
		return e, err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	dec := gob.NewDecoder(io.LimitReader(f, maxQuestion))
	if err = dec.Decode(&e); err == nil && diff != nil {
		err = dec.Decode(diff)
	}
	if err == nil && e.ID != id {
		err = fmt.Errorf("%s is not question %s", e.ID, id)
	}
	return e, err
}

func (q *Queue) readAnswer(id string) (e Entry, err error) {
	f, err := q.files.Open(id + answerFile)
	if err != nil {
		return e, err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	err = gob.NewDecoder(io.LimitReader(f, maxQuestion)).Decode(&e)
	if err != nil || e.ID != id || !slices.Contains([]State{Approved, Denied, Expired, Cancelled, Gone}, e.State) {
		return Entry{}, fmt.Errorf("%s is no answer to %s", id+answerFile, id)
	}
	return e, nil
}
