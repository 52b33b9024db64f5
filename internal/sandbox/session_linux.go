//go:build !rooted

package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"moltisfs/internal/guardfs"
)

// Session is a sandbox with a worker in it, or one that is started when it is needed. Safe for
// concurrent use.
type Session struct {
	o Options

	mu     sync.Mutex
	now    *process
	starts []time.Time
	closed bool
	turn   int // how many workers there were
	first  Hello
}

// errClosed is the reason of calls after Close.
var errClosed = errors.New("the session is closed")

// Start begins a session with its first worker, and says hello.
func Start(ctx context.Context, o Options) (*Session, error) {
	o.Hang, o.Starts = cmp.Or(o.Hang, 30*time.Second), cmp.Or(o.Starts, 3)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	s := &Session{o: o}
	p, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	s.now, s.first = p, p.hello
	return s, nil
}

// Hello gives the message of the first worker.
func (s *Session) Hello() Hello { return s.first }

// Calls are the system calls inside.
func (s *Session) Calls() guardfs.Calls { return calls{s} }

// Close ends the worker. Calls under way end with guardfs.ErrUnavailable.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	p := s.now
	s.now = nil
	s.mu.Unlock()
	if p != nil {
		p.end()
	}
	return nil
}

// live is the worker; where it has died another one is started.
func (s *Session) live() (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, unavailable(errClosed)
	}
	if !s.now.isDead() {
		return s.now, nil
	}
	recent := s.starts[:0]
	for _, at := range s.starts {
		if time.Since(at) < time.Minute {
			recent = append(recent, at)
		}
	}
	if s.starts = recent; len(recent) >= s.o.Starts {
		return nil, unavailable(fmt.Errorf("its worker ended %d times within a minute, now because %w",
			len(recent)+1, s.now.why()))
	}
	s.starts = append(s.starts, time.Now())
	p, err := s.start(context.Background())
	if err != nil {
		s.o.Log(Cause(err))
		return nil, err
	}
	if p.hello.Root != s.first.Root {
		p.end()
		return nil, unavailable(fmt.Errorf("its root was %q and is %q", s.first.Root, p.hello.Root))
	}
	s.o.Log(fmt.Sprintf("it was started anew: %v", s.now.why()))
	s.now = p
	return p, nil
}

// of is the worker that gave a descriptor, and its number there.
func (s *Session) of(fd int) (*process, int, error) {
	s.mu.Lock()
	p := s.now
	s.mu.Unlock()
	if p == nil || fd < 0 || fd>>fdBits != p.turn || p.isDead() {
		return nil, -1, errEnded
	}
	return p, fd & (1<<fdBits - 1), nil
}

var errEnded = unavailable(errors.New("the worker that had it open has ended"))

// fdBits is how many bits of a descriptor are the worker's; the others say which worker it was.
const fdBits = 20

// unavailable is the error of a call that could not be made.
func unavailable(why error) error { return fmt.Errorf("%w: %w", guardfs.ErrUnavailable, why) }
