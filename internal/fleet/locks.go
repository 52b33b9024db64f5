package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"moltisfs/internal/outage"
)

// sharedPrefix begins a key that several calls may hold at once, as guardfs.Shared makes it.
const sharedPrefix = "shared "

// LockedError: a lock was not free before the deadline. It answers to the context's error as well.
type LockedError struct {
	holder string
	Err    error
}

func (e *LockedError) Error() string { return "locked by " + e.holder + ": " + e.Err.Error() }

// Unwrap gives the context's error.
func (e *LockedError) Unwrap() error { return e.Err }

// Holder says who has the lock: the name of the gateway, and what it locks for.
func (e *LockedError) Holder() string { return e.holder }

// Lock takes the locks of all keys for the lease of ctx (see Begin), all or none, in one statement. A key that begins with sharedPrefix
// is shared. holder is who locks, for others. It waits until ctx ends, then the error is a *LockedError; but the database is asked once
// in any case. Locks end with unlock or with the lease, nothing else. Calls of one gateway exclude each other too. unlock does not wait
// for the database, and may be called more than once; what the gateway gave back it can take again at once.
func (g *Gateway) Lock(ctx context.Context, holder string, keys ...string) (unlock func(), err error) {
	id, err := g.current(ctx)
	if err != nil {
		return nil, err
	}
	of := map[int64]bool{} // whether it is shared
	for _, key := range keys {
		bare, shared := strings.CutPrefix(key, sharedPrefix)
		sum := sha256.Sum256([]byte(bare))
		k := int64(binary.BigEndian.Uint64(sum[:]))
		before, known := of[k]
		of[k] = shared && (before || !known)
	}
	one, many := []int64{}, []int64{}
	for k, shared := range of {
		if shared {
			many = append(many, k)
		} else {
			one = append(one, k)
		}
	}
	g.mu.Lock()
	g.calls++
	n := g.calls
	g.held[n] = true
	g.mu.Unlock()
	unlock = sync.OnceFunc(func() { g.giveBack(id, n) })
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		who, err := g.ask(ctx, id, n, one, many, holder)
		switch {
		case err != nil:
			unlock() // it may have them
			return nil, outage.OfDatabase(err)
		case who == "":
			return unlock, nil
		case who == "fenced":
			unlock()
			g.drop(id)
			return nil, ErrFenced
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			unlock()
			return nil, &LockedError{who, context.Cause(ctx)}
		}
	}
}

// ask asks once for the locks of a call. who is in the way, "fenced", or "" where they are taken.
func (g *Gateway) ask(ctx context.Context, id string, n int64, one, many []int64, holder string) (who string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	g.mu.Lock()
	freed := append([]int64{}, g.freed...)
	g.mu.Unlock()
	err = g.db.QueryRowContext(ctx, "SELECT lock_all($1, $2, $3, $4, $5, $6, $7)", id, n, one, many, holder, freed, g.lease.Seconds()).Scan(&who)
	return who, err
}

// giveBack has the locks of a call given back soon. Those that are not, because the database can't be reached, go with the next
// heartbeat that reaches it, or with the lease.
func (g *Gateway) giveBack(id string, n int64) {
	g.mu.Lock()
	delete(g.held, n)
	if g.id == id {
		g.freed = append(g.freed, n)
	}
	g.mu.Unlock()
	select {
	case g.free <- struct{}{}:
	default:
	}
}

// release gives locks back until ctx ends.
func (g *Gateway) release(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.free:
		}
		g.mu.Lock()
		id, freed := g.id, append([]int64{}, g.freed...)
		g.mu.Unlock()
		soon, cancel := context.WithTimeout(ctx, patience)
		_, err := g.db.ExecContext(soon, `DELETE FROM lock WHERE ctid IN (
			SELECT ctid FROM lock WHERE gateway = $1 AND call = ANY ($2) FOR UPDATE SKIP LOCKED)`, id, freed) // lock_all may be at it
		cancel()
		g.mu.Lock()
		if g.id == id && (err == nil || len(g.freed) > 1000) { // heartbeats remove what is left
			g.freed = g.freed[len(freed):]
		}
		g.mu.Unlock()
	}
}
