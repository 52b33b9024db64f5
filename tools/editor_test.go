package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// An acpClient is an editor as its agent sees it: it answers the disk's text of a file that is not open.
type acpClient struct {
	mu      sync.Mutex
	buffers map[string]string
	asked   []string // "read path" and "write path"
}

func (a *acpClient) Read(_ context.Context, path string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, "read "+path)
	if text, open := a.buffers[path]; open {
		return text, nil
	}
	b, err := os.ReadFile(path)
	return strings.ToValidUTF8(string(b), "\uFFFD"), err
}

func (a *acpClient) Write(_ context.Context, path, text string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, "write "+path)
	a.buffers[path] = text
	return nil
}

func (a *acpClient) has(path string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buffers[path]
}

// editing is a suite, a tree of which the editor has "held" with unsaved text, and calls through it.
func editing(t *testing.T, change func(*config.FS)) (a *acpClient, e *tools.Editor, root string, do func(tool string, args map[string]any) tools.Payload) {
	t.Helper()
	s, root := suite(t, change, tools.Options{})
	for _, name := range []string{"held", "plain", "d/other"} {
		write(t, filepath.Join(root, name), "disk\nneedle\n")
	}
	a = &acpClient{buffers: map[string]string{root + "/held": "buffer\nneedle\n", root + "/new": "only here\n"}}
	e = &tools.Editor{Read: a.Read, Write: a.Write}
	return a, e, root, func(tool string, args map[string]any) tools.Payload {
		t.Helper()
		raw, err := json.Marshal(args)
		must(t, err)
		p, err := s.Call(context.Background(), tools.Call{Tool: tool, Args: raw, Overlay: e})
		if err != nil {
			t.Fatalf("%s %s: %v", tool, raw, err)
		}
		return p
	}
}

// TestEditor: the answers tell of unsaved text. TestTypingAtAnyMoment has the changes.
func TestEditor(t *testing.T) {
	t.Parallel()
	a, _, root, do := editing(t, func(c *config.FS) { c.TrackReads, c.MustReadBeforeWrite = true, true })
	held := root + "/held"
	unsaved := do("Read", map[string]any{"file_path": held})
	if raw := mustEncode(t, unsaved); !strings.Contains(raw, `"buffer_differs_from_disk":true,"shown":"editor"`) || !strings.Contains(unsaved.Text(), "buffer\n") || !strings.Contains(unsaved.Text(), "unsaved") {
		t.Errorf("%s\n%s", raw, unsaved.Text())
	}
	for _, tool := range []struct{ name, args string }{
		{"Edit", `"old_string":"buffer","new_string":"edited"`},
		{"MultiEdit", `"edits":[{"old_string":"edited","new_string":"2"},{"old_string":"2\n","new_string":"3\n"}]`},
		{"Write", `"content":"whole\nneedle\n"`},
	} {
		var args map[string]any
		must(t, json.Unmarshal([]byte("{"+tool.args+"}"), &args))
		args["file_path"] = held
		if p := do(tool.name, args); tools.Refused(p) || !strings.Contains(mustEncode(t, p), `"in_editor":true`) || !strings.Contains(p.Text(), "editor") {
			t.Error(p.Text())
		}
	}
	if has(t, held, "disk\nneedle\n"); a.has(held) != "whole\nneedle\n" {
		t.Errorf("the editor has %q", a.has(held))
	}

	// Unsaved text that a search did not see is named, and searched where it is asked for.
	grep := func(args map[string]any) tools.Payload {
		args["pattern"] = "needle"
		return do("Grep", args)
	}
	for _, p := range []tools.Payload{grep(map[string]any{}), grep(map[string]any{"output_mode": "content", "path": root}), do("Glob", map[string]any{"pattern": "*"})} {
		if raw := mustEncode(t, p); !strings.Contains(p.Text(), "unsaved text of 1 file") || !strings.Contains(p.Text(), held) || !strings.Contains(raw, `"unsaved":{"count":1,"how":`) {
			t.Errorf("%s\n%s", p.Text(), raw)
		}
	}
	if p := grep(map[string]any{"path": root + "/d"}); strings.Contains(p.Text(), "unsaved") {
		t.Error(p.Text())
	}
	if p := do("Grep", map[string]any{"pattern": "whole|disk", "path": held, "output_mode": "content"}); !strings.Contains(p.Text(), "whole") || strings.Contains(p.Text(), "disk") || strings.Contains(p.Text(), "unsaved") {
		t.Error(p.Text())
	}
	a.buffers[held] = "disk\nneedle\n"
	if p := grep(map[string]any{}); strings.Contains(p.Text(), "unsaved") {
		t.Error(p.Text())
	}
	// A file that only the editor has can be read there.
	if p := do("Read", map[string]any{"file_path": root + "/new"}); !strings.Contains(p.Text(), "only here") {
		t.Error(p.Text())
	}
}

