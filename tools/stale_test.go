package tools_test

import (
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestMustReadAsItIsNow: with must_read_before_write a file that others changed since it was read is not changed, whatever the call quotes. The
// session's own changes do not make it unread.
func TestMustReadAsItIsNow(t *testing.T) {
	s, root := suite(t, mustRead, tools.Options{})
	file := write(t, filepath.Join(root, "f.txt"), "one\ntwo\nthree\n")
	call(t, s, "Read", map[string]any{"file_path": file})
	edits := map[string]map[string]any{
		"Edit":      {"file_path": file, "old_string": "two", "new_string": "2"},
		"MultiEdit": {"file_path": file, "edits": []any{map[string]any{"old_string": "two", "new_string": "2"}}},
		"Write":     {"file_path": file, "content": "one\n2\nthree\n"},
	}
	for _, now := range []string{"one\ntwo\nthree\nsomebody's own work\n", "two other words\n"} {
		for tool, args := range edits {
			write(t, file, now)
			if p := call(t, s, tool, args); p.Kind() != tools.KindModified || content(t, file) != now {
				t.Errorf("%s of what was not read: %s", tool, mustEncode(t, p))
			}
		}
	}
	call(t, s, "Read", map[string]any{"file_path": file})
	for _, step := range [][2]string{{"two", "2"}, {"2", "two"}, {"other", "more"}} {
		if p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": step[0], "new_string": step[1]}); tools.Refused(p) {
			t.Error(mustEncode(t, p))
		}
	}
}

// TestEditOfAStaleFile: reads are tracked and no more. An edit goes ahead in a file that others changed only where they did not touch its
// place, nor made a place of it.
func TestEditOfAStaleFile(t *testing.T) {
	const was = "a\ntotal = 0\nb\nc\nd\ntotal = 0\nonce\n"
	for name, c := range map[string]struct {
		now, old string
		goes     bool
	}{
		"elsewhere":            {"a\ntotal = 5\nb\nc\nd\ntotal = 0\nonce\n", "once", true},
		"lines before it":      {"new\nnew\n" + was, "once", true},
		"the other copy":       {"a\ntotal = 5\nb\nc\nd\ntotal = 0\nonce\n", "total = 0", false},
		"a copy is made":       {strings.Replace(was, "once", "twice", 1) + "x\ny\nonce\n", "once", false},
		"in its line":          {strings.Replace(was, "once", "once more", 1), "once", false},
		"all of it":            {"once upon a time\n", "once", false},
		"what was never there": {was + "new\n", "new", false},
	} {
		s, root := suite(t, func(fs *config.FS) { fs.TrackReads = true }, tools.Options{})
		file := write(t, filepath.Join(root, "f.txt"), was)
		call(t, s, "Read", map[string]any{"file_path": file})
		write(t, file, c.now)
		p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": c.old, "new_string": "EDITED"})
		if c.goes != (p.Kind() == "edit") || !c.goes && (p.Kind() != tools.KindModified || content(t, file) != c.now) {
			t.Errorf("%s: %s", name, mustEncode(t, p))
		}
		if c.goes && !strings.Contains(mustEncode(t, p), "changed_meanwhile") {
			t.Errorf("%s: nothing is said of what others changed: %s", name, mustEncode(t, p))
		}
	}
}

// TestEditOfUnseenLines: of lines that were not shown, old_string must be exactly what stands there.
func TestEditOfUnseenLines(t *testing.T) {
	const text = "one\ntwo\nsay “three”\nfour\nsay “five”\n"
	for name, c := range map[string]struct {
		read     map[string]any
		old, new string
		refused  bool
	}{
		"seen, alike":      {map[string]any{"limit": 3}, `say "three"`, `say "3"`, false},
		"unseen, exactly":  {map[string]any{"limit": 2}, "say “three”", "say “3”", false},
		"unseen, alike":    {map[string]any{"limit": 2}, `say "three"`, `say "3"`, true},
		"partly unseen":    {map[string]any{"limit": 3}, "four\nsay \"five\"", "4\nsay \"5\"", true},
		"only the changed": {map[string]any{"offset": 4, "limit": 1}, "say \"three\"\nfour", "say \"three\"\n4", false},
		"added, unseen":    {map[string]any{"limit": 2}, `say "five"`, "say \"five\"\nmore", true},
		"all":              {map[string]any{}, `say "five"`, `say "5"`, false},
	} {
		s, root := suite(t, mustRead, tools.Options{})
		file := write(t, filepath.Join(root, "f.txt"), text)
		c.read["file_path"] = file
		call(t, s, "Read", c.read)
		edit := map[string]any{"file_path": file, "old_string": c.old, "new_string": c.new}
		p := call(t, s, "Edit", edit)
		if c.refused != (p.Kind() == tools.KindMustRead) || c.refused != (content(t, file) == text) {
			t.Errorf("%s: %s", name, mustEncode(t, p))
		}
		if r, ok := p.(*tools.Refusal); ok && c.refused {
			call(t, s, r.Next.Tool, r.Next.Args)
			if p := call(t, s, "Edit", edit); tools.Refused(p) {
				t.Errorf("%s, read as told: %s", name, mustEncode(t, p))
			}
		}
	}
}
