package tools_test

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// The text of an Edit shows the lines that it made where its caller can't know them: when old_string
// was not found as it was sent, in a preview, and when the result looks odd. The patch has a
// line of context only where lines were added, or removed.
func TestEditTellsTheChangeOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file string
		args       map[string]any
		shows      string // in the text, behind its first line
		patch      []string
	}{
		{"exact", "a\nb\nc\nd\n", map[string]any{"old_string": "c", "new_string": "C"}, "", []string{"-c", "+C"}},
		{"not as sent", "a\n\tb\nc\nd\n", map[string]any{"old_string": "a\n    b", "new_string": "a\n    B"},
			"     2→\tB", []string{"-\tb", "+\tB"}},
		{"preview", "a\nb\nc\nd\n", map[string]any{"old_string": "b\n", "new_string": "", "dry_run": true},
			"     1→a\n     2→c", []string{" a", "-b", " c"}},
		{"odd", "a\nx = [1]\nc\n", map[string]any{"old_string": "[1]", "new_string": "[1"}, "     2→x = [1\nlook at it again: its [] balanced before and don't now", []string{"-x = [1]", "+x = [1"}},
		{"at the end", "a\nb\nc", map[string]any{"old_string": "c", "new_string": "C"}, "",
			[]string{"-c", `\ No newline at end of file`, "+C", `\ No newline at end of file`}},
		{"before the end", "a\nb\nc\nd", map[string]any{"old_string": "c", "new_string": "C"}, "",
			[]string{"-c", "+C"}},
		{"added", "a\nb\nc\nd\n", map[string]any{"old_string": "b\nc", "new_string": "b\nx\nc"}, "", []string{" b", "+x", " c"}},
	} {
		s, root := suite(t, nil, tools.Options{})
		c.args["file_path"] = write(t, root+"/f", c.file)
		e, ok := call(t, s, "Edit", c.args).(*tools.Edit)
		if !ok || len(e.Patch) != 1 {
			t.Errorf("%s: %+v", c.name, e)
			continue
		}
		_, shown, _ := strings.Cut(e.Text(), "\n")
		if shown != c.shows {
			t.Errorf("%s: shows %q, want %q", c.name, shown, c.shows)
		}
		h, lines := e.Patch[0], strings.Split(strings.TrimSuffix(c.file, "\n"), "\n")
		if strings.Join(h.Lines, "\n") != strings.Join(c.patch, "\n") || lines[h.OldStart-1] != h.Lines[0][1:] || h.OldLines > len(lines) {
			t.Errorf("%s: patch %+v, want %q", c.name, h, c.patch)
		}
	}
}

// TestHashOfAnEditWhereAsked: an edit tells the hash of what it made to a call that works with hashes.
func TestHashOfAnEditWhereAsked(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	f := root + "/a.txt"
	wrote := payloadMap(t, call(t, s, "Write", map[string]any{"file_path": f, "content": "one\n"}))
	edits := map[string]any{"Edit": map[string]any{"old_string": "one", "new_string": "two"},
		"MultiEdit": map[string]any{"edits": []any{map[string]any{"old_string": "two", "new_string": "one"}}}}
	hash := wrote["sha256"]
	for _, tool := range []string{"Edit", "MultiEdit", "Edit"} {
		args := maps.Clone(edits[tool].(map[string]any))
		args["file_path"], args["expected_hash"] = f, hash
		got := payloadMap(t, call(t, s, tool, args))
		if hash = got["sha256"]; hash == nil {
			t.Fatalf("%s: %v", tool, got)
		}
	}
	got := payloadMap(t, call(t, s, "MultiEdit", map[string]any{"file_path": f, "edits": edits["MultiEdit"].(map[string]any)["edits"]}))
	if got["kind"] != "multi_edit" || got["sha256"] != nil {
		t.Errorf("%v", got)
	}
}

