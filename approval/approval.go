// Package approval puts a change before somebody who may say no.
//
// An Approver gets one Question and gives one Answer. Only Approved lets the change happen; the zero Answer does not. An error is
// a refusal as well: the question could not be put. What was approved is told by Question.Digest, made from
// all that the change is; whoever carries it out looks again whether it still does no more than that.
//
// The approvers here are Yes, Nobody and Terminal. A gateway brings its own. They are safe for concurrent use; Terminal
// puts one question at a time.
package approval

import (
	"context"
	"strings"
	"time"
)

// Question is one change, ready to happen.
type Question struct {
	ID                       string
	Principal, Session, Tool string
	Paths                    []string // true names
	Summary                  string   // one line
	Diff                     string   // unified; as it is, to be escaped by whoever shows it
	Added, Removed           int      // lines
	Warnings                 []string // what to look at before saying yes
	Digest                   string   // of all that the change is
	Expires                  time.Time
}

// Decision is what became of a question.
type Decision uint8

// The decisions. The zero one refuses.
const (
	Denied Decision = iota
	Approved
	TimedOut    // nobody answered
	NobodyToAsk // nobody could have
)

// String is the decision as it stands in records.
func (d Decision) String() string {
	switch d {
	case Denied:
		return "denied"
	case Approved:
		return "approved"
	case TimedOut:
		return "timed_out"
	case NobodyToAsk:
		return "nobody_to_ask"
	}
	return "unknown"
}

// Answer is a decision, by whom, and why in their words.
type Answer struct {
	Decision   Decision
	By, Reason string
}

// Approver puts questions. Ask MUST come back when ctx is done, with TimedOut if its deadline or q.Expires passed.
type Approver interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Yes approves everything, on the word of by: "--yes", "config".
func Yes(by string) Approver { return yes(by) }

type yes string

func (y yes) Ask(ctx context.Context, _ Question) (Answer, error) {
	if a, over := ended(ctx); over {
		return a, nil
	}
	return Answer{Decision: Approved, By: string(y)}, nil
}

// Nobody answers at once that there is nobody to ask. ways are the ways to have somebody: each is a phrase such as
// "run with --yes".
func Nobody(ways []string) Approver { return nobody(append([]string{}, ways...)) }

type nobody []string

func (n nobody) Ask(context.Context, Question) (Answer, error) {
	reason := "there is nobody to ask here"
	if len(n) > 0 {
		reason += "; " + strings.Join(n, ", or ")
	}
	return Answer{Decision: NobodyToAsk, Reason: reason}, nil
}

// ended is the answer of a context that is done: timed out at its deadline, denied when the call was given up.
func ended(ctx context.Context) (Answer, bool) {
	switch ctx.Err() {
	case nil:
		return Answer{}, false
	case context.DeadlineExceeded:
		return Answer{Decision: TimedOut, Reason: "nobody answered in time"}, true
	}
	return Answer{Decision: Denied, Reason: "the call was cancelled"}, true
}
