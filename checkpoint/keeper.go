package checkpoint

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/checkpoint/blob"
)

// keeper does in the background what must not delay a save: it moves the write-ahead log into the
// file, lets retention run, and makes room before the store is full. A save that finds no room all
// the same waits for it.
type keeper struct {
	d    *DB
	side *sql.DB // a connection of its own for log transfers
	wake chan struct{}
	long chan struct{} // the log is wanted long
	quit context.CancelFunc
	done sync.WaitGroup

	used   atomic.Int64 // bytes, at the last measurement and by commits since; see committer.held
	saves  atomic.Int64 // since the last measurement
	wrote  atomic.Bool  // this process has saved
	limits atomic.Pointer[Limits]
	making sync.Mutex // one eviction at a time
}

const (
	savesPerTransfer = 256 // about 8 MB of log
	gcEvery          = time.Hour
	closeBudget      = 250 * time.Millisecond
	slack            = 64 << 10 // pages that a save may leave half empty, and its rows
)

func startKeeper(ctx context.Context, d *DB) (*keeper, error) {
	k := &keeper{d: d, wake: make(chan struct{}, 1), long: make(chan struct{}, 1)}
	d.keep = k
	_, err := d.measure(ctx, d.r)
	if err != nil {
		return nil, err
	}
	if k.side, err = sql.Open("sqlite", d.dsn(true, false)); err != nil {
		return nil, err
	}
	k.side.SetMaxOpenConns(1)
	ctx, k.quit = context.WithCancel(context.Background())
	k.done.Go(func() { k.run(ctx) })
	return k, nil
}

func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
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

// round does what is due. Errors are logged: each save that depends on the outcome finds out for
// itself.
func (k *keeper) round(ctx context.Context) {
	if k.saves.Swap(0) > 0 {
		// PASSIVE never waits for anybody and makes nobody wait.
		_, err := k.side.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
		if err != nil && ctx.Err() == nil {
			k.d.o.Logger.Warn("moving the checkpoint log", "error", err)
		}
		if _, err := k.d.measure(ctx, k.d.r); err != nil && ctx.Err() == nil {
			k.d.o.Logger.Warn("measuring the checkpoint store", "error", err)
		}
	}
	// Whoever only looks takes nothing away, however long: nothing grows by it, and its limits may be
	// nobody's.
	if k.wrote.Load() && (k.used.Load() > k.limits.Load().besideLog()/20*19 || k.due(ctx)) {
		k.making.Lock()
		defer k.making.Unlock()
		if r, err := k.d.gc(ctx, GCOptions{Shared: true}); err != nil && ctx.Err() == nil {
			k.d.o.Logger.Warn("cleaning the checkpoint store", "error", err)
		} else if r.Checkpoints+r.Contents > 0 {
			k.d.o.Logger.Info("cleaned the checkpoint store", "checkpoints", r.Checkpoints,
				"contents", r.Contents, "bytes", r.Bytes)
		}
	}
}

// due reports whether no process has run retention for a while.
func (k *keeper) due(ctx context.Context) bool {
	var at int64
	err := k.d.r.QueryRowContext(ctx, "SELECT ifnull(max(v), 0) FROM meta WHERE k='gc_at'").Scan(&at)
	age := k.d.o.Now().Sub(time.Unix(0, at))
	return err == nil && (age > gcEvery || age < 0)
}

func (k *keeper) stop() {
	k.quit()
	k.done.Wait()
	// A process that lives for one call gives retention its share too. Every slice commits for itself,
	// so that the budget may end it anywhere.
	ctx, cancel := context.WithTimeout(context.Background(), closeBudget)
	defer cancel()
	if k.wrote.Load() && k.due(ctx) {
		k.d.gc(ctx, GCOptions{Shared: true}) // whatever it did not do, the next one does
	}
	k.side.Close()
}

// held is what the store holds beside its log, in bytes, and what bounds it: the pages of the
// catalog, those of them that are free, and the external files.
type held struct {
	pages, free, files int64
	limits             Limits
}

