package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

// Today's policy holds for the names in old checkpoints too.
func TestListNamesNothingDenied(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	on := func(c *config.FS) { c.CheckpointBeforeMutation = true }
	s, root := suite(t, on, tools.Options{DataDir: data})
	for _, name := range []string{"secret", "open"} {
		does(t, s, "Write", map[string]any{"file_path": root + "/" + name, "content": "x"})
	}
	must(t, s.Close())
	s, _ = suite(t, func(c *config.FS) {
		on(c)
		c.WorkspaceRoot, c.AllowPaths, c.DenyPaths = root, []string{root + "/**"}, []string{root + "/secret"}
	}, tools.Options{DataDir: data})
	for _, x := range []struct {
		args         map[string]any
		rows, denied int
	}{
		{map[string]any{}, 1, 1},
		{map[string]any{"path_contains": "OPEN"}, 1, 0},
		{map[string]any{"path_contains": "secret"}, 0, 0}, // nor is a guess answered
		{map[string]any{"file_path": root + "/secret"}, 0, 0},
		{map[string]any{"file_path": root + "/open"}, 1, 0},
	} {
		p := call(t, s, "checkpoints_list", x.args)
		out, err := tools.Encode(p)
		must(t, err)
		list, ok := p.(*tools.Checkpoints)
		if !ok || list.Count != x.rows || len(list.Checkpoints) != x.rows || list.Denied != x.denied || strings.Contains(string(out)+p.Text(), "secret") {
			t.Errorf("%v: %s\n%s", x.args, out, p.Text())
		}
	}
}

// A path is found however it is spelled: through a link above it, as a link itself, with a slash at its end, and when it is gone. Where a denied
// link leads is not told.
func TestListFindsAPathByItsOtherNames(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	on := func(c *config.FS) { c.CheckpointBeforeMutation = true }
	s, root := suite(t, on, tools.Options{DataDir: data})
	must(t, os.MkdirAll(root+"/real/sub", 0o700))
	for link, to := range map[string]string{"link": "real", "hidden": "real", "real/b": "a", "real/c": "gone"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip("SKIPPED: no symbolic links:", err)
		}
	}
	writes := func(path string) {
		t.Helper()
		does(t, s, "Write", map[string]any{"file_path": root + "/" + path, "content": "x"})
	}
	counts := func(want int, paths ...string) {
		t.Helper()
		for _, path := range paths {
			p := call(t, s, "checkpoints_list", map[string]any{"file_path": root + "/" + path})
			if list, ok := p.(*tools.Checkpoints); !ok || list.Count != want {
				t.Errorf("%s, want %d: %s", path, want, p.Text())
			}
		}
	}
	writes("link/a")
	writes("real/gone")
	must(t, os.Remove(root+"/real/gone"))
	counts(1, "real/a", "link/a", "link/b", "real/a/", "link/a/", "real/gone", "link/gone", "hidden/a")
	writes("real/d")
	must(t, errors.Join(os.Remove(root+"/real/d"), os.Symlink("a", root+"/real/d")))
	counts(2, "link/d") // the file that was there, and the one that it leads to
	counts(0, "link/none")
	// The link leads elsewhere by now: where it was a directory of its own before counts as well.
	must(t, errors.Join(os.Remove(root+"/link"), os.Mkdir(root+"/link", 0o700)))
	writes("link/a")
	counts(1, "link/a")
	must(t, errors.Join(os.RemoveAll(root+"/link"), os.Symlink("real", root+"/link")))
	counts(2, "link/a")
	must(t, s.Close())
	s, _ = suite(t, func(c *config.FS) {
		on(c)
		c.WorkspaceRoot, c.AllowPaths, c.DenyPaths = root, []string{root + "/**"}, []string{root + "/hidden/x", root + "/*/hid", root + "/[h]idden"}
	}, tools.Options{DataDir: data})
	counts(0, "hidden/a")
	counts(1, "real/a")
}

