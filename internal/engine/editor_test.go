package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// An editor holds texts by path. load and store, where set, answer in its place.
type editor struct {
	mu    sync.Mutex
	texts map[string]string
	asked []string
	load  func(ctx context.Context, path string) (string, bool, error)
	store func(ctx context.Context, path, old, text string) error
}

func (d *editor) Load(ctx context.Context, path string) (string, bool, error) {
	d.mu.Lock()
	d.asked = append(d.asked, path)
	load := d.load
	d.mu.Unlock()
	if load != nil {
		return load(ctx, path)
	}
	return d.plain(path)
}

func (d *editor) plain(path string) (string, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text, held := d.texts[path]
	return text, held, nil
}

func (d *editor) Store(ctx context.Context, path, old, text string) error {
	if d.store != nil {
		return d.store(ctx, path, old, text)
	}
	d.put(path, text)
	return nil
}

func (d *editor) put(path, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts[path] = text
}

// edited is a tree of which an editor holds some files; "new" is only in the editor, and so is
// "none/f", in a directory that is not there.
func edited(t *testing.T, change func(*config.FS)) (*tree, *editor) {
	x := grow(t, change)
	x.write("held", "disk\n")
	x.write("plain", "disk\n")
	x.write("denied", "disk\n")
	x.write("d/held", "disk\n")
	must(t, os.Symlink("plain", x.ws+"/link"))
	x.deny = x.ws + "/denied"
	x.reopen()
	d := &editor{texts: map[string]string{}}
	for _, name := range []string{"held", "new", "denied", "d/held", "none/f", "link"} {
		d.texts[x.ws+"/"+name] = "buffer\n"
	}
	return x, d
}

func (x *tree) through(d engine.Overlay) *engine.Call {
	c := x.call("s")
	c.Overlay = d
	return c
}

func all(s *engine.Source) ([]byte, *engine.ReadRecord, error) { return s.Lines(ctx, 1, -1, 1<<20) }

// seen is all of a file that c reads.
func (x *tree) seen(c *engine.Call, path string) (text string, err error) {
	err = c.Read(ctx, path, func(_ context.Context, s *engine.Source) (*engine.ReadRecord, error) {
		b, sight, err := all(s)
		text = string(b)
		return sight, err
	})
	return text, err
}

// Each way to read a file answers the editor's text of it, and nothing of it where policy denies the path.
func TestOverlayReads(t *testing.T) {
	x, d := edited(t, func(fs *config.FS) { fs.TrackReads = true })
	m, err := match.Compile("buffer|disk", match.Options{})
	must(t, err)
	reads := map[string]func(path string) (string, error){
		"lines": func(path string) (string, error) { return x.seen(x.through(d), path) },
		"bytes": func(path string) (got string, err error) {
			err = x.through(d).Read(ctx, path, func(_ context.Context, s *engine.Source) (*engine.ReadRecord, error) {
				b, sight, err := s.Bytes(ctx, 0, -1, 1<<20)
				if got = string(b); s.Unsaved != strings.HasPrefix(got, "buffer") {
					t.Errorf("%s is unsaved: %v", path, s.Unsaved)
				}
				return sight, err
			})
			return got, err
		},
		"stat": func(path string) (string, error) {
			e, err := x.through(d).Stat(ctx, path, true)
			link, lerr := x.through(d).Stat(ctx, path, false)
			if fmt.Sprint(e, err) != fmt.Sprint(link, lerr) {
				t.Errorf("%v %v, and as a link %v %v", e, err, link, lerr)
			}
			if err != nil {
				return "", err
			}
			return map[int64]string{5: "disk\n", 7: "buffer\n"}[e.Size], nil
		},
		"search": func(path string) (string, error) {
			r, err := x.through(d).Search(ctx, path, grep.Query{Matcher: m, Mode: grep.Content}, false)
			if err != nil || len(r.Rows) != 1 {
				return "", cmp.Or(err, fmt.Errorf("%+v", r))
			}
			return r.Rows[0].Text + "\n", nil
		},
		"copy": func(path string) (string, error) {
			to := x.ws + "/copy"
			defer os.Remove(to)
			if _, err := x.through(d).Copy(ctx, engine.CopyArgs{From: path, To: to}); err != nil {
				return "", err
			}
			b, err := os.ReadFile(to)
			return string(b), err
		},
	}
	for what, read := range reads {
		for name, want := range map[string]string{"held": "buffer\n", "d/held": "buffer\n", "plain": "disk\n", "new": "buffer\n", "none/f": "buffer\n"} {
			got, err := read(x.ws + "/" + name)
			if what == "copy" && (name == "new" || name == "none/f") { // it begins on the disk
				if code(err) != engine.CodeNotFound {
					t.Errorf("%s of %s: %q %v", what, name, got, err)
				}
			} else if err != nil || got != want {
				t.Errorf("%s of %s: %q %v", what, name, got, err)
			}
		}
		for name, want := range map[string]engine.Code{"denied": engine.CodePathDenied, "nothing": engine.CodeNotFound} {
			if got, err := read(x.ws + "/" + name); code(err) != want {
				t.Errorf("%s of %s: %q %v", what, name, got, err)
			}
		}
	}
	if slices.Contains(d.asked, x.ws+"/denied") {
		t.Error("the editor was asked for a path that policy denies")
	}
	page, err := x.call("s").Checkpoints(ctx, checkpoint.Filter{Limit: 100})
	must(t, err)
	for _, c := range page.Checkpoints {
		for _, ch := range c.Changes {
			if c.Kind == checkpoint.KindRead && ch.Role != checkpoint.RoleParent && ch.Path != x.ws+"/plain" {
				t.Errorf("kept as if it were on the disk: %+v", ch)
			}
		}
	}
	// A tree is copied with the editor's text of each file.
	must(t, errOf(x.through(d).Copy(ctx, engine.CopyArgs{From: x.ws + "/d", To: x.ws + "/e", Recursive: true})))
	x.has("e/held", "buffer\n")
}

