package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A call whose file system does not answer (a network that is gone, a FUSE server that hangs)
// blocks its thread within the kernel, and nothing can end that. Such a call is left behind:
// its caller gets a refusal, and its goroutine ends when the system call does. What it finds then
// is dropped, and a change that has not begun by then never begins.

const (
	// viewPatience and changePatience are how long a call may go on after its deadline, or after its
	// caller gave up. A change under way gets longer: a slow disk is no frozen one, and what has
	// begun is best taken back.
	viewPatience   = 5 * time.Second
	changePatience = 2 * time.Minute
	// mostStuck bounds the calls of a principal that are left behind, for each keeps threads.
	mostStuck = 32
	// longest is how long a call may take that has no deadline of its own.
	longest = time.Hour
)

// visit is a call's way through Do. Its stage moves on once: whoever is first, the change or the
// patience.
type visit struct {
	under *Engine    // under the scope of the call, and the chain
	chain *consulted // nil without a chain
	stage atomic.Int32
}

const (
	looking  = iota // nothing has been changed
	changing        // the intent is on record, or is about to be
	gone            // the call was left behind before it changed anything, and must not
)

// begin says whether a change may begin. Outside of Do nobody leaves the call.
func (v *visit) begin() bool {
	return v == nil || v.stage.CompareAndSwap(looking, changing) || v.stage.Load() == changing
}

// leave keeps a change from beginning. began is true where that is too late.
func (v *visit) leave() (began bool) { return !v.stage.CompareAndSwap(looking, gone) }

// stuck counts the calls of each principal that were left behind and have not ended.
type stuck struct {
	mu  sync.Mutex
	all map[string]int
}

func (s *stuck) add(principal string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]int{}
	}
	if s.all[principal] += n; s.all[principal] == 0 {
		delete(s.all, principal)
	}
}

func (s *stuck) tooMany(principal string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[principal] >= mostStuck
}

// LeftBehind is the error of a call that was left behind: a refusal NoAnswer. The operation still
// runs, so its dialect must not touch what the operation has, and makes the answer of this alone.
type LeftBehind struct{ Refusal *Refusal }

func (l *LeftBehind) Error() string { return "the call was left behind: " + l.Refusal.Error() }

func (l *LeftBehind) Unwrap() error { return l.Refusal }

// panicked is the value of a panic that ended an operation.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprintf("internal error: %v", p.value) }

// StuckFacts are the facts of NoAnswer.
type StuckFacts struct{ Began bool } // a change may be half-way

// String tells the fate of a change, for a sentence.
func (f StuckFacts) String() string {
	if f.Began {
		return "cannot determine whether the change completes"
	}
	return "nothing was changed"
}

// perform runs the operation. Where it has to be left behind, the error is a *LeftBehind. That
// takes a goroutine of its own, which costs a small call a fifth of its time: so it is done only
// where something is mounted that may hang.
func (e *Engine) perform(ctx context.Context, c *Call, op Operation) error {
	if !e.mayHang() {
		return e.run(ctx, c.Tool, op)
	}
	ended, tool, principal, path := make(chan error, 1), c.Tool, c.Principal, c.path()
	go func() {
		err := error(panicked{"the operation gave up"}) // by runtime.Goexit
		defer func() { ended <- err }()
		err = e.run(ctx, tool, op)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	began := false
	for _, patience := range e.patience {
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
		}
		if began = c.in.leave(); !began {
			break
		}
	}
	e.stuck.add(principal, 1)
	go func() { <-ended; e.stuck.add(principal, -1) }()
	return &LeftBehind{&Refusal{NoAnswer.Code, NoAnswer, path, StuckFacts{began}, context.Cause(ctx)}}
}

// run runs the operation, and catches its panic.
func (e *Engine) run(ctx context.Context, tool string, op Operation) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e.logger.Error("an operation panicked", "tool", tool, "panic", r,
				"stack", string(debug.Stack()))
			err = panicked{r}
		}
	}()
	return op.Run(ctx)
}

// apart is c as it is before it runs, for whoever goes on when it was left behind.
func (c *Call) apart() *Call {
	a := *c
	a.Trace.Paths, a.Trace.Hooks = slices.Clone(c.Trace.Paths), slices.Clone(c.Trace.Hooks)
	return &a
}
