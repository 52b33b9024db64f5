package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	mathrand "math/rand"
	"sync"
	"testing"

	"filippo.io/age"

	"moltisfs/checkpoint/blob"
	"moltisfs/internal/fleetbox"
)

// hookedBlobs is a store of large contents that calls putting before it takes one, and put after that; getting before it gives one, and deleting
// before it removes one.
type hookedBlobs struct {
	blob.Store
	putting, put, getting func()
	deleting              func(context.Context)
}

func (h *hookedBlobs) Get(ctx context.Context, name string, size int64) ([]byte, error) {
	if h.getting != nil {
		h.getting()
	}
	return h.Store.Get(ctx, name, size)
}

func (h *hookedBlobs) Delete(ctx context.Context, name string) error {
	if h.deleting != nil {
		h.deleting(ctx)
	}
	return h.Store.Delete(ctx, name)
}

func (h *hookedBlobs) Put(ctx context.Context, name string, z []byte) error {
	if h.putting != nil {
		h.putting()
	}
	err := h.Store.Put(ctx, name, z)
	if h.put != nil {
		h.put()
	}
	return err
}

// noise is a content that goes to the store of large contents.
func noise(seed int64) []byte {
	b := make([]byte, 2*blob.StoreAbove)
	mathrand.New(mathrand.NewSource(seed)).Read(b)
	return b
}

func hashOf(b []byte) string { return blob.Hash(sha256.Sum256(b)).String() }

// becomes is an operation that changes path from before, nil for nothing, to after.
func becomes(path string, before, after []byte) Op {
	state := func(b []byte) State {
		if b == nil {
			return State{Kind: Absent}
		}
		return State{Kind: File, Mode: 0o644}
	}
	return Op{Tool: "Edit", Kind: KindEdit, Principal: "ann", Session: "s",
		Changes: []Change{{Path: path, Role: "target", Before: state(before), Content: before, After: state(after), AfterContent: after}}}
}

// A store of large contents that does not answer holds up the one save or copy that needs it, and no other, of the same gateway or another.
func TestNobodyWaitsForTheBlobStore(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	copying := func(encryptTo string) func(*testing.T, *DB, []byte) error {
		return func(t *testing.T, d *DB, large []byte) error {
			from := fresh(t, Options{EncryptTo: encryptTo})
			if _, err := from.Save(t.Context(), becomes("/w/large", nil, large)); err != nil {
				return err
			}
			_, err := Copy(t.Context(), from, d)
			return err
		}
	}
	for name, do := range map[string]func(t *testing.T, d *DB, large []byte) error{
		"save": func(t *testing.T, d *DB, large []byte) error {
			_, err := d.Save(t.Context(), becomes("/w/large", nil, large))
			return err
		},
		"copy": copying(""), "copy of what is encrypted": copying(key.Recipient().String()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := &blob.Files{Dir: t.TempDir()}
			begun, goOn := make(chan bool), make(chan bool)
			blobs := &hookedBlobs{Store: files, putting: func() { begun <- true; <-goOn }}
			o := Options{Database: fleetbox.Database(t), Blobs: blobs, Identities: []string{key.String()}}
			d := fresh(t, o)
			o.Blobs = files
			other := fresh(t, o)
			release := sync.OnceFunc(func() { close(goOn) })
			t.Cleanup(release)
			large, over := noise(1), make(chan error, 1)
			go func() { over <- do(t, d, large) }()
			select {
			case <-begun:
			case err := <-over:
				t.Fatal("nothing was put:", err)
			}
			for i, d := range []*DB{other, d} {
				if _, err := d.Save(t.Context(), becomes(fmt.Sprint("/w/", i), nil, []byte("small"))); err != nil {
					t.Fatal("a small one:", err)
				}
			}
			if _, err := other.Save(t.Context(), becomes("/w/other", nil, noise(2))); err != nil {
				t.Fatal("a large one:", err)
			}
			if _, err := other.GC(t.Context(), false); err != nil {
				t.Fatal("retention:", err)
			}
			release()
			if err := <-over; err != nil {
				t.Error(err)
			}
			if got, err := other.Content(t.Context(), hashOf(large)); err != nil || !bytes.Equal(got, large) {
				t.Error("its content:", err)
			}
		})
	}
}

