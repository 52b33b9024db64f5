package rewind

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"moltisfs/checkpoint"
)

// store is a history in memory.
type store struct {
	contents map[string][]byte
	ops      map[checkpoint.ID]*checkpoint.Checkpoint
}

func (s store) Content(_ context.Context, hash string) ([]byte, error) {
	if c, ok := s.contents[hash]; ok {
		return c, nil
	}
	return nil, checkpoint.ErrNoContent
}

func (s store) Get(_ context.Context, id checkpoint.ID, _ checkpoint.Scope) (*checkpoint.Checkpoint, error) {
	if op := s.ops[id]; op != nil {
		return op, nil
	}
	return nil, checkpoint.ErrNotFound
}

func hash(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// is is a state in words: "-" nothing, "/" a directory, "> x" a link to x, else a file with that text.
func is(words string) checkpoint.State {
	switch to, link := strings.CutPrefix(words, "> "); {
	case words == "-":
		return checkpoint.State{Kind: checkpoint.Absent}
	case words == "/":
		return checkpoint.State{Kind: checkpoint.Dir, Mode: 0o750}
	case link:
		return checkpoint.State{Kind: checkpoint.Symlink, Target: to}
	}
	return checkpoint.State{Kind: checkpoint.File, Mode: 0o640, Size: int64(len(words)), Hash: hash(words)}
}

const (
	old    = "1\n2\n3\n4\n5\n"
	mine   = "1\n2\n3\n4\nmine\n"
	both   = "theirs\n1\n2\n3\n4\nmine\n"
	merged = "theirs\n1\n2\n3\n4\n5\n"
	theirs = "theirs\n"
)

// A session made of want what head says; now is there. What becomes of it by each rule.
func TestDecide(t *testing.T) {
	changed, by := "blocked changed_outside", "blocked changed_by_others"
	same := func(what string) [4]string { return [4]string{what, what, what, what} }
	for _, row := range []struct {
		name, want, head, now string
		as                    func(*checkpoint.Item)
		becomes               [4]string // refuse, skip, merge, force
	}{
		{"edited", old, mine, mine, nil, same("file " + old)},
		{"edited, and taken back", old, mine, old, nil, same("stays")},
		{"edited, and others did more", old, mine, both, nil, [4]string{changed, changed, "merged " + merged, "file " + old}},
		{"edited, and others wrote it anew", old, mine, theirs, nil, [4]string{changed, changed, changed, "file " + old}},
		{"edited, and removed", old, mine, "-", nil, [4]string{changed, changed, changed, "file " + old}},
		{"edited by others after it", old, both, both, func(it *checkpoint.Item) { it.Foreign = true },
			[4]string{by, by, "merged " + merged, "file " + old}},
		{"edited, and nobody said whether", old, mine, theirs, func(it *checkpoint.Item) { it.HeadBefore, it.HeadSettled = is(theirs), false },
			same("file " + old)},
		{"made", "-", mine, mine, nil, same("absent ")},
		{"made, and others did more", "-", mine, both, nil, [4]string{changed, changed, changed, "absent "}},
		{"made, and removed", "-", mine, "-", nil, same("stays")},
		{"removed", old, "-", "-", nil, same("file " + old)},
		{"removed, and there again", old, "-", theirs, nil, [4]string{changed, changed, changed, "file " + old}},
		{"a link removed", "> x", "-", "-", nil, same("symlink x")},
		{"a link made", "-", "> x", "> x", nil, same("absent ")},
		{"a file for a directory", "/", mine, mine, nil, same("dir ")},
		{"a directory for a file", old, "/", "/", nil, same("file " + old)},
		{"purged before", old, mine, mine, func(it *checkpoint.Item) { it.Stored, it.Missing = false, checkpoint.SkipPurged },
			same("missing unstored")},
		{"purged before, and others did more", old, mine, both, func(it *checkpoint.Item) { it.Stored, it.Missing = false, checkpoint.SkipPurged },
			[4]string{"missing unstored", changed, "missing unstored", "missing unstored"}},
		{"never stored", old, mine, both, func(it *checkpoint.Item) { it.Stored, it.Missing = false, "too_large" },
			[4]string{changed, changed, "merged " + merged, "missing unstored"}},
		{"gone from the store just now", "gone\n", mine, mine, nil, same("missing just_removed")},
		{"purged after", old, mine, theirs, func(it *checkpoint.Item) { it.Head.Hash = "" },
			[4]string{"blocked last_purged", "blocked last_purged", "blocked last_purged", "file " + old}},
		{"its last change forgotten", old, mine, theirs, func(it *checkpoint.Item) { it.HeadLost = true },
			[4]string{"blocked last_removed", "blocked last_removed", "blocked last_removed", "file " + old}},
	} {
		item := checkpoint.Item{Path: "/p", Want: is(row.want), Head: is(row.head), Base: is(row.head), HeadSettled: true, HeadID: "ck-1",
			Stored: true, Own: []checkpoint.ID{"ck-1"}}
		if row.as != nil {
			row.as(&item)
		}
		db := history(item.Want, is(mine))
		for i, rule := range []Rule{Refuse, Skip, Merge, Force} {
			r := Rewind{Store: db, Plan: &checkpoint.Plan{Mode: checkpoint.ModeState}, Rule: rule}
			b, err := r.Decide(context.Background(), &item, Now{State: is(row.now), Content: []byte(row.now)})
			if got := words(b); err != nil || got != row.becomes[i] {
				t.Errorf("%s, %s: %q %v, want %q", row.name, rule, got, err, row.becomes[i])
			}
		}
	}
}

// history has the one change of a session, and every content but "gone\n".
func history(before, after checkpoint.State) store {
	s := store{map[string][]byte{}, map[checkpoint.ID]*checkpoint.Checkpoint{}}
	for _, text := range []string{old, mine, both, theirs} {
		s.contents[hash(text)] = []byte(text)
	}
	op := &checkpoint.Checkpoint{ID: "ck-1", Kind: checkpoint.KindEdit}
	op.Changes = []checkpoint.Recorded{{Path: "/other"}, {Path: "/p", Before: before, After: after}}
	s.ops["ck-1"] = op
	return s
}

func words(b Becomes) string {
	switch {
	case b.Stays:
		return "stays"
	case b.Blocked != Why{}:
		return "blocked " + b.Blocked.Name
	case b.Missing != Why{}:
		return "missing " + b.Missing.Name
	case b.Merged:
		return "merged " + string(b.Content)
	}
	return fmt.Sprint(b.State.Kind, " ", string(b.Content), b.State.Target)
}

// One operation is taken out of what was made of the path since, or it is a conflict of lines.
func TestDecideInverse(t *testing.T) {
	for now, want := range map[string]string{
		mine: "file " + old, both: "merged " + merged, "1\n2\n3\n4\nother\n": "blocked same_lines", "-": "blocked changed_outside", old: "stays",
	} {
		item := checkpoint.Item{Path: "/p", Want: is(old), Base: is(mine), Head: is(now), HeadSettled: true, Stored: true, Foreign: true}
		if now == "-" {
			item.Head = is(mine)
		}
		r := Rewind{Store: history(is(old), is(mine)), Plan: &checkpoint.Plan{Mode: checkpoint.ModeInverse, Undoes: []checkpoint.ID{"ck-1"}}}
		b, err := r.Decide(context.Background(), &item, Now{State: is(now), Content: []byte(now)})
		if got := words(b); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", now, got, err, want)
		}
	}
}