// A change of a path that the editor holds goes to the editor, or is refused: the disk stays as it is, and
// no text comes of both.
func TestOverlayChanges(t *testing.T) {
	refused := "unsaved_text"
	write := func(name, encoding string) act {
		return func(ctx context.Context, c *engine.Call, ws string) error {
			return lastOf(c.Write(ctx, engine.WriteArgs{Path: ws + "/" + name, Text: "é\n", Encoding: encoding, Rules: engine.Rules{Parents: true}}))
		}
	}
	for _, c := range []struct {
		what, name string
		change     act
		want       string // what the editor has then, or the cause
	}{
		{"write", "held", write("held", ""), "é\n"},
		{"write", "new", write("new", ""), "é\n"},
		{"write", "none/f", write("none/f", ""), refused},
		{"write", "denied", write("denied", ""), "denied"},
		{"write in Latin-1", "held", write("held", "latin1"), "é\n"},
		{"append", "held", appends("held", "x"), "buffer\nx"},
		{"append", "new", appends("new", "x"), "buffer\nx"},
		{"append bytes", "held", appends("held", "\xff"), refused},
		{"append", "denied", appends("denied", "x"), "denied"},
		{"edit", "held", func(ctx context.Context, c *engine.Call, ws string) error {
			return lastOf(c.Edit(ctx, engine.EditArgs{Path: ws + "/held", Edits: []edit.Edit{{Old: "buffer", New: "é"}}, Encoding: "latin1"}))
		}, "é\n"},
		{"edit of what is on the disk", "held", func(ctx context.Context, c *engine.Call, ws string) error {
			return lastOf(c.Edit(ctx, engine.EditArgs{Path: ws + "/held", Edits: []edit.Edit{{Old: "disk", New: "x"}}}))
		}, "no_match"},
		{"create", "new", creates("new", "x"), "conflicts"},
		{"copy over", "held", copies("plain", "held"), "disk\n"},
		{"metadata", "held", becomes("held", engine.After{Kind: guardfs.KindFile, Content: []byte("x"), Meta: &guardfs.Metadata{Mode: 0o777}}), refused},
		{"remove", "held", becomes("held", engine.After{Kind: guardfs.KindAbsent}), refused},
		{"several", "held", writes("x", "plain", "held"), refused},
		{"directory", "new", mkdirs("new"), refused},
		{"link", "new", becomes("new", engine.After{Kind: guardfs.KindSymlink, Target: "plain"}), refused},
		{"over a link", "link", becomes("link", engine.After{Kind: guardfs.KindFile, Content: []byte("x")}), refused},
		{"move", "held", moves("held", "other"), refused},
		{"move over", "held", moves("plain", "held"), refused},
		{"move to", "new", moves("plain", "new"), refused},
		{"move the directory", "d/held", moves("d", "e"), refused},
		{"delete", "held", deletes("held"), refused},
		{"delete the directory", "d/held", deletes("d"), refused},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s, asked %v", c.what, c.name, dry), func(t *testing.T) {
				t.Parallel()
				x, d := edited(t, func(fs *config.FS) { fs.RequireApproval = dry })
				was, path, asker := x.looks(), x.ws+"/"+c.name, &asker{}
				call := x.through(d)
				call.Approver = asker
				err := c.change(ctx, call, x.ws)
				want := c.want
				if r := engine.Reason(err); err != nil {
					if r == nil || r.Cause.Name != want {
						t.Errorf("%v, want %s", err, want)
					}
					if want = "buffer\n"; len(asker.asked) > 0 {
						t.Error("somebody was asked about a change that is refused")
					}
				} else if dry && (len(asker.asked) != 1 || !slices.ContainsFunc(asker.asked[0].Warnings, func(w string) bool { return strings.Contains(w, "unsaved") })) {
					t.Errorf("asked %+v", asker.asked)
				}
				if got, _, _ := d.plain(path); got != want {
					t.Errorf("the editor has %q, want %q", got, want)
				}
				x.same("on the disk", was)
				if slices.Contains(d.asked, x.ws+"/denied") {
					t.Error("the editor was asked for a path that policy denies")
				}
			})
		}
	}
}

