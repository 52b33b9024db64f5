package feed

import (
	"sync"
	"time"
)

// maxSessions bounds how many sessions are remembered.
const maxSessions = 10_000

// Sessions remembers since when a session calls, and how often it did.
type Sessions struct {
	mu   sync.Mutex
	seen map[[2]string]*Seen
}

// Seen is what is remembered of a session.
type Seen struct {
	Since time.Time // its first call
	Calls int64
	last  time.Time
}

// Saw counts a call. It forgets who was not heard of for the longest time.
func (s *Sessions) Saw(principal, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, now := [2]string{principal, session}, time.Now()
	if s.seen == nil {
		s.seen = map[[2]string]*Seen{}
	}
	one := s.seen[key]
	if one == nil {
		if len(s.seen) >= maxSessions {
			s.forgetOldest()
		}
		one = &Seen{Since: now}
		s.seen[key] = one
	}
	one.last = now
	one.Calls++
}

func (s *Sessions) forgetOldest() {
	var oldest [2]string
	var at time.Time
	for key, one := range s.seen {
		if at.IsZero() || one.last.Before(at) {
			oldest, at = key, one.last
		}
	}
	delete(s.seen, oldest)
}

// Of is what is remembered.
func (s *Sessions) Of(principal, session string) Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.seen[[2]string{principal, session}]; one != nil {
		return *one
	}
	return Seen{Since: time.Now()}
}

// End forgets a session.
func (s *Sessions) End(principal, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, [2]string{principal, session})
}
