package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/config"
	"moltisfs/internal/fleet"
)

// Fleet is what a process has open of [tools.fs.fleet]. A process joins one and leaves it at its end, whatever number of engines it has.
// A nil Fleet is none: then all is in the data directory. Safe for concurrent use.
type Fleet struct {
	config.Fleet
	Gateway *fleet.Gateway
	bucket  bucket
}

// JoinFleet joins the fleet that c names; nil where it names none. What can't be reached is no error: it is tried again when it is needed.
func JoinFleet(ctx context.Context, c config.Fleet, logger *slog.Logger) (*Fleet, error) {
	if !c.On() {
		return nil, nil
	}
	g, err := fleet.Open(ctx, fleet.Options{Database: c.Database, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Fleet{Fleet: c, Gateway: g, bucket: bucket{address: c.Contents}}, nil
}

// Close leaves the fleet.
func (f *Fleet) Close() error {
	if f == nil {
		return nil
	}
	return f.Gateway.Close()
}

// HasStore says that the history is in the fleet, and not in the data directory.
func (f *Fleet) HasStore() bool { return f != nil && f.Durable == "remote" }

// remote has o open the store of the fleet.
func (f *Fleet) remote(o *checkpoint.Options) {
	o.Database, o.Guard, o.Blobs = f.Database, f.Gateway.Guard, &f.bucket
}

// leased binds the changes of ctx to the lease that the fleet has given this process: what is saved, locked or published under it is refused
// once that lease is over. Without a store of a fleet it is ctx.
func (e *Engine) leased(ctx context.Context) (context.Context, error) {
	if !e.fleet.HasStore() {
		return ctx, nil
	}
	return e.fleet.Gateway.Begin(ctx)
}

// fenced says, without asking the database, that the lease of ctx is over: then nothing more may be changed. nil: it is not.
func (e *Engine) fenced(ctx context.Context) error {
	if !e.fleet.HasStore() {
		return nil
	}
	return e.fleet.Gateway.Check(ctx)
}

// ofFleet says that an error is of the fleet, and not of what the call wants.
func ofFleet(err error) bool {
	_, unreachable := errors.AsType[*fleet.UnreachableError](err)
	return unreachable || errors.Is(err, fleet.ErrFenced)
}

// bucket is the store of large contents, which is opened when it is first needed: most calls need none.
type bucket struct {
	address string

	mu    sync.Mutex
	s3    *blob.S3 // nil: it was not reached yet
	err   error    // why not
	tried time.Time
}

// tryAgain is the time between two attempts to reach the bucket.
const tryAgain = 2 * time.Second

func (b *bucket) open() (*blob.S3, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.s3 == nil && time.Since(b.tried) > tryAgain {
		s, err := blob.OpenS3(b.address)
		if b.tried, b.err = time.Now(), err; err == nil {
			b.s3 = s
		}
	}
	return b.s3, b.err
}

// Put, Get, Delete and List are those of a [blob.Store].
func (b *bucket) Put(ctx context.Context, name string, z []byte) error {
	s, err := b.open()
	if err == nil {
		err = s.Put(ctx, name, z)
	}
	return err
}

func (b *bucket) Get(ctx context.Context, name string, size int64) ([]byte, error) {
	s, err := b.open()
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, name, size)
}

func (b *bucket) Delete(ctx context.Context, name string) error {
	s, err := b.open()
	if err == nil {
		err = s.Delete(ctx, name)
	}
	return err
}

func (b *bucket) List(ctx context.Context, fn func(name string, size int64) error) error {
	s, err := b.open()
	if err == nil {
		err = s.List(ctx, fn)
	}
	return err
}