// A base of no use for a merge: nobody recorded it, it is gone, or it is no text.
func TestMergeNeedsBothSides(t *testing.T) {
	item := checkpoint.Item{Path: "/p", Want: is(old), Base: is(mine), Head: is(mine), HeadSettled: true, HeadID: "ck-1", Stored: true,
		Own: []checkpoint.ID{"ck-1"}}
	for name, change := range map[string]func(store){
		"imported":      func(s store) { s.ops["ck-1"].Kind, s.ops["ck-1"].Changes[1].After = checkpoint.KindImport, is(old) },
		"its head gone": func(s store) { delete(s.contents, hash(mine)) },
		"no text":       nil,
	} {
		db, now := history(is(old), is(mine)), both
		if change == nil {
			now = "\x00" + both
		} else {
			change(db)
		}
		r := Rewind{Store: db, Plan: &checkpoint.Plan{Mode: checkpoint.ModeState}, Rule: Merge}
		b, err := r.Decide(context.Background(), &item, Now{State: is(now), Content: []byte(now)})
		if err != nil || b.Blocked != ChangedOutside {
			t.Errorf("%s: %q %v", name, words(b), err)
		}
	}
	r := Rewind{Store: store{}, Plan: &checkpoint.Plan{Mode: checkpoint.ModeState}, Rule: Merge}
	if _, err := r.Decide(context.Background(), &item, Now{State: is(both), Content: []byte(both)}); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("an operation that is not there: %v", err)
	}
}