// TestEditorOffers: a method that a client does not offer is never called, and no read of the one place is followed by a write to the other.
func TestEditorOffers(t *testing.T) {
	t.Parallel()
	for name, offered := range map[string]struct{ read, write bool }{"both": {true, true}, "read": {true, false}, "write": {false, true}, "none": {}} {
		a, e, root, do := editing(t, nil)
		if !offered.read {
			e.Read = nil
		}
		if !offered.write {
			e.Write = nil
		}
		p := do("Read", map[string]any{"file_path": root + "/held"})
		if got := strings.Contains(p.Text(), "buffer"); got != offered.read {
			t.Errorf("%s: %s", name, p.Text())
		}
		from := map[bool]string{true: "buffer", false: "disk"}[offered.read]
		p = do("Edit", map[string]any{"file_path": root + "/held", "old_string": from, "new_string": "x"})
		disk, buffer := content(t, root+"/held"), a.has(root+"/held")
		want := map[string][2]string{
			"both":  {"disk\nneedle\n", "x\nneedle\n"},
			"read":  {"disk\nneedle\n", "buffer\nneedle\n"}, // refused
			"write": {"x\nneedle\n", "buffer\nneedle\n"}, "none": {"x\nneedle\n", "buffer\nneedle\n"},
		}[name]
		if [2]string{disk, buffer} != want || (p.Kind() == "conflict") != (name == "read") {
			t.Errorf("%s: %q %q, %s", name, disk, buffer, p.Text())
		}
		if p := do("Edit", map[string]any{"file_path": root + "/plain", "old_string": "disk", "new_string": "x"}); p.Kind() != "edit" || content(t, root+"/plain") != "x\nneedle\n" {
			t.Errorf("%s: %s", name, p.Text())
		}
		for _, what := range a.asked {
			if strings.HasPrefix(what, "read") && !offered.read || strings.HasPrefix(what, "write") && name != "both" {
				t.Errorf("%s: %s", name, what)
			}
		}
	}
}

var editorHistories = flag.Int("editors", 4, "histories of TestTypingAtAnyMoment; thousands in a soak")

// A typist is an editor whose user types, saves, closes and reloads, and beside it a shell that writes to the disk, at any moment that
// the model can tell from the next: before the editor answers, while somebody is asked, and between calls. Every line is another one, so
// that what is lost shows. Between the last answer and the write that follows it the protocol has no guard: there the user types
// only in an editor that merges, as Zed does.
type typist struct {
	*rand.Rand
	root          string
	disk, buffers map[string]string // as they should be
	answered      map[string]string // the last text that was told of a buffer or file
	known         map[string]string // what the agent has read, or left there
	wasDisk, left map[string]bool   // each text that the disk had, and that the agent left somewhere
	saves, merges bool
	reloads       bool // what the disk gets is loaded at once where nothing is unsaved
	rate          float64
	lines, writes int
	undoes        bool
	broken        []string // how the property was broken
}

var typedPaths = []string{"a", "b", "new"}

func (u *typist) line(who string) string { u.lines++; return fmt.Sprintf("%s%d\n", who, u.lines) }

func (u *typist) put(path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		panic(err)
	}
	u.landed(path, text)
}

// landed says that the disk has a text now.
func (u *typist) landed(path, text string) {
	clean := u.wasDisk[u.buffers[path]]
	u.disk[path], u.wasDisk[text] = text, true
	if _, open := u.buffers[path]; open && clean && u.reloads {
		u.buffers[path] = text
	}
}

// acts has something happen, or not.
func (u *typist) acts(path string) {
	if u.Float64() > u.rate {
		return
	}
	text, open := u.buffers[path]
	switch u.IntN(6) {
	case 0, 1, 2: // types
		if !open {
			text = u.disk[path]
		}
		u.buffers[path] = text + u.line("typed")
	case 3:
		if open {
			u.put(path, text)
		}
	case 4: // closes, or loads what is on the disk
		delete(u.buffers, path)
	case 5:
		u.put(path, u.disk[path]+u.line("shell"))
	}
}

