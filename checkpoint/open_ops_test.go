package checkpoint_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// No cleaning removes an open operation: also when its host is dead, and until
// somebody settles it. That the same checkpoint goes as soon as it is settled shows that each way
// of cleaning would have had it.
func TestNothingTakesWhatIsOpen(t *testing.T) {
	states := map[string]func(t *testing.T, dir string, host *checkpoint.DB) checkpoint.ID{
		"open": func(t *testing.T, _ string, host *checkpoint.DB) checkpoint.ID {
			return save(t, host, openedAt(randomText(120_000, 1)))
		},
		"made, and its host closed": func(t *testing.T, _ string, host *checkpoint.DB) checkpoint.ID {
			id := save(t, host, openedAt(randomText(120_000, 1)))
			if err := errors.Join(host.Made(ctx, id), host.Close()); err != nil {
				t.Fatal(err)
			}
			return id
		},
		"its process killed": func(t *testing.T, dir string, _ *checkpoint.DB) checkpoint.ID {
			p := spawn(t, "opener", 1, dir)
			p.kill(t, 0)
			return checkpoint.ID(p.lines[0])
		},
	}
	const limit = 1 << 20
	pre := randomText(120_000, 1)
	gc := func(d *checkpoint.DB) error {
		_, err := d.GC(ctx, false)
		return err
	}
	ways := map[string]struct {
		o     checkpoint.Options
		clean func(t *testing.T, d *checkpoint.DB, c *clock) error
	}{
		"by age": {checkpoint.Options{KeepWithin: time.Second, KeepLast: checkpoint.KeepNone}, func(t *testing.T, d *checkpoint.DB, c *clock) error {
			if dry, err := d.GC(ctx, true); err != nil {
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
			if inPostgres(t) && way == "for room" && state != "open" { // it is long there, and the others differ in who is asked
				continue
			}
			t.Run(way+", "+state, func(t *testing.T) {
				t.Parallel()
				limits := w.o
				c := &clock{openedTime}
				dir := t.TempDir()
				host := open(t, dir, checkpoint.Options{Now: c.now})
				limits.Now = c.now
				d := open(t, dir, limits)
				id := begin(t, dir, host)
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

				if err := d.Settle(ctx, id, checkpoint.Aborted); err != nil {
					t.Fatal(err)
				}
				if err := w.clean(t, d, c); err != nil {
					t.Error("cleaning once nothing is open:", err)
				}
				if _, err := d.Content(ctx, sum(pre)); !errors.Is(err, checkpoint.ErrNoContent) {
					t.Error("what is over must go:", err)
				}
				sound(t, d)
			})
		}
	}
}

var openedTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// openedAt is a change of two files that both hold pre, made at openedTime.
func openedAt(pre []byte) checkpoint.Op {
	o := tagged("t", edit("/w/a", pre, []byte("half")), edit("/w/b", pre, []byte("way")))
	o.Time = openedTime
	return o
}

// Without a tag a change counts as made for every process as soon as it is saved, so that what is
// put back outside after that is seen by all. With one it may have been made or not, for its own
// process until it is settled, for the others until that is written; also when it was cut off.
func TestSettledForEveryProcess(t *testing.T) {
	dir := t.TempDir()
	host, other := open(t, dir, checkpoint.Options{}), open(t, dir, checkpoint.Options{})
	first := save(t, host, tagged("a", edit("/w/a", []byte("1"), []byte("2"))))
	look := func(when string, d *checkpoint.DB, want bool) {
		t.Helper()
		p, err := d.Plan(ctx, checkpoint.Restore{ID: first, Principal: ann.Principal, Session: ann.Session})
		if err != nil || len(p.Items) != 1 || p.Items[0].Foreign != want {
			t.Errorf("%s: the later one found what the first did: %+v %v", when, p, err)
		}
	}
	head := func(when string, d *checkpoint.DB, want bool) {
		t.Helper()
		k, err := d.Known(ctx, ann)
		if err != nil || k[0].Path != "/w/a" || k[0].Settled != want {
			t.Errorf("%s: %+v %v", when, k, err)
		}
		p, err := d.Plan(ctx, checkpoint.Restore{Since: time.Unix(1, 0), Paths: []string{"/w/a"}, Principal: ann.Principal, Session: ann.Session})
		if err != nil || len(p.Items) != 1 || p.Items[0].HeadSettled != want {
			t.Errorf("%s: %+v %v", when, p, err)
		}
	}
	head("open", host, false)
	head("open", other, false)
	save(t, host, op(edit("/w/a", []byte("1"), []byte("3"))))
	head("without a tag", host, true)
	head("without a tag", other, true)
	look("open", host, false)
	look("open", other, false)
	if err := host.Settle(ctx, first, checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
	look("settled", host, true)
	look("settled", other, true)
	first = save(t, host, tagged("b", edit("/w/a", []byte("3"), []byte("4"))))
	save(t, host, op(edit("/w/a", []byte("3"), []byte("5"))))
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	look("cut off", other, false)
}

func tagged(tag string, changes ...checkpoint.Change) checkpoint.Op {
	o := op(changes...)
	o.Tag, o.Steps = tag, []byte("steps of "+tag)
	return o
}

func TestOpenRows(t *testing.T) {
	dir := t.TempDir()
	host, other := open(t, dir, checkpoint.Options{}), open(t, dir, checkpoint.Options{})
	is := func(d *checkpoint.DB, want ...checkpoint.OpenOp) {
		t.Helper()
		got, err := d.Open(ctx)
		same := func(a, b checkpoint.OpenOp) bool {
			return a.ID == b.ID && a.Tag == b.Tag && string(a.Steps) == "steps of "+b.Tag && a.Made == b.Made
		}
		if err != nil || !slices.EqualFunc(got, want, same) {
			t.Fatalf("%+v, want %+v: %v", got, want, err)
		}
	}
	is(host)
	save(t, host, op(edit("/w/0", nil, []byte("without a tag"))))
	a := checkpoint.OpenOp{ID: save(t, host, tagged("a", edit("/w/a", nil, []byte("1")))), Tag: "a"}
	b := checkpoint.OpenOp{ID: save(t, host, tagged("b", edit("/w/b", nil, []byte("1")))), Tag: "b"}
	is(other, b, a)
	if k, err := other.Known(ctx, ann); err != nil || k[1].Path != "/w/a" || k[1].Settled {
		t.Errorf("an open one may have been made or not: %+v %v", k, err)
	}
	if err := host.Made(ctx, a.ID); err != nil {
		t.Fatal(err)
	}
	a.Made = true
	is(other, b, a)
	if k, err := other.Known(ctx, ann); err != nil || !k[1].Settled {
		t.Errorf("this one was made: %+v %v", k, err)
	}
	if err := host.Settle(ctx, a.ID, checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
	is(host, b)
	is(other, b)
	if err := host.Made(ctx, a.ID); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("it is not open any more: %v", err)
	}
	if err := host.Close(); err != nil { // it dies: what is open stays so
		t.Fatal(err)
	}
	is(open(t, dir, checkpoint.Options{}), b)
	if err := other.Settle(ctx, b.ID, checkpoint.Foreign); err != nil {
		t.Fatal(err)
	}
	is(other)
	bad := tagged("c", edit("/w/c", []byte("1"), nil))
	bad.Changes[0].Before.Hash = sum([]byte("2"))
	if _, err := other.Save(ctx, bad); err == nil {
		t.Fatal("a wrong hash is taken")
	}
	is(other)
	sound(t, other)
}

// Only what changes files is ever open: what is imported, read or was seen outside has nobody who would settle it.
func TestWhatIsNeverOpen(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	var bad *checkpoint.BadOpError
	for _, kind := range []string{checkpoint.KindImport, checkpoint.KindRead, checkpoint.KindExternal, checkpoint.KindManual} {
		o := tagged("a", edit("/w/a", nil, []byte("1")))
		o.Kind = kind
		if _, err := d.Save(ctx, o); !errors.As(err, &bad) {
			t.Errorf("%s: %v", kind, err)
		}
		o.Tag, o.Steps = "", nil
		save(t, d, o)
	}
	o := tagged("", edit("/w/a", nil, []byte("1")))
	if _, err := d.Save(ctx, o); !errors.As(err, &bad) {
		t.Errorf("steps without a tag: %v", err)
	}
	if ops, err := d.Open(ctx); err != nil || len(ops) > 0 {
		t.Error(ops, err)
	}
}