// A rewind does not say that all is as it was when a shell removed what the session changed in an earlier turn: it names the checkpoint that brings it back, in the
// turn in which that happened and in the next.
func TestRewindNamesWhatOthersChanged(t *testing.T) {
	for _, next := range []string{"t1", "t2"} {
		for _, edited := range []bool{false, true} {
			s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation = true }, tools.Options{})
			f := write(t, root+"/f", "old\n")
			write(t, root+"/g", "1\n")
			callAs(t, s, "s", "t0", "Edit", map[string]any{"file_path": f, "old_string": "old", "new_string": "kept"})
			callAs(t, s, "s", "t1", "Read", map[string]any{"file_path": f})
			if edited {
				callAs(t, s, "s", "t1", "Edit", map[string]any{"file_path": root + "/g", "old_string": "1", "new_string": "2"})
			}
			must(t, os.Remove(f))
			p := callAs(t, s, "s", next, "checkpoint_restore", map[string]any{"turn": "t1", "dry_run": true})
			if d, ok := p.(*tools.CheckpointRestore); !ok || len(d.Outside) > 0 != (next == "t2") {
				t.Fatalf("dry run: %s", mustEncode(t, p))
			}
			p = callAs(t, s, "s", next, "checkpoint_restore", map[string]any{"turn": "t1"})
			r, ok := p.(*tools.CheckpointRestore)
			if !ok || r.Unchanged == edited || len(r.Outside) != 1 || r.Outside[0].SourcePath != f || !strings.Contains(p.Text(), r.Outside[0].ID) || strings.Contains(p.Text(), "everything is as it was") {
				t.Fatalf("edited %v, in %s: %s\n%s", edited, next, mustEncode(t, p), p.Text())
			}
			if p := callAs(t, s, "s", next, "checkpoint_restore", map[string]any{"id": r.Outside[0].ID}); tools.Refused(p) || content(t, f) != "kept\n" {
				t.Fatalf("it does not come back: %s", mustEncode(t, p))
			}
			p = callAs(t, s, "s", "t3", "checkpoint_restore", map[string]any{"turn": "t3", "dry_run": true})
			if r, ok := p.(*tools.CheckpointRestore); !ok || len(r.Outside) != 0 {
				t.Errorf("what came back before is not outside any more: %s", mustEncode(t, p))
			}
		}
	}
}

var distant = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

// TestOutsideChangesOfEveryKind: a shell's changes of mode, link and owner are recorded too, once, and can be undone.
func TestOutsideChangesOfEveryKind(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no modes")
	}
	for what, do := range map[string]func(f string) error{
		"more open":   func(f string) error { return os.Chmod(f, 0o755) },
		"closed":      func(f string) error { return os.Chmod(f, 0o600) },
		"gone":        os.Remove,
		"a directory": func(f string) error { os.Remove(f); return os.Mkdir(f, 0o755) },
		"a file on top": func(f string) error {
			os.RemoveAll(filepath.Dir(f))
			return os.WriteFile(filepath.Dir(f), []byte("x"), 0o600)
		},
		"none: a touch":    func(f string) error { return os.Chtimes(f, distant, distant) },
		"none: same again": func(f string) error { return os.WriteFile(f, []byte("2\n"), 0o644) },
	} {
		s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation = true }, tools.Options{})
		f := write(t, root+"/d/f", "1\n")
		callAs(t, s, "s", "t1", "Edit", map[string]any{"file_path": f, "old_string": "1", "new_string": "2"})
		was, err := os.Stat(f)
		must(t, err)
		must(t, do(f))
		var ids []string
		for _, turn := range []string{"t2", "t3"} {
			ids = nil
			list := callAs(t, s, "s", turn, "checkpoints_list", map[string]any{"file_path": f}).(*tools.Checkpoints)
			for _, c := range list.Checkpoints {
				if c.Reason == "external" {
					ids = append(ids, c.ID)
				}
			}
		}
		if none := strings.HasPrefix(what, "none"); none && ids != nil || !none && len(ids) != 1 {
			t.Errorf("%s: recorded as %v", what, ids)
			continue
		}
		if ids == nil {
			continue
		}
		if now, err := os.Lstat(f); err != nil || !now.Mode().IsRegular() {
			os.RemoveAll(filepath.Dir(f))
		}
		if p := callAs(t, s, "s", "t4", "checkpoint_restore", map[string]any{"id": ids[0]}); tools.Refused(p) {
			t.Errorf("%s: %s", what, mustEncode(t, p))
		} else if now, err := os.Stat(f); err != nil || now.Mode() != was.Mode() || content(t, f) != "2\n" {
			t.Errorf("%s: it is not back: %v %v\n%s", what, now, err, mustEncode(t, p))
		}
	}
}

