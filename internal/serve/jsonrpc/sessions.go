package jsonrpc

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"moltisfs/internal/dialect"
)

const (
	sessionIdle = time.Hour // a session that nobody uses for so long ends
	maxSessions = 1024      // of one principal
)

// sessions are the sessions of this server. One that is not found is not there, another's, or has ended.
type sessions struct {
	dialect dialect.Sessions // nil: nothing is kept for one
	without sync.Map         // principals that called without a session

	mu    sync.Mutex
	all   map[string]*session
	count map[string]int // by principal
}

type session struct {
	id, principal string
	alive         context.Context // ends with it: its poll is woken
	die           context.CancelFunc
	using         sync.WaitGroup // its requests under way

	uses int       // with the mutex of sessions, as the rest
	last time.Time // that one ended
}

func newSessions(d dialect.Dialect) *sessions {
	s := &sessions{all: map[string]*session{}, count: map[string]int{}}
	s.dialect, _ = d.(dialect.Sessions)
	return s
}

func (s *sessions) create(principal string) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[principal] >= maxSessions {
		return "", &rpcError{codeBusy, "you have too many sessions; end some",
			map[string]any{"limit": maxSessions}}
	}
	one := &session{id: "s-" + rand.Text(), principal: principal, last: time.Now()}
	one.alive, one.die = context.WithCancel(context.Background())
	s.all[one.id] = one
	s.count[principal]++
	return one.id, nil
}

// use finds a session, which does not end before leave is called.
func (s *sessions) use(principal, id string) (_ *session, leave func(), _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[id]
	if one == nil || one.principal != principal {
		return nil, nil, wrong(codeSession, "there is no such session; it may have ended")
	}
	one.uses++
	one.using.Add(1)
	return one, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		one.uses, one.last = one.uses-1, time.Now()
		one.using.Done()
	}, nil
}

// remove takes a session out, so that nobody finds it any more. Somebody else may have done so.
func (s *sessions) remove(one *session) bool {
	if s.all[one.id] != one {
		return false
	}
	delete(s.all, one.id)
	if s.count[one.principal]--; s.count[one.principal] == 0 {
		delete(s.count, one.principal)
	}
	one.die()
	return true
}

// end ends a session, once its requests under way have. If ctx ends before, it goes on.
func (s *sessions) end(ctx context.Context, one *session) error {
	s.mu.Lock()
	removed := s.remove(one)
	s.mu.Unlock()
	if !removed {
		return wrong(codeSession, "there is no such session; it may have ended")
	}
	ended := make(chan error, 1)
	go func() { ended <- s.drop(context.WithoutCancel(ctx), one) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drop lets the dialect forget a session that was removed.
func (s *sessions) drop(ctx context.Context, one *session) error {
	one.using.Wait()
	if s.dialect == nil {
		return nil
	}
	return s.dialect.EndSession(ctx, one.principal, one.id)
}

// sweep ends the sessions that nobody has used for long.
func (s *sessions) sweep(ctx context.Context, logger *slog.Logger) {
	s.endThose(ctx, logger, func(one *session) bool {
		return one.uses == 0 && time.Since(one.last) > sessionIdle
	})
}

// endAll ends all of them, and run, the session of calls that named none.
func (s *sessions) endAll(ctx context.Context, run string, logger *slog.Logger) {
	ctx = context.WithoutCancel(ctx)
	s.endThose(ctx, logger, func(*session) bool { return true })
	s.without.Range(func(principal, _ any) bool {
		s.forget(ctx, logger, &session{id: run, principal: principal.(string)})
		return true
	})
}

func (s *sessions) endThose(ctx context.Context, logger *slog.Logger, which func(*session) bool) {
	s.mu.Lock()
	var gone []*session
	for _, one := range s.all {
		if which(one) && s.remove(one) {
			gone = append(gone, one)
		}
	}
	s.mu.Unlock()
	for _, one := range gone {
		s.forget(ctx, logger, one)
	}
}

func (s *sessions) forget(ctx context.Context, logger *slog.Logger, one *session) {
	if err := s.drop(ctx, one); err != nil {
		logger.Warn("a session could not be ended", "principal", one.principal, "err", err)
	}
}
