package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed is the error of every call that comes after Close, and of one that Close met while it waited for its approver:
// it has changed nothing.
var ErrClosed = errors.New("the suite is closed")

// underway counts the calls under way, for Close to wait for.
type underway struct {
	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup

	closing context.Context // ends when Close begins
	begin   context.CancelFunc
	close   func() error // Suite.end, once
}

// enter counts a call in; leave must follow. The error is ErrClosed.
func (u *underway) enter() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return ErrClosed
	}
	u.calls.Add(1)
	return nil
}

func (u *underway) leave() { u.calls.Done() }

// end lets no call in any more, takes back the questions that wait for an answer, and waits for the calls under way.
func (u *underway) end() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.begin()
	u.calls.Wait()
}

// Close lets no call in any more, takes back the questions that wait for an answer, waits for the calls under way, and gives
// back what Open took. A call whose question was taken back changes nothing and ends with ErrClosed; every other one runs to
// its end, so whoever is in a hurry cancels the contexts of its calls. Closing again, at the same time too, waits
// likewise and answers the same. It must not be called by Options.Progress, which a call under way waits for.
func (s *Suite) Close() error { return s.calls.close() }

func (s *Suite) end() error {
	s.calls.end()
	return errors.Join(s.search.close(), s.engine.Close(), s.readers.Close(), s.free.Close())
}

// approver is a as the suite asks it; nil for nil.
func (s *Suite) approver(a Approver) Approver {
	if a == nil {
		return nil
	}
	return asking{a, s.calls.closing}
}

// asking takes a question back when its call or the suite ends. An Approver must come back then. One that does not,
// because it waits for a person, or for the very Close that waits for it, is left behind, and its answer is not heard.
type asking struct {
	of      Approver
	closing context.Context
}

// patience is how long an approver has to come back.
const patience = time.Second

func (a asking) Ask(ctx context.Context, q Question) (Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.closing, cancel)()
	type reply struct {
		answer Answer
		err    error
	}
	got := make(chan reply, 1)
	go func() {
		r := reply{err: errors.New("the approver gave up")} // by runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				r = reply{err: fmt.Errorf("the approver panicked: %v", p)}
			}
			got <- r
		}()
		answer, err := a.of.Ask(ctx, q)
		r = reply{answer, err}
	}()
	var r reply
	select {
	case r = <-got:
	case <-ctx.Done():
		select {
		case r = <-got:
		case <-time.After(patience):
			r.err = ctx.Err()
		}
	}
	if a.closing.Err() != nil {
		return Answer{}, ErrClosed
	}
	return r.answer, r.err
}
