package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"moltisfs/internal/dialect"
)

// Bounds of sessions.
const (
	SessionIdle = time.Hour // a session that nobody uses for so long ends
	MaxSessions = 1024      // of one principal; of more, the one that was used longest ago ends
)

// ErrAllInUse says that a principal has as many sessions as it may, and uses all of them at this moment.
var ErrAllInUse = errors.New("you use too many sessions at the same time; end some")

// Sessions are the sessions of a server, by principal and name. T is what the server keeps for each. They are safe for concurrent use.
type Sessions[T any] struct {
	// End lets go of all else that is kept for a session, once it has ended and nobody uses it. Forever says that none of its name comes again.
	End func(principal, name string, forever bool) error
	// HangUp, when set, ends the uses of a session that has ended.
	HangUp func(*Session[T])
	Run    string // the name of the session of calls that name none: it ends with the server
	Most   int    // of one principal; 0: MaxSessions

	mu sync.Mutex
	of map[string]map[string]*Session[T] // by principal and name
}

// A Session is one of them. Alive ends with it. Ended is closed when End has returned Err.
type Session[T any] struct {
	Principal, Name string
	Alive           context.Context
	Ended           chan struct{}
	Err             error
	Of              T

	die context.CancelFunc
	own bool // the server made its name

	// With the mutex of Sessions:
	uses int
	last time.Time // that one ended
	gone bool
}

// EndIn is an End that has a dialect let go.
func EndIn(d dialect.Dialect, logger *slog.Logger) func(principal, name string, forever bool) error {
	return func(principal, name string, forever bool) error {
		s, ok := d.(dialect.Sessions)
		if !ok {
			return nil
		}
		err := s.EndSession(context.Background(), principal, name, forever)
		if err != nil {
			logger.Warn("a session could not be ended", "principal", principal, "session", name, "err", err)
		}
		return err
	}
}

// Use finds a session, or begins it. It does not end for the dialect before leave is called. Own says that the server makes names like this one
// anew for each. The error is ErrAllInUse.
func (s *Sessions[T]) Use(principal, name string, own bool) (_ *Session[T], leave func(), _ error) {
	s.mu.Lock()
	one := s.of[principal][name]
	var old *Session[T]
	if one == nil {
		if len(s.of[principal]) >= cmp.Or(s.Most, MaxSessions) {
			if old = s.oldest(principal); old == nil {
				s.mu.Unlock()
				return nil, nil, ErrAllInUse
			}
			s.remove(old)
		}
		one = &Session[T]{Principal: principal, Name: name, Ended: make(chan struct{}), own: own}
		one.Alive, one.die = context.WithCancel(context.Background())
		if s.of == nil {
			s.of = map[string]map[string]*Session[T]{}
		}
		if s.of[principal] == nil {
			s.of[principal] = map[string]*Session[T]{}
		}
		s.of[principal][name] = one
	}
	one.uses++
	s.mu.Unlock()
	if old != nil {
		s.bury(old)
	}
	return one, func() { s.leave(one) }, nil
}

// oldest gives the session of a principal that was used longest ago and is not in use; nil: there is none.
func (s *Sessions[T]) oldest(principal string) (old *Session[T]) {
	for _, one := range s.of[principal] {
		if one.uses == 0 && one.Name != s.Run && (old == nil || one.last.Before(old.last)) {
			old = one
		}
	}
	return old
}

// Find finds a session, and uses it until leave; nil: the principal has none of that name.
func (s *Sessions[T]) Find(principal, name string) (_ *Session[T], leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[principal][name]
	if one == nil {
		return nil, nil
	}
	one.uses++
	return one, func() { s.leave(one) }
}

func (s *Sessions[T]) leave(one *Session[T]) {
	s.mu.Lock()
	one.uses, one.last = one.uses-1, time.Now()
	over, own := one.gone && one.uses == 0, one.own
	s.mu.Unlock()
	if over {
		one.Err = s.End(one.Principal, one.Name, own)
		close(one.Ended)
	}
}

// remove takes a session out, so that nobody finds it any more. The mutex is held.
func (s *Sessions[T]) remove(one *Session[T]) {
	delete(s.of[one.Principal], one.Name)
	if len(s.of[one.Principal]) == 0 {
		delete(s.of, one.Principal)
	}
	one.gone = true
	one.uses++ // for bury, so that the end comes once
}

// bury ends a session that was removed.
func (s *Sessions[T]) bury(one *Session[T]) {
	one.die()
	if s.HangUp != nil {
		s.HangUp(one)
	}
	s.leave(one)
}

// Count gives how many sessions a principal has.
func (s *Sessions[T]) Count(principal string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of[principal])
}

// EndOne ends a session; false: somebody else has. In use, it ends for the dialect with its last use.
func (s *Sessions[T]) EndOne(one *Session[T]) bool {
	return len(s.endThose(func(o *Session[T]) bool { return o == one })) > 0
}

// Sweep ends the sessions that nobody has used for an hour.
func (s *Sessions[T]) Sweep() {
	s.endThose(func(one *Session[T]) bool {
		return one.uses == 0 && one.Name != s.Run && time.Since(one.last) > SessionIdle
	})
}

// EndAll ends all sessions, and gives them: Ended of each tells when it has. Forever names one that never comes again; "" none.
func (s *Sessions[T]) EndAll(forever string) []*Session[T] {
	return s.endThose(func(one *Session[T]) bool {
		one.own = one.own || forever != "" && one.Name == forever
		return true
	})
}

func (s *Sessions[T]) endThose(which func(*Session[T]) bool) (gone []*Session[T]) {
	s.mu.Lock()
	for _, of := range s.of {
		for _, one := range of {
			if which(one) {
				s.remove(one)
				gone = append(gone, one)
			}
		}
	}
	s.mu.Unlock()
	for _, one := range gone {
		s.bury(one)
	}
	return gone
}