// TestOneWarning: what looks broken, and a name that is there in other letters, is done and warned of.
func TestOneWarning(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	write(t, root+"/Makefile", "all: a\n\tcc a\n\tld a\n")
	write(t, root+"/Read.me", "x\n")
	write(t, root+"/a.txt", "one\ntwo\nthree\n")
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"Edit", map[string]any{"file_path": root + "/Makefile", "old_string": "\tcc a", "new_string": "    cc b"}, "recipe"},
		{"Write", map[string]any{"file_path": root + "/READ.ME", "content": "x\n"}, "Read.me"},
		{"Edit", map[string]any{"file_path": root + "/makefile", "old_string": "", "new_string": "x\n"}, "Makefile"},
		{"Write", map[string]any{"file_path": root + "/a.txt", "content": "one\ntwo\n3"}, "line break"},
		{"Write", map[string]any{"file_path": root + "/b.txt", "content": "one"}, ""},
	} {
		got := payloadMap(t, call(t, s, c.tool, c.args))
		warning, _ := got["warning"].(string)
		if (warning == "") != (c.want == "") || !strings.Contains(warning, c.want) || got["error"] != nil || len(warning) > 120 {
			t.Errorf("%s %v: %q (%v)", c.tool, c.args, warning, got["error"])
		}
	}
}

// TestAccidents: what looks like one is refused unless the call says that it is meant.
func TestAccidents(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	for _, c := range []struct {
		tool string
		args map[string]any
	}{
		{"Write", map[string]any{"content": ""}},
		{"Write", map[string]any{"content": "a()\n// ... rest of the code unchanged\n"}},
		{"Edit", map[string]any{"old_string": "a()\nb()\nc()\n", "new_string": ""}},
		{"Edit", map[string]any{"old_string": "b()\nc()", "new_string": "// ... existing code ..."}},
	} {
		write(t, root+"/a.js", "a()\nb()\nc()\n")
		c.args["file_path"] = root + "/a.js"
		got := payloadMap(t, call(t, s, c.tool, c.args))
		if got["guard"] == nil {
			t.Errorf("%s %v: %v", c.tool, c.args, got)
		}
		c.args["acknowledge"] = true
		if got := payloadMap(t, call(t, s, c.tool, c.args)); got["error"] != nil {
			t.Errorf("%s %v: %v", c.tool, c.args, got)
		}
	}
}

// TestTwoReadings: where two things can be meant, the refusal has both as calls, and each can be sent.
func TestTwoReadings(t *testing.T) {
	t.Parallel()
	for i, want := range []string{"a = 1\np = '\n'\nb = 2\n", "a = 1\n" + `p = '\n'\n` + "b = 2\n"} {
		s, root := suite(t, nil, tools.Options{})
		write(t, root+"/a.py", "a = 1\nb = 2\n")
		p := call(t, s, "Edit", map[string]any{"file_path": root + "/a.py", "old_string": `a = 1\nb = 2`, "new_string": `a = 1\np = '\n'\nb = 2`})
		got := payloadMap(t, p)
		readings, _ := got["readings"].([]any)
		if len(readings) != 2 || got["next"] != nil || got["resend"] != nil || !strings.Contains(p.Text(), "reading 2") {
			t.Fatalf("%v", got)
		}
		next := readings[i].(map[string]any)
		if got := payloadMap(t, call(t, s, next["tool"].(string), next["args"].(map[string]any))); got["error"] != nil || content(t, root+"/a.py") != want {
			t.Errorf("reading %d: %v, the file is %q", i+1, got, content(t, root+"/a.py"))
		}
	}
}

