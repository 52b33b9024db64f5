package checkpoint

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"moltisfs/checkpoint/blob"
	"moltisfs/internal/fleetbox"
)

// A fault strikes when a process sends its n-th message: to the server of the database, or to the store of large contents. Messages are
// counted from arm on.
type fault struct {
	left   atomic.Int64
	lost   bool // the message arrives, and the answer is lost; else it does not arrive
	struck atomic.Bool
}

func (f *fault) arm(n int) { f.struck.Store(false); f.left.Store(int64(n)) }

// strikes says whether this message is the one.
func (f *fault) strikes() bool {
	if f.left.Add(-1) != 0 {
		return false
	}
	f.struck.Store(true)
	return true
}

var errCut = errors.New("cut")

// A cutConn is a connection that the fault cuts.
type cutConn struct {
	net.Conn
	f *fault
}

func (c cutConn) Write(b []byte) (int, error) {
	// Two messages do not count, by which the driver gives a connection up: its end, and the request to cancel.
	end, cancel := b[0] == 'X', len(b) == 16 && binary.BigEndian.Uint32(b[4:]) == 80877102
	if end || cancel || !c.f.strikes() {
		return c.Conn.Write(b)
	}
	if c.f.lost {
		c.Conn.Write(b)
		// The server has it all before the end of the connection, and is at work on it.
		c.Conn.(*net.UnixConn).CloseWrite()
		for buf := make([]byte, 1<<16); ; {
			if _, err := c.Conn.Read(buf); err != nil {
				break
			}
		}
	}
	c.Conn.Close()
	return len(b), nil
}

// cutBlobs is a store of large contents of which the fault loses messages. With late it writes after the transaction, as it must not.
type cutBlobs struct {
	blob.Store
	f    *fault
	late *[]func() error
}

func (c cutBlobs) Put(ctx context.Context, name string, z []byte) error {
	if c.late != nil {
		*c.late = append(*c.late, func() error { return c.put(ctx, name, z) })
		return nil
	}
	return c.put(ctx, name, z)
}

func (c cutBlobs) put(ctx context.Context, name string, z []byte) error {
	if !c.f.strikes() {
		return c.Store.Put(ctx, name, z)
	}
	if c.f.lost {
		c.Store.Put(ctx, name, z)
	}
	return &UnreachableError{What: "store of large contents", Err: errCut}
}

// Delete does not work any more once the fault has struck.
func (c cutBlobs) Delete(ctx context.Context, name string) error {
	if c.f.struck.Load() {
		return errCut
	}
	return c.Store.Delete(ctx, name)
}

// eager is a catalog that takes a commit for done when it is sent.
type eager struct{ catalog }

func (e eager) begin(ctx context.Context, c *conn, synced bool) (func(bool) error, error) {
	end, err := e.catalog.begin(ctx, c, synced)
	return func(commit bool) error {
		err := end(commit)
		if errors.As(err, new(*SyncError)) {
			err = nil
		}
		return err
	}, err
}

