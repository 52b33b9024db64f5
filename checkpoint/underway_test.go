package checkpoint_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// Whatever cleaning is asked for, the pre-state of a change that is being made, or that was cut off and is still to be taken back, stays. That the
// same checkpoint goes as soon as the change is over shows that each way of cleaning would have had it.
func TestNothingTakesWhatIsUnderWay(t *testing.T) {
	nothingTakes(t, "", map[string]beginning{
		"saved, and its host stopped": func(t *testing.T, host *checkpoint.DB, id checkpoint.ID) func(*checkpoint.DB) error {
			return func(*checkpoint.DB) error { return host.Settle(ctx, id, checkpoint.Aborted) }
		},
		"marked, and its host stopped": func(t *testing.T, host *checkpoint.DB, id checkpoint.ID) func(*checkpoint.DB) error {
			in, err := host.Intend(id)
			if err != nil {
				t.Fatal(err)
			}
			return func(*checkpoint.DB) error { return errors.Join(host.Settle(ctx, id, checkpoint.Aborted), in.Done()) }
		},
		"marked, and its host dead": func(t *testing.T, host *checkpoint.DB, id checkpoint.ID) func(*checkpoint.DB) error {
			in, err := host.Intend(id)
			if err == nil {
				err = errors.Join(in.Leave(), host.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			return func(d *checkpoint.DB) error { // somebody takes it back
				in, err := d.TakeOver(id)
				if err != nil || in == nil {
					t.Fatal(in, err)
				}
				return errors.Join(d.Settle(ctx, id, checkpoint.Aborted), in.Done())
			}
		},
	})
}

// A beginning brings a saved change into some state, and answers how that ends.
type beginning func(t *testing.T, host *checkpoint.DB, id checkpoint.ID) (end func(other *checkpoint.DB) error)

func nothingTakes(t *testing.T, tag string, states map[string]beginning) {
	const limit = 1 << 20
	pre := randomText(120_000, 1)
	gc := func(d *checkpoint.DB) error {
		_, err := d.GC(ctx, checkpoint.GCOptions{})
		return err
	}
	ways := map[string]struct {
		o     checkpoint.Options
		clean func(t *testing.T, d *checkpoint.DB, c *clock) error
	}{
		"by age": {checkpoint.Options{KeepWithin: time.Second, KeepLast: checkpoint.KeepNone}, func(t *testing.T, d *checkpoint.DB, c *clock) error {
			if dry, err := d.GC(ctx, checkpoint.GCOptions{DryRun: true}); err != nil {
				t.Error(dry, err)
			}
			return gc(d)
		}},
		"by number": {checkpoint.Options{KeepWithin: checkpoint.KeepNone, KeepLast: 1}, func(t *testing.T, d *checkpoint.DB, c *clock) error {
			settled(t, d, edit("/w/a", nil, []byte("newer")), edit("/w/b", nil, []byte("newer")))
			settled(t, d, edit("/w/newest", nil, []byte("x")))
			return gc(d)
		}},
		"for room": {checkpoint.Options{MaxBytes: limit}, func(t *testing.T, d *checkpoint.DB, c *clock) error {
			for i := range 60 { // more than the newest that the first pass spares
				settled(t, d, edit(fmt.Sprint("/v/", i), nil, randomText(60_000, int64(100+i))))
			}
			return gc(d)
		}},
		"purge": {checkpoint.Options{}, func(t *testing.T, d *checkpoint.DB, c *clock) error {
			_, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(pre)})
			return err
		}},
		"purge by path": {checkpoint.Options{}, func(t *testing.T, d *checkpoint.DB, c *clock) error {
			_, err := d.Purge(ctx, checkpoint.Purge{Match: func(p string) bool { return p == "/w/a" }})
			return err
		}},
	}
	for way, w := range ways {
		for state, begin := range states {
			t.Run(way+", "+state, func(t *testing.T) {
				t.Parallel()
				limits := w.o
				c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
				dir := t.TempDir()
				host := open(t, dir, checkpoint.Options{Settles: true, Now: c.now})
				limits.Now, limits.Settles = c.now, true
				d := open(t, dir, limits)
				o := op(edit("/w/a", pre, []byte("half")), edit("/w/b", pre, []byte("way")))
				o.Tag = tag
				id := save(t, host, o)
				end := begin(t, host, id)
				c.t = c.t.Add(time.Hour) // a machine may sleep
				settled(t, d, edit("/w/other", nil, []byte("1")))
				settled(t, d, edit("/w/other", []byte("1"), []byte("2")))
				if err := w.clean(t, d, c); err != nil && !errors.Is(err, checkpoint.ErrUnderWay) && !errors.Is(err, checkpoint.ErrCutOff) {
					t.Fatal(err)
				}
				if got, err := d.Content(ctx, sum(pre)); err != nil || string(got) != string(pre) {
					t.Error("the pre-state is gone:", err)
				}
				if p, err := d.Plan(ctx, checkpoint.Restore{ID: id, AllSessions: true}); err != nil || len(p.Items) != 2 || !p.Items[0].Stored {
					t.Errorf("it can't be taken back: %+v %v", p, err)
				}
				sound(t, d)

				if err := end(d); err != nil {
					t.Fatal(err)
				}
				if err := w.clean(t, d, c); err != nil {
					t.Error("cleaning once nothing is under way:", err)
				}
				if _, err := d.Content(ctx, sum(pre)); !errors.Is(err, checkpoint.ErrNoContent) {
					t.Error("what is over must go:", err)
				}
				sound(t, d)
			})
		}
	}
}

