package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"testing"

	"moltisfs/checkpoint/blob"
	"moltisfs/internal/fleetbox"
)

// bothStores runs fn over SQLite and over PostgreSQL. open opens one store, as often as it is asked.
func bothStores(t *testing.T, fn func(t *testing.T, open func(o Options) *DB)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			dir, database := t.TempDir(), ""
			if name == "postgres" {
				database = fleetbox.Database(t)
			}
			fn(t, func(o Options) *DB {
				if o.Database = database; o.Blobs == nil {
					o.Blobs = &blob.Files{Dir: dir + "/blobs"}
				}
				d, err := Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { d.Close() })
				return d
			})
		})
	}
}

// A gate is a store of large contents that runs put after a Put, and listed after a List.
type gate struct {
	blob.Store
	put, listed func()
}

func (g *gate) Put(ctx context.Context, name string, z []byte) error {
	err := g.Store.Put(ctx, name, z)
	g.put()
	return err
}

func (g *gate) List(ctx context.Context, fn func(string, int64) error) error {
	err := g.Store.List(ctx, fn)
	g.listed()
	return err
}

// beginning is a catalog that runs do before a transaction begins.
type beginning struct {
	catalog
	do func()
}

func (b beginning) begin(ctx context.Context, c *conn, synced bool) (func(bool) error, error) {
	b.do()
	return b.catalog.begin(ctx, c, synced)
}

// A content that a save has written is no rubbish, whenever its row comes: while the contents are listed, or while the lock of the writers is
// waited for. Orders in which it would be lost are found.
func TestNoRubbishOfASave(t *testing.T) {
	t.Parallel()
	remove := func(d *DB, names []string, err error) error {
		for _, name := range names {
			if err == nil {
				err = d.blobs.Delete(t.Context(), name)
			}
		}
		return err
	}
	for name, order := range map[string]struct {
		atLock bool // the save goes on when the lock is waited for, not when the contents were listed
		clean  func(d *DB) error
		keeps  bool
	}{
		"while they are listed": {false, func(d *DB) error { _, err := d.removeUnnamed(t.Context()); return err }, true},
		"at the lock":           {true, func(d *DB) error { _, err := d.removeUnnamed(t.Context()); return err }, true},
		"rows before the list": {false, func(d *DB) error {
			named, err := column[string](t.Context(), d.r, "SELECT name FROM content WHERE name IS NOT NULL")
			if err != nil || len(named) > 0 {
				t.Error("the save is over:", err)
			}
			listed, err := d.blobNames(t.Context())
			return remove(d, listed, err)
		}, false},
		"no look under the lock": {true, func(d *DB) error {
			listed, err := d.blobNames(t.Context())
			if err != nil {
				return err
			}
			rubbish, err := unnamed(t.Context(), d.r, listed)
			d.transact(t.Context(), func(context.Context, *tx) error { return nil })
			return remove(d, rubbish, err)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bothStores(t, func(t *testing.T, open func(o Options) *DB) {
				files := &blob.Files{Dir: t.TempDir()}
				put, goOn, saved := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				saver := open(Options{Blobs: &gate{files, func() { close(put); <-goOn }, func() {}}})
				release := func() {
					close(goOn)
					if err := <-saved; err != nil {
						t.Error(err)
					}
				}
				cleaner := open(Options{Blobs: &gate{files, nil, func() {
					if !order.atLock {
						release()
					}
				}}})
				if order.atLock {
					cleaner.c = beginning{cleaner.c, release}
				}
				body := make([]byte, 2*blob.StoreAbove)
				rand.Read(body)
				go func() {
					_, err := saver.Save(t.Context(), Op{Tool: "Edit", Kind: KindEdit, Changes: []Change{{
						Path: "/w/f", Before: State{Kind: Absent}, After: State{Kind: File}, AfterContent: body}}})
					saved <- err
				}()
				<-put
				if err := order.clean(cleaner); err != nil {
					t.Fatal(err)
				}
				hash := blob.Hash(sha256.Sum256(body)).String()
				if got, err := saver.Content(t.Context(), hash); (err == nil && bytes.Equal(got, body)) != order.keeps {
					t.Errorf("the content of the save: %d bytes, %v", len(got), err)
				}
			})
		})
	}
}

// listing is a store of large contents that runs do before a List.
type listing struct {
	blob.Store
	do func()
}

func (l listing) List(ctx context.Context, fn func(string, int64) error) error {
	l.do()
	return l.Store.List(ctx, fn)
}

// A check finds no fault in what retention takes while it looks, and finds a content that is lost.
func TestCheckBesideRetention(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, open func(o Options) *DB) {
		files := &blob.Files{Dir: t.TempDir()}
		cleaner := open(Options{Blobs: files, KeepWithin: KeepNone, KeepLast: 1})
		for n := range 3 {
			op, _ := someOp(n, nil)
			op.Opening, op.Changes = Opening{}, op.Changes[:1]
			if _, err := cleaner.Save(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
		taken := 0
		checker := open(Options{Blobs: listing{files, func() {
			r, err := cleaner.GC(t.Context(), false)
			if err != nil {
				t.Error(err)
			}
			taken += r.Files
		}}})
		if r, err := checker.Check(t.Context(), true); err != nil || len(r.Problems) > 0 || taken == 0 {
			t.Errorf("%+v %v; retention took %d", r, err, taken)
		}
		names, err := cleaner.blobNames(t.Context())
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if err := files.Delete(t.Context(), names[0]); err != nil {
			t.Fatal(err)
		}
		if r, err := checker.Check(t.Context(), false); err != nil || len(r.Problems) != 1 {
			t.Errorf("a content is lost: %+v %v", r, err)
		}
	})
}