func (u *typist) Read(_ context.Context, path string) (string, error) {
	u.acts(path)
	text, open := u.buffers[path]
	if !open {
		if text, open = u.disk[path]; !open {
			delete(u.answered, path)
			return "", os.ErrNotExist
		}
	}
	u.answered[path] = text
	return text, nil
}

func (u *typist) Write(_ context.Context, path, text string) error {
	u.writes++
	now := u.buffers[path]
	if _, open := u.buffers[path]; !open {
		now = u.disk[path]
	}
	if now != u.answered[path] {
		u.breaks("%s: %q is written over %q, and %q was read", path, text, now, u.answered[path])
	}
	if base, _ := unsent(text); base != now && !(u.undoes && u.undone(now, text)) {
		u.breaks("%s: %q does not come of %q", path, text, now)
	}
	u.left[text], u.known[path] = true, text
	if u.merges && u.IntN(2) == 0 {
		text += u.line("typed")
	}
	if u.buffers[path] = text; u.saves {
		u.put(path, text)
	}
	u.answered[path] = text
	return nil
}

func (u *typist) breaks(format string, args ...any) {
	u.broken = append(u.broken, fmt.Sprintf(format, args...))
}

// unsent takes from a text the last line that the agent has added: its lines begin with "agent".
func unsent(text string) (base, line string) {
	last, at := 0, -1
	for i := 0; i < len(text); {
		end := i + strings.Index(text[i:], "\n") + 1
		var n int
		if _, err := fmt.Sscanf(text[i:end], "agent%d", &n); err == nil && n > last {
			last, at, line = n, i, text[i:end]
		}
		i = end
	}
	if at < 0 {
		return text, ""
	}
	return text[:at] + text[at+len(line):], line
}

// history is a random one of calls and of what happens meanwhile; through is what lies between the engine and the editor.
func history(t *testing.T, seed uint64, through func(u *typist) *tools.Editor) (broken []string, calls map[string]int) {
	r := rand.New(rand.NewPCG(seed, 40))
	u := &typist{Rand: r, disk: map[string]string{}, buffers: map[string]string{}, answered: map[string]string{}, wasDisk: map[string]bool{},
		known: map[string]string{}, left: map[string]bool{},
		saves: r.IntN(2) == 0, merges: r.IntN(3) == 0, reloads: r.IntN(2) == 0}
	asked := r.IntN(2) == 0
	s, root := suite(t, func(c *config.FS) {
		c.RequireApproval, c.CheckpointBeforeMutation = asked, true
		c.TrackReads, c.MustReadBeforeWrite = true, true
	}, tools.Options{Approver: tools.ApproverFunc(func(_ context.Context, q tools.Question) (tools.Answer, error) {
		u.acts(q.Paths[0])
		return tools.Answer{Decision: tools.Approved}, nil
	})})
	u.root, calls = root, map[string]int{}
	u.put(root+"/a", "one\n")
	u.put(root+"/b", "one\n")
	ctx := context.Background()
	for range 40 {
		path := root + "/" + typedPaths[r.IntN(len(typedPaths))]
		u.rate = 0.5
		u.acts(path)
		u.rate = []float64{0, 0.1, 0.4}[r.IntN(3)]
		if r.IntN(4) > 0 { // else it works on what it knows
			c, err := tools.Do[*tools.Content](ctx, s, tools.ReadArgs{FilePath: path}, tools.Call{Overlay: through(u)})
			if err == nil {
				u.known[path] = u.disk[path]
				if c.Shown == "editor" {
					u.known[path] = u.answered[path]
				}
				u.shows(path, c)
				calls["Read shows "+c.Shown]++
			}
			u.settled("Read", path, err == nil, true)
			u.acts(path)
		}
		before, as, line := u.writes, tools.Call{Overlay: through(u)}, u.line("agent")
		var err error
		inEditor, what := false, ""
		switch r.IntN(4) {
		case 0:
			u.undoes = true
			_, err = s.Undo(ctx, as)
			u.undoes, what = false, "undo"
		case 1:
			var done *tools.Write
			if done, err = tools.Do[*tools.Write](ctx, s, tools.WriteArgs{FilePath: path, Content: u.known[path] + line}, as); err == nil {
				inEditor = done.InEditor
			}
			what = "Write"
		case 2, 3:
			first, _, _ := strings.Cut(u.known[path], "\n")
			var done *tools.Edit
			if done, err = tools.Do[*tools.Edit](ctx, s, tools.EditArgs{FilePath: path, OldString: first + "\n", NewString: first + "\n" + line}, as); err == nil {
				inEditor = done.InEditor
			}
			what = "Edit"
		}
		if no, ok := errors.AsType[*tools.Refusal](err); err != nil && !ok {
			t.Fatal(err)
		} else if ok {
			calls[what+" "+no.Kind()]++
		} else {
			calls[fmt.Sprint(what, " in the editor ", inEditor)]++
		}
		u.settled(what, path, err == nil, inEditor)
		if err != nil && u.writes > before {
			u.breaks("a refused %s of %s was written to the editor", what, path)
		}
	}
	return u.broken, calls
}