func (h *held) used() int64 { return h.pages - h.free + h.files }

// measure tells the keeper, too. Outside of a writing transaction it may be old at once.
func (d *DB) measure(ctx context.Context, q querier) (h held, err error) {
	if h, err = d.held(ctx, q); err != nil {
		return h, err
	}
	if h.limits, err = d.shared(ctx, q); err == nil {
		d.keep.used.Store(h.used())
		d.keep.limits.Store(&h.limits)
	}
	return h, err
}

// held is without the limits.
func (d *DB) held(ctx context.Context, q querier) (h held, err error) {
	var size int64
	err = q.QueryRowContext(ctx, `SELECT (SELECT page_count FROM pragma_page_count),
		(SELECT freelist_count FROM pragma_freelist_count),
		(SELECT page_size FROM pragma_page_size),
		(SELECT ifnull(sum(bytes),0) FROM data INDEXED BY data_ext WHERE codec & 4)`).
		Scan(&h.pages, &h.free, &size, &h.files)
	h.pages, h.free = h.pages*size, h.free*size
	return h, err
}

// room makes sure that what is new in op fits, and evicts what retention would have kept when it
// must. again: there was no room, whatever is known of the store.
func (k *keeper) room(ctx context.Context, op *Op, again bool) error {
	most, small := op.bytes()
	longer := func(l *Limits) int64 { // what the log takes beyond its share
		return max(0, grow(len(op.Changes), small, 0).log-l.logMost())
	}
	bound := k.limits.Load()
	if k.used.Load()+most+slack <= bound.besideLog()-longer(bound) && !again {
		return nil
	}
	// This near to the limit what may be there is not enough to know.
	need, err := k.d.newBytes(ctx, op)
	if err == nil {
		_, err = k.d.measure(ctx, k.d.r)
	}
	small = min(small, need)
	bound = k.limits.Load()
	limit := bound.besideLog() - longer(bound)
	if err != nil || k.used.Load()+need+slack <= limit && !again {
		return err
	}
	if need > limit {
		return &FullError{need + bound.logMost(), bound.MaxBytes}
	}
	k.making.Lock()
	defer k.making.Unlock()
	if _, err := k.d.measure(ctx, k.d.r); err != nil {
		return err
	}
	if k.used.Load()+need+slack <= limit && !again { // somebody else made room
		return nil
	}
	r, err := k.d.gc(ctx, GCOptions{Shared: true, need: need + slack + longer(bound)})
	if err != nil {
		return err
	}
	if need, err = k.d.newBytes(ctx, op); err != nil { // what was there may be gone now
		return err
	}
	if used := k.used.Load(); r.spent && used+need > limit { // else others have taken the room
		return &FullError{used + need + bound.logMost(), bound.MaxBytes}
	}
	return nil
}

// bytes counts the contents of op, and how many of them at most are in the catalog and not
// in files.
func (op *Op) bytes() (all, small int64) {
	all, small = int64(len(op.Steps)), int64(len(op.Steps))
	for i := range op.Changes {
		for _, b := range [][]byte{op.Changes[i].Content, op.Changes[i].AfterContent} {
			all, small = all+int64(len(b)), small+min(int64(len(b)), blob.FileAbove)
		}
	}
	return all, small
}

// newBytes counts the contents of op that are not stored yet, each once.
func (d *DB) newBytes(ctx context.Context, op *Op) (n int64, err error) {
	n = int64(len(op.Steps))
	seen := map[string]bool{}
	add := func(hx string, content []byte) {
		if err != nil || content == nil || seen[hx] {
			return
		}
		seen[hx] = true
		var h blob.Hash
		var r row
		if h, err = blob.ParseHash(hx); err == nil {
			r, err = rowOf(ctx, d.r, h)
		}
		if r.id == 0 {
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

func (k *keeper) saved() {
	k.wrote.Store(true)
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
