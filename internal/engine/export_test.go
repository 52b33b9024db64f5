package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/config"
	"moltisfs/internal/audit"
	"moltisfs/internal/fleet"
	"moltisfs/internal/share"
)

// Files is a change of some files, which Next says by their After.
type Files struct {
	Paths   []string
	Parents bool
	Summary string
	Op      checkpoint.Op

	Checkpoint bool
	Links      map[string]bool
	Dirs       []string // to be made
	Drop       []string // directories to be removed
	Whole      bool
	Next       func([]*Target) error
}

// Begin gives a call what Do gives it, for tests that use its methods alone.
func (e *Engine) Begin(c *Call) *Call {
	c.Engine, c.stage = e, new(atomic.Int32)
	if err := c.open(context.Background()); err != nil {
		panic(err)
	}
	return c
}

// ChangeFiles carries it out, whatever was read of the files.
func (c *Call) ChangeFiles(ctx context.Context, f Files) (*Done, error) {
	return c.Change(ctx, func(_ context.Context, d *Planner) (*Plan, error) {
		if err := checkPlaces(f.Paths); err != nil {
			return nil, err
		}
		for _, path := range f.Paths {
			if _, err := d.Load(path, Rules{Parents: f.Parents, Link: f.Links[path]}); err != nil {
				return nil, err
			}
		}
		if f.Next != nil {
			if err := f.Next(d.files); err != nil {
				return nil, err
			}
		}
		p := Plan{Summary: f.Summary, Op: f.Op, Checkpoint: f.Checkpoint, Whole: f.Whole}
		for _, dir := range f.Dirs {
			above, err := d.above(dir+"/x", dir+"/x")
			if err != nil {
				return nil, err
			}
			p.Steps = append(p.Steps, above...)
		}
		for _, dir := range f.Drop {
			s, err := d.rmdir(dir)
			if err != nil {
				return nil, err
			}
			p.Steps = append(p.Steps, s)
		}
		return d.plan(p)
	})
}

// Held is what the client holds of a path.
func (c *Call) Held(ctx context.Context, path string) ([]byte, bool, error) { return c.held(ctx, path) }

// SetClock gives the engine another time.
func (e *Engine) SetClock(now func() time.Time) { e.now = now }

// Sums is how many hashes of files are remembered.
func (e *Engine) Sums() int {
	e.sums.mu.Lock()
	defer e.sums.mu.Unlock()
	return len(e.sums.known)
}

// HalfWay lists what may be half-way.
func (e *Engine) HalfWay(ctx context.Context) (ids []checkpoint.ID, err error) {
	db, err := e.checkpoints.existing()
	if db == nil || err != nil {
		return nil, err
	}
	rows, err := db.Open(ctx)
	for _, r := range rows {
		if !r.Made {
			ids = append(ids, r.ID)
		}
	}
	return ids, err
}

// SetLockWait is how long a call waits for locks.
func (e *Engine) SetLockWait(d time.Duration) { e.lockWait = d }

// Recover brings to an end what others have left half-way.
func (e *Engine) Recover(ctx context.Context) error {
	return e.own().recover(ctx, time.Now().Add(e.lockWait))
}

// AtHome has the engine count as one whose calls are made by this machine.
func (e *Engine) AtHome() { e.place.Calls = nil }

// RecoverBy is Recover by a rule that is known to be bad.
func (e *Engine) RecoverBy(ctx context.Context, rule string) error {
	open, err := e.openOps(ctx)
	if rule == "oldest" {
		slices.Reverse(open)
	}
	for _, o := range open {
		if rule == "norow" && o.id == "" {
			e.journal.Forget(o.tag)
			continue
		}
		if rule == "undoalways" { // it has a second step
			o.steps = append(o.steps, record{N: 1 << 20, Do: Put, Path: o.steps[0].Path + "-", Dir: o.steps[0].Dir})
		}
		for i := range o.steps {
			if at, _ := e.own().placeOf(o.steps[i].Path); at != nil && rule == "asafter" { // what is like it counts as it
				after := o.steps[i].After
				after.ID = idAt(at)
				if is, _, _ := after.is(at); is {
					o.steps[i].After = after
				}
				at.Close()
			}
		}
		err = errors.Join(err, e.own().recoverOp(ctx, o, time.Now().Add(e.lockWait)))
	}
	return err
}

// WithoutOpLock has nobody hold the lock of an operation until back is called.
func WithoutOpLock() (back func()) {
	was, n := opKey, atomic.Int64{}
	opKey = func(tag string) string { return fmt.Sprint(was(tag), n.Add(1)) }
	return func() { opKey = was }
}

// WithoutHold has nobody look into a tree while it has a name of ours, until back is called.
func WithoutHold() (back func()) {
	was := lookIntoHeld
	lookIntoHeld = func(*Engine, context.Context, *Move, string) error { return nil }
	return func() { lookIntoHeld = was }
}

func (e *Engine) tagOf(ctx context.Context, id checkpoint.ID) string {
	open, err := e.openOps(ctx)
	for _, o := range open {
		if o.id == id {
			return o.tag
		}
	}
	panic(fmt.Sprint(id, " is not open: ", err))
}

// LockOp takes the lock of an open operation, as who takes it back does.
func (e *Engine) LockOp(ctx context.Context, id checkpoint.ID) (unlock func()) {
	unlock, err := e.lockFor(ctx, "test", []string{opKey(e.tagOf(ctx, id))}, e.lockWait)
	if err != nil {
		panic(err)
	}
	return unlock
}

// LockKey is the lock of a path.
func (e *Engine) LockKey(path string) string {
	place, err := e.tree.Entry(path)
	if err != nil {
		panic(err)
	}
	defer place.Close()
	return place.LockKey()
}

// Hurry lets calls be left behind d after their deadline, whatever is mounted; 0: as ever.
func (e *Engine) Hurry(d time.Duration) {
	e.mayHang = func() bool { return true }
	if d > 0 {
		e.patience = [2]time.Duration{d, d}
	}
}

// MayHang says whether calls are watched.
func (e *Engine) MayHang() bool { return e.mayHang() }

// Watched has the directories that may be watched be so many, until back is called. free is how many more a principal may have.
func Watched(n int64) (free func(who string) int64, back func()) {
	was, pool := watched, share.New(n)
	watched = pool
	return func(who string) (n int64) {
		for pool.Try(who, 1) {
			n++
		}
		pool.Give(who, n)
		return n
	}, func() { watched = was }
}

// FleetOf is a Fleet of a gateway that is there.
func FleetOf(c config.Fleet, g *fleet.Gateway) *Fleet {
	bucket, err := blob.OpenS3(c.Contents)
	if err != nil {
		panic(err)
	}
	return &Fleet{Fleet: c, Gateway: g, bucket: bucket, logs: map[string]*audit.Log{}}
}

// Quiet sets the time after which a session may have been elsewhere.
func Quiet(d time.Duration) (back func()) {
	was := quiet
	quiet = d
	return func() { quiet = was }
}

// Fetch is what each call begins with.
func (c *Call) Fetch(ctx context.Context) { c.fetch(ctx) }

// Unlocked has the engine go without the locks that other machines take too.
func (e *Engine) Unlocked() { e.locks = e.locks.Further(nil) }

// EndLate ends the late changes of the engine, as each change does when it begins. It does not wait.
func (e *Engine) EndLate() { e.endLate(0) }