// TestTextOfAnotherFile: a text that stands in one other file that the session has read is answered
// with the edit of that file. What was not read, has changed, or may not be read is not looked at.
func TestTextOfAnotherFile(t *testing.T) {
	t.Parallel()
	const old = "def handle(request, queue):\n    return queue.take(request)"
	edit := func(s *tools.Suite, path string) map[string]any {
		return payloadMap(t, call(t, s, "Edit", map[string]any{"file_path": path, "old_string": old, "new_string": old + "  # once"}))
	}
	for name, c := range map[string]struct {
		read, change []string
		here         string
		next         bool
		readings     int
	}{
		"read":            {read: []string{"b.py"}, next: true},
		"not read":        {},
		"two have it":     {read: []string{"b.py", "c.py"}},
		"changed since":   {read: []string{"b.py"}, change: []string{"b.py"}},
		"something alike": {read: []string{"b.py"}, here: "def handlee(request, queue):\n    return queue.take(request)\n", readings: 2},
	} {
		s, root := suite(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true }, tools.Options{})
		write(t, root+"/a.py", c.here+"x = 1\n")
		for _, f := range []string{"b.py", "c.py"} {
			write(t, root+"/"+f, "import y\n\n"+old+"\n")
		}
		for _, f := range append(c.read, "a.py") {
			call(t, s, "Read", map[string]any{"file_path": root + "/" + f})
		}
		for _, f := range c.change {
			write(t, root+"/"+f, "import z\n\n"+old+"\n")
		}
		got := edit(s, root+"/a.py")
		next, _ := got["next"].(map[string]any)
		if c.next != (next["tool"] == "Edit") || c.next != (got["in"] != nil) {
			t.Errorf("%s: %v", name, got)
		}
		if readings, _ := got["readings"].([]any); len(readings) != c.readings {
			t.Errorf("%s: %v", name, got)
		}
		if c.next {
			if done := payloadMap(t, call(t, s, "Edit", next["args"].(map[string]any))); done["file_path"] != root+"/b.py" || done["error"] != nil {
				t.Errorf("%s: %v", name, done)
			}
		}
	}
}

// TestNextOfWhatRunsCode: a repaired edit of a file that runs code later is offered with the word that
// it is asked about; that of another file without.
func TestNextOfWhatRunsCode(t *testing.T) {
	t.Parallel()
	for name, exec := range map[string]string{".github/workflows/ci.yml": "ask", "ci.yml": "", ".github/workflows/a.yml": "allow"} {
		s, root := suite(t, func(fs *config.FS) { fs.ProtectExec = cmp.Or(exec, "ask") }, tools.Options{})
		write(t, root+"/"+name, "steps:\n  - run: make everything\n")
		r := call(t, s, "Edit", map[string]any{"file_path": root + "/" + name, "old_string": "- runs: make everything", "new_string": "- runs: make it"}).(*tools.Refusal)
		if r.Next == nil || r.Next.Tool != "Edit" || strings.Contains(r.Hint, "is asked about") != (exec == "ask") {
			t.Errorf("%s, %s: %s %v", name, exec, r.Hint, r.Next)
		}
	}
}

// TestNoReadOfWhatWasRead: where nothing is like old_string, a session that has read the file is not told
// to read it again; one that has not, has read a part, or whose file has changed since, is.
func TestNoReadOfWhatWasRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read   map[string]any
		change string
		next   bool
	}{
		"read":     {map[string]any{}, "", false},
		"not read": {nil, "", true},
		"in part":  {map[string]any{"limit": 1}, "", true},
		"changed":  {map[string]any{}, "x = 1\ny = 3\n", true},
	} {
		s, root := suite(t, func(fs *config.FS) { fs.TrackReads = true }, tools.Options{})
		f := root + "/a.py"
		write(t, f, "x = 1\ny = 2\n")
		if c.read != nil {
			c.read["file_path"] = f
			call(t, s, "Read", c.read)
		}
		if c.change != "" {
			write(t, f, c.change)
		}
		r := call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "(nothing ~ like ~ it)", "new_string": "z"}).(*tools.Refusal)
		if (r.Next != nil) != c.next || r.Hint == "" {
			t.Errorf("%s: %v, %s", name, r.Next, r.Hint)
		}
	}
}

// TestRefusalsStaySmall: what an edit is refused with stays within 4 KB, whatever was sent.
func TestRefusalsStaySmall(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "function \"f%d\"(a,b){return a.x>b.y?a:\"\\\"\"+g(b,%d)};", i, i*i)
	}
	lines := strings.ReplaceAll(b.String(), ";", ";\n")
	write(t, root+"/min.js", b.String())
	write(t, root+"/lines.js", lines)
	for _, name := range []string{"min.js", "lines.js"} {
		text := content(t, root+"/"+name)
		for _, n := range []int{60, 1500, 3000} {
			if name == "lines.js" && n == 3000 {
				continue
			}
			old := strings.ReplaceAll(text[5000:5000+n], "return", "retrun")
			for _, new := range []string{"x", old + "\n// more"} {
				for tool, args := range map[string]map[string]any{
					"Edit":      {"old_string": old, "new_string": new},
					"MultiEdit": {"edits": []any{map[string]any{"old_string": "\"f1\"", "new_string": "f1"}, map[string]any{"old_string": old, "new_string": new}}},
				} {
					args["file_path"] = root + "/" + name
					p := call(t, s, tool, args)
					if raw, _ := tools.Encode(p); p.Kind() != "no_match" || len(raw) > 4<<10 {
						t.Errorf("%s %s of %d bytes: %s, %d bytes", tool, name, n, p.Kind(), len(raw))
					}
				}
			}
		}
	}
}

