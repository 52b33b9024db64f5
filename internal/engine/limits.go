package engine

import (
	"fmt"
	"sync"
	"time"

	"moltisfs/config"
	"moltisfs/internal/session"
)

// CallFacts are the facts of a call that is one too many.
type CallFacts struct {
	Limit string        // the key of [tools.fs.limits]; "" where calls were left behind
	Most  int           // what it is set to
	Wait  time.Duration // after which the call would be taken; 0: not known
}

// String names the limit, for a sentence: "calls_per_second is 100".
func (f CallFacts) String() string {
	if f.Limit == "" {
		return fmt.Sprintf("%d calls wait for a file system that does not answer", f.Most)
	}
	return fmt.Sprintf("%s is %d", f.Limit, f.Most)
}

// limits counts the calls of each session. Its zero value lets all through.
type limits struct {
	config.Limits
	mu       sync.Mutex
	sessions map[session.Key]*rate
}

// rate counts the calls of one session. It may have saved up ten seconds of calls.
type rate struct {
	left    float64   // calls that it may make now
	at      time.Time // when left was counted
	running int
}

const (
	savedUp = 10 // seconds of calls_per_second that an idle session has
	// mostSessions is when those that have been idle are forgotten.
	mostSessions = 1000
)

// enter counts a call in, or refuses it. leave must follow where it is taken.
func (l *limits) enter(c *Call, now time.Time) (leave func(), err error) {
	if l.CallsPerSecond == 0 && l.CallsAtOnce == 0 {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.session(c.key(), now)
	r.left += now.Sub(r.at).Seconds() * float64(l.CallsPerSecond)
	r.left, r.at = min(r.left, savedUp*float64(l.CallsPerSecond)), now
	if most := l.CallsAtOnce; most > 0 && r.running >= most {
		return nil, tooMany("calls_at_once", most, 0)
	}
	if most := float64(l.CallsPerSecond); most > 0 {
		if r.left < 1 {
			wait := time.Duration((1-r.left)/most*float64(time.Second)) + time.Millisecond
			return nil, tooMany("calls_per_second", l.CallsPerSecond, wait)
		}
		r.left--
	}
	r.running++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		r.running--
	}, nil
}

func tooMany(limit string, most int, wait time.Duration) error {
	return Refuse(TooManyCalls, "", CallFacts{limit, most, wait})
}

// session gives the rate of k. A session that has saved up everything is as a new one, and is forgotten.
func (l *limits) session(k session.Key, now time.Time) *rate {
	if r := l.sessions[k]; r != nil {
		return r
	}
	if len(l.sessions) >= mostSessions {
		for k, r := range l.sessions {
			if r.running == 0 && now.Sub(r.at) > savedUp*time.Second {
				delete(l.sessions, k)
			}
		}
	}
	if l.sessions == nil {
		l.sessions = map[session.Key]*rate{}
	}
	r := &rate{left: savedUp * float64(l.CallsPerSecond), at: now}
	l.sessions[k] = r
	return r
}
