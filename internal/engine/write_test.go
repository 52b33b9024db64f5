package engine_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
)

func TestCreate(t *testing.T) {
	x := grow(t, nil)
	was, path := x.looks(), x.ws+"/d/f"
	if _, err := x.Create(ctx, x.call("s"), path, []byte("one\n"), engine.Rules{}); err == nil {
		t.Error("made directories unasked")
	}
	done, err := x.Create(ctx, x.call("s"), path, []byte("one\n"), engine.Rules{Parents: true})
	if err != nil || done.Checkpoint == "" || len(done.Made) != 1 {
		t.Errorf("%+v %v", done, err)
	}
	x.reads("d/f", "one\n")
	for _, there := range []string{"d/f", "d"} {
		if _, err := x.Create(ctx, x.call("s"), x.ws+"/"+there, []byte("two\n"), engine.Rules{}); err == nil {
			t.Errorf("%s was made over what is there", there)
		}
	}
	if _, err := x.Create(ctx, x.call("s"), path, nil, engine.Rules{}); !engine.Conflicts.In(err) {
		t.Errorf("%v", err)
	}
	if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil || x.looks() != was {
		t.Errorf("undone: %v\n%s", err, x.looks())
	}
}

func TestAppend(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.TrackReads = true })
	path := x.ws + "/f"
	if _, err := x.Append(ctx, x.call("s"), path, []byte("x"), engine.Rules{Parents: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := x.Create(ctx, x.call("s"), path, []byte("one\n"), engine.Rules{}); err != nil {
		t.Fatal(err)
	}
	x.write("f", "one\nothers\n")
	if _, err := x.Append(ctx, x.call("s"), path, []byte{0xff, '\n'}, engine.Rules{}); err != nil {
		t.Error(err)
	}
	x.reads("f", "one\nothers\n\xff\n")
	x.cfg.MustReadBeforeWrite = true
	x.Close()
	x.open()
	x.write("f", "two\n")
	if _, err := x.Append(ctx, x.call("s"), path, []byte("x"), engine.Rules{}); !engine.Modified.In(err) {
		t.Errorf("%v", err)
	}
	x.reads("f", "two\n")
}

// Every dialect has the guards against accidents.
func TestGuards(t *testing.T) {
	x := grow(t, nil)
	path := x.write("f", "a\nb\nc\nd\n")
	no := func(*engine.Target, error) error { return nil }
	write := func(text string, meant bool) error {
		_, _, err := x.Write(ctx, x.call("s"), engine.WriteArgs{Path: path, Text: text, Rules: engine.Rules{Meant: meant}})
		return err
	}
	change := func(was, is string) error {
		_, _, err := x.Edit(ctx, x.call("s"), engine.EditArgs{Path: path, Edits: []edit.Edit{{Old: was, New: is}}, Refuse: no})
		return err
	}
	for what, err := range map[string]error{
		"emptied":          write("\n", false),
		"placeholder":      write("a\n// ... rest of the code unchanged\n", false),
		"edit to nothing":  change("a\nb\nc\nd\n", ""),
		"edit placeholder": change("b\nc\nd\n", "// ... rest of the code unchanged\n"),
	} {
		if !engine.Accident.In(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	x.reads("f", "a\nb\nc\nd\n")
	if err := write("", true); err != nil {
		t.Error(err)
	}
	x.reads("f", "")
}

// A plan is made anew where something moved while somebody was asked, and where nobody is, the change
// goes over what is there by then.
func TestMakerRunsAgain(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	path := x.write("d/f", "one\n")
	a.while = func() { x.write("d/f", "two\n") }
	if _, err := x.Append(ctx, c, path, []byte("x\n"), engine.Rules{}); !engine.ApprovalStale.In(err) {
		t.Errorf("%v", err)
	}
	x.reads("d/f", "two\n")
	a.while = func() { _ = os.Chmod(path, 0o600) } // no other content
	if _, err := x.Append(ctx, c, path, []byte("x\n"), engine.Rules{}); err != nil {
		t.Error(err)
	}
	x.reads("d/f", "two\nx\n")
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("the mode of in between is lost: %v %v", i, err)
	}
	a.while = func() { _ = os.Rename(filepath.Dir(path), x.ws+"/e") }
	if _, err := x.Append(ctx, c, path, []byte("x\n"), engine.Rules{}); err == nil {
		t.Error("written into a directory that was moved")
	}
	x.reads("e/f", "two\nx\n")
}
