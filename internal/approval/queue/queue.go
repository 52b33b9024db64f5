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
// beside it, which gets its name by one link(2): whoever is first wins, also between processes, and
// everybody else is told what was answered. So the states are these:
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
// followed. Where the file system has no hard links, no question can be answered.
//
// A question that is over stays on record for a while, without its diff: seven days, the newest 500 questions,
// 64 MB. The record has the answer; the audit log has the outcome of the change. The diff
// of a killed process stays until the next question is put.
//
// A Queue is safe for concurrent use. It starts nothing: while a question waits, its asker looks
// for one file five times a second, which takes some 10 µs.
package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/guardfs/flock"
	"moltisfs/internal/share"
)

// lookEvery is the time between two looks for an answer: short for people, long for a machine.
const lookEvery = 200 * time.Millisecond

// The limits of what waits.
const (
	maxQuestion = 8 << 20 // bytes of text in a question; nobody reads more
	maxWaiting  = 100     // questions of all processes together, of which one principal has its share
)

// Queue is one directory of questions.
type Queue struct {
	dir  string
	step func(what string) error // for tests: it is told of each step, and can make it fail
}

var _ approval.Approver = (*Queue)(nil)

// Open is the queue in dir, which is made when it is needed.
func Open(dir string) *Queue {
	return &Queue{dir: dir, step: func(string) error { return nil }}
}

// Ask puts a question and waits until it is answered, until its time is over or until ctx ends.
func (q *Queue) Ask(ctx context.Context, question approval.Question) (approval.Answer, error) {
	if !question.Expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, question.Expires)
		defer cancel()
	}
	if a, over := approval.ContextAnswer(ctx); over {
		return a, nil
	}
	if n := size(question); n > maxQuestion {
		return approval.Answer{Reason: fmt.Sprintf("the question has %d bytes, and the queue takes %d; "+
			"make smaller changes", n, maxQuestion)}, nil
	}
	if err := os.MkdirAll(q.dir, 0o700); err != nil {
		return approval.Answer{}, fmt.Errorf("making the queue: %w", err)
	}
	p, full, err := q.take(ctx, question)
	if a, over := approval.ContextAnswer(ctx); over && err != nil {
		return a, nil
	}
	if err != nil || full != "" {
		return approval.Answer{Reason: full}, err
	}
	defer flock.Close(p.file) //nolint:errcheck // closing is what lets go
	defer q.forget(p.ID)
	return q.wait(ctx, p.record)
}

// take puts a question where there is room for it, one at a time, or says why there is none.
func (q *Queue) take(ctx context.Context, question approval.Question) (p put, full string, err error) {
	turn, err := q.turn(ctx)
	if err != nil {
		return p, "", fmt.Errorf("locking the queue: %w", err)
	}
	defer flock.Close(turn) //nolint:errcheck // closing is what lets go
	waiting, err := q.sweep(time.Now())
	if err != nil {
		return p, "", fmt.Errorf("looking into the queue: %w", err)
	}
	all, own, most := 0, waiting[question.Principal], int(share.Part(maxWaiting))
	for _, n := range waiting {
		all += n
	}
	switch {
	case own >= most:
		return p, fmt.Sprintf("%d of your questions wait already, and that is the most", own), nil
	case all >= maxWaiting:
		return p, fmt.Sprintf("%d questions wait already", all), nil
	}
	if p, err = q.put(question); err != nil {
		err = fmt.Errorf("putting the question on record: %w", err)
	}
	return p, "", err
}

func (q *Queue) wait(ctx context.Context, r record) (approval.Answer, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		a, err := q.answered(r)
		if !errors.Is(err, fs.ErrNotExist) {
			return a, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return q.end(ctx, r)
		}
	}
}

// end takes a question back that nobody answered. If somebody did just now, and was told so, it
// counts; not for a call that was cancelled.
func (q *Queue) end(ctx context.Context, r record) (approval.Answer, error) {
	over, _ := approval.ContextAnswer(ctx)
	state := Expired
	if over.Decision != approval.TimedOut {
		state = Cancelled
	}
	err := q.settle(answer{ID: r.ID, Digest: r.Digest, State: state, At: time.Now()})
	if errors.Is(err, fs.ErrExist) && state == Expired {
		return q.answered(r)
	}
	return over, nil // where the end could not be put on record, letting go of the lock says it
}

// answered is the answer to a question of ours; fs.ErrNotExist while there is none.
func (q *Queue) answered(r record) (approval.Answer, error) {
	a, err := q.readAnswer(r.ID)
	if err != nil {
		return approval.Answer{}, err
	}
	if a.Digest != r.Digest {
		return approval.Answer{}, fmt.Errorf("the answer to question %s is for another change", r.ID)
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
