package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/checkpointtest"
	"moltisfs/internal/fleetbox"
)

func copied(t *testing.T, from, to *checkpoint.DB) checkpoint.Copied {
	t.Helper()
	c, err := checkpoint.Copy(ctx, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A history that moves from store to store answers everywhere as one that stayed.
func TestCopyWhileAHistoryGoesOn(t *testing.T) {
	t.Parallel()
	for seed := range int64(checkpointtest.Rounds(4)) {
		at, other := open(t, t.TempDir(), checkpoint.Options{}), open(t, t.TempDir(), checkpoint.Options{})
		every := []int{5, 40}[seed%2]
		checkpointtest.DriveOver(t, func(step int) *checkpoint.DB {
			if step%every == every-1 {
				copied(t, at, other)
				if c := copied(t, at, other); c.Operations+c.Contents > 0 {
					t.Fatalf("copied twice: %+v", c)
				}
				at, other = other, at
			}
			return at
		}, 100+seed, 200)
		sound(t, at)
	}
}

// answers asks d about the sessions of the model test, and gives its answers by the question.
func answers(t *testing.T, d *checkpoint.DB) map[string]string {
	t.Helper()
	out := map[string]string{}
	put := func(question string, answer any, err error) {
		text, err2 := json.Marshal(answer)
		if err2 != nil {
			t.Fatal(err2)
		}
		if e, ok := errors.AsType[*checkpoint.PartialError](err); ok {
			text, _ = json.Marshal(e.Lost)
		}
		if e, ok := errors.AsType[*checkpoint.AmbiguousTurnError](err); ok {
			text, _ = json.Marshal(e.Begun)
		}
		out[question] = fmt.Sprintf("%v %T %v %s", err, err, err, text)
	}
	every := checkpoint.Filter{AllSessions: true, Limit: 1000}
	page, err := d.List(ctx, every)
	if err != nil || page.Next != "" {
		t.Fatal(page.Next, err)
	}
	put("list", page.Checkpoints, nil)
	turns := map[string]bool{}
	for i, c := range page.Checkpoints {
		turns[c.Turn] = c.Turn != ""
		who := checkpoint.Scope{Principal: c.Principal, Session: c.Session}
		for _, mode := range []string{checkpoint.ModeState, checkpoint.ModeInverse} {
			p, err := d.Plan(ctx, checkpoint.Restore{ID: c.ID, Mode: mode, Principal: who.Principal, Session: who.Session})
			put(fmt.Sprint(mode, i), p, err)
		}
		p, err := d.Plan(ctx, checkpoint.Restore{Since: c.Time, Partial: i%2 == 0, Principal: who.Principal, Session: who.Session})
		put(fmt.Sprint("since", i), p, err)
		for _, ch := range c.Changes {
			for _, hash := range []string{ch.Before.Hash, ch.After.Hash, ch.Before.Tail, ch.After.Tail} {
				if hash != "" {
					b, err := d.Content(ctx, hash)
					put("content "+hash, b, err)
				}
			}
		}
	}
	for _, session := range []string{"s1", "s2"} {
		who := checkpoint.Scope{Principal: "ann", Session: session}
		p, err := d.Undo(ctx, who)
		put("undo "+session, p, err)
		p, err = d.Redo(ctx, who)
		put("redo "+session, p, err)
		k, err := d.Known(ctx, who)
		put("known "+session, k, err)
		for turn := range 40 {
			for _, partial := range []bool{false, true} {
				p, err := d.Plan(ctx, checkpoint.Restore{Turn: fmt.Sprint(turn), Partial: partial, Principal: "ann", Session: session})
				put(fmt.Sprint("turn ", turn, session, partial), p, err)
			}
		}
		p, err = d.Plan(ctx, checkpoint.Restore{Label: "here", Principal: "ann", Session: session})
		put("label "+session, p, err)
	}
	trash, err := d.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true, Limit: 1000})
	put("trash", trash.Entries, err)
	return out
}

func sameAnswers(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	bad := 0
	for q, w := range want {
		if g := got[q]; g != w && bad < 3 {
			bad++
			at := 0
			for at < min(len(g), len(w)) && g[at] == w[at] {
				at++
			}
			at = max(at-300, 0)
			t.Errorf("%s, %s, from byte %d:\n%.800s\nthe copy says\n%.800s", what, q, at, w[at:], g[min(at, len(g)):])
		}
	}
}

