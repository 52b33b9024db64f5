package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"moltisfs/internal/approval"
)

// State is the state of a question.
type State string

// The states; see the package.
const (
	Pending   State = "pending"
	Approved  State = "approved"
	Denied    State = "denied"
	Expired   State = "expired"
	Cancelled State = "cancelled"
	Gone      State = "gone"
)

// An Entry is a question with its state and answer.
type Entry struct {
	ID       string
	State    State
	Question approval.Question // its ID is the call's
	Asked    time.Time
	PID      int       // of the process that asked
	By       string    // the name in the answer; "" where nobody answered
	Reason   string    // in their words
	Answered time.Time // or expired, or cancelled
}

// By names the person or program that answers.
type By struct {
	Name      string // for the records: an operator, a user, a token
	Principal string // whose token it is, if it is one
	Unseen    bool   // they say that they approve a diff that they were not shown whole
}

// The errors of answers.
var (
	ErrNotFound = errors.New("there is no such question")
	ErrOwn      = errors.New("who asks can't answer")
	ErrUnseen   = errors.New("the question was not shown whole to who approves")
	ErrReason   = fmt.Errorf("a reason has at most %d bytes", maxReason)
)

// OverError is the error of an answer that came too late. Entry has the outcome of the question.
type OverError struct{ Entry Entry }

func (e *OverError) Error() string { return "the question " + e.Entry.Fate() }

// Fate gives the state of a question in words.
func (e Entry) Fate() string {
	switch e.State {
	case Pending:
		return "waits for an answer"
	case Approved, Denied:
		return fmt.Sprintf("was %s by %s", e.State, approval.Escape(e.By, false))
	case Expired:
		return "has expired: nobody answered in time"
	case Cancelled:
		return "was cancelled by who asked"
	}
	return "is gone: the process that asked has ended"
}

// AmbiguousError is a beginning of several IDs.
type AmbiguousError struct {
	Prefix string
	IDs    []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is the beginning of %d ids", e.Prefix, len(e.IDs))
}

// unanswered gives the IDs of the questions without an answer, and whether each waits: else it is gone.
func (q *Queue) unanswered() (ids []string, waits []bool, err error) {
	n, err := q.names()
	if err != nil {
		return nil, nil, err
	}
	for id := range n[questionFile] {
		if !n[answerFile][id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	waits, err = q.waits(ids)
	return ids, waits, err
}

// List gives the questions that wait, or all on record, oldest first and without their diffs. A file
// that can't be read is no question.
func (q *Queue) List(all bool) ([]Entry, error) {
	ids, waits, err := q.unanswered()
	if all && err == nil {
		if ids, err = q.ids(""); err == nil {
			waits, err = q.waits(ids)
		}
	}
	if err != nil {
		return nil, err
	}
	var out []Entry
	for i, id := range ids {
		if e, err := q.read(id, waits[i], nil); err == nil && (all || e.State == Pending) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, older)
	return out, nil
}

// older orders entries by the time of the question.
func older(a, b Entry) int { return cmp.Or(a.Asked.Compare(b.Asked), strings.Compare(a.ID, b.ID)) }

// ids lists the ids that begin so, sorted.
func (q *Queue) ids(prefix string) ([]string, error) {
	n, err := q.names()
	ids := slices.AppendSeq(slices.Collect(maps.Keys(n[questionFile])), maps.Keys(n[answerFile]))
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return !strings.HasPrefix(id, prefix) }), err
}

// Find is the question whose ID begins so, if there is one alone.
func (q *Queue) Find(prefix string) (Entry, error) {
	ids, err := q.ids(prefix)
	switch {
	case err != nil:
		return Entry{}, err
	case len(ids) == 0 || prefix == "":
		return Entry{}, ErrNotFound
	case len(ids) > 1:
		return Entry{}, &AmbiguousError{prefix, ids}
	}
	return q.Get(ids[0])
}

// Get is the question with this ID; while it waits, with its diff. With an error its state is
// Pending while it is being written.
func (q *Queue) Get(id string) (Entry, error) {
	var diff string
	e, err := q.get(id, &diff)
	if e.State == Pending {
		e.Question.Diff = diff
	}
	return e, err
}

func (q *Queue) get(id string, diff *string) (Entry, error) {
	if !isID(id) {
		return Entry{}, ErrNotFound
	}
	waits, err := q.waits([]string{id})
	if err != nil {
		return Entry{}, err
	}
	return q.read(id, waits[0], diff)
}

