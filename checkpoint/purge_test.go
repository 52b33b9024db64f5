package checkpoint_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

func TestPurgeLeavesNoByte(t *testing.T) {
	for _, size := range []int{200, 5000, 600 << 10} { // inline, overflow pages, external file
		dir := t.TempDir()
		d := open(t, dir, checkpoint.Options{})
		secret := randomText(size, 42)
		needle := secret[50:90]
		v := series(t, d, "/w/a", 8000, 10, 1)
		// The secret comes into a file and goes again, and once more as a file of its own.
		dirty := append(append([]byte{}, v[10]...), secret...)
		save(t, d, op(edit("/w/a", v[10], dirty)))
		after := append([]byte("// changed\n"), dirty...)
		save(t, d, op(edit("/w/a", dirty, after)))
		save(t, d, op(edit("/w/a", after, v[10])))
		own := save(t, d, op(edit("/w/.env", nil, secret), edit("/w/copy", secret, nil)))
		if len(contains(t, dir, needle)) == 0 {
			t.Fatal("the test cannot see the secret where it is")
		}
		dry, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(secret), DryRun: true})
		if err != nil || dry.Contents != 1 || dry.Checkpoints != 1 || len(dry.AlsoAt) != 2 {
			t.Errorf("dry run: %+v %v", dry, err)
		}
		sound(t, d)
		p, err := d.Purge(ctx, checkpoint.Purge{Match: func(p string) bool { return p == "/w/.env" }})
		if err != nil || p.Contents != 1 || len(p.AlsoAt) != 1 || p.AlsoAt[0] != "/w/copy" {
			t.Fatalf("purge by path: %+v %v", p, err)
		}
		sound(t, d)
		if _, err := d.Content(ctx, sum(secret)); !errors.Is(err, checkpoint.ErrNoContent) {
			t.Error("the content must be gone:", err)
		}
		for _, b := range [][]byte{dirty, after} {
			if p, err = d.Purge(ctx, checkpoint.Purge{Hash: sum(b)}); err != nil || p.Contents != 1 {
				t.Fatalf("purge by hash: %+v %v", p, err)
			}
		}
		sound(t, d)
		if f := contains(t, dir, needle); len(f) != 0 {
			t.Errorf("%d bytes: after the purge the secret is still in %v", size, f)
		}
		h, _ := hex.DecodeString(sum(secret))
		if f := contains(t, dir, h); len(f) != 0 {
			t.Errorf("and its hash in %v", f)
		}
		for i, b := range v {
			got, err := d.Content(ctx, sum(b))
			if err != nil || !bytes.Equal(got, b) {
				t.Errorf("version %d, which was based on what went, must still be there: %v", i, err)
			}
		}
		c, err := d.Get(ctx, own, ann)
		if err != nil || c.Changes[1].Skipped != "purged" || c.Changes[1].Before.Hash != "" || c.Changes[1].Before.Size != int64(size) {
			t.Errorf("the checkpoint must say what happened: %+v %v", c, err)
		}
		page, err := d.List(ctx, checkpoint.Filter{Path: "/w/a", AllSessions: true, Limit: 3})
		if err != nil || page.Checkpoints[1].Changes[0].AfterSkipped != checkpoint.SkipPurged || page.Checkpoints[1].Changes[0].Skipped != checkpoint.SkipPurged ||
			page.Checkpoints[0].Changes[0].AfterSkipped != "" {
			t.Errorf("a list must say of either side that it was purged: %+v %v", page, err)
		}
		series(t, d, "/w/a", 8000, 3, 5)
		sound(t, d)
	}
}

func TestPurgeNeedsATarget(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	save(t, d, op(edit("/w/a", []byte("a secret"), []byte("b"))))
	for path, paths := range map[string]int{"/w/a": 1, "/w/x": 0} { // its contents are gone, or it never was there
		for i := range 2 {
			p, err := d.Purge(ctx, checkpoint.Purge{Match: func(p string) bool { return p == path }})
			if err != nil || p.Paths != paths || p.Contents > 0 && i > 0 || p.Resumed {
				t.Errorf("%s: %+v %v", path, p, err)
			}
		}
	}
	var bad *checkpoint.BadOpError
	for _, p := range []checkpoint.Purge{{}, {Hash: "no"}, {Hash: strings.Repeat("g", 64)}} {
		if _, err := d.Purge(ctx, p); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if p, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(nil)}); err != nil || p.Contents != 0 {
		t.Errorf("nothing there to purge is no error: %+v %v", p, err)
	}
}