// faulty opens a store that the fault f strikes.
func faulty(t *testing.T, database string, blobs blob.Store, f *fault, wrap func(catalog) catalog) *DB {
	t.Helper()
	o, err := Options{Database: database, Blobs: blobs}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newPostgres(o)
	if err != nil {
		t.Fatal(err)
	}
	dial := c.config.DialFunc
	c.config.DialFunc = func(ctx context.Context, network, at string) (net.Conn, error) {
		conn, err := dial(ctx, network, at)
		if err != nil {
			return nil, err
		}
		return cutConn{conn, f}, nil
	}
	d, err := opened(wrap(c), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Wherever the connection is cut in a save, it is there whole or not at all, and what was acknowledged is there. The store works on by itself.
// Stores that acknowledge too early, or write the row before the contents, are found.
func TestCutAtEveryMessage(t *testing.T) {
	t.Parallel()
	same := func(c catalog) catalog { return c }
	for name, kind := range map[string]struct {
		lost, late, bad bool
		wrap            func(catalog) catalog
	}{
		"not sent": {wrap: same}, "answer lost": {lost: true, wrap: same},
		"acknowledged too early": {bad: true, wrap: func(c catalog) catalog { return eager{c} }},
		"row before contents":    {late: true, bad: true, wrap: same},
	} {
		t.Run(name, func(t *testing.T) {
			database, files := fleetbox.Database(t), &blob.Files{Dir: t.TempDir()}
			f := &fault{lost: kind.lost}
			blobs := cutBlobs{Store: files, f: f}
			var late []func() error
			if kind.late {
				blobs.late = &late
			}
			d := faulty(t, database, blobs, f, kind.wrap)
			sound := faulty(t, database, files, &fault{}, same)
			ctx := t.Context()
			var wrong []string
			before, doubts := []byte(nil), 0
			for n, warm := 0, 0; ; n++ {
				f.arm(n)
				op, body := someOp(n, before)
				saved, err := d.Save(ctx, op)
				for _, put := range late {
					if err == nil {
						put() // nobody learns that it failed
					}
				}
				late = nil
				struck := f.struck.Load()
				f.arm(0)
				all, err2 := sound.List(ctx, Filter{AllSessions: true, Label: op.Label})
				if err2 != nil {
					t.Fatal(err2)
				}
				open, err2 := sound.Open(ctx)
				if err2 != nil {
					t.Fatal(err2)
				}
				isOpen := slices.ContainsFunc(open, func(o OpenOp) bool { return o.Tag == op.Tag })
				there := len(all.Checkpoints) == 1
				unknown := errors.As(err, new(*SyncError))
				doubts += count(unknown && there == kind.lost)
				switch {
				case err == nil && (!there || all.Checkpoints[0].ID != saved.ID || !isOpen):
					wrong = append(wrong, fmt.Sprint(n, ": an acknowledged save is not there"))
				case err != nil && there && !unknown:
					wrong = append(wrong, fmt.Sprint(n, ": a save that failed is there: ", err))
				case there != isOpen:
					wrong = append(wrong, fmt.Sprint(n, ": it is there in part"))
				case err != nil && !unknown && !errors.As(err, new(*UnreachableError)):
					wrong = append(wrong, fmt.Sprint(n, ": not the right error: ", err))
				}
				if there {
					if got, err := sound.Content(ctx, blob.Hash(sha256.Sum256(body)).String()); err != nil || string(got) != string(body) {
						wrong = append(wrong, fmt.Sprint(n, ": without its content: ", err))
					}
					before = body
				}
				if kind.bad && len(wrong) > 0 {
					return
				}
				if n > 0 && !struck { // all messages of a save had their turn
					if warm++; warm > 1 {
						if n < 10 {
							t.Error("a save has only", n, "messages")
						}
						break
					}
				}
			}
			if r, err := sound.Check(ctx, true); err != nil || len(r.Problems) > 0 {
				wrong = append(wrong, fmt.Sprintf("the store is not sound: %+v %v", r, err))
			}
			if doubts == 0 && !kind.bad {
				t.Error("the end of the transaction was not cut")
			}
			if (len(wrong) > 0) != kind.bad {
				t.Errorf("%q", wrong)
			}
		})
	}
}

// Wherever the connection is cut in what is no save, the store is sound, nothing goes that has to stay, and the next try completes it.
func TestCutRetention(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(d *DB, last ID, gone string) error{
		"settle": func(d *DB, last ID, _ string) error { return d.Settle(context.Background(), last, Committed) },
		"abort":  func(d *DB, last ID, _ string) error { return d.Settle(context.Background(), last, Aborted) },
		"gc":     func(d *DB, _ ID, _ string) error { _, err := d.GC(context.Background(), false); return err },
		"purge": func(d *DB, _ ID, gone string) error {
			_, err := d.Purge(context.Background(), Purge{Hash: gone})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			database, files := fleetbox.Database(t), &blob.Files{Dir: t.TempDir()}
			f := &fault{}
			d := faulty(t, database, cutBlobs{Store: files, f: f}, f, func(c catalog) catalog { return c })
			d.o.KeepWithin, d.o.KeepLast = 0, 1
			hash := func(b []byte) string { return blob.Hash(sha256.Sum256(b)).String() }
			step := 1
			if name == "gc" || name == "purge" { // they have many messages: another part of them each time
				step = 4
			}
			for n := 1 + mathrand.IntN(step); ; n += step {
				var bodies [][]byte
				var last ID
				for i := range 3 {
					op, body := someOp(10*n+i, nil)
					op.Changes = op.Changes[:1]
					s, err := d.Save(t.Context(), op)
					if err == nil && i < 2 {
						err = d.Settle(t.Context(), s.ID, Committed)
					}
					if err != nil {
						t.Fatal(err)
					}
					bodies, last = append(bodies, body), s.ID
				}
				f.lost = mathrand.IntN(2) == 0
				f.arm(n)
				err := do(d, last, hash(bodies[0]))
				struck := f.struck.Load()
				f.arm(0)
				f.struck.Store(false)
				if err != nil && !errors.As(err, new(*UnreachableError)) && !errors.Is(err, errCut) {
					t.Fatal(n, err)
				}
				if r, err := d.Check(t.Context(), true); err != nil || len(r.Problems) > 0 {
					t.Fatalf("%d: %+v %v", n, r, err)
				}
				if _, err := d.Content(t.Context(), hash(bodies[2])); err != nil && name != "abort" {
					t.Fatal(n, err)
				}
				if err := do(d, last, hash(bodies[0])); err != nil {
					t.Fatal(n, "once more: ", err)
				}
				open, err := d.Open(t.Context())
				if err != nil || (len(open) == 0) != (name == "settle" || name == "abort") {
					t.Fatal(n, open, err)
				}
				if name == "gc" || name == "purge" {
					if _, err := d.Content(t.Context(), hash(bodies[0])); !errors.Is(err, ErrNoContent) {
						t.Fatal(n, "it is still there: ", err)
					}
					if err := d.Settle(t.Context(), last, Committed); err != nil {
						t.Fatal(err)
					}
				}
				if !struck {
					break
				}
			}
			rubbish, err := d.blobNames(t.Context())
			if err == nil {
				rubbish, err = unnamed(t.Context(), d.r, rubbish)
			}
			if err != nil || (name == "gc" || name == "purge") && len(rubbish) > 0 {
				t.Error(rubbish, err)
			}
		})
	}
}

// A transaction of which a statement failed is not taken for committed, whoever passes over the error: the server rolls it back, and says no
// word of it.
func TestFailedStatementIsNotCommitted(t *testing.T) {
	t.Parallel()
	d := faulty(t, fleetbox.Database(t), &blob.Files{Dir: t.TempDir()}, &fault{}, func(c catalog) catalog { return c })
	for range 2 {
		err := d.transact(t.Context(), func(ctx context.Context, tx *tx) error {
			if err := tx.exec(ctx, "INSERT INTO unpurged VALUES(?)", []byte("hash")); err != nil {
				t.Error(err)
			}
			if err := tx.exec(ctx, "INSERT INTO nowhere VALUES(?)", 1); err == nil {
				t.Error("there is such a table")
			}
			return nil
		})
		if err == nil {
			t.Error("it was committed")
		}
	}
	if err := d.transact(t.Context(), func(context.Context, *tx) error { return nil }); err != nil {
		t.Error("the next one:", err)
	}
	if left, err := unpurged(t.Context(), d.r); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// someOp is an open operation that no other is like: it edits a file with a large content, and makes one and a directory. body is the
// content after the edit.
func someOp(n int, before []byte) (op Op, body []byte) {
	body = make([]byte, blob.StoreAbove+5000)
	rand.Read(body)
	edit := Change{Path: "/w/f", Role: "target", Before: State{Kind: Absent}, After: State{Kind: File, Mode: 0o644}, AfterContent: body}
	if before != nil {
		edit.Before, edit.Content = State{Kind: File, Mode: 0o644}, before
	}
	small := []byte(fmt.Sprint("a small file ", n))
	return Op{Tool: "Edit", Kind: KindEdit, Principal: "ann", Session: "s", Turn: fmt.Sprint(n), Label: fmt.Sprint("n", n),
		Opening: Opening{Tag: fmt.Sprint("tag", n), Steps: []byte("steps")},
		Changes: []Change{edit,
			{Path: fmt.Sprint("/w/d", n), Role: RoleParent, Before: State{Kind: Absent}, After: State{Kind: Dir, Mode: 0o755}},
			{Path: fmt.Sprintf("/w/d%d/f", n), Role: "target", Before: State{Kind: Absent}, After: State{Kind: File, Mode: 0o600}, AfterContent: small}}}, body
}