// read reads a question of which it was known a moment ago whether it waits. That was looked at first, since the end of a question is on
// record before it is removed, or let go.
func (q *Queue) read(id string, waits bool, diff *string) (Entry, error) {
	e, err := q.readQuestion(id, diff)
	if !waits {
		e.State = Gone
	}
	none := errors.Is(err, fs.ErrNotExist)
	if err != nil && !none {
		return e, err
	}
	switch a, err := q.readAnswer(id); {
	case err == nil:
		return a, nil
	case !errors.Is(err, fs.ErrNotExist):
		return e, err
	case none:
		return e, ErrNotFound
	}
	return e, nil
}

// maxReason bounds a reason, in bytes.
const maxReason = 4 << 10

// Saw notes that by was shown the question with this ID whole, as Get gives it.
func (q *Queue) Saw(id string, by By) error {
	if !isID(id) {
		return ErrNotFound
	}
	if there, err := q.there(id, questionFile); err != nil {
		return err
	} else if !there {
		return ErrNotFound
	}
	return q.files.Append(id+shownFile, fmt.Appendf(nil, "%q\n", by.Name))
}

// saw reports whether by was shown the question with this ID whole.
func (q *Queue) saw(id string, by By) bool {
	f, err := q.files.Open(id + shownFile)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	text, err := io.ReadAll(io.LimitReader(f, maxQuestion))
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), strconv.Quote(by.Name))
}

// Answer approves or denies the question with this ID. If it is over the error is an *OverError; of
// several who answer at once one alone has none. A diff, or a list of paths, that by was not shown
// whole is approved only with by.Unseen, and that is on record.
func (q *Queue) Answer(id string, d approval.Decision, by By, reason string) (Entry, error) {
	state := map[approval.Decision]State{approval.Approved: Approved, approval.Denied: Denied}[d]
	switch {
	case state == "":
		return Entry{}, fmt.Errorf("%v is no answer", d)
	case by.Name == "":
		return Entry{}, errors.New("an answer needs a name")
	case len(reason) > maxReason:
		return Entry{}, ErrReason
	}
	e, err := q.Get(id)
	if err != nil {
		return e, err
	}
	if by.Principal != "" && by.Principal == e.Question.Principal {
		return e, ErrOwn
	}
	if e.State != Pending {
		return e, &OverError{e}
	}
	n := approval.Unseen(e.Question, 0)
	if n == 0 { // a list tells the first path, and no more
		n = len(e.Question.Paths) - 1
	}
	if n > 0 && d == approval.Approved && !q.saw(id, by) {
		if !by.Unseen {
			return e, ErrUnseen
		}
		by.Name += approval.UnseenBy(n)
	}
	e.State, e.By, e.Reason, e.Answered = state, by.Name, reason, time.Now()
	if err = q.recordEnd(context.Background(), e); errors.Is(err, fs.ErrExist) {
		if e, err = q.Get(id); err == nil {
			err = &OverError{e}
		}
	}
	return e, err
}

// MarshalJSON gives the entry for programs. Text that is not UTF-8 is escaped.
func (e Entry) MarshalJSON() ([]byte, error) {
	q := e.Question
	out := map[string]any{
		"id": e.ID, "state": e.State, "tool": shown(q.Tool), "principal": shown(q.Principal),
		"session": shown(q.Session), "paths": mapped(q.Paths, shown), "summary": shown(q.Summary),
		"added": q.Added, "removed": q.Removed, "digest": q.Digest, "asked": e.Asked,
		"expires": q.Expires,
	}
	if len(q.New) > 0 {
		out["new"] = mapped(q.New, shown)
	}
	if q.Client != "" {
		out["client"] = shown(q.Client)
	}
	if len(q.Code) > 0 {
		out["code"] = mapped(q.Code, shown)
	}
	if len(q.Warnings) > 0 {
		out["warnings"] = mapped(q.Warnings, shown)
	}
	if !e.Answered.IsZero() {
		out["answered"] = e.Answered
	}
	for key, value := range map[string]string{"diff": q.Diff, "by": e.By, "reason": e.Reason} {
		if value != "" {
			out[key] = shown(value)
		}
	}
	return json.Marshal(out)
}

func mapped(list []string, f func(string) string) (out []string) {
	for _, s := range list {
		out = append(out, f(s))
	}
	return out
}

func shown(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return approval.Escape(s, true)
}
