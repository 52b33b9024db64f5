package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/outage"
	"moltisfs/internal/state"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

func dirOf(q *Queue) string { return q.files.(state.Dir).Path }

func fileOf(q *Queue, id, kind string) string { return filepath.Join(dirOf(q), id+kind) }

func example() approval.Question {
	return approval.Question{ID: "call-1", Principal: "agent", Session: "s1", Tool: "Write",
		Paths: []string{"/w/a.txt"}, Summary: "a new file", Diff: "+one\n", Added: 1,
		Warnings: []string{"/w/a.txt is new"}, Digest: "d1"}
}

// answered answers for by, after the question was shown whole.
func answered(q *Queue, id string, d approval.Decision, by By, reason string) (Entry, error) {
	_ = q.Saw(id, by) // the question may be over
	return q.Answer(id, d, by, reason)
}

type outcome struct {
	approval.Answer
	err error
}

// ask puts a question and comes back when it is on record.
func ask(ctx context.Context, t testing.TB, q *Queue, question approval.Question) (Entry, <-chan outcome) {
	t.Helper()
	known, _, err := q.unanswered()
	must(t, err)
	c := make(chan outcome, 1)
	go func() {
		a, err := q.Ask(ctx, question)
		c <- outcome{a, err}
	}()
	for {
		list, err := q.List(false)
		must(t, err)
		for _, e := range list {
			if !strings.Contains(strings.Join(known, " "), e.ID) {
				return e, c
			}
		}
		select {
		case got := <-c:
			t.Fatalf("not asked: %+v", got)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		decision approval.Decision
		reason   string
		state    State
	}{
		{approval.Approved, "", Approved},
		{approval.Denied, "not that file", Denied},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := Open(filepath.Join(t.TempDir(), "new", "approvals"))
			question := example()
			question.Expires = time.Now().Add(time.Minute)
			question.Paths = []string{"/w/\xff\x1b[2J\u202e.txt"}
			asked, answer := ask(t.Context(), t, q, question)
			if asked.State != Pending || asked.PID != os.Getpid() || asked.Question.Digest != "d1" {
				t.Errorf("%+v", asked)
			}
			asked, err := q.Get(asked.ID)
			must(t, err)
			got := asked.Question
			got.Expires = question.Expires // of which the monotonic part stays here
			if !reflect.DeepEqual(got, question) {
				t.Errorf("%+v became %+v", question, asked.Question)
			}
			e, err := answered(Open(dirOf(q)), asked.ID, c.decision, By{Name: "ann"}, c.reason)
			must(t, err)
			if a := <-answer; a != (outcome{approval.Answer{Decision: c.decision, By: "ann", Reason: c.reason}, nil}) {
				t.Errorf("%+v", a)
			}
			if again, err := q.Get(asked.ID); err != nil || again.State != c.state || e.State != c.state {
				t.Errorf("%+v %+v %v", e, again, err)
			}
			if list, err := q.List(false); err != nil || len(list) > 0 {
				t.Error("it still waits", list, err)
			}
			if left := namesIn(t, dirOf(q)); len(left) != 1 {
				t.Error("its question is left", left)
			}
			if list, err := q.List(true); err != nil || len(list) != 1 || list[0].By != "ann" || list[0].Reason != c.reason {
				t.Error("the answer is not on record", list, err)
			}
			if text, err := json.Marshal(e); err != nil || !strings.Contains(string(text), `\\x{ff}`) {
				t.Errorf("%s %v", text, err)
			}
		})
	}
}

