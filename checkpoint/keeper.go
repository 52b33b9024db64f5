package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// keeper does in the background what must not delay a save: it moves the write-ahead log into the file, lets retention run,
// and makes room before the store is full. A save that finds no room all the same waits for it.
type keeper struct {
	d    *DB
	side *sql.DB // a connection of its own for log transfers
	wake chan struct{}
	long chan struct{} // the log is wanted long
	quit chan struct{}
	done sync.WaitGroup

	used   atomic.Int64 // bytes, estimated between measurements
	saves  atomic.Int64 // since the last measurement
	wrote  atomic.Bool  // this process has saved
	limits atomic.Pointer[Limits]
	making sync.Mutex // one eviction at a time
}

const (
	savesPerTransfer = 256 // about 8 MB of log
	gcEvery          = time.Hour
	closeBudget      = 250 * time.Millisecond
	perSave          = 512      // catalog bytes of a save, for the estimate
	slack            = 64 << 10 // pages that a save may leave half empty, and what others save meanwhile
)

func startKeeper(ctx context.Context, d *DB) (*keeper, error) {
	k := &keeper{d: d, wake: make(chan struct{}, 1), long: make(chan struct{}, 1), quit: make(chan struct{})}
	if err := k.measure(ctx); err != nil {
		return nil, err
	}
	var err error
	if k.side, err = sql.Open("sqlite", d.dsn(true, false)); err != nil {
		return nil, err
	}
	k.side.SetMaxOpenConns(1)
	k.done.Add(1)
	go k.run()
	return k, nil
}

func (k *keeper) run() {
	defer k.done.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-k.quit
		cancel()
	}()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-k.quit:
			return
		case <-k.long:
			if err := k.d.lengthen(ctx); err != nil && ctx.Err() == nil {
				k.d.o.Logger.Warn("lengthening the checkpoint log", "error", err)
			}
			continue
		case <-k.wake:
		case <-tick.C:
		}
		k.round(ctx)
	}
}

// round does what is due. Errors are logged: each save that depends on the outcome finds out for itself.
func (k *keeper) round(ctx context.Context) {
	if k.saves.Swap(0) > 0 {
		// PASSIVE never waits for anybody and makes nobody wait.
		if _, err := k.side.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil && ctx.Err() == nil {
			k.d.o.Logger.Warn("moving the checkpoint log", "error", err)
		}
		if err := k.measure(ctx); err != nil && ctx.Err() == nil {
			k.d.o.Logger.Warn("measuring the checkpoint store", "error", err)
		}
	}
	// Whoever only looks takes nothing away, however long: nothing grows by it, and its limits may be nobody's.
	if k.wrote.Load() && (k.used.Load() > k.limits.Load().besideLog()/20*19 || k.due(ctx)) {
		k.making.Lock()
		defer k.making.Unlock()
		if r, err := k.d.gc(ctx, GCOptions{Shared: true}); err != nil && ctx.Err() == nil {
			k.d.o.Logger.Warn("cleaning the checkpoint store", "error", err)
		} else if r.Checkpoints+r.Contents > 0 {
			k.d.o.Logger.Info("cleaned the checkpoint store", "checkpoints", r.Checkpoints, "contents", r.Contents, "bytes", r.Bytes)
		}
	}
}

// due reports whether no process has run retention for a while.
func (k *keeper) due(ctx context.Context) bool {
	var at int64
	err := k.d.r.QueryRowContext(ctx, "SELECT v FROM meta WHERE k='gc_at'").Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	age := k.d.o.Now().Sub(time.Unix(0, at))
	return err == nil && (age > gcEvery || age < 0)
}

func (k *keeper) stop() {
	close(k.quit)
	k.done.Wait()
	// A process that lives for one call gives retention its share too. Every slice commits for itself, so that the
	// budget may end it anywhere.
	ctx, cancel := context.WithTimeout(context.Background(), closeBudget)
	defer cancel()
	if k.wrote.Load() && k.due(ctx) {
		k.d.gc(ctx, GCOptions{Shared: true}) // whatever it did not do, the next one does
	}
	k.side.Close()
}

// measure sets used to what the store holds, pages in use and external files, and limits to what bounds it now.
func (k *keeper) measure(ctx context.Context) error {
	n, err := k.d.usedBytes(ctx, k.d.r)
	if err != nil {
		return err
	}
	k.used.Store(n)
	l, err := k.d.shared(ctx, k.d.r)
	if err == nil {
		k.limits.Store(&l)
		k.d.logMost.Store(l.logMost())
	}
	return err
}

func (d *DB) usedBytes(ctx context.Context, q querier) (int64, error) {
	var pages, free, size, ext int64
	err := q.QueryRowContext(ctx, `SELECT (SELECT page_count FROM pragma_page_count), (SELECT freelist_count FROM pragma_freelist_count),
		(SELECT page_size FROM pragma_page_size), (SELECT ifnull(sum(bytes),0) FROM data INDEXED BY data_ext WHERE codec & 4)`).Scan(&pages, &free, &size, &ext)
	return (pages-free)*size + ext, err
}

// room makes sure that what is new in op fits, and evicts what retention would have kept when it must.
func (k *keeper) room(ctx context.Context, op *Op) error {
	bound := k.limits.Load()
	limit := bound.besideLog()
	if k.used.Load()+op.bytes() <= limit-limit/64-4*slack {
		return nil
	}
	// This near to the limit an estimate is not enough.
	need, err := k.d.newBytes(ctx, op)
	if err == nil {
		err = k.measure(ctx)
	}
	bound = k.limits.Load()
	limit = bound.besideLog()
	if err != nil || k.used.Load()+need+slack <= limit {
		return err
	}
	if need > limit {
		return &FullError{need + bound.logMost(), bound.MaxBytes}
	}
	k.making.Lock()
	defer k.making.Unlock()
	if err := k.measure(ctx); err != nil {
		return err
	}
	if k.used.Load()+need+slack <= limit { // somebody else made room
		return nil
	}
	if _, err := k.d.gc(ctx, GCOptions{Shared: true, need: need + slack}); err != nil {
		return err
	}
	if need, err = k.d.newBytes(ctx, op); err != nil { // what was there may be gone now
		return err
	}
	if used := k.used.Load(); used+need > limit {
		return &FullError{used + need + bound.logMost(), bound.MaxBytes}
	}
	return nil
}

// bytes is what the contents of op come to.
func (op *Op) bytes() (n int64) {
	for i := range op.Changes {
		n += int64(len(op.Changes[i].Content) + len(op.Changes[i].AfterContent))
	}
	return n
}

// newBytes is what those contents of op come to that are not stored yet, each counted once.
func (d *DB) newBytes(ctx context.Context, op *Op) (n int64, err error) {
	seen := map[string]bool{}
	add := func(hx string, content []byte) {
		if err != nil || content == nil || seen[hx] {
			return
		}
		seen[hx] = true
		var v version
		if v.h, err = parseHash(hx); err != nil {
			return
		}
		var stored bool
		if stored, err = d.lookUp(ctx, &v); !stored {
			n += int64(len(content))
		}
	}
	for i := range op.Changes {
		c := &op.Changes[i]
		add(c.Before.Hash, c.Content)
		add(c.After.Hash, c.AfterContent)
	}
	return n, err
}

func (k *keeper) saved(bytes int64) {
	k.wrote.Store(true)
	k.used.Add(bytes + perSave)
	switch n := k.saves.Add(1); {
	case n == walRoomAfter:
		nudge(k.long)
	case n%savesPerTransfer == 0:
		nudge(k.wake)
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