// The rest of a save or a purge that was cut off goes with the next purge, and others are told again to forget until they have.
func TestPurgeCompletesWhatWasCutOff(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, checkpoint.Options{})
	secret, other := randomText(600<<10, 7), []byte("another secret")
	settled(t, d, edit("/w/.env", secret, nil), edit("/w/other", other, nil), edit("/w/kept", randomText(600<<10, 8), nil))
	var named string
	for _, f := range blobFiles(t, dir) {
		if strings.Contains(f, sum(secret)) {
			named = f
		}
	}
	b, err := os.ReadFile(named)
	if err != nil {
		t.Fatal(err)
	}
	left := named[:len(named)-8] + "00000000"
	for _, f := range []string{left, filepath.Join(dir, "damaged-1", "checkpoints.db")} {
		if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dry, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(secret), DryRun: true, Forget: func([]string) error { t.Error("a dry run forgets nothing"); return nil }})
	if err != nil || dry.Files != 1 || len(dry.Beside) != 1 {
		t.Errorf("%+v %v", dry, err)
	}
	broken := errors.New("cut off")
	r, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(secret), Forget: func([]string) error { return broken }})
	if b, _ := hex.DecodeString(sum(secret)); len(contains(t, dir, b)) == 0 {
		t.Error("what others are still to forget must be noted")
	}
	if !errors.Is(err, broken) || r.Contents != 1 || r.Files != 1 || len(r.Beside) != 1 || filepath.Base(r.Beside[0]) != "damaged-1" {
		t.Errorf("%+v %v", r, err)
	}
	if f := blobFiles(t, dir); len(f) != 1 {
		t.Errorf("what nothing names must go, and nothing else: %v", f)
	}
	if err := os.WriteFile(left, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var told []string
	hear := func(hashes []string) error { told = hashes; return nil }
	if r, err := d.Purge(ctx, checkpoint.Purge{Hash: sum(other), Forget: hear}); err != nil || r.Contents != 1 || r.Files != 1 || !r.Resumed {
		t.Errorf("%+v %v", r, err)
	}
	want := []string{sum(secret), sum(other)}
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("told to forget %v, not %v", told, want)
	}
	if r, err := d.Purge(ctx, checkpoint.Purge{Hash: sum([]byte("unknown")), Forget: hear}); err != nil || r.Resumed || !slices.Equal(told, []string{sum([]byte("unknown"))}) {
		t.Errorf("what was forgotten is not told again: %v %v", told, err)
	}
	for _, h := range want {
		b, err := hex.DecodeString(h)
		if f := append(contains(t, dir, []byte(h)), contains(t, dir, b)...); err != nil || len(f) != 0 {
			t.Errorf("%s is still named in %v: %v", h, f, err)
		}
	}
	sound(t, d)
}

// A purge takes no file from under a save that is on its way to its row.
func TestPurgeBesideSaves(t *testing.T) {
	dir := t.TempDir()
	d, p := open(t, dir, checkpoint.Options{}), open(t, dir, checkpoint.Options{})
	end := meanwhile(t, func() error {
		_, err := p.Purge(ctx, checkpoint.Purge{Hash: sum(nil)})
		if err != nil && strings.Contains(err.Error(), "somebody is reading") {
			err = nil
		}
		return err
	})
	for i := range 3 {
		content := randomText(600<<10, int64(i))
		settled(t, d, edit(fmt.Sprint("/w/", i), content, nil))
	}
	end()
	sound(t, d)
}

// Every empty file has the empty content: a purge of one must not take it from all.
func TestPurgeLeavesTheEmptyContent(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	secret := []byte("TOKEN=hunter2hunter2\n")
	save(t, d, op(edit("/w/.env", []byte{}, secret)))
	other := save(t, d, op(edit("/w/other.txt", []byte{}, []byte("x"))))
	told := []string{}
	p, err := d.Purge(ctx, checkpoint.Purge{Match: func(p string) bool { return p == "/w/.env" }, Forget: func(h []string) error { told = h; return nil }})
	if err != nil || p.Paths != 1 || p.Contents != 1 || len(p.AlsoAt) != 0 || !slices.Equal(told, []string{sum(secret)}) {
		t.Errorf("%+v %v, told of %v", p, err, told)
	}
	if p, err = d.Purge(ctx, checkpoint.Purge{Hash: sum(nil)}); err != nil || p.Contents != 0 {
		t.Errorf("by its hash: %+v %v", p, err)
	}
	if b, err := d.Content(ctx, sum(nil)); err != nil || len(b) != 0 {
		t.Errorf("the empty content: %q %v", b, err)
	}
	if c, err := d.Get(ctx, other, ann); err != nil || c.Changes[0].Skipped != "" || c.Changes[0].Before.Hash != sum(nil) {
		t.Errorf("the other file: %+v %v", c, err)
	}
	sound(t, d)
}

// The contents of a change that is open go only when its host is no more, and that is asked for. A
// settled one needs nothing.
func TestPurgeOfWhatIsOpen(t *testing.T) {
	under, cut := checkpoint.ErrUnderWay, checkpoint.ErrCutOff
	for state, want := range map[string][2]error{"nobody can tell": {under, under}, "alive": {under, under}, "dead": {cut, nil}, "settled": {nil, nil}} {
		var o checkpoint.Options
		if state != "nobody can tell" {
			o.Alive = func(tag string) bool { return state == "alive" || tag != "a" }
		}
		d := open(t, t.TempDir(), o)
		secret := []byte("a secret")
		id := save(t, d, tagged("a", edit("/w/a", secret, []byte("1")), edit("/w/b", []byte("2"), []byte("3"))))
		if state == "settled" {
			if err := d.Settle(ctx, id, checkpoint.Aborted); err != nil {
				t.Fatal(err)
			}
		}
		if r := sound(t, d); len(r.Unfinished) > 0 != (state == "dead") {
			t.Errorf("%s: unfinished are %v", state, r.Unfinished)
		}
		for i, cutOff := range []bool{false, true} {
			_, err := d.Purge(ctx, checkpoint.Purge{Match: func(p string) bool { return p == "/w/a" }, CutOff: cutOff})
			if !errors.Is(err, want[i]) {
				t.Errorf("%s, cut off %v: %v, want %v", state, cutOff, err, want[i])
			}
			if _, err := d.Content(ctx, sum(secret)); errors.Is(err, checkpoint.ErrNoContent) != (want[i] == nil) {
				t.Errorf("%s, cut off %v: the content: %v", state, cutOff, err)
			}
		}
		sound(t, d)
	}
}

// Of a path whose content was purged only the size is known: as long as that fits nobody has
// changed it, else the next turn would put the secret into the store again.
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
