package capability

import (
	"sync"
	"time"
)

// maxSessions bounds how many sessions are remembered.
const maxSessions = 10_000

// sessions remembers since when a session calls, and how often it did.
type sessions struct {
	mu   sync.Mutex
	seen map[[2]string]*seen
}

type seen struct {
	since, last time.Time
	calls       int64
}

// saw counts a call. It forgets who was not heard of for the longest time.
func (s *sessions) saw(principal, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, now := [2]string{principal, session}, time.Now()
	if s.seen == nil {
		s.seen = map[[2]string]*seen{}
	}
	one := s.seen[key]
	if one == nil {
		if len(s.seen) >= maxSessions {
			s.forgetOldest()
		}
		one = &seen{since: now}
		s.seen[key] = one
	}
	one.last = now
	one.calls++
}

func (s *sessions) forgetOldest() {
	var oldest [2]string
	var at time.Time
	for key, one := range s.seen {
		if at.IsZero() || one.last.Before(at) {
			oldest, at = key, one.last
		}
	}
	delete(s.seen, oldest)
}

// of is what is remembered.
func (s *sessions) of(principal, session string) seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.seen[[2]string{principal, session}]; one != nil {
		return *one
	}
	return seen{since: time.Now()}
}

func (s *sessions) end(principal, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, [2]string{principal, session})
}
