// Package share divides a scarce resource among principals: none of them holds more than its part, so that others find some,
// and those that wait are served in turn, a principal at a time.
package share

import (
	"context"
	"maps"
	"slices"
	"sync"
)

type key struct{}

// By is ctx with the principal whose call it is.
func By(ctx context.Context, principal string) context.Context {
	return context.WithValue(ctx, key{}, principal)
}

// Of is the principal that By has put into ctx; "" where none was.
func Of(ctx context.Context) string {
	who, _ := ctx.Value(key{}).(string)
	return who
}

// Part is the most that one principal holds of size: half, rounded up.
func Part(size int64) int64 { return (size + 1) / 2 }

// A Pool is so much of something, as slots or bytes. A principal that holds nothing may take one
// thing that is larger than its part. A Pool is safe for concurrent use.
type Pool struct {
	size int64

	mu      sync.Mutex
	used    int64
	turns   int64 // that were had until now
	of      map[string]*account
	waiting []*waiter
}

type account struct{ held, waits, turn int64 }

type waiter struct {
	who   string
	n     int64
	taken chan struct{}
}

// New is a pool of size, and at least of one.
func New(size int64) *Pool { return &Pool{size: max(size, 1), of: map[string]*account{}} }

// Take takes n for the principal who, and waits until ctx ends. Give must follow with the same n.
func (p *Pool) Take(ctx context.Context, who string, n int64) error {
	p.mu.Lock()
	w := p.ask(who, n)
	p.mu.Unlock()
	select {
	case <-w.taken:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.withdraw(w) {
		p.give(who, n)
	}
	return ctx.Err()
}

// Try is Take without waiting; it reports whether n was taken.
func (p *Pool) Try(who string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.withdraw(p.ask(who, n))
}

// Give gives back n that the principal who has taken.
func (p *Pool) Give(who string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.give(who, n)
}

func (p *Pool) give(who string, n int64) {
	if a := p.of[who]; a != nil { // of nothing, nothing is kept
		n = min(n, p.size)
		p.used, a.held = p.used-n, a.held-n
	}
	p.serve()
}

// ask puts who in line for n, and serves the next in line.
func (p *Pool) ask(who string, n int64) *waiter {
	w := &waiter{who, min(n, p.size), make(chan struct{})}
	if p.of[who] == nil {
		p.of[who] = &account{}
	}
	p.of[who].waits++
	p.waiting = append(p.waiting, w)
	p.serve()
	return w
}

// withdraw ends a wait; false: it has been served.
func (p *Pool) withdraw(w *waiter) bool {
	i := slices.Index(p.waiting, w)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.of[w.who].waits--
	p.serve() // others may have waited behind it
	return true
}

// serve serves waiters as long as there is enough: of the principals below their part,
// first the one that was served longest ago. It forgets principals that hold nothing and wait for nothing.
func (p *Pool) serve() {
	defer maps.DeleteFunc(p.of, func(_ string, a *account) bool { return a.held == 0 && a.waits == 0 })
	for {
		next := -1
		for i, w := range p.waiting {
			a := p.of[w.who]
			if (a.held == 0 || a.held+w.n <= Part(p.size)) && (next < 0 || a.turn < p.of[p.waiting[next].who].turn) {
				next = i
			}
		}
		if next < 0 || p.used+p.waiting[next].n > p.size {
			return
		}
		w := p.waiting[next]
		p.waiting = slices.Delete(p.waiting, next, next+1)
		p.turns++
		a := p.of[w.who]
		a.held, a.waits, a.turn = a.held+w.n, a.waits-1, p.turns
		p.used += w.n
		close(w.taken)
	}
}
