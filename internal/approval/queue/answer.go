package queue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// over says whether it is the state of an answer on record.
func (s State) over() bool {
	return slices.Contains([]State{Approved, Denied, Expired, Cancelled}, s)
}

// An Entry is a question and what became of it.
type Entry struct {
	ID       string
	State    State
	Question approval.Question // its ID is that of the call
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

// OverError says that an answer came too late, and what became of the question.
type OverError struct{ Entry Entry }

func (e *OverError) Error() string { return "the question " + e.Entry.Fate() }

// Fate says in words what became of a question.
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

// names are the files in a queue that are called like ours.
type names struct {
	questions, diffs, temps []string
	answers                 map[string]bool
}

func (q *Queue) names() (n names, err error) {
	n.answers = map[string]bool{}
	if err := q.check(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return n, err
	}
	entries, err := os.ReadDir(q.dir)
	if err != nil {
		return n, err
	}
	for _, e := range entries {
		id, kind, _ := strings.Cut(e.Name(), ".")
		if !isID(id) {
			continue
		}
		switch "." + kind {
		case questionFile:
			n.questions = append(n.questions, id)
		case diffFile, shownFile:
			n.diffs = append(n.diffs, id)
		case answerFile:
			n.answers[id] = true
		case tempFile:
			n.temps = append(n.temps, id)
		}
	}
	return n, nil
}

// Unanswered are the IDs of the questions without an answer. Some may be gone.
func (q *Queue) Unanswered() ([]string, error) {
	n, err := q.names()
	return slices.DeleteFunc(n.questions, func(id string) bool { return n.answers[id] }), err
}

// List gives the questions that wait, or all on record, oldest first and without their diffs. What
// can't be read is no question.
func (q *Queue) List(all bool) ([]Entry, error) {
	n, err := q.names()
	var out []Entry
	for _, id := range n.questions {
		if !all && n.answers[id] {
			continue
		}
		if e, _, err := q.get(id); err == nil && (all || e.State == Pending) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(a.Asked.Compare(b.Asked), strings.Compare(a.ID, b.ID))
	})
	return out, err
}

// Find is the question whose ID begins so, if there is one alone.
func (q *Queue) Find(prefix string) (Entry, error) {
	n, err := q.names()
	if err != nil {
		return Entry{}, err
	}
	ids := slices.DeleteFunc(n.questions,
		func(id string) bool { return prefix == "" || !strings.HasPrefix(id, prefix) })
	switch len(ids) {
	case 0:
		return Entry{}, ErrNotFound
	case 1:
		return q.Get(ids[0])
	}
	slices.Sort(ids)
	return Entry{}, &AmbiguousError{prefix, ids}
}

// Get is the question with this ID; while it waits, with its diff. With an error its state is
// Pending while it is being written.
func (q *Queue) Get(id string) (Entry, error) {
	e, r, err := q.get(id)
	if err != nil || e.State != Pending {
		return e, err
	}
	if e.Question.Diff, err = q.readDiff(r); err != nil {
		if e, _, again := q.get(id); again == nil && e.State != Pending {
			return e, nil // its end is on record before the diff goes
		}
	}
	return e, err
}

func (q *Queue) get(id string) (e Entry, r record, err error) {
	if !isID(id) {
		return e, r, ErrNotFound
	}
	// The lock is looked at first: who lets go of it has put the end on record before.
	var waits bool
	r, waits, err = q.readRecord(id)
	if errors.Is(err, fs.ErrNotExist) {
		return e, r, ErrNotFound
	}
	e = Entry{ID: id, State: Gone, Question: r.question(), Asked: r.Asked, PID: r.PID}
	if waits {
		e.State = Pending
	}
	if err != nil {
		return e, r, err
	}
	a, err := q.readAnswer(id)
	if errors.Is(err, fs.ErrNotExist) {
		return e, r, nil
	}
	e.State, e.By, e.Reason, e.Answered = a.State, a.By, a.Reason, a.At
	return e, r, err
}

// maxReason is how long the words of who answers may be.
const maxReason = 4 << 10

// Saw notes that by was shown the question with this ID whole, as Get gives it.
func (q *Queue) Saw(id string, by By) error {
	if !isID(id) || q.check() != nil || q.none(id) {
		return ErrNotFound
	}
	if info, err := os.Lstat(q.file(id, shownFile)); err == nil && !plausible(info) {
		return fmt.Errorf("%s is not a file of ours", q.file(id, shownFile))
	}
	f, err := os.OpenFile(q.file(id, shownFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // else it was not shown
	_, err = fmt.Fprintf(f, "%q\n", by.Name)
	return err
}

// saw says whether by was shown the question with this ID whole.
func (q *Queue) saw(id string, by By) bool {
	f, err := q.open(id, shownFile)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), strconv.Quote(by.Name))
}

// Answer approves or denies the question with this ID. If it is over the error is an *OverError; of
// several who answer at once one alone has none. A diff, or a list of paths, that by was not shown
// whole is approved only by who says so, and that is on record.
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
	a := answer{ID: id, Digest: e.Question.Digest, State: state, By: by.Name, Reason: reason,
		At: time.Now()}
	switch err = q.settle(a); {
	case errors.Is(err, fs.ErrExist):
		if e, err = q.Get(id); err == nil {
			err = &OverError{e}
		}
	case err == nil:
		e.State, e.By, e.Reason, e.Answered = a.State, a.By, a.Reason, a.At
	}
	return e, err
}

// MarshalJSON is the entry for programs. What is not UTF-8 is escaped.
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

func shown(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return approval.Escape(s, true)
}