// A session may change the text that it read of the editor, and no more than that: neither what is on the
// disk nor what the user has typed since.
func TestOverlayIsWhatWasSeen(t *testing.T) {
	x, d := edited(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
	path := x.ws + "/held"
	change := func(c *engine.Call, text string, want engine.Cause) {
		t.Helper()
		_, _, err := c.Write(ctx, engine.WriteArgs{Path: path, Text: text})
		if want == (engine.Cause{}) && err != nil || want != (engine.Cause{}) && !want.In(err) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	change(x.through(d), "1\n", engine.Unread)
	for _, name := range []string{"held", "new"} {
		if got, err := x.seen(x.through(d), x.ws+"/"+name); err != nil || got != "buffer\n" {
			t.Fatal(got, err)
		}
	}
	change(x.call("s"), "1\n", engine.Modified) // on the disk is another text
	change(x.through(d), "1\n", engine.Cause{})
	change(x.through(d), "2\n", engine.Cause{}) // its own change counts as seen
	d.put(path, "typed\n")
	change(x.through(d), "3\n", engine.Modified)
	d.put(path, "2\n")
	must(t, os.WriteFile(path, []byte("2\n"), 0o600)) // the editor saves it
	delete(d.texts, path)
	change(x.through(d), "4\n", engine.Cause{})
	x.has("held", "4\n")
	path = x.ws + "/new"
	change(x.through(d), "5\n", engine.Cause{})
	if d.texts[path] != "5\n" {
		t.Errorf("%q", d.texts)
	}
	path = x.ws + "/new2" // no other path that is not on the disk is taken for that one
	d.put(path, "5\n")
	change(x.through(d), "6\n", engine.Unread)
	path = x.ws + "/new"
	// A reader need not say which content it was.
	must(t, x.through(d).Read(ctx, path, func(context.Context, *engine.Source) (*engine.ReadRecord, error) {
		return &engine.ReadRecord{Unit: "line", Lines: 1, Whole: true}, nil
	}))
	d.put(path, "6\n")
	change(x.through(d), "7\n", engine.Modified)
}

// A change of the editor's text is taken back there. Once the editor has saved it, it is taken back on
// the disk; and where the editor dropped it, what is on the disk is not what the change left.
func TestOverlayUndo(t *testing.T) {
	for _, c := range []struct {
		how          string
		name         string
		meanwhile    func(x *tree, d *editor, path string)
		disk, buffer string
		conflict     bool
	}{
		{"held", "held", func(*tree, *editor, string) {}, "disk\n", "buffer\n", false},
		{"new", "new", func(*tree, *editor, string) {}, "", "buffer\n", false},
		{"saved", "held", func(x *tree, d *editor, path string) { x.write("held", "after\n"); delete(d.texts, path) }, "buffer\n", "", false},
		{"dropped", "held", func(_ *tree, d *editor, path string) { delete(d.texts, path) }, "disk\n", "", true},
		{"typed", "held", func(_ *tree, d *editor, path string) { d.put(path, "typed\n") }, "disk\n", "typed\n", true},
		{"mode", "held", func(_ *tree, _ *editor, path string) { os.Chmod(path, 0o600) }, "disk\n", "buffer\n", false}, //nolint:errcheck // seen below
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			x, d := edited(t, nil)
			path := x.ws + "/" + c.name
			done, _, err := x.through(d).Write(ctx, engine.WriteArgs{Path: path, Text: "after\n"})
			if err != nil || done.Checkpoint == "" || d.texts[path] != "after\n" {
				t.Fatal(done, err)
			}
			c.meanwhile(x, d, path)
			mode := x.looks()
			_, err = x.through(d).Undo(ctx, engine.RestoreOptions{})
			if c.conflict != (len(blockedBy(err)) == 1) || !c.conflict && err != nil {
				t.Errorf("%v", err)
			}
			b, _ := os.ReadFile(path)
			if string(b) != c.disk || d.texts[path] != c.buffer {
				t.Errorf("disk %q editor %q, want %q and %q", b, d.texts[path], c.disk, c.buffer)
			}
			if c.disk == "disk\n" && x.looks() != mode {
				t.Errorf("on the disk:\n%s\nwas\n%s", x.looks(), mode)
			}
			if c.conflict {
				return
			}
			c.meanwhile(x, d, path)
			if _, err := x.through(d).Redo(ctx, engine.RestoreOptions{}); c.how == "held" && (err != nil || d.texts[path] != "after\n") {
				t.Errorf("redone: %q %v", d.texts[path], err)
			}
		})
	}
}

// An undo of several files, of one of which the editor holds another text, is refused: all or none.
func TestOverlayUndoOfSeveral(t *testing.T) {
	x, d := edited(t, nil)
	must(t, errOf(x.call("s").ChangeFiles(ctx, x.becomes("x\n", "plain", "held"))))
	d.put(x.ws+"/held", "typed\n")
	was := x.looks()
	for rule, want := range map[string]engine.Cause{engine.OnConflictRefuse: engine.Conflicts, engine.OnConflictForce: engine.UnsavedText, engine.OnConflictMerge: engine.Conflicts} {
		if _, err := x.through(d).Undo(ctx, engine.RestoreOptions{OnConflict: rule}); !want.In(err) || x.looks() != was {
			t.Errorf("%s: %v", rule, err)
		}
	}
	d.put(x.ws+"/held", "x") // as the disk has it, but for the last line break
	must(t, errOf(x.through(d).Undo(ctx, engine.RestoreOptions{})))
	x.has("held", "disk\n")
}