// A change counts as made for every process as soon as it is over, although what became of it is written later: what is put back outside after
// that is seen by all. One that is under way or was cut off may have been made or not, also where more are under way than a file can name.
func TestSettledForEveryProcess(t *testing.T) {
	for _, more := range []int{0, 40} {
		dir := t.TempDir()
		host := open(t, dir, checkpoint.Options{Settles: true})
		other := open(t, dir, checkpoint.Options{Settles: true})
		look := func(when string, want bool) {
			t.Helper()
			for name, d := range map[string]*checkpoint.DB{"its own": host, "another": other} {
				k, err := d.Known(ctx, ann)
				if err != nil || k[0].Path != "/w/a" || k[0].Settled != want {
					t.Errorf("%s, %s process: %+v %v", when, name, k, err)
				}
				p, err := d.Plan(ctx, checkpoint.Restore{Since: time.Unix(1, 0), Paths: []string{"/w/a"}, Principal: ann.Principal, Session: ann.Session})
				if err != nil || len(p.Items) != 1 || p.Items[0].HeadSettled != want || p.Items[0].Foreign != want {
					t.Errorf("%s, %s process: %+v %v", when, name, p, err)
				}
			}
		}
		for i := range more {
			save(t, host, op(edit(fmt.Sprint("/w/more/", i), nil, []byte("x"))))
		}
		first := save(t, host, op(edit("/w/a", []byte("1"), []byte("2"))))
		files, err := filepath.Glob(filepath.Join(dir, "writers", "*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		cut, err := os.ReadFile(files[0]) // what it leaves if it is killed here
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Settle(ctx, save(t, host, op(edit("/w/a", []byte("1"), []byte("3")))), checkpoint.Committed); err != nil {
			t.Fatal(err)
		}
		k, err := other.Known(ctx, ann)
		if want := more == 0; err != nil || k[0].Settled != want {
			t.Errorf("over, while %d others are not: %+v %v", more, k, err)
		}
		p, err := other.Plan(ctx, checkpoint.Restore{ID: first, Principal: ann.Principal, Session: ann.Session})
		if err != nil || p.Items[0].Foreign {
			t.Errorf("the later one found what the first did: that one may not have been made: %+v %v", p, err)
		}
		if more > 0 {
			continue
		}
		if err := host.Settle(ctx, first, checkpoint.Committed); err != nil {
			t.Fatal(err)
		}
		look("over", true)
		if err := os.WriteFile(filepath.Join(dir, "writers", "CUTOFF"), cut, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := other.Plan(ctx, checkpoint.Restore{ID: first, Principal: ann.Principal, Session: ann.Session}); err != nil || p.Items[0].Foreign {
			t.Errorf("cut off: %+v %v", p, err)
		}
	}
}

func settled(t *testing.T, d *checkpoint.DB, changes ...checkpoint.Change) {
	t.Helper()
	if err := d.Settle(ctx, save(t, d, op(changes...)), checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
}

// A process that is stopped for long between the file of a large content and its row finds the file gone: gc takes what no row names for
// rubbish after an hour. What is saved is there all the same.
func TestFileGoneBeforeItsRow(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	save(t, d, op(edit("/w/other", nil, []byte("1"))))
	db, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db")+"?_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil { // the save waits here
		t.Fatal(err)
	}
	large := make([]byte, 600_000)
	rand.New(rand.NewSource(1)).Read(large)
	saved := make(chan error, 1)
	go func() {
		_, err := d.Save(ctx, op(edit("/w/large", large, nil)))
		saved <- err
	}()
	removed := false
	for until := time.Now().Add(10 * time.Second); !removed && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if fi, err := os.Stat(f); err == nil && fi.Size() >= int64(len(large)) {
				removed = os.Remove(f) == nil
			}
		}
	}
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-saved; err != nil || !removed {
		t.Fatal(removed, err)
	}
	if got, err := d.Content(ctx, sum(large)); err != nil || !bytes.Equal(got, large) {
		t.Error("a save that succeeded has no content:", err)
	}
	sound(t, d)
}

// Of a path whose content was purged only the size is known: as long as that fits nobody has changed it, else the next turn would put the secret into
// the store again.
func TestPurgedIsNotChangedOutside(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	secret := []byte("PASSWORD=hunter3\n")
	settled(t, d, edit("/w/.env", []byte("PASSWORD=hunter2\n"), secret))
	if _, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(secret)}); err != nil {
		t.Fatal(err)
	}
	known, err := d.Known(ctx, ann)
	if err != nil || len(known) != 1 {
		t.Fatal(known, err)
	}
	is := func(content string) checkpoint.State {
		s := known[0].State
		s.Hash, s.Size, s.ModTime = sum([]byte(content)), int64(len(content)), time.Now()
		return s
	}
	if !known[0].Expects(is(string(secret))) {
		t.Error("the purged content itself is taken for a change")
	}
	if known[0].Expects(is("other")) {
		t.Error("a content of another size is taken for the purged one")
	}
}