// shows checks the answer of a Read.
func (u *typist) shows(path string, c *tools.Content) {
	want := u.disk[path]
	if c.Shown == "editor" {
		want = u.answered[path]
	} else if is, open := u.buffers[path]; open && !u.wasDisk[is] {
		u.breaks("Read shows the disk of %s, of which the editor has %q", path, is)
	}
	for _, l := range strings.Split(strings.TrimSuffix(want, "\n"), "\n") {
		if !strings.Contains(c.Text(), "→"+l) && want != "" {
			u.breaks("Read of %s shows %q, not %q", path, c.Text(), want)
		}
	}
}

// settled compares the disk with what it should be after a call of the agent, and takes it over.
func (u *typist) settled(what, path string, done, inEditor bool) {
	for _, name := range typedPaths {
		p := u.root + "/" + name
		b, err := os.ReadFile(p)
		was, there := u.disk[p]
		if there == (err == nil) && string(b) == was {
			continue
		}
		if is, open := u.buffers[p]; open && !u.wasDisk[is] {
			u.breaks("%s of %s: the disk changes under the editor's %q", what, p, is)
		}
		switch base, _ := unsent(string(b)); {
		case what == "undo" && done:
			if !u.undone(was, string(b)) {
				u.breaks("an undo makes %q of %q", b, was)
			}
		case !done || inEditor || p != path:
			u.breaks("%s of %s: the disk has %q, and had %q", what, p, b, was)
		case base != was && (there || what != "Write"): // what is not there need not have been read
			u.breaks("%s of %s: the disk has %q, which does not come of %q", what, p, b, was)
		}
		u.left[string(b)], u.known[p] = true, string(b)
		if delete(u.disk, p); err == nil {
			u.landed(p, string(b))
		}
	}
}

// undone says that an undo may make text of now: the agent left it, or no line of others is touched.
func (u *typist) undone(now, text string) bool {
	return u.left[now] || slices.Equal(others(now), others(text))
}

// others are the lines that are not the agent's.
func others(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, "agent") })
}

// TestTypingAtAnyMoment: at whatever moment the user and a shell act, a change is made of the very text that is there, in the one place where it was read.
func TestTypingAtAnyMoment(t *testing.T) {
	t.Parallel()
	all := map[string]int{}
	for seed := range uint64(*editorHistories) {
		broken, calls := history(t, seed, func(u *typist) *tools.Editor { return &tools.Editor{Read: u.Read, Write: u.Write} })
		for _, b := range broken {
			t.Errorf("seed %d: %s", seed, b)
		}
		for what, n := range calls {
			all[what] += n
		}
	}
	for _, what := range []string{"Read shows editor", "Read shows disk", "Write in the editor true", "Write in the editor false", "Edit in the editor true",
		"Edit in the editor false", "Edit modified_since_read", "undo in the editor false"} {
		if all[what] == 0 {
			t.Errorf("the histories have no %s: %v", what, all)
		}
	}
}

// An engine that looks once, and one that reads the disk and writes to the editor or the other way round, are found out.
func TestTypingFindsABadEngine(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(u *typist) *tools.Editor{
		"looks once": func(u *typist) *tools.Editor {
			first := map[string]string{}
			return &tools.Editor{Write: u.Write, Read: func(ctx context.Context, path string) (string, error) {
				if text, ok := first[path]; ok {
					u.acts(path)
					return text, nil
				}
				text, err := u.Read(ctx, path)
				if err == nil {
					first[path] = text
				}
				return text, err
			}}
		},
		"reads the disk": func(u *typist) *tools.Editor {
			return &tools.Editor{Write: u.Write, Read: func(_ context.Context, path string) (string, error) {
				u.acts(path)
				b, err := os.ReadFile(path)
				return string(b), err
			}}
		},
	} {
		var broken []string
		for seed := uint64(0); seed < 20 && broken == nil; seed++ {
			broken, _ = history(t, seed, through)
		}
		if broken == nil {
			t.Errorf("an engine that %s is not found out", name)
		}
	}
}