// historied drives d, marks some of what it has, and lets retention take some. What is pinned stays between what goes.
func historied(t *testing.T, d *checkpoint.DB, seed int64, forget func([]string) error) {
	t.Helper()
	checkpointtest.Drive(t, d, seed, 90)
	rng := rand.New(rand.NewSource(seed))
	page, err := d.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range page.Checkpoints {
		who := checkpoint.Scope{Principal: c.Principal, Session: c.Session}
		switch rng.Intn(12) {
		case 0, 1:
			err = d.Pin(ctx, c.ID, who)
		case 2:
			err = d.Label(ctx, c.ID, who, []string{"here", fmt.Sprint("l", i)}[rng.Intn(2)])
		case 3:
			err = d.Settle(ctx, c.ID, []checkpoint.Outcome{checkpoint.Committed, checkpoint.Aborted, checkpoint.Foreign}[rng.Intn(3)])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ch := range page.Checkpoints[0].Changes {
		if h := ch.After.Hash; h != "" && seed%4 == 3 {
			if _, err := d.Purge(ctx, checkpoint.Purge{Hash: h, Forget: forget}); err != nil {
				t.Fatal(err)
			}
		}
	}
	parked := op(checkpoint.Change{Path: "/w/gone", Role: checkpoint.RoleTree, Before: checkpoint.State{Kind: checkpoint.Dir, Mode: 0o755},
		Moved: checkpoint.Moved{To: "/t/gone", Identity: "8:1"}, Trash: &checkpoint.Trashed{Parked: "/t/gone", Files: 3, Identity: "8:1"}})
	s, err := d.Save(ctx, parked)
	if err == nil {
		err = d.TrashSettle(ctx, s.Trashed[0].ID, true)
	}
	tail := checkpoint.Change{Path: "/w/log", Role: checkpoint.RoleAppended, Tail: []byte("more\n"),
		Before: checkpoint.State{Kind: checkpoint.File, Size: 10}, After: checkpoint.State{Kind: checkpoint.File, Size: 15}}
	if err == nil {
		_, err = d.Save(ctx, op(tail))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A copy answers every question as its original: after retention, in parts.
func TestCopyAnswersAsTheOriginal(t *testing.T) {
	t.Parallel()
	first := 3 * rand.Int63n(2)
	for seed := first; seed < first+3; seed++ {
		clk := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		tick := func() time.Time { clk.t = clk.t.Add(time.Minute); return clk.t }
		from := open(t, t.TempDir(), checkpoint.Options{Now: tick, KeepWithin: time.Hour, KeepLast: []int{3, checkpoint.KeepNone}[seed/3%2]})
		to := open(t, t.TempDir(), checkpoint.Options{Now: tick})
		historied(t, from, seed, nil)
		if seed%3 > 0 {
			if r, err := from.GC(ctx, false); err != nil || r.Checkpoints == 0 {
				t.Fatal(r, err)
			}
		}
		if seed%2 == 1 { // something else is there already
			save(t, to, checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "eve", Session: "s9",
				Changes: []checkpoint.Change{edit("/else", []byte("1"), []byte("2"))}})
		}
		want := answers(t, from)
		c := copied(t, from, to)
		if c.Waiting+c.Damaged+c.Sealed > 0 || c.Operations == 0 || c.Contents == 0 {
			t.Errorf("%+v", c)
		}
		got := answers(t, to)
		if seed%2 == 1 {
			got["list"] = want["list"]
		}
		sameAnswers(t, fmt.Sprint("seed ", seed), got, want)
		if again := copied(t, from, to); again.Operations+again.Contents > 0 {
			t.Errorf("copied again: %+v after %+v", again, c)
		}
		sound(t, to)
		// And back into an empty one.
		back := open(t, t.TempDir(), checkpoint.Options{Now: tick})
		copied(t, to, back)
		got = answers(t, back)
		if seed%2 == 1 {
			got["list"] = want["list"]
		}
		sameAnswers(t, fmt.Sprint("seed ", seed, ", back"), got, want)
	}
}

// A store moves into a fleet and back: from a directory to PostgreSQL and S3, and into another directory.
func TestCopyIntoAFleetAndBack(t *testing.T) {
	t.Parallel()
	for _, seed := range []int64{rand.Int63n(2)} {
		clk := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		tick := func() time.Time { clk.t = clk.t.Add(time.Minute); return clk.t }
		o := checkpoint.Options{Now: tick, KeepWithin: time.Hour, KeepLast: []int{3, checkpoint.KeepNone}[seed%2]}
		from := open(t, t.TempDir(), o)
		historied(t, from, 31+seed, nil)
		save(t, from, op(edit("/w/large", randomText(600<<10, seed), randomText(600<<10, seed+1))))
		if _, err := from.GC(ctx, false); err != nil {
			t.Fatal(err)
		}
		fleet, err := openAt("", fleetbox.Database(t)+" "+fleetbox.Contents(t, nil), checkpoint.Options{Now: tick})
		if err != nil {
			t.Fatal(err)
		}
		defer fleet.Close()
		want := answers(t, from)
		back := open(t, t.TempDir(), checkpoint.Options{Now: tick})
		there := copied(t, from, fleet)
		again := copied(t, fleet, back)
		if there != again || there.Damaged+there.Sealed+there.Waiting > 0 {
			t.Errorf("%+v, and back %+v", there, again)
		}
		for name, d := range map[string]*checkpoint.DB{"in the fleet": fleet, "back": back} {
			sameAnswers(t, name, answers(t, d), want)
			sound(t, d)
		}
		for _, to := range []*checkpoint.DB{fleet, back} {
			if c := copied(t, from, to); c.Operations > 0 {
				t.Errorf("copied again: %+v", c)
			}
		}
	}
}

// TestCopyAfterRetention copies a store of which retention and a purge took a part: the copy knows that it was there.
func TestCopyAfterRetention(t *testing.T) {
	from, to := open(t, t.TempDir(), checkpoint.Options{KeepWithin: 1, KeepLast: checkpoint.KeepNone}), open(t, t.TempDir(), checkpoint.Options{})
	do := func(keep bool, o checkpoint.Op) checkpoint.ID {
		t.Helper()
		id := save(t, from, o)
		if keep {
			if err := from.Pin(ctx, id, ann); err != nil {
				t.Fatal(err)
			}
		}
		return id
	}
	do(true, op(edit("/w/a", []byte("0"), []byte("1"))))
	undone := do(true, op(edit("/w/a", []byte("1"), []byte("2"))))
	undo := op(edit("/w/a", []byte("2"), []byte("1")))
	undo.Kind, undo.UndoOf = checkpoint.KindRestore, undone
	do(false, undo)
	mine := do(true, op(edit("/w/p", []byte("1"), []byte("2"))))
	do(false, op(edit("/w/p", []byte("2"), []byte("3"))))
	secret := edit("/w/q", nil, []byte("secret"))
	secret.AfterContent = []byte("secret")
	do(true, op(secret))
	do(false, op(edit("/w/a", []byte("5"), []byte("6"))))
	do(true, op(edit("/w/last", nil, []byte("x"))))
	if p, err := from.Purge(ctx, checkpoint.Purge{Hashes: []string{sum([]byte("secret"))}}); err != nil || p.Contents != 1 {
		t.Fatal(p, err)
	}
	if r, err := from.GC(ctx, false); err != nil || r.Checkpoints != 3 {
		t.Fatal(r, err)
	}
	copied(t, from, to)
	sameAnswers(t, "all", answers(t, to), answers(t, from))
	for _, d := range []*checkpoint.DB{from, to} {
		p, err := d.Plan(ctx, checkpoint.Restore{ID: mine, Principal: ann.Principal, Session: ann.Session})
		if err != nil || !p.Items[0].HeadLost {
			t.Errorf("what became of it later is not known: %+v %v", p, err)
		}
		for i, want := range []string{"/w/last", "/w/q", "/w/p", "/w/a"} { // not what is undone
			p, err := d.Undo(ctx, ann)
			if err != nil || len(p.Items) != 1 || p.Items[0].Path != want || want == "/w/a" && p.UndoOf == undone {
				t.Fatalf("undo %d: %+v %v", i, p, err)
			}
			o := op(edit(want, []byte("now"), []byte("then")))
			o.Kind, o.UndoOf = checkpoint.KindRestore, p.UndoOf
			save(t, d, o)
		}
	}
}

// TestFetchOfOneSession fetches one session. Its history there is the same as at home, if no other session was at its paths.
func TestFetchOfOneSession(t *testing.T) {
	to, from, s := shipped(t)
	for i := range 12 {
		o := op(edit(fmt.Sprint("/w/f", i%4), source(500, int64(i)), source(500, int64(i+4))))
		o.Session = fmt.Sprint("s", i%2)
		o.Turn = fmt.Sprint(i / 4)
		save(t, from, o)
	}
	who := checkpoint.Scope{Principal: "ann", Session: "s1"}
	if n, err := s.Fetch(ctx, "bob", "s1"); err != nil || n != 0 {
		t.Errorf("of another principal: %d %v", n, err)
	}
	if n, err := s.Fetch(ctx, who.Principal, who.Session); err != nil || n != 6 {
		t.Errorf("%d %v", n, err)
	}
	for _, d := range []*checkpoint.DB{from, to} {
		p, err := d.Undo(ctx, who)
		if err != nil || len(p.Items) != 1 || p.Items[0].Foreign || !p.Items[0].Stored || p.Items[0].Want.Hash != sum(source(500, 11)) {
			t.Errorf("%+v %v", p, err)
		}
		p, err = d.Plan(ctx, checkpoint.Restore{Turn: "1", Principal: who.Principal, Session: who.Session})
		if err != nil || len(p.Undoes) != 4 {
			t.Errorf("%+v %v", p, err)
		}
	}
	page, err := to.List(ctx, checkpoint.Filter{AllSessions: true})
	if err != nil || len(page.Checkpoints) != 6 {
		t.Errorf("%d %v", len(page.Checkpoints), err)
	}
}

// An open operation ends a copy. The next one goes on there.
func TestCopyWaitsForWhatIsOpen(t *testing.T) {
	from, to := open(t, t.TempDir(), checkpoint.Options{}), open(t, t.TempDir(), checkpoint.Options{})
	save(t, from, op(edit("/w/a", []byte("1"), []byte("2"))))
	o := op(edit("/w/a", []byte("2"), []byte("3")))
	o.Tag = "t"
	id := save(t, from, o)
	save(t, from, op(edit("/w/a", []byte("3"), []byte("4"))))
	save(t, from, op(edit("/w/b", []byte("3"), []byte("4"))))
	c := copied(t, from, to)
	if c.Operations != 1 || c.Waiting != 3 {
		t.Fatalf("%+v", c)
	}
	if err := from.Settle(ctx, id, checkpoint.Aborted); err != nil {
		t.Fatal(err)
	}
	if c = copied(t, from, to); c.Operations != 3 || c.Waiting != 0 {
		t.Fatalf("%+v", c)
	}
	sameAnswers(t, "settled", answers(t, to), answers(t, from))
}

// Encrypted contents stay as they are, whoever copies them; those in clear are encrypted where the target encrypts.
func TestCopyKeepsSealed(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	key := checkpoint.Options{Identities: []string{id.String()}}
	sealing := checkpoint.Options{EncryptTo: id.Recipient().String()}
	dir := t.TempDir()
	var texts [][]byte
	text := source(8000, 1)
	for phase, o := range []checkpoint.Options{{}, sealing, sealing, {}} { // some in clear, under two keys, and deltas of them
		o.KeepWithin, o.KeepLast = 1, 3
		d, err := openAt(dir, fleetOf(t, dir), o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			next := append([]byte(fmt.Sprintf("// line %d of %d\n", i, len(texts))), text...)
			save(t, d, op(edit("/w/a", text, next)))
			texts, text = append(texts, text, next), next
		}
		large := randomText(600<<10, int64(len(texts)))
		save(t, d, op(edit("/w/large", large, nil)))
		texts = append(texts, large)
		if phase == 1 { // what goes stays as the base of what is encrypted
			if r, err := d.GC(ctx, false); err != nil || r.Checkpoints < 4 {
				t.Fatal(r, err)
			}
			texts = texts[len(texts)-4:]
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, o := range map[string]checkpoint.Options{"clear": {}, "sealing": sealing, "with the key": key} {
		from := open(t, dir, checkpoint.Options{Identities: key.Identities}) // may read
		blind := open(t, dir, checkpoint.Options{})                          // may not
		to := t.TempDir()
		d := open(t, to, o)
		c := copied(t, blind, d)
		if c.Sealed == 0 || c.Damaged > 0 {
			t.Errorf("%s: %+v", name, c)
		}
		if name == "sealing" {
			if f := contains(t, to, texts[0][1000:1040]); len(f) > 0 {
				t.Errorf("in clear in %v", f)
			}
		}
		reader := open(t, to, key)
		for i, b := range texts {
			if got, err := reader.Content(ctx, sum(b)); err != nil || string(got) != string(b) {
				t.Errorf("%s: text %d: %v", name, i, err)
			}
		}
		sound(t, reader)
		if c := copied(t, from, open(t, t.TempDir(), o)); c.Sealed > 0 {
			t.Errorf("with the key they are compared: %+v", c)
		}
		again := open(t, t.TempDir(), key)
		copied(t, d, again)
		for i, b := range texts {
			if got, err := again.Content(ctx, sum(b)); err != nil || string(got) != string(b) {
				t.Errorf("%s: text %d in a copy of a copy: %v", name, i, err)
			}
		}
		sound(t, again)
		if inPostgres(t) {
			break // one of them
		}
	}
}

// A content that the source lost is said to be lost, and what else there is comes whole.
func TestCopyOfADamagedStore(t *testing.T) {
	dir := t.TempDir()
	from := open(t, dir, checkpoint.Options{})
	bad, good := source(9000, 1), source(9000, 2)
	large := randomText(600<<10, 3)
	save(t, from, op(edit("/w/a", bad, nil), edit("/w/b", good, nil), edit("/w/c", nil, large)))
	tamper(t, dir, "UPDATE content SET z=zeroblob(20) WHERE id=1")
	for _, name := range blobFiles(t, dir) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	to := open(t, t.TempDir(), checkpoint.Options{})
	c := copied(t, from, to)
	if c.Damaged != 2 || c.Contents != 1 || c.Operations != 1 {
		t.Errorf("%+v", c)
	}
	page, err := to.List(ctx, checkpoint.Filter{AllSessions: true})
	if err != nil {
		t.Fatal(err)
	}
	ch := page.Checkpoints[0].Changes
	if ch[0].Stored || ch[0].Skipped != checkpoint.SkipDamaged || ch[0].Before.Hash != sum(bad) || !ch[1].Stored || ch[2].AfterStored || ch[2].AfterSkipped != checkpoint.SkipDamaged {
		t.Errorf("%+v", ch)
	}
	sound(t, to)
}

// A target that is full says so, and keeps what it has; another operation with the same id is no copy.
func TestCopyRefuses(t *testing.T) {
	from := open(t, t.TempDir(), checkpoint.Options{})
	for i := range 20 {
		save(t, from, op(edit(fmt.Sprint("/w/", i), randomText(100<<10, int64(i)), nil)))
	}
	to := open(t, t.TempDir(), checkpoint.Options{MaxBytes: 1 << 20})
	c, err := checkpoint.Copy(ctx, from, to)
	if _, ok := errors.AsType[*checkpoint.FullError](err); !ok || c.Operations < 5 || stats(t, to).Checkpoints != c.Operations {
		t.Errorf("%+v %v", c, err)
	}
	sound(t, to)
	twin := t.TempDir()
	d := open(t, twin, checkpoint.Options{})
	page, err := from.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(page.Checkpoints)
	save(t, d, op(edit("/w/other", []byte("1"), nil)))
	tamper(t, twin, "UPDATE op SET id=?, ts=ts-1", string(page.Checkpoints[0].ID))
	if _, err = checkpoint.Copy(ctx, from, d); err == nil || !strings.Contains(err.Error(), "another checkpoint") {
		t.Error(err)
	}
	from.Close()
	if _, err := checkpoint.Copy(ctx, from, to); !errors.Is(err, checkpoint.ErrClosed) {
		t.Error(err)
	}
}

// A content that can't be read at present is not taken for damaged: a copy ends there, and goes on when it can.
func TestCopyOfWhatCannotBeRead(t *testing.T) {
	shut := &shutBlobs{Store: &blob.Files{Dir: t.TempDir()}}
	from, to := open(t, t.TempDir(), checkpoint.Options{Blobs: shut}), open(t, t.TempDir(), checkpoint.Options{})
	large := randomText(600<<10, 3)
	save(t, from, op(edit("/w/a", nil, nil)))
	save(t, from, op(edit("/w/b", large, nil)))
	for _, shut.err = range []error{&checkpoint.UnreachableError{What: "store of large contents", Err: errors.New("it says 403 AccessDenied")},
		&fs.PathError{Op: "open", Path: "large", Err: fs.ErrPermission}} {
		if c, err := checkpoint.Copy(ctx, from, to); !errors.Is(err, shut.err) || c.Damaged > 0 {
			t.Errorf("%+v %v", c, err)
		}
		if _, err := from.Content(ctx, sum(large)); !errors.Is(err, shut.err) || errors.As(err, new(*checkpoint.CorruptError)) {
			t.Error(err)
		}
	}
	shut.err = nil
	if c := copied(t, from, to); c.Operations != 1 || c.Damaged > 0 {
		t.Errorf("%+v", c)
	}
	sameAnswers(t, "then", answers(t, to), answers(t, from))
}

// shutBlobs is a store of large contents that nobody can read while err is set.
type shutBlobs struct {
	blob.Store
	err error
}

func (s *shutBlobs) Get(ctx context.Context, name string, size int64) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Store.Get(ctx, name, size)
}
