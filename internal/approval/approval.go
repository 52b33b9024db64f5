// Package approval puts a change before a person who may say no.
//
// An Approver gets one Question and gives one Answer. Only Approved lets the change happen; the
// zero Answer does not. An error is a refusal too: the question could not be put. Question.Digest
// says what was approved. It is made from everything that the change is. The code that makes the
// change checks again that it is still the same.
//
// The approvers here are Yes, Nobody and Terminal; package queue has one whose questions are
// answered from other processes. A gateway brings its own. Remember stands before any of them and
// keeps the yes that was given for a file or a session. They are safe for concurrent use;
// Terminal puts one question at a time.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// Question is one change, ready to happen.
type Question struct {
	ID                       string
	Principal, Session, Tool string
	Client                   string   // the program that calls, as it says itself
	Paths                    []string // real names
	New                      []string // the Paths where nothing is yet
	Summary                  string   // one line
	Diff                     string   // unified, not escaped: show it through Escape
	Added, Removed           int      // lines
	Code                     []string // the Paths that run code later: Yes is no yes to them
	Warnings                 []string // to be looked at before saying yes
	Digest                   string   // of everything that the change is
	Expires                  time.Time
}

// Decision is the outcome of a question.
type Decision uint8

// The decisions. The zero one refuses.
const (
	Denied Decision = iota
	Approved
	TimedOut    // nobody answered
	NobodyToAsk // there is no way to ask
	Cancelled   // the asker does not wait any more
)

// String is the decision as it stands in records.
func (d Decision) String() string {
	words := []string{"denied", "approved", "timed_out", "nobody_to_ask", "cancelled"}
	if int(d) < len(words) {
		return words[d]
	}
	return "unknown"
}

// Answer is a decision, by whom, and their reason in their own words. Grant says how far a yes
// goes; it counts where [Remember] stands before the approver. Over, where set, is told of a yes
// whether the change was made then; it may be refused or fail yet.
type Answer struct {
	Decision   Decision
	By, Reason string
	Grant      Grant
	Over       interface{ Over(made bool) }
}

// Chosen gives the answer of the approver by, who had these choices and said this: given the words "once"
// and "file" and the answer "no keep it" it denies, for the reason "the user answered: no keep it". A
// word that was offered approves, as far as its Grant says. Anything else denies, whatever its type.
func Chosen(by string, offered []Choice, said any) Answer {
	word, isWord := said.(string)
	for _, c := range offered {
		if isWord && word == c.Word {
			return Answer{Decision: Approved, By: by, Grant: c.Grant}
		}
	}
	if text, err := json.Marshal(said); err == nil && !isWord {
		word = string(text)
	}
	a := Answer{By: by}
	if word = strings.TrimSpace(word); len(word) > maxWords {
		word = strings.ToValidUTF8(word[:maxWords], "") + "…"
	}
	if word != "" {
		a.Reason = "the user answered: " + Escape(word, false)
	}
	return a
}

// maxWords bounds the bytes of an answer that are passed on.
const maxWords = 1 << 10

// Approver puts questions. Ask MUST return when ctx is done: with TimedOut if its deadline has passed. That
// is q.Expires, which is for those who are asked.
type Approver interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Blind says that a does not look at the diff and the counts of a question.
func Blind(a Approver) bool { _, is := a.(yes); return is }

// Yes approves everything but Question.Code, which YesToCode approves too. by says who decided
// that: "--yes", "config".
func Yes(by string) Approver { return yes{by, false} }

// YesToCode approves everything.
func YesToCode(by string) Approver { return yes{by, true} }

type yes struct {
	by   string
	code bool
}

// ErrUnheard is the cause of a context of Ask that ends because no answer reaches the caller any more.
// It takes back a question that waits; an approver that asks nobody need not mind it.
var ErrUnheard = errors.New("nobody hears the answer")

func (y yes) Ask(ctx context.Context, q Question) (Answer, error) {
	if a, over := ContextAnswer(ctx); over && context.Cause(ctx) != ErrUnheard {
		return a, nil
	}
	if len(q.Code) > 0 && !y.code {
		return Answer{Decision: NobodyToAsk, Reason: y.by + " is no yes to what runs code"}, nil
	}
	return Answer{Decision: Approved, By: y.by}, nil
}

// Nobody answers at once that nobody can be asked. ways tell how to change that: each is a phrase
// such as "run with --yes".
func Nobody(ways []string) Approver { return nobody(append([]string{}, ways...)) }

type nobody []string

func (n nobody) Ask(context.Context, Question) (Answer, error) {
	reason := "there is nobody to ask here"
	if len(n) > 0 {
		reason += "; " + strings.Join(n, ", or ")
	}
	return Answer{Decision: NobodyToAsk, Reason: reason}, nil
}

// ContextAnswer is the answer of an approver whose context is done: timed out at its deadline,
// cancelled when the asker has hung up.
func ContextAnswer(ctx context.Context) (Answer, bool) {
	switch ctx.Err() {
	case nil:
		return Answer{}, false
	case context.DeadlineExceeded:
		return Answer{Decision: TimedOut, Reason: "nobody answered in time"}, true
	}
	return Answer{Decision: Cancelled, Reason: "the call was cancelled"}, true
}

// A Tier says how freely a call may change things. It adds to the configuration and takes nothing
// from it: with require_approval every change is asked about, whatever the tier.
type Tier string

// The tiers, each stricter than the one before. "" is the first.
const (
	TierAutonomous Tier = "autonomous" // as the configuration has it
	TierNotify     Tier = "notify"     // a change is a warning in the operator's log
	TierAsk        Tier = "ask"        // a change needs approval
	TierBlocked    Tier = "blocked"    // the call is refused, also where it only reads
)

// Known reports whether there is such a tier.
func (t Tier) Known() bool {
	return slices.Contains([]Tier{"", TierAutonomous, TierNotify, TierAsk, TierBlocked}, t)
}