// TestAlikeHereOrExactThere: a line that is nearly what is sent, in the file that was named, and the text itself in
// another file that was read, are two readings. Neither is sent by itself.
func TestAlikeHereOrExactThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ here, there, old, new string }{
		{"{\n  \"name\": \"a\",\n  \"version\": \"1.2.3\"\n}\n", "{\n  \"name\": \"b\",\n  \"version\": \"1.2.4\"\n}\n", `"version": "1.2.4"`, `"version": "1.3.0"`},
		{"version = 1.2.3\nname = a\n", "version = 1.2.4\nname = b\n", "version = 1.2.4", "version = 1.3.0"},
		{"请注意，先备份数据库\n", "请注意,先备份数据库\n", "请注意,先备份数据库", "请注意,先停止服务"},
		{"# note: see the table below\n", "// note: see the table below\n", "// note: see the table below", "// note: see the list below"},
	} {
		s, root := suite(t, func(fs *config.FS) { fs.TrackReads = true }, tools.Options{})
		write(t, root+"/a.txt", c.here)
		write(t, root+"/b.txt", c.there)
		for _, f := range []string{"b.txt", "a.txt"} {
			call(t, s, "Read", map[string]any{"file_path": root + "/" + f})
		}
		got := payloadMap(t, call(t, s, "Edit", map[string]any{"file_path": root + "/a.txt", "old_string": c.old, "new_string": c.new}))
		readings, _ := got["readings"].([]any)
		if len(readings) != 2 || got["next"] != nil {
			t.Errorf("%q: %v", c.old, got)
			continue
		}
		for i, want := range []string{"/a.txt", "/b.txt"} {
			args := readings[i].(map[string]any)["args"].(map[string]any)
			if args["file_path"] != root+want {
				t.Errorf("%q: reading %d is of %v", c.old, i, args["file_path"])
			}
			if done := payloadMap(t, call(t, s, "Edit", args)); done["error"] != nil {
				t.Errorf("%q: reading %d: %v", c.old, i, done)
			}
		}
	}
}

// TestNamesThatLookAlike: a new file, or a new directory on the way to it, beside one whose name looks the same is
// warned of by what finds a file that is asked for.
func TestNamesThatLookAlike(t *testing.T) {
	t.Parallel()
	for there, made := range map[string]string{
		"Gro\u0308ße.txt":        "Größe.txt",
		"\u1112\u1161\u11ab.txt": "한.txt",
		"Shot 9.22\u202fPM.txt":  "Shot 9.22 PM.txt",
		"a\u00a0b.txt":           "a b.txt",
		"a\u200bb.txt":           "ab.txt",
		"notes.txt ":             "notes.txt",
		"it’s.txt":               "it's.txt",
		"2–3.txt":                "2-3.txt",
		"README.TXT":             "readme.txt",
		"Gro\u0308ße/a.txt":      "Größe/b.txt",
		"my docs/x/a.txt":        "my\u00a0docs/y/b.txt",
	} {
		s, root := suite(t, nil, tools.Options{})
		write(t, root+"/"+there, "a\n")
		got := payloadMap(t, call(t, s, "Write", map[string]any{"file_path": root + "/" + made, "content": "b\n", "create_parents": true}))
		if warning, _ := got["warning"].(string); !strings.Contains(warning, "there is ") || got["error"] != nil {
			t.Errorf("%q beside %q: %v", made, there, got)
		}
		if other := payloadMap(t, call(t, s, "Write", map[string]any{"file_path": root + "/other.txt", "content": "b\n"})); other["warning"] != nil {
			t.Errorf("beside %q: %v", there, other)
		}
	}
}