// An editor that fails, in whatever way, fails the call. What is on the disk never stands in for its text.
func TestOverlayThatFails(t *testing.T) {
	turns := 0
	for what, c := range map[string]struct {
		load func(ctx context.Context, path string) (string, bool, error)
		want engine.Code
	}{
		"an error":       {func(context.Context, string) (string, bool, error) { return "", false, errors.New("gone") }, engine.CodeIOError},
		"held and error": {func(context.Context, string) (string, bool, error) { return "x", true, errors.New("gone") }, engine.CodeIOError},
		"not found":      {func(context.Context, string) (string, bool, error) { return "", false, fs.ErrNotExist }, engine.CodeIOError},
		"a deadline":     {func(context.Context, string) (string, bool, error) { return "", false, context.DeadlineExceeded }, engine.CodeIOError},
		"a refusal": {func(context.Context, string) (string, bool, error) {
			return "", false, engine.Refuse(engine.Unread, "/x", nil)
		}, engine.CodeIOError},
		"a panic":        {func(context.Context, string) (string, bool, error) { panic("no") }, engine.CodeIOError},
		"no text":        {func(context.Context, string) (string, bool, error) { return "\xff", true, nil }, engine.CodeIOError},
		"too much":       {func(context.Context, string) (string, bool, error) { return strings.Repeat("x", 256<<20+1), true, nil }, engine.CodeTooLarge},
		"waits":          {func(ctx context.Context, _ string) (string, bool, error) { <-ctx.Done(); return "", false, ctx.Err() }, engine.CodeDeadline},
		"waits for ever": {func(context.Context, string) (string, bool, error) { select {} }, engine.CodeDeadline},
		"waits, then says": {func(ctx context.Context, _ string) (string, bool, error) {
			<-ctx.Done()
			return "", false, errors.New("x")
		}, engine.CodeDeadline},
	} {
		x, d := edited(t, func(fs *config.FS) { fs.TrackReads = true })
		d.load = c.load
		was := x.looks()
		for n, do := range []act{reading("/held"), stats("/held"), appends("held", "x"), creates("new", "x"), copies("held", "copy"), deletes("held")} {
			short := time.Minute
			if strings.HasPrefix(what, "waits") {
				short = 30 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(ctx, short)
			err := do(ctx, x.through(d), x.ws)
			cancel()
			if code(err) != c.want {
				t.Errorf("%s, %d: %v", what, n, err)
			}
			if what == "waits for ever" || what == "too much" && n == 2 {
				break // each takes a second, or much memory
			}
		}
		if x.looks() != was {
			t.Errorf("%s: on the disk:\n%s\nwas\n%s", what, x.looks(), was)
		}
	}
	// Another text at each look: nothing is ever written over a text that was not the last.
	x, d := edited(t, nil)
	d.load = func(context.Context, string) (string, bool, error) { turns++; return fmt.Sprint(turns), true, nil }
	d.store = func(_ context.Context, _, old, _ string) error {
		t.Errorf("over %s in turn %d", old, turns)
		return nil
	}
	if _, err := x.through(d).Append(ctx, x.ws+"/held", []byte("x"), engine.Rules{}); code(err) != engine.CodeConflict {
		t.Errorf("%v", err)
	}
}

// A text that the editor may or may not have taken: the answer, the record and the undo tell which.
func TestOverlayTakesOrDoesNot(t *testing.T) {
	failed := errors.New("failed")
	for what, c := range map[string]struct {
		store func(d *editor, ctx context.Context, path, text string) error
		want  string // the cause; "" is success
		undo  string // the text after an undo; "" where it is refused
	}{
		"taken":              {func(d *editor, _ context.Context, p, text string) error { d.put(p, text); return nil }, "", "buffer\n"},
		"taken and an error": {func(d *editor, _ context.Context, p, text string) error { d.put(p, text); return failed }, "", "buffer\n"},
		"taken and a panic":  {func(d *editor, _ context.Context, p, text string) error { d.put(p, text); panic("x") }, "", "buffer\n"},
		"an error":           {func(*editor, context.Context, string, string) error { return failed }, "client_failed", "buffer\n"},
		"half of it":         {func(d *editor, _ context.Context, p, text string) error { d.put(p, text[:2]); return failed }, "half_made", ""},
		"closed":             {func(d *editor, _ context.Context, p, _ string) error { delete(d.texts, p); return failed }, "half_made", ""},
		"asleep":             {func(_ *editor, ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() }, "half_made", "buffer\n"},
		"asleep, after it": {func(d *editor, ctx context.Context, p, text string) error {
			d.put(p, text)
			<-ctx.Done()
			return ctx.Err()
		}, "", "buffer\n"},
		"another just before": {nil, "changed_at_once", "typed\n"},
		"no answer at last":   {nil, "client_failed", "buffer\n"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			x, d := edited(t, nil)
			was, path := x.looks(), x.ws+"/held"
			hangUp := func() {}
			d.store = func(ctx context.Context, path, old, text string) error {
				if old != "buffer\n" || text != "after\n" {
					t.Errorf("%q becomes %q", old, text)
				}
				if c.store == nil {
					t.Errorf("%q was handed over", text)
					return nil
				}
				if strings.HasPrefix(what, "asleep") {
					hangUp()
				}
				return c.store(d, ctx, path, text)
			}
			if c.store == nil {
				d.load = func(ctx context.Context, path string) (string, bool, error) {
					page, err := x.call("s").Checkpoints(ctx, checkpoint.Filter{NoReads: true, Limit: 1})
					must(t, err)
					switch last := len(page.Checkpoints) > 0; { // it is saved, and about to be handed over
					case last && c.want == "client_failed":
						return "", false, failed
					case last:
						d.put(path, "typed\n")
					}
					return d.plain(path)
				}
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			hangUp = cancel
			_, _, err := x.through(d).Write(ctx, engine.WriteArgs{Path: path, Text: "after\n"})
			if c.want == "" && err != nil || c.want != "" && (engine.Reason(err) == nil || engine.Reason(err).Cause.Name != c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if half, ok := factsOf[engine.HalfFacts](err, engine.HalfMade); ok && (!slices.Equal(half.Left, []string{path}) || half.Checkpoint == "") {
				t.Errorf("%+v", half)
			}
			page, lerr := x.call("s").Checkpoints(context.Background(), checkpoint.Filter{NoReads: true, Limit: 9})
			must(t, lerr)
			outcomes := map[string]checkpoint.Outcome{"": checkpoint.Committed, "half_made": checkpoint.Foreign}
			outcome, known := outcomes[c.want]
			if !known {
				outcome = checkpoint.Aborted
			}
			if len(page.Checkpoints) != 1 || page.Checkpoints[0].Outcome != outcome {
				t.Errorf("on record: %+v, want %q", page.Checkpoints, outcome)
			}
			if left, err := x.HalfWay(context.Background()); left != nil || err != nil {
				t.Errorf("still half-way: %v", left)
			}
			d.store, d.load = nil, nil
			_, err = x.through(d).Undo(context.Background(), engine.RestoreOptions{})
			if got, _, _ := d.plain(path); c.undo != "" && got != c.undo {
				t.Errorf("undone: %q %v", got, err)
			} else if c.undo == "" && err == nil {
				t.Errorf("undone to %q what nobody made", got)
			}
			x.same("on the disk", was)
		})
	}
}

// An approval of a change in the editor is none of one on the disk, and none of another text.
func TestOverlayMovesWhileSomebodyIsAsked(t *testing.T) {
	for what, c := range map[string]struct {
		while func(x *tree, d *editor, path string)
		want  engine.Code
	}{
		"nothing": {func(*tree, *editor, string) {}, ""},
		"typed":   {func(_ *tree, d *editor, path string) { d.put(path, "typed\n") }, engine.CodeApprovalStale},
		"saved":   {func(x *tree, d *editor, path string) { x.write("held", "buffer\n"); delete(d.texts, path) }, engine.CodeApprovalStale},
		"touched": {func(x *tree, _ *editor, _ string) { x.write("held", "disk\n") }, ""},
	} {
		x, d := edited(t, func(fs *config.FS) { fs.RequireApproval = true })
		path, call := x.ws+"/held", x.through(d)
		call.Approver = &asker{while: func() { c.while(x, d, path) }}
		if _, err := call.Append(ctx, path, []byte("x"), engine.Rules{}); code(err) != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
	x, d := edited(t, func(fs *config.FS) { fs.RequireApproval = true })
	call := x.through(d)
	call.Approver = &asker{while: func() { d.put(x.ws+"/plain", "typed\n") }}
	if _, err := call.Delete(ctx, x.ws+"/plain", engine.DeleteOptions{}); err == nil {
		t.Error("a file went that the editor has text of by now")
	}
	x.has("plain", "disk\n")
	x.cfg.Checkpoint.MaxFileBytes = 1 // then a directory goes by one rename
	x.reopen()
	x.write("e/f", "disk\n")
	call.Approver = &asker{while: func() { d.put(x.ws+"/e/f", "typed\n") }}
	if _, err := x.Begin(call).Delete(ctx, x.ws+"/e", engine.DeleteOptions{Recursive: true}); !engine.UnsavedText.In(err) {
		t.Errorf("a directory went with a file that the editor has text of by now: %v", err)
	}
	x.has("e/f", "disk\n")
}

// An editor has no metadata to give back, and no times.
func TestOverlayHasNoMetadata(t *testing.T) {
	for _, times := range []bool{false, true} {
		x, d := edited(t, nil)
		path := x.ws + "/plain"
		m := x.becomes("after\n", "plain")
		next := m.Next
		m.Next = func(ts []*engine.Target) error {
			err := next(ts)
			ts[0].After.Meta = &guardfs.Metadata{Mode: 0o600, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
			return err
		}
		must(t, errOf(x.call("s").ChangeFiles(ctx, m)))
		d.put(path, "after\n")
		x.write("plain", "other\n") // so that it is the editor's alone
		was := x.looks()
		done, err := x.through(d).Undo(ctx, engine.RestoreOptions{KeepTimes: times})
		if err != nil || d.texts[path] != "disk\n" || x.looks() != was {
			t.Fatalf("%q %v\n%s", d.texts[path], err, x.looks())
		}
		if got := done.Metadata[path]; got.Set != nil || !slices.Equal(got.Dropped, []string{"mode"}) {
			t.Errorf("%+v", got)
		}
	}
}

// A client that does not come back is not waited for without end, also where the call has no deadline.
func TestOverlayIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		c := &engine.Call{}
		c.Overlay = &editor{load: func(context.Context, string) (string, bool, error) { <-end; return "x", true, nil }}
		start := time.Now()
		text, held, err := c.Held(context.Background(), "/f")
		if text != nil || held || code(err) != engine.CodeDeadline || time.Since(start) > time.Minute {
			t.Errorf("%q %v %v after %v", text, held, err, time.Since(start))
		}
	})
}

// The disk under a text that the editor holds is not taken for what others changed.
func TestOverlayIsNoChangeFromOutside(t *testing.T) {
	x, d := edited(t, nil)
	c := x.through(d)
	for turn, name := range []string{"held", "plain"} {
		c.Turn = fmt.Sprint("t", turn)
		c.BeginTurn(ctx)
		must(t, lastOf(c.Write(ctx, engine.WriteArgs{Path: x.ws + "/" + name, Text: "after\n"})))
	}
	c.Turn = "t2"
	c.BeginTurn(ctx)
	if n := x.externals(); n != 0 {
		t.Errorf("%d changes from outside", n)
	}
	x.write("plain", "others\n")
	c.Turn = "t3"
	if c.BeginTurn(ctx); x.externals() != 1 {
		t.Errorf("%d changes from outside", x.externals())
	}
	shown, _, _, err := c.Compare(ctx, checkpoint.Restore{Turn: "t0"}, true)
	must(t, err)
	for _, s := range shown {
		if s.Path == x.ws+"/held" && (!strings.Contains(s.Diff, "-buffer\n+after\n") || strings.Contains(s.Diff, "disk")) {
			t.Errorf("%s", s.Diff)
		}
	}
}

// A process that is killed while the editor takes a text, or did not yet: an undo brings the old text back
// in either case, also where the same text is on the disk, which tells nothing.
func TestOverlayKilled(t *testing.T) {
	for _, taken := range []bool{true, false} {
		x, d := edited(t, nil)
		x.write("held", "buffer\n")
		data := t.TempDir() + "/data"
		d.store = func(_ context.Context, path, _, text string) error {
			must(t, os.CopyFS(data, os.DirFS(x.data)))
			if taken {
				d.put(path, text)
			}
			return errors.New("killed")
		}
		path := x.ws + "/held"
		x.through(d).Write(ctx, engine.WriteArgs{Path: path, Text: "after\n"}) //nolint:errcheck // nobody hears of it
		x.Close()
		must(t, os.Chmod(data, 0o700))
		x.data, d.store = data, nil
		x.open()
		if _, err := x.through(d).Undo(ctx, engine.RestoreOptions{}); err != nil || d.texts[path] != "buffer\n" {
			t.Errorf("taken %v: %q %v", taken, d.texts[path], err)
		}
		x.has("held", "buffer\n")
		x.settled()
	}
}

// A client that can't decode a file has no text of it: what it would write back destroys bytes. With text of its own beside them the
// call is refused.
func TestOverlayOfBytesThatAClientCannotRead(t *testing.T) {
	x, d := edited(t, nil)
	path := x.ws + "/plain"
	x.write("plain", "caf\xe9 \xe9t\xe9 d\xe9j\xe0 vu\n")
	d.put(path, "caf\uFFFD \uFFFDt\uFFFD d\uFFFDj\uFFFD vu\n")
	if got, err := x.seen(x.through(d), path); err != nil || !strings.HasPrefix(got, "caf\xe9") {
		t.Errorf("%q %v", got, err)
	}
	must(t, lastOf(x.through(d).Edit(ctx, engine.EditArgs{Path: path, Edits: []edit.Edit{{Old: "vu", New: "lu"}}})))
	x.has("plain", "caf\xe9 \xe9t\xe9 d\xe9j\xe0 lu\n")
	d.put(path, "caf\uFFFD typed\n")
	was := x.looks()
	if _, err := x.seen(x.through(d), path); !engine.ClientFailed.In(err) {
		t.Error(err)
	}
	if _, err := x.through(d).Append(ctx, path, []byte("x"), engine.Rules{}); !engine.ClientFailed.In(err) || x.looks() != was || d.texts[path] != "caf\uFFFD typed\n" {
		t.Errorf("%v\n%s", err, x.looks())
	}
}

// Calls and an editor at work in any order: each text that is read is the whole of what the editor
// holds, or of what is on the disk where it holds nothing; and a change is made in that one place or in none.
func TestOverlayNeverMixes(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 23))
		x, d := edited(t, func(fs *config.FS) { fs.TrackReads, fs.CheckpointBeforeMutation = seed%2 == 0, seed%3 != 0 })
		names := []string{"held", "plain", "d/held", "new"}
		disk := func() map[string]string {
			out := map[string]string{}
			for _, name := range names {
				if b, err := os.ReadFile(x.ws + "/" + name); err == nil {
					out[name] = string(b)
				}
			}
			return out
		}
		for step := range 60 {
			name := names[r.IntN(len(names))]
			path := x.ws + "/" + name
			failing := r.IntN(6) == 0
			if d.load = nil; failing {
				d.load = func(context.Context, string) (string, bool, error) { return "", false, errors.New("gone") }
			}
			was, texts := disk(), maps.Clone(d.texts)
			text, held := texts[path]
			if !held {
				text = was[name]
			}
			c, want, what := x.through(d), "", r.IntN(8)
			var err error
			switch mark := string(rune('a'+r.IntN(26))) + "\n"; what {
			case 0: // the user types, saves or closes
				d.put(path, mark)
				continue
			case 1:
				if held {
					x.write(name, text)
				}
				delete(d.texts, path)
				continue
			case 2:
				delete(d.texts, path)
				continue
			case 3:
				got, rerr := x.seen(c, path)
				if rerr == nil && (failing || got != text) {
					t.Fatalf("seed %d, step %d: %s reads %q, should %q", seed, step, name, got, text)
				}
				continue
			case 4:
				want = text + mark
				_, err = c.Append(ctx, path, []byte(mark), engine.Rules{})
			case 5:
				want = mark
				_, _, err = c.Write(ctx, engine.WriteArgs{Path: path, Text: mark, Rules: engine.Rules{Meant: true}})
			case 6:
				want = mark + text
				first := text[:min(len(text), 2)]
				_, _, err = c.Edit(ctx, engine.EditArgs{Path: path, Edits: []edit.Edit{{Old: first, New: mark + first}}, Rules: engine.Rules{Meant: true}})
			case 7:
				_, err = c.Undo(ctx, engine.RestoreOptions{})
			}
			now := disk()
			switch {
			case err != nil || failing:
				if err == nil && what != 7 {
					t.Fatalf("seed %d, step %d: a client that failed was passed by", seed, step)
				}
				if !maps.Equal(now, was) || !maps.Equal(d.texts, texts) {
					t.Fatalf("seed %d, step %d: %v, and all the same %q became %q, %q %q", seed, step, err, was, now, texts, d.texts)
				}
			case what == 7: // of some path: in one of the two places
				if !maps.Equal(now, was) && !maps.Equal(d.texts, texts) {
					t.Fatalf("seed %d, step %d: undone in both: %q became %q, %q %q", seed, step, was, now, texts, d.texts)
				}
				for _, name := range names {
					if _, held := texts[x.ws+"/"+name]; held && now[name] != was[name] {
						t.Fatalf("seed %d, step %d: the disk under %s was undone", seed, step, name)
					}
				}
			case held:
				if texts[path] = want; !maps.Equal(now, was) || !maps.Equal(d.texts, texts) {
					t.Fatalf("seed %d, step %d: %d of %s: %q became %q, editor %q", seed, step, what, name, was, now, d.texts)
				}
			default:
				if was[name] = want; !maps.Equal(now, was) || !maps.Equal(d.texts, texts) {
					t.Fatalf("seed %d, step %d: %d of %s: disk %q, want %q, editor %q", seed, step, what, name, now, was, d.texts)
				}
			}
		}
		x.settled()
	}
}