// A file that is made anew gets what it had, but not set-id bits, and its time only when asked. What it
// can't be given is told.
func TestDecideMetadata(t *testing.T) {
	item := checkpoint.Item{Path: "/p", Want: is(old), Head: is("-"), HeadSettled: true, Stored: true}
	item.Want.Mode, item.Want.UID, item.Want.ModTime = 0o750|fs.ModeSetuid, 7, item.Want.ModTime.AddDate(2020, 1, 1)
	r := Rewind{Store: history(is(old), is(mine)), Plan: &checkpoint.Plan{}}
	for _, times := range []bool{false, true} {
		r.KeepTimes = times
		b, err := r.Decide(context.Background(), &item, Now{State: is("-")})
		if err != nil || !b.Exact || b.State.Mode != 0o750 || b.State.UID != 7 || b.State.ModTime.IsZero() == times {
			t.Errorf("times %v: %+v %v", times, b.State, err)
		}
	}
	item.Head, item.Base = is(mine), is(mine)
	now := is(mine)
	now.Xattrs = map[string][]byte{"user.x": []byte("theirs")}
	b, err := r.Decide(context.Background(), &item, Now{State: now, Can: func(s checkpoint.State) checkpoint.State { return s }})
	if want := []string{"mode", "owner", "xattr:user.x"}; err != nil || !slices.Equal(b.Metadata.Stays, want) || b.Metadata.Set != nil {
		t.Errorf("what others set stays: %+v %v", b.Metadata, err)
	}
}

func TestMadeReadOnly(t *testing.T) {
	protected := is(old)
	protected.Mode = 0o440
	item := checkpoint.Item{Want: is("-"), Head: protected, HeadBefore: is("-"), HeadID: "ck-1", Own: []checkpoint.ID{"ck-1"}}
	if !MadeReadOnly(&item, protected) {
		t.Error("the session's own file is protected from it")
	}
	if MadeReadOnly(&item, is(old)) {
		t.Error("it is not read-only")
	}
	item.HeadID = ""
	if MadeReadOnly(&item, protected) {
		t.Error("it was the change of another session")
	}
}

func TestOver(t *testing.T) {
	leaves := map[string]bool{"/a": true, "/b": true, "/d/e": true}
	over := Over([]string{"/a", "/a/x", "/b", "/c/y", "/d/e/f/g"}, func(name string) bool { return leaves[name] })
	if len(over) != 2 || over["/a"] != "/a/x" || over["/d/e"] != "/d/e/f/g" {
		t.Error(over)
	}
}

func TestSettle(t *testing.T) {
	made, gone, used := Settle([]string{"/m", "/m/n", "/s", "/s/t"}, []string{"/g/h", "/g", "/u"}, []string{"/m/n/f", "/u/f"}, []string{"/s/t/f"})
	if !slices.Equal(made, []string{"/m", "/m/n"}) || !slices.Equal(gone, []string{"/g/h", "/g"}) || !slices.Equal(used, []string{"/u"}) {
		t.Error(made, gone, used)
	}
	if made, _, _ := Settle([]string{"/s", "/s/empty"}, nil, nil, []string{"/s/f"}); !slices.Equal(made, []string{"/s", "/s/empty"}) {
		t.Error("one that is to be there itself needs the one above it:", made)
	}
}

func TestModeOf(t *testing.T) {
	for _, row := range []struct{ near, seen, want fs.FileMode }{
		{0o755, 0o644, 0o777}, {0o755, 0o640, 0o770}, {0o750, 0o644, 0o770}, {0o700, 0o644, 0o700}, {0o755, 0o600, 0o700},
	} {
		if got := ModeOf(row.near, row.seen); got != row.want {
			t.Errorf("%o, %o: %o, want %o", row.near, row.seen, got, row.want)
		}
	}
}