// Of many who answer at once one alone does, everybody else hears who it was, and the asker hears the same.
func TestOneAnswerWins(t *testing.T) {
	t.Parallel()
	q := Open(t.TempDir())
	for range 5 {
		asked, answer := ask(t.Context(), t, q, example())
		var wg sync.WaitGroup
		won, told := make(chan string, 32), make(chan string, 32)
		for i := range cap(won) {
			wg.Go(func() {
				by := fmt.Sprint("operator ", i)
				_, err := answered(Open(dirOf(q)), asked.ID, approval.Decision(i%2), By{Name: by}, "")
				if over, ok := errors.AsType[*OverError](err); ok {
					told <- over.Entry.By
				} else if err == nil {
					won <- by
				} else {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		winner := <-won
		if len(won) > 0 || len(told) != cap(told)-1 {
			t.Fatalf("%s won, and %d more; %d were told", winner, len(won), len(told))
		}
		for range len(told) {
			if by := <-told; by != winner {
				t.Errorf("%s won, and somebody was told that it was %s", winner, by)
			}
		}
		if a := <-answer; a.By != winner || a.err != nil {
			t.Errorf("%s won, and the asker hears %+v", winner, a)
		}
	}
}

// A late answer is refused, and says what the question has become by then.
func TestLate(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(*testing.T, *Queue, Entry, context.CancelFunc)
		state State
		heard approval.Decision
		says  string
	}{
		"approved": {func(t *testing.T, q *Queue, e Entry, _ context.CancelFunc) {
			_, err := answered(q, e.ID, approval.Approved, By{Name: "bob\x1b[2J"}, "")
			must(t, err)
		}, Approved, approval.Approved, `was approved by bob\u{1b}[2J`},
		"expired":   {func(*testing.T, *Queue, Entry, context.CancelFunc) {}, Expired, approval.TimedOut, "has expired"},
		"cancelled": {func(_ *testing.T, _ *Queue, _ Entry, stop context.CancelFunc) { stop() }, Cancelled, approval.Cancelled, "was cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := Open(t.TempDir())
				whole, end := context.WithTimeout(t.Context(), time.Minute)
				defer end()
				ctx, stop := context.WithCancel(whole)
				defer stop()
				asked, answer := ask(ctx, t, q, example())
				c.end(t, q, asked, stop)
				if a := <-answer; a.Decision != c.heard || a.err != nil {
					t.Errorf("the asker hears %+v", a)
				}
				_, err := answered(q, asked.ID, approval.Approved, By{Name: "ann"}, "")
				over, ok := errors.AsType[*OverError](err)
				if !ok || over.Entry.State != c.state || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// The answerer looks at no clock: the asker's alone counts, which is monotonic.
func TestClocksOfOthers(t *testing.T) {
	t.Parallel()
	q := Open(t.TempDir())
	question := example()
	question.Expires = time.Now().Add(-time.Hour)
	p, release, _, err := q.put(question)
	must(t, err)
	defer release()
	if e, err := answered(q, p.ID, approval.Approved, By{Name: "ann"}, ""); err != nil || e.State != Approved {
		t.Error(e, err)
	}
}

func TestNotAnAnswer(t *testing.T) {
	t.Parallel()
	q := Open(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	asked, answer := ask(ctx, t, q, example())
	for name, c := range map[string]struct {
		id       string
		decision approval.Decision
		by       By
		reason   string
		want     error
	}{
		"the asker's own":   {asked.ID, approval.Approved, By{Name: "token 1", Principal: "agent"}, "", ErrOwn},
		"no such question":  {"000000000000", approval.Approved, By{Name: "ann"}, "", ErrNotFound},
		"no id":             {"../../etc/x", approval.Approved, By{Name: "ann"}, "", ErrNotFound},
		"a path as id":      {asked.ID + "/..", approval.Approved, By{Name: "ann"}, "", ErrNotFound},
		"nobody":            {asked.ID, approval.Approved, By{}, "", nil},
		"no decision":       {asked.ID, approval.TimedOut, By{Name: "ann"}, "", nil},
		"too many words":    {asked.ID, approval.Denied, By{Name: "ann"}, strings.Repeat("no", maxReason), nil},
		"a decision of old": {asked.ID, approval.Decision(77), By{Name: "ann"}, "", nil},
	} {
		if _, err := answered(q, c.id, c.decision, c.by, c.reason); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e, err := q.Get(asked.ID); err != nil || e.State != Pending {
		t.Error("it is answered", e, err)
	}
	stop()
	<-answer
}

func TestFind(t *testing.T) {
	t.Parallel()
	q := Open(t.TempDir())
	for _, id := range []string{"aaaa00000001", "aaab00000001", "b00000000001"} {
		pieces, err := encode(Entry{ID: id, Question: example()}, "")
		must(t, err)
		must(t, os.WriteFile(fileOf(q, id, questionFile), bytes.Join(pieces, nil), 0o600))
	}
	for prefix, want := range map[string]string{"b": "b00000000001", "aaab": "aaab00000001", "aaaa00000001": "aaaa00000001"} {
		if e, err := q.Find(prefix); err != nil || e.ID != want {
			t.Errorf("%s: %v %v", prefix, e.ID, err)
		}
	}
	for _, prefix := range []string{"", "c", "*", "../", "aaaa000000012"} {
		if _, err := q.Find(prefix); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	if _, err := q.Find("aaa"); err == nil || err.Error() != "aaa is the beginning of 2 ids" {
		t.Error(err)
	}
}

// failing is the queue in dir on a disk that is full at one step.
func failing(dir, at string) *Queue {
	d := Open(dir).files.(state.Dir)
	d.Fault = func(step string) error {
		if step == at {
			return syscall.ENOSPC
		}
		return nil
	}
	return OpenIn(d)
}

// A question that can't be stored is not put, whichever step fails, and leaves nothing that waits.
func TestNotStored(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"hold", "write", "sync", "sync directory"} {
		q := failing(t.TempDir(), at)
		a, err := q.Ask(t.Context(), example())
		if !errors.Is(err, syscall.ENOSPC) || a.Decision == approval.Approved {
			t.Errorf("%s: %+v %v", at, a, err)
		}
		if left := namesIn(t, dirOf(q)); len(left) > 0 {
			t.Errorf("%s: %v", at, left)
		}
		if list, err := q.List(false); err != nil || len(list) > 0 {
			t.Errorf("%s: %v waits %v", at, list, err)
		}
	}
}

// An answer that can't be stored is none: the question waits for the next one.
func TestAnswerNotStored(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"create", "write", "sync"} {
		q := Open(t.TempDir())
		asked, answer := ask(t.Context(), t, q, example())
		full := failing(dirOf(q), at)
		if _, err := answered(full, asked.ID, approval.Approved, By{Name: "ann"}, ""); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", at, err)
		}
		_, err := answered(q, asked.ID, approval.Denied, By{Name: "bob"}, "")
		must(t, err)
		if a := <-answer; a.By != "bob" || a.Decision != approval.Denied {
			t.Errorf("%s: %+v", at, a)
		}
	}
}

// The end of a question that can't be put on record is an end all the same.
func TestEndNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Open(t.TempDir())
		full := failing(dirOf(q), "create")
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		asked, answer := ask(ctx, t, full, example())
		if a := <-answer; a.Decision != approval.TimedOut || a.err != nil {
			t.Errorf("%+v", a)
		}
		if e, err := q.Get(asked.ID); err != nil || e.State != Gone {
			t.Error(e.State, err)
		}
	})
}

// However many ask at once, no more questions wait than there may be, and one principal has half of them: another is asked for.
func TestShares(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	const more = 5 // than one principal may have
	refused := make(chan string, maxWaiting)
	flood := func(principal string, n int) {
		t.Helper()
		question := example()
		question.Principal = principal
		for range n {
			asking.Go(func() { // each as another process has it
				if a, err := Open(dir).Ask(ctx, question); err != nil || ctx.Err() == nil {
					refused <- fmt.Sprint(a.Reason, err)
				}
			})
		}
	}
	for i, c := range []struct{ principal, why string }{
		{"agent", "50 of your questions wait already, and that is the most<nil>"},
		{"bob", "50 of your questions wait already, and that is the most<nil>"},
		{"carol", "100 questions wait already<nil>"},
	} {
		flood(c.principal, []int{50 + more, 50 + more, more}[i])
		for range more {
			if why := <-refused; why != c.why {
				t.Fatal(c.principal, why)
			}
		}
		for {
			list, err := Open(dir).List(false)
			must(t, err)
			if len(list) == min(50*(i+1), maxWaiting) {
				break
			}
			if len(list) > min(50*(i+1), maxWaiting) || len(refused) > 0 {
				t.Fatalf("%d wait", len(list))
			}
		}
	}
}

// The longest question that is taken can be read again, and a longer one is not taken.
func TestLongest(t *testing.T) {
	t.Parallel()
	q := Open(t.TempDir())
	question := example()
	question.Diff = strings.Repeat("+", maxQuestion)
	if a, err := q.Ask(t.Context(), question); err != nil || a.Decision != approval.Denied || !strings.Contains(a.Reason, "make smaller changes") {
		t.Errorf("%+v %v", a, err)
	}
	question.Diff = ""
	question.Paths = slices.Repeat([]string{"/" + strings.Repeat("x", 91)}, (maxQuestion-800)/93)
	asked, answer := ask(t.Context(), t, q, question)
	if len(asked.Question.Paths) != len(question.Paths) {
		t.Error(len(asked.Question.Paths))
	}
	_, err := answered(q, asked.ID, approval.Denied, By{Name: "ann"}, "")
	must(t, err)
	<-answer
}

// An answer that was first counts, though the asker saw it at the end only; not if the asker hung up.
func TestAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	expired, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	for ctx, want := range map[context.Context]approval.Decision{expired: approval.Approved, cancelled: approval.Cancelled} {
		q := Open(t.TempDir())
		p, release, _, err := q.put(example())
		must(t, err)
		defer release()
		_, err = answered(q, p.ID, approval.Approved, By{Name: "ann"}, "")
		must(t, err)
		if a, err := q.end(ctx, p); err != nil || a.Decision != want {
			t.Errorf("%v: %+v %v", ctx.Err(), a, err)
		}
	}
}

// A diff that was not shown whole is approved by nobody who does not say so, and the record says it. A person has one name,
// whichever process asks; a question without a diff has nothing to be shown.
func TestUnseenIsSaid(t *testing.T) {
	t.Parallel()
	long := example()
	long.Diff = strings.Repeat("+a\n", 1000)
	moved := example()
	moved.Diff = ""
	many := moved
	many.Paths = []string{"/w/a", "/w/b", "/w/c"}
	ann, bob := By{Name: "ann"}, By{Name: "bob \"x\"\nann"}
	for name, c := range map[string]struct {
		question approval.Question
		shown    []By
		answers  By
		want     string // by; "": refused
	}{
		"to nobody": {long, nil, ann, ""}, "to ann": {long, []By{ann}, ann, "ann"}, "to ann and bob": {long, []By{ann, bob, ann}, bob, bob.Name},
		"to bob": {long, []By{bob}, ann, ""}, "to a name that ends so": {long, []By{{Name: `x"ann`}, {Name: "ann\nbob"}}, ann, ""},
		"short": {example(), nil, ann, ""}, "no diff": {moved, nil, ann, "ann"},
		"paths alone": {many, nil, ann, ""}, "paths, shown": {many, []By{ann}, ann, "ann"},
		"said": {long, nil, By{Name: "ann", Unseen: true}, "ann, with 1000 lines unseen"}, "said of one line": {example(), nil, By{Name: "ann", Unseen: true}, "ann, with 1 line unseen"},
		"said, and shown": {long, []By{ann}, By{Name: "ann", Unseen: true}, "ann"},
	} {
		q := Open(t.TempDir())
		ctx, stop := context.WithCancel(t.Context())
		asked, answer := ask(ctx, t, q, c.question)
		for _, by := range c.shown {
			must(t, q.Saw(asked.ID, by))
		}
		e, err := Open(dirOf(q)).Answer(asked.ID, approval.Approved, c.answers, "")
		if (err == nil) != (c.want != "") || err != nil && !errors.Is(err, ErrUnseen) || err == nil && e.By != c.want {
			t.Errorf("%s: %+v %v", name, e, err)
		}
		if c.want == "" {
			_, err := q.Answer(asked.ID, approval.Denied, c.answers, "not so")
			must(t, err)
		}
		if a := <-answer; (a.Decision == approval.Approved) != (c.want != "") || a.Decision == approval.Approved && a.By != c.want {
			t.Errorf("%s: %+v", name, a)
		}
		stop()
		if left, _ := filepath.Glob(filepath.Join(dirOf(q), "*.shown")); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

// A link, a pipe or a directory in the place of the note of the people who were shown a question is not followed, and approves nothing.
func TestShownIsAFileOfOurs(t *testing.T) {
	q, dir := Open(t.TempDir()), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	asked, answer := ask(ctx, t, q, example())
	defer func() { stop(); <-answer }()
	ann := By{Name: "ann"}
	must(t, os.Symlink(filepath.Join(dir, "x"), fileOf(q, asked.ID, shownFile)))
	if err := q.Saw(asked.ID, ann); err == nil {
		t.Error("a link is written through")
	}
	must(t, os.WriteFile(filepath.Join(dir, "x"), []byte("\"ann\"\n"), 0o600))
	if _, err := q.Answer(asked.ID, approval.Approved, ann, ""); !errors.Is(err, ErrUnseen) {
		t.Errorf("a link says who was shown it: %v", err)
	}
	for _, id := range []string{"", "../x", "000000000000"} {
		if err := q.Saw(id, ann); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// A Follower hears once of each question that comes, and once of its end. While a question waits it is not read again.
func TestFollower(t *testing.T) {
	t.Parallel()
	q := Open(filepath.Join(t.TempDir(), "approvals"))
	f := Follower{Queue: q}
	look := func(what string, came, over []string) {
		t.Helper()
		in, out, err := f.Look()
		must(t, err)
		ids := func(of []Entry) (ids []string) {
			for _, e := range of {
				ids = append(ids, e.ID+" "+string(e.State))
			}
			return ids
		}
		if !slices.Equal(ids(in), came) || !slices.Equal(ids(out), over) {
			t.Errorf("%s: came %q, want %q; over %q, want %q", what, ids(in), came, ids(out), over)
		}
	}
	look("nothing", nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	one, ended := ask(ctx, t, q, example())
	two, answer := ask(t.Context(), t, q, example())
	look("both", []string{one.ID + " pending", two.ID + " pending"}, nil)
	text, err := os.ReadFile(fileOf(q, two.ID, questionFile))
	must(t, err)
	must(t, os.WriteFile(fileOf(q, two.ID, questionFile), []byte("x"), 0o600))
	look("unread", nil, nil)
	must(t, os.WriteFile(fileOf(q, two.ID, questionFile), text, 0o600))
	_, err = answered(q, two.ID, approval.Denied, By{Name: "ann"}, "")
	must(t, err)
	<-answer
	look("answered", nil, []string{two.ID + " denied"})
	cancel()
	<-ended
	look("cancelled", nil, []string{one.ID + " cancelled"})
	look("over", nil, nil)
}

// away is files of a fleet: while it is cut nothing can be looked at, and when it is lost nobody holds anything.
type away struct {
	state.Dir
	cut, lost *atomic.Bool
	looks     *atomic.Int32
}

func (a away) Open(name string) (io.ReadCloser, error) {
	if a.looks.Add(1); a.cut.Load() {
		return nil, outage.OfDatabase(errors.New("cut"))
	}
	return a.Dir.Open(name)
}

func (a away) Held(names ...string) ([]bool, error) {
	if a.cut.Load() {
		return nil, outage.OfDatabase(errors.New("cut"))
	}
	if a.lost.Load() {
		return make([]bool, len(names)), nil
	}
	return a.Dir.Held(names...)
}

func (a away) Changes(string) (<-chan struct{}, func()) { return make(chan struct{}), func() {} }

// A question waits while the files can't be reached. An answer that came meanwhile counts, also where the question was lost after that. One that
// was lost without an answer is refused.
func TestOutOfReach(t *testing.T) {
	for name, c := range map[string]struct{ answered, lost bool }{"answered": {true, false}, "answered and lost": {true, true}, "lost": {false, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near := Open(t.TempDir())
				far := away{near.files.(state.Dir), new(atomic.Bool), new(atomic.Bool), new(atomic.Int32)}
				heard := make(chan outcome, 1)
				go func() {
					a, err := OpenIn(far).Ask(t.Context(), example())
					heard <- outcome{a, err}
				}()
				synctest.Wait()
				far.cut.Store(true)
				before := far.looks.Load()
				time.Sleep(time.Minute)
				if far.looks.Load() == before {
					t.Error("it did not look")
				}
				list, err := near.List(false)
				must(t, err)
				if c.answered {
					_, err := answered(near, list[0].ID, approval.Approved, By{Name: "ann"}, "")
					must(t, err)
				}
				far.lost.Store(c.lost)
				far.cut.Store(false)
				if got := <-heard; got.err != nil || (got.Decision == approval.TimedOut) == c.answered || (got.Decision == approval.Approved) != c.answered {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