// A name that no call can say is not offered as the one that was meant.
func TestNameThatIsNotUTF8(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	if err := os.WriteFile(root+"/caf\xe9.txt", []byte("x"), 0o644); err != nil {
		t.Skip("SKIPPED: the file system takes UTF-8 only: ", err)
	}
	for _, tool := range []string{"Edit", "Read"} {
		args := map[string]any{"file_path": root + "/caf\uFFFD.txt"}
		if tool == "Edit" {
			args["old_string"], args["new_string"] = "x", "y"
		}
		p := call(t, s, tool, args)
		if r, ok := p.(*tools.Refusal); !ok || r.Reason != tools.KindNotFound || r.Next != nil || !strings.Contains(r.Message, "not UTF-8") {
			t.Errorf("%s: %s", tool, mustEncode(t, p))
		}
		args["file_path"] = root + "/cafe.txt"
		if p := call(t, s, tool, args); strings.Contains(mustEncode(t, p), "nearest") {
			t.Errorf("%s offers what can't be sent: %s", tool, mustEncode(t, p))
		}
	}
}

// callAs is call for one principal, session and turn.
func callAs(t testing.TB, s *tools.Suite, who, turn, tool string, args map[string]any) tools.Payload {
	t.Helper()
	raw, err := json.Marshal(args)
	must(t, err)
	p, err := s.Call(context.Background(), tools.Call{Principal: who, Session: who, Turn: turn, Tool: tool, Args: raw})
	if err != nil {
		t.Fatalf("%s %s: the host is broken: %v", tool, raw, err)
	}
	return p
}

// TestNothingOfOthersIsShown: text of others that is gone from a file shows in no answer about a session's own history: not as a conflict, not as what was
// there before a change outside, not by restoring that.
func TestNothingOfOthersIsShown(t *testing.T) {
	const secret = "SECRET-of-bob"
	s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation = true }, tools.Options{})
	f := write(t, root+"/f", "1\n")
	do := func(who, turn, tool string, args map[string]any) tools.Payload {
		p := callAs(t, s, who, turn, tool, args)
		if who == "alice" && strings.Contains(mustEncode(t, p)+p.Text(), secret) {
			t.Errorf("%s %v shows it: %s", tool, args, mustEncode(t, p))
		}
		return p
	}
	do("alice", "t1", "Edit", map[string]any{"file_path": f, "old_string": "1", "new_string": "2"})
	do("bob", "t1", "Edit", map[string]any{"file_path": f, "old_string": "2", "new_string": secret})
	write(t, f, "out\n")
	for _, args := range []map[string]any{{"dry_run": true}, {"dry_run": true, "on_conflict": "merge"}, {}} {
		args["since"] = "1h"
		p := do("alice", "t1", "checkpoint_restore", args)
		if p.Kind() != tools.KindConflict || !strings.Contains(p.Text(), "-2\n+out") {
			t.Errorf("%v: the conflict must show what became of this session's own: %s", args, mustEncode(t, p))
		}
	}
	var external string
	list := do("alice", "next", "checkpoints_list", map[string]any{"file_path": f}).(*tools.Checkpoints)
	for _, c := range list.Checkpoints {
		if c.Reason == "external" {
			external = c.ID
		}
	}
	if external == "" {
		t.Fatalf("the change outside is not on record: %s", mustEncode(t, list))
	}
	for _, against := range []string{"now", "after"} {
		do("alice", "next", "checkpoint_diff", map[string]any{"id": external, "against": against})
	}
	if p := do("alice", "next", "checkpoint_restore", map[string]any{"id": external}); tools.Refused(p) {
		t.Errorf("the external change can't be taken back: %s", mustEncode(t, p))
	}
	if got, err := os.ReadFile(f); err != nil || string(got) != "2\n" {
		t.Errorf("what was there before the change outside is %q for this session (%v)", got, err)
	}
}