// Whatever goes between the moment at which a large content is put and that of its row, the row has its content. Retention that says nothing of
// what it takes is found.
func TestRetentionBetweenContentAndRow(t *testing.T) {
	t.Parallel()
	part := append(noise(1)[:200<<10:200<<10], noise(3)[:300<<10]...) // a delta of it is large, too
	text := bytes.Repeat([]byte("a line of text\n"), small/10)
	for name, c := range map[string]struct {
		before, after []byte // of the save
		take          string // a content that was there, and is purged meanwhile
		early         bool   // before the content is put
		puts          int
		bad           bool
	}{
		"the content goes":                              {after: noise(2), puts: 2},
		"the content goes, and nothing is said":         {after: noise(2), puts: 1, bad: true},
		"another content of it goes, which was there":   {before: noise(1), after: noise(2), take: hashOf(noise(1)), puts: 3},
		"the one goes that it is a delta on":            {before: part, take: hashOf(noise(1)), puts: 2},
		"the one goes that another of it is a delta on": {before: append([]byte("x"), text...), after: noise(2), take: hashOf(text), early: true, puts: 2},
		"one goes that it has nothing to do with":       {after: noise(2), take: hashOf([]byte("old")), puts: 2},
		"the content is there by then, of another one":  {after: noise(2), puts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []Options{{Database: fleetbox.Database(t), Blobs: &blob.Files{Dir: t.TempDir()}}, {}} {
				dir := t.TempDir()
				if o.Blobs == nil {
					o.Blobs = filesOf(dir)
				}
				o, err := o.withDefaults()
				if err != nil {
					t.Fatal(err)
				}
				other, err := Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				for _, op := range []Op{becomes("/w/f", noise(1), nil), becomes("/w/old", []byte("old"), nil), becomes("/w/text", text, nil)} {
					if _, err := other.Save(t.Context(), op); err != nil {
						t.Fatal(err)
					}
				}
				puts := 0
				meanwhile := func() {
					if puts++; puts > 1 {
						return
					}
					var err error
					switch {
					case name == "the content is there by then, of another one":
						_, err = other.Save(t.Context(), becomes("/w/g", nil, c.after))
					case c.take != "":
						_, err = other.Purge(t.Context(), Purge{Hash: c.take})
					default:
						_, err = other.GC(t.Context(), false)
					}
					if err == nil && c.bad {
						err = other.transact(t.Context(), func(ctx context.Context, tx *tx) error { return tx.exec(ctx, "DELETE FROM meta WHERE k='swept'") })
					}
					if err != nil {
						t.Error(err)
					}
				}
				path, hooked := "/w/f", &hookedBlobs{Store: o.Blobs, put: meanwhile}
				if c.early {
					path, hooked = "/w/text", &hookedBlobs{Store: o.Blobs, putting: meanwhile}
				}
				o.Blobs = hooked
				d, err := Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				if _, err := d.Save(t.Context(), becomes(path, c.before, c.after)); err != nil {
					t.Fatal(err)
				}
				if puts != c.puts {
					t.Errorf("%d were put, not %d", puts, c.puts)
				}
				lost := 0
				for _, b := range [][]byte{c.before, c.after} {
					if got, err := other.Content(t.Context(), hashOf(b)); b != nil && (err != nil || !bytes.Equal(got, b)) {
						lost++
					}
				}
				if lost > 0 != c.bad {
					t.Errorf("%d contents are lost", lost)
				}
				if r, err := other.Check(t.Context(), true); err != nil || len(r.Problems) > 0 != c.bad {
					t.Errorf("%+v %v", r, err)
				}
				if _, err := other.GC(t.Context(), false); err != nil {
					t.Error(err)
				}
				rubbish, err := other.blobNames(t.Context())
				if err == nil {
					rubbish, err = unnamed(t.Context(), other.r, rubbish)
				}
				if err != nil || len(rubbish) > 0 {
					t.Error("rubbish is left:", rubbish, err)
				}
			}
		})
	}
}

// A save that retention outruns every time is refused, and nothing of it stays.
func TestRetentionThatOutruns(t *testing.T) {
	t.Parallel()
	o := Options{Database: fleetbox.Database(t)}
	files := &blob.Files{Dir: t.TempDir()}
	o.Blobs = files
	other := fresh(t, o)
	o.Blobs = &hookedBlobs{Store: files, put: func() {
		if _, err := other.GC(context.Background(), false); err != nil {
			t.Error(err)
		}
	}}
	d := fresh(t, o)
	if _, err := d.Save(t.Context(), becomes("/w/f", nil, noise(1))); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if s, err := d.Stats(t.Context()); err != nil || s.Checkpoints != 0 || s.Contents != 0 {
		t.Errorf("%+v %v", s, err)
	}
	if names, err := d.blobNames(t.Context()); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
}

// A save that reads a large content, for a delta on it, holds no connection meanwhile: others read by that.
func TestBaseIsReadByItself(t *testing.T) {
	t.Parallel()
	blobs := &hookedBlobs{Store: &blob.Files{Dir: t.TempDir()}}
	d := fresh(t, Options{Database: fleetbox.Database(t), Blobs: blobs})
	if _, err := d.Save(t.Context(), becomes("/w/f", nil, noise(1))); err != nil {
		t.Fatal(err)
	}
	gets := 0
	blobs.getting = func() {
		if gets++; len(d.r.slots)+len(d.w.slots) > 0 {
			t.Error("a connection is in use")
		}
	}
	next := append(noise(1), noise(3)[:300<<10]...)
	if _, err := d.Save(t.Context(), becomes("/w/f", nil, next)); err != nil || gets != 1 {
		t.Fatal(gets, err)
	}
	blobs.getting = nil
	if depth, err := one[int](t.Context(), d.r, "SELECT max(depth) FROM content"); err != nil || depth != 1 {
		t.Error("it is no delta:", err)
	}
	if got, err := d.Content(t.Context(), hashOf(next)); err != nil || !bytes.Equal(got, next) {
		t.Error(err)
	}
}

// A save whose caller is gone takes away what it has put, and does not wait without end for a store that does not answer.
func TestWhatWasPutGoes(t *testing.T) {
	t.Parallel()
	caller, cancel := context.WithCancel(t.Context())
	files, deleted := &blob.Files{Dir: t.TempDir()}, 0
	d := fresh(t, Options{Blobs: &hookedBlobs{Store: files, put: cancel, deleting: func(ctx context.Context) {
		deleted++
		if _, ends := ctx.Deadline(); !ends || ctx.Err() != nil {
			t.Error("it has no end, or is over:", ctx.Err())
		}
	}}})
	if _, err := d.Save(caller, becomes("/w/f", nil, noise(1))); !errors.Is(err, context.Canceled) || deleted != 1 {
		t.Error(deleted, err)
	}
	if names, err := d.blobNames(t.Context()); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
}
