package checkpoint_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// What is open stays whatever cleaning is asked for, also when its host is dead, and goes as soon as it is settled.
func TestOpenRowsAreSpared(t *testing.T) {
	settle := func(id checkpoint.ID) func(*checkpoint.DB) error {
		return func(d *checkpoint.DB) error { return d.Settle(ctx, id, checkpoint.Aborted) }
	}
	nothingTakes(t, "tag", map[string]beginning{
		"open": func(t *testing.T, _ *checkpoint.DB, id checkpoint.ID) func(*checkpoint.DB) error { return settle(id) },
		"made, and its host dead": func(t *testing.T, host *checkpoint.DB, id checkpoint.ID) func(*checkpoint.DB) error {
			if err := errors.Join(host.Made(ctx, id), host.Close()); err != nil {
				t.Fatal(err)
			}
			return settle(id)
		},
	})
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
	tags := func(want ...string) {
		t.Helper()
		got, err := checkpoint.OpenTags(dir)
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q, want %q: %v", got, want, err)
		}
	}
	is(host)
	tags()
	save(t, host, op(edit("/w/0", nil, []byte("without a tag"))))
	a := checkpoint.OpenOp{ID: save(t, host, tagged("a", edit("/w/a", nil, []byte("1")))), Tag: "a"}
	b := checkpoint.OpenOp{ID: save(t, host, tagged("b", edit("/w/b", nil, []byte("1")))), Tag: "b"}
	is(other, b, a)
	tags("a", "b")
	if k, err := other.Known(ctx, ann); err != nil || k[1].Path != "/w/a" || k[1].Settled {
		t.Errorf("an open one may have been made or not: %+v %v", k, err)
	}
	if err := host.Made(ctx, a.ID); err != nil {
		t.Fatal(err)
	}
	a.Made = true
	is(other, b, a)
	tags("a", "b")
	if k, err := other.Known(ctx, ann); err != nil || !k[1].Settled {
		t.Errorf("this one was made: %+v %v", k, err)
	}
	if err := host.Settle(ctx, a.ID, checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
	is(host, b)
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // no save takes it along
		if got, err := other.Open(ctx); err != nil || time.Now().After(until) {
			t.Fatal(got, err)
		} else if len(got) == 1 {
			break
		}
	}
	tags("b")
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
	tags()
	bad := tagged("c", edit("/w/c", []byte("1"), nil))
	bad.Changes[0].Before.Hash = sum([]byte("2"))
	if _, err := other.Save(ctx, bad); err == nil {
		t.Fatal("a wrong hash is taken")
	}
	tags()
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

// A purge asks whether who opened it is alive; what is cut off goes only on demand.
func TestPurgeOfWhatIsOpen(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	save(t, d, tagged("a", edit("/w/a", []byte("secret"), []byte("2"))))
	alive := true
	p := checkpoint.Purge{Hash: sum([]byte("secret")), Alive: func(tag string) bool { return alive || tag != "a" }}
	for _, want := range []error{checkpoint.ErrUnderWay, checkpoint.ErrCutOff, nil} {
		if r, err := d.Purge(ctx, p); !errors.Is(err, want) {
			t.Errorf("%+v %v, want %v", r, err, want)
		}
		p.CutOff, alive = !alive, false
	}
	sound(t, d)
}