// Paths that are denied by now are counted, not named, whatever a restore answers; and whether there are any is not told to who guesses a name.
func TestRestoreNamesNothingDenied(t *testing.T) {
	data := t.TempDir() + "/data"
	on := func(c *config.FS) { c.CheckpointBeforeMutation, c.CreateParents = true, true }
	s, root := suite(t, on, tools.Options{DataDir: data})
	ids := map[string]string{}
	for _, name := range []string{"a", "sec/key", "b"} {
		p := call(t, s, "Write", map[string]any{"file_path": root + "/" + name, "content": "x"})
		if tools.Refused(p) {
			t.Fatal(p.Text())
		}
		ids[name] = *p.(*tools.Write).CheckpointID
	}
	must(t, s.Close())
	s, _ = suite(t, func(c *config.FS) {
		on(c)
		c.WorkspaceRoot, c.AllowPaths, c.DenyPaths = root, []string{root + "/**"}, []string{root + "/sec/**"}
	}, tools.Options{DataDir: data})
	for _, x := range []struct {
		args   map[string]any
		kind   string
		denied string
	}{
		{map[string]any{"since": "1h", "dry_run": true}, "checkpoint_restore", `"denied":1`},
		{map[string]any{"since": "1h", "on_conflict": "force", "dry_run": true}, "checkpoint_restore", `"denied":1`},
		{map[string]any{"id": ids["sec/key"]}, tools.KindPathDenied, `"denied":1`},
		{map[string]any{"since": "1h", "paths": []string{root + "/zz"}}, tools.KindBadRequest, "1 more"},
		{map[string]any{"since": "1h", "on_conflict": "skip", "dry_run": true}, "checkpoint_restore", `"denied":1`},
		{map[string]any{"id": ids["sec/key"], "on_conflict": "skip"}, "checkpoint_restore", `"denied":1`},
		{map[string]any{"since": "1h"}, "checkpoint_restore", `"denied":1`},
	} {
		p := call(t, s, "checkpoint_restore", x.args)
		if out := mustEncode(t, p) + p.Text(); p.Kind() != x.kind || strings.Contains(out, "sec") || !strings.Contains(out, x.denied) {
			t.Errorf("%v: %s", x.args, out)
		}
	}
	for name, there := range map[string]bool{"a": false, "b": false, "sec/key": true} {
		if _, err := os.Stat(root + "/" + name); (err == nil) != there {
			t.Errorf("%s: there %v, want %v", name, err == nil, there)
		}
	}
	for _, tool := range []string{"checkpoint_restore", "checkpoint_diff"} {
		answers := map[string]bool{}
		for _, name := range []string{"key", "no"} {
			p := call(t, s, tool, map[string]any{"since": "1h", "paths": []string{root + "/sec/" + name}})
			answers[p.Kind()+strings.ReplaceAll(mustEncode(t, p), "sec/"+name, "")] = true
		}
		if len(answers) != 1 {
			t.Errorf("%s tells whether a denied path is in the history: %v", tool, answers)
		}
	}
}