// A call that may not reach a path has none of its text, and its editor is not asked for it.
func TestOverlayWithinAScope(t *testing.T) {
	x, d := edited(t, nil)
	c := x.through(d)
	c.Scope = &engine.Scope{Readable: []string{x.ws + "/d"}}
	x.Begin(c)
	for _, name := range []string{"held", "new", "d/held"} {
		_, serr := c.Stat(ctx, x.ws+"/"+name, true)
		got, err := x.seen(c, x.ws+"/"+name)
		if name == "d/held" && (err != nil || serr != nil || got != "buffer\n") || name != "d/held" && (code(err) != engine.CodePathDenied || code(serr) != engine.CodePathDenied) {
			t.Errorf("%s: %q %v %v", name, got, err, serr)
		}
		_, err = c.Append(ctx, x.ws+"/"+name, []byte("x"), engine.Rules{})
		if code(err) != engine.CodePathDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if slices.ContainsFunc(d.asked, func(p string) bool { return p != x.ws+"/d/held" }) || d.texts[x.ws+"/d/held"] != "buffer\n" {
		t.Errorf("asked for %q; %q", d.asked, d.texts)
	}
}

// Links and detours lead to the one true name that the editor knows.
func TestOverlayByItsTrueName(t *testing.T) {
	x, d := edited(t, nil)
	must(t, os.Symlink("d", x.ws+"/to"))
	must(t, os.Symlink("held", x.ws+"/as"))
	for _, name := range []string{"to/held", "d/../d/./held", "as", "to/../new"} {
		if got, err := x.seen(x.through(d), x.ws+"/"+name); err != nil || got != "buffer\n" {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if e, err := x.through(d).Stat(ctx, x.ws+"/"+name, true); err != nil || !e.Unsaved {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
	if e, err := x.through(d).Stat(ctx, x.ws+"/as", false); err != nil || e.Unsaved || e.Target != "held" {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := x.through(d).Append(ctx, x.ws+"/to/held", []byte("x"), engine.Rules{}); err != nil || d.texts[x.ws+"/d/held"] != "buffer\nx" {
		t.Errorf("%q %v", d.texts, err)
	}
	if _, err := x.through(d).Append(ctx, x.ws+"/as", []byte("x"), engine.Rules{}); code(err) != engine.CodeSymlinkRefused {
		t.Errorf("%v", err)
	}
}

// A saver is an editor that saves what it is given, as Zed and VS Code do: it shows a text with LF and without a
// mark, nothing where no file is, and keeps line ends, mark and encoding of the file.
type saver struct {
	final  bool // it ends a text with a line break at saving
	stores int
}

var bom = []byte("\xef\xbb\xbf")

func latin(text string) (raw []byte) {
	for _, r := range text {
		raw = append(raw, byte(r))
	}
	return raw
}

func (s *saver) Load(_ context.Context, path string) (string, bool, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	} else if err != nil || bytes.IndexByte(raw, 0) >= 0 {
		return "", false, errors.New("that is no text")
	}
	text := string(bytes.TrimPrefix(raw, bom))
	if !utf8.ValidString(text) {
		var b strings.Builder
		for _, c := range raw {
			b.WriteRune(rune(c))
		}
		text = b.String()
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), true, nil
}

func (s *saver) Store(_ context.Context, path, _, text string) error {
	s.stores++
	was, _ := os.ReadFile(path)
	if s.final && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if bytes.Contains(was, []byte("\r\n")) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	raw := []byte(text)
	if !utf8.Valid(was) {
		raw = latin(text)
	} else if bytes.HasPrefix(was, bom) {
		raw = append(bytes.Clone(bom), raw...)
	}
	return os.WriteFile(path, raw, 0o600)
}

// A text that the client saved is undone on the disk to the very bytes that were there, with the client and without it.
func TestOverlaySavedIsUndoneToTheByte(t *testing.T) {
	word := strings.Repeat("Größere Übungen für Leute, die Wörter mögen.\n", 9)
	for name, was := range map[string]string{
		"lf": "one\ntwo\n", "crlf": "one\r\ntwo\r\n", "mark": "\xef\xbb\xbfone\n", "mark and crlf": "\xef\xbb\xbfone\r\ntwo\r\n",
		"latin-1": string(latin(word)), "no end": "one\r\ntwo", "empty": "", "mixed": "one\r\ntwo\nthree\r\n", "cr": "a\rb\n",
	} {
		for _, final := range []bool{false, true} {
			for _, client := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
					x.write("f", was)
					s, path := &saver{final: final}, x.ws+"/f"
					c := x.through(s)
					must(t, errOf(x.seen(c, path)))
					if _, _, err := c.Write(ctx, engine.WriteArgs{Path: path, Text: "eins\nzwei", Rules: engine.Rules{Meant: true}}); err != nil || s.stores != 1 {
						t.Fatal(err, s.stores)
					}
					after, _ := os.ReadFile(path)
					if !client {
						c = x.call("s")
					}
					must(t, errOf(c.Undo(ctx, engine.RestoreOptions{})))
					x.has("f", was)
					must(t, errOf(c.Redo(ctx, engine.RestoreOptions{})))
					if got, _ := os.ReadFile(path); !final && name != "mixed" && !bytes.Equal(got, after) {
						t.Errorf("redone %q, was %q", got, after)
					}
					if s.stores != 1 {
						t.Error("a restore of what is saved went to the client")
					}
				})
			}
		}
	}
}

// Each change that the client itself saved is taken back, one after the other, and all of a turn at once.
func TestOverlaySavedManyTimes(t *testing.T) {
	for _, client := range []bool{false, true} {
		for name, was := range map[string]string{"crlf": "one\r\ntwo\r\n", "mark": "\xef\xbb\xbfone\n"} {
			x := grow(t, nil)
			x.write("f", was)
			x.write("g", was)
			c := x.through(&saver{})
			c.Turn = "t"
			for _, text := range []string{"2\n", "3\n\n", "", "4\n"} {
				for _, name := range []string{"/f", "/g"} {
					must(t, lastOf(c.Write(ctx, engine.WriteArgs{Path: x.ws + name, Text: text, Rules: engine.Rules{Meant: true}})))
				}
			}
			if !client {
				c.Overlay = nil
			}
			if _, err := c.Restore(ctx, rewindTo("t"), engine.RestoreOptions{}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			x.has("f", was)
			x.has("g", was)
			for range 9 { // the rewind, and the eight
				if _, err := c.Undo(ctx, engine.RestoreOptions{}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			x.has("f", was)
			x.has("g", was)
		}
	}
}

// Saved text is no unsaved text: each change that can't be made in the client is made on the disk where it has the
// same as the client, and refused, with nothing done, where the client has another.
func TestOverlaySavedGoesToTheDisk(t *testing.T) {
	for what, change := range map[string]act{
		"delete":               deletes("d/f"),
		"delete the directory": deletes("d"),
		"move":                 moves("d/f", "to"),
		"move over":            moves("plain", "d/f"),
		"move the directory":   moves("d", "e"),
		"copy": func(ctx context.Context, c *engine.Call, ws string) error {
			was, _ := os.ReadFile(ws + "/d/f")
			err := copies("d", "copy")(ctx, c, ws)
			if got, _ := os.ReadFile(ws + "/copy/f"); string(got) != string(was) {
				err = errors.New("not the same bytes")
			}
			return err
		},
		"remove":  becomes("d/f", engine.After{Kind: guardfs.KindAbsent}),
		"several": writes("x\n", "d/f", "plain", "new"),
		"bytes":   appends("d/f", "\xff"),
		"metadata": becomes("d/f", engine.After{Kind: guardfs.KindFile, Content: []byte("x"),
			Meta: &guardfs.Metadata{Mode: 0o700, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}}),
	} {
		for form, text := range map[string]string{"crlf": "a\r\nb\r\n", "mark": "\xef\xbb\xbfa\n", "lf": "a\n", "empty": ""} {
			for _, typed := range []bool{false, true} {
				t.Run(what+" "+form, func(t *testing.T) {
					t.Parallel()
					x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
					x.write("d/f", text)
					x.write("d/bin", "\x00\x01")
					x.write("plain", "p\n")
					c := x.call("s")
					s := &saver{}
					d := &editor{}
					c.Overlay = d
					sees := true
					d.load = func(ctx context.Context, path string) (string, bool, error) {
						text, held, err := s.Load(ctx, path)
						if strings.HasSuffix(path, "bin") { // one that answers for all
							return "", false, nil
						}
						if typed && !sees && strings.HasSuffix(path, "/d/f") {
							text += "typed\n"
						}
						return text, held, err
					}
					d.store = func(context.Context, string, string, string) error { t.Error("it went to the client"); return nil }
					for _, name := range []string{"/d/f", "/plain", "/d/bin"} {
						must(t, errOf(x.seen(c, x.ws+name)))
					}
					sees = false
					was := x.looks()
					err := change(ctx, c, x.ws)
					if changed := x.looks() != was; changed == (typed && what != "copy") || (err != nil) != typed {
						t.Fatalf("changed %v: %v", changed, err)
					}
					if typed {
						return
					}
					if what == "bytes" { // which the client can't read
						c.Overlay = nil
					}
					if _, err := c.Undo(ctx, engine.RestoreOptions{}); err != nil || x.looks() != was && what != "delete the directory" && what != "move over" {
						t.Errorf("undone: %v\n%s\nwas\n%s", err, x.looks(), was)
					}
				})
			}
		}
	}
}

// Nothing was there, so nothing had to be read, whatever the client says of it.
func TestOverlayOfNothing(t *testing.T) {
	for what, load := range map[string]func(context.Context, string) (string, bool, error){
		"nothing is held": func(context.Context, string) (string, bool, error) { return "", false, nil },
		"no text":         (&saver{}).Load,
	} {
		for _, name := range []string{"new", "x/y/new"} {
			x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
			d := &editor{load: load, store: (&saver{}).Store}
			for _, text := range []string{"one\n", "two\n"} { // its own change counts as seen
				if _, _, err := x.through(d).Write(ctx, engine.WriteArgs{Path: x.ws + "/" + name, Text: text, Rules: engine.Rules{Parents: true}}); err != nil {
					t.Errorf("%s, %s: %v", what, name, err)
				}
				x.has(name, text)
			}
			_, _, err := x.through(d).Edit(ctx, engine.EditArgs{Path: x.ws + "/" + name, Edits: []edit.Edit{{Old: "two", New: "3"}}})
			if err != nil {
				t.Errorf("%s, %s: %v", what, name, err)
			}
			d.load = func(context.Context, string) (string, bool, error) { return "typed\n", true, nil }
			if _, _, err := x.through(d).Write(ctx, engine.WriteArgs{Path: x.ws + "/z/other", Text: "x\n", Rules: engine.Rules{Parents: true}}); !engine.UnsavedText.In(err) {
				t.Errorf("%s: over text that nobody saved: %v", what, err)
			}
		}
	}
}
