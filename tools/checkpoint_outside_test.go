package tools_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/tools"
)

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
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
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

// What a shell did to a file besides its content is recorded too, once, and can be taken back.
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
		if err != nil {
			t.Fatal(err)
		}
		if err := do(f); err != nil {
			t.Fatal(err)
		}
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

// A file in the place of a directory on the way is named, with a call that leaves that path alone.
func TestRestoreBelowAFile(t *testing.T) {
	for _, how := range []string{"refuse", "merge", "force"} {
		s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation = true }, tools.Options{})
		f := write(t, root+"/d/f", "1\n")
		callAs(t, s, "s", "t1", "Edit", map[string]any{"file_path": f, "old_string": "1", "new_string": "2"})
		if err := os.RemoveAll(root + "/d"); err != nil {
			t.Fatal(err)
		}
		write(t, root+"/d", "in the way")
		p := callAs(t, s, "s", "t1", "checkpoint_restore", map[string]any{"turn": "t1", "on_conflict": how})
		r, ok := p.(*tools.Refusal)
		if !ok || r.FilePath != f || r.Next == nil || strings.Contains(r.Message, `""`) || !strings.Contains(r.Message, f) {
			t.Errorf("%s: %s", how, mustEncode(t, p))
			continue
		}
		if p := callAs(t, s, "s", "t1", r.Next.Tool, r.Next.Args); tools.Refused(p) {
			t.Errorf("%s: the next call: %s", how, mustEncode(t, p))
		}
	}
}

// The oldest time there is is a time.
func TestSinceEver(t *testing.T) {
	s, root := suite(t, func(c *config.FS) { c.CheckpointBeforeMutation = true }, tools.Options{})
	call(t, s, "Write", map[string]any{"file_path": root + "/f", "content": "x"})
	p := call(t, s, "checkpoint_diff", map[string]any{"since": "0001-01-01T00:00:00Z"})
	if d, ok := p.(*tools.CheckpointDiff); !ok || len(d.Files) != 1 {
		t.Error(mustEncode(t, p))
	}
	p = call(t, s, "checkpoints_list", map[string]any{"until": "0001-01-01T00:00:00Z"})
	if l, ok := p.(*tools.Checkpoints); !ok || l.Count != 0 {
		t.Error(mustEncode(t, p))
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