// Undo and redo are of the newest change or of none: where that is out of reach they refuse, tell how many paths it has and name none, and leave
// the older ones alone. With on_conflict skip it counts as undone, and its paths stay as they are.
func TestUndoNeverTakesAnOlderChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		newer  []string // edited after a.txt
		deny   string   // since a restart
		linked bool     // a link to outside is in the place of its directory
		scoped bool     // the caller may reach a.txt only
	}{
		"a link to outside in the place of its directory": {newer: []string{"dd/x"}, linked: true},
		"several that are closed since a restart":         {newer: []string{"dd/x", "dd/y", "dd/z"}, deny: "dd/**"},
		"closed by the file's name":                       {newer: []string{"dd/x"}, deny: "**/x"},
		"out of the caller's scope":                       {newer: []string{"dd/x"}, scoped: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			on := func(fs *config.FS) { fs.CheckpointBeforeMutation = true }
			s, root := suite(t, on, tools.Options{DataDir: data})
			for _, f := range append([]string{"a.txt"}, c.newer...) {
				write(t, root+"/"+f, "1\n")
				does(t, s, "Edit", map[string]any{"file_path": root + "/" + f, "old_string": "1", "new_string": "2"})
			}
			if c.linked {
				must(t, os.Rename(root+"/dd", root+"/ee"))
				must(t, os.Symlink(filepath.Dir(root), root+"/dd"))
			}
			must(t, s.Close())
			s, _ = suite(t, func(fs *config.FS) {
				on(fs)
				if fs.WorkspaceRoot, fs.AllowPaths = root, []string{root + "/**"}; c.deny != "" {
					fs.DenyPaths = []string{root + "/" + c.deny}
				}
			}, tools.Options{DataDir: data})
			var scope *dialect.Scope
			if c.scoped {
				scope = &dialect.Scope{Readable: []string{root + "/a.txt"}, Writable: []string{root + "/a.txt"}}
			}
			restore := func(args map[string]any) tools.Payload {
				return callWithin(t, s, scope, "checkpoint_restore", args)
			}
			for _, args := range []map[string]any{{}, {"dry_run": true}, {"on_conflict": "force"}, {"on_conflict": "merge"}} {
				args["id"] = "undo"
				p := restore(args)
				if raw := mustEncode(t, p); p.Kind() != "path_denied" || !strings.Contains(raw, `"denied":1`) ||
					!strings.Contains(p.Text(), "the newest change lies where this session may not go") || strings.Contains(raw, root) {
					t.Errorf("%v: %s", args, raw)
				}
			}
			for range c.newer {
				has(t, root+"/a.txt", "2\n")
				if p := restore(map[string]any{"id": "undo", "on_conflict": "skip"}); tools.Refused(p) {
					t.Fatal(p.Text())
				}
			}
			has(t, root+"/a.txt", "2\n")
			if p := restore(map[string]any{"id": "undo"}); tools.Refused(p) {
				t.Fatal(p.Text())
			}
			has(t, root+"/a.txt", "1\n")
			for _, f := range c.newer {
				if got, err := os.ReadFile(root + "/" + f); err == nil && string(got) != "2\n" {
					t.Errorf("%s has %q", f, got)
				}
			}
		})
	}
}

// A redo is of the newest undo or of none.
func TestRedoNeverTakesAnOlderUndo(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = true }, tools.Options{})
	for _, f := range []string{"x.txt", "a.txt"} {
		write(t, root+"/"+f, "1\n")
		does(t, s, "Edit", map[string]any{"file_path": root + "/" + f, "old_string": "1", "new_string": "2"})
	}
	for range 2 { // of a.txt, then of x.txt
		does(t, s, "checkpoint_restore", map[string]any{"id": "undo"})
	}
	scope := &dialect.Scope{Readable: []string{root + "/a.txt"}, Writable: []string{root + "/a.txt"}}
	if p := callWithin(t, s, scope, "checkpoint_restore", map[string]any{"id": "redo"}); p.Kind() != "path_denied" || !strings.Contains(p.Text(), "newest change") {
		t.Error(p.Text())
	}
	has(t, root+"/a.txt", "1\n")
}

// Names stay in their line, whoever made them, and thousands of files that were the same already are a number. Some clients show the model the text alone, so it
// has all that a rewind goes by.
func TestTextsOfCheckpoints(t *testing.T) {
	list := &tools.Checkpoints{Count: 2, Checkpoints: []tools.CheckpointRow{
		{ID: "ck-1H0", Reason: "Write\nck-2VR \x1b[31m", SourcePath: "/w/a", Existed: true, Turn: "t\n1", Label: "before", Pinned: true},
		{ID: "ck-2VR", Reason: "external", SourcePath: "/w/b", Existed: true},
	}}
	done := &tools.CheckpointRestore{Skipped: []tools.Left{{Path: "/w/\x1b\nb", Why: "why"}}, DirsMade: []string{"/w/\r"}, DirsGone: []string{"/w/\t"},
		DirsKept: []tools.Left{{Path: "/w/\n", Why: "why"}}}
	for range 3000 {
		done.Files = append(done.Files, tools.RestoredFile{Path: "/w/same", Action: "unchanged"})
	}
	done.Files = append(done.Files,
		tools.RestoredFile{Path: "/w/a\nremoved /w/b +0 -0", Action: "restored", Added: 1, Removed: 2},
		tools.RestoredFile{Path: "/w/a", Action: "restored", LinksBroken: 1},
		tools.RestoredFile{Path: "/w/a", Action: "merged", MetadataSet: []string{"mode", "owner"}, MetadataStays: []string{"group"}, MetadataDropped: []string{"xattr:user.x"}})
	for want, p := range map[string]tools.Payload{
		`ck-1H0 1970-01-01T00:00:00Z "Write\nck-2VR \x1b[31m" /w/a [turn "t\n1", label before, pinned]
ck-2VR 1970-01-01T00:00:00Z external /w/b`: list,
		`restored "/w/a\nremoved /w/b +0 -0" +1 -2
restored /w/a +0 -0; 1 other hard links keep what it was
merged /w/a +0 -0; also restored: mode, owner; changed by others since, and left so: group; could not be restored: xattr:user.x
and 3000 more unchanged
skipped "/w/\x1b\nb" (why)
made the directory "/w/\r"
removed the directory "/w/\t"
kept "/w/\n" (why)`: done,
	} {
		if got := p.Text(); got != want {
			t.Errorf("got %s", got)
		}
	}
}

func TestParseTime(t *testing.T) {
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("SKIPPED: no time zones here")
	}
	now := time.Date(2026, 11, 22, 3, 4, 5, 678, york)
	for in, want := range map[string]string{
		"2026-11-21T10:00:00Z":                  "2026-11-21T05:00:00-05:00",
		"2026-11-21T10:00:00.25+02:00":          "2026-11-21T03:00:00.25-05:00",
		"2026-11-21T10:00:00-0500":              "2026-11-21T10:00:00-05:00",
		"2026-11-21 10:00:00 -0500":             "2026-11-21T10:00:00-05:00",
		"2026-11-21 10:00:00-05:00":             "2026-11-21T10:00:00-05:00",
		"2026-11-21 10:00:00 Z":                 "2026-11-21T05:00:00-05:00",
		"2026-11-21 10:00:00":                   "2026-11-21T10:00:00-05:00",
		"2026-11-21T10:00:00.5":                 "2026-11-21T10:00:00.5-05:00",
		" 2026-07-21 10:00 ":                    "2026-07-21T10:00:00-04:00",
		"2026-11-21T10:00":                      "2026-11-21T10:00:00-05:00",
		"2026-07-21":                            "2026-07-21T00:00:00-04:00",
		"2026-11-01":                            "2026-11-01T00:00:00-04:00", // the day of the change, before it
		"2026-11-01 02:00":                      "2026-11-01T02:00:00-05:00",
		"2026-03-08 03:00":                      "2026-03-08T03:00:00-04:00",
		"2h":                                    "2026-11-22T01:04:05.000000678-05:00",
		"1d":                                    "2026-11-21T03:04:05.000000678-05:00",
		"2w":                                    "2026-11-08T03:04:05.000000678-05:00",
		"0s":                                    "2026-11-22T03:04:05.000000678-05:00",
		now.Format(time.RFC3339Nano):            "2026-11-22T03:04:05.000000678-05:00",
		now.Format("2006-01-02 15:04:05 -0700"): "2026-11-22T03:04:05-05:00",
	} {
		got, err := tools.ParseTime(in, now)
		if got := got.In(york).Format(time.RFC3339Nano); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "yesterday", "-2h", "5", "2026-13-01", "10:00", "2026-11-21 10:00:00 EST", "9999999999w"} {
		if got, err := tools.ParseTime(in, now); err == nil {
			t.Errorf("%q is taken for %v", in, got)
		}
	}
	if got, err := tools.ParseTime("0001-01-01T00:00:00Z", now); err != nil || got.IsZero() {
		t.Errorf("the zero time: %v, %v", got, err)
	}
}
