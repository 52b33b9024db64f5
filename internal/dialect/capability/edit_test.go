package capability

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// asked keeps the questions that it is asked, and does something before it approves.
type asked struct {
	questions []approval.Question
	before    func()
}

func (a *asked) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	if a.questions = append(a.questions, q); a.before != nil {
		a.before()
	}
	return approval.Answer{Decision: approval.Approved}, nil
}

// tree is what the files of the room hold.
func (r room) tree(t *testing.T, names ...string) string {
	t.Helper()
	var out []string
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(r.root, name))
		must(t, err)
		out = append(out, string(b))
	}
	return strings.Join(out, " ")
}

const editAll = `{"path":"R","pattern":"one","replace":"two","replace_all":true}`

// Several files are one question, one checkpoint and one undo.
func TestEditIsOneChange(t *testing.T) {
	t.Parallel()
	who := &asked{}
	r := open(t, func(c *config.Config, h *engine.Host) {
		c.Tools.FS.RequireApproval, c.Tools.FS.CheckpointBeforeMutation, h.Approver = true, true, who
	})
	names := []string{"a", "b", "d/c"}
	for _, name := range names {
		r.write(t, name, "one "+name)
	}
	must(t, os.Chmod(r.root+"/b", 0o750))
	got := r.call(t, "filesystem.edit", strings.Replace(editAll, `"replace_all":true`, `"expected_replacements":2`, 1))
	if got["type"] != "CountMismatch" || r.tree(t, names...) != "one a one b one d/c" || len(who.questions) > 0 {
		t.Fatalf("a wrong count: %v", got)
	}
	got = r.call(t, "filesystem.edit", strings.Replace(editAll, "}", `,"dry_run":true}`, 1))
	if got["applied"] != "preview" || r.tree(t, names...) != "one a one b one d/c" || len(who.questions) > 0 {
		t.Fatalf("a preview: %v", got)
	}
	got = r.call(t, "filesystem.edit", editAll)
	if got["applied"] != "full" || r.tree(t, names...) != "two a two b two d/c" {
		t.Fatalf("%v", got)
	}
	if len(who.questions) != 1 || len(who.questions[0].Paths) != 3 || strings.Count(who.questions[0].Diff, "+two") != 3 {
		t.Errorf("asked %+v", who.questions)
	}
	if i, err := os.Stat(r.root + "/b"); err != nil || i.Mode().Perm() != 0o750 {
		t.Errorf("its mode is %v, %v", i.Mode(), err)
	}
	c := &engine.Call{Session: "s", Tool: "undo", Client: engine.Client{Approver: who}}
	_, err := engine.Do(t.Context(), r.e, c, engine.Operation[any, *dialect.Object]{Changes: true,
		Run: func(ctx context.Context, _ any) (*dialect.Object, error) {
			_, err := c.Undo(ctx, engine.RestoreOptions{})
			return &dialect.Object{}, err
		},
		Refuse: func(context.Context, *engine.Call, any, *engine.Refusal) (*dialect.Object, string) { return nil, "" }})
	if err != nil || r.tree(t, names...) != "one a one b one d/c" {
		t.Errorf("one undo leaves %q, %v", r.tree(t, names...), err)
	}
}

// A file that changed while a person looked at the diff is not the one that was approved.
func TestEditOfWhatMovedOn(t *testing.T) {
	t.Parallel()
	who := &asked{}
	r := open(t, func(c *config.Config, h *engine.Host) { c.Tools.FS.RequireApproval, h.Approver = true, who })
	for _, c := range []struct{ args, later, want string }{
		{editAll, "one one", "ApprovalStale"},
		{strings.Replace(editAll, `"replace_all":true`, `"expected_replacements":2`, 1), "one one", "CountMismatch"},
		{editAll, "zero", ""}, // it does less than was approved
	} {
		r.write(t, "a", "one")
		r.write(t, "b", "one")
		who.before = func() { r.write(t, "b", c.later) }
		got := r.call(t, "filesystem.edit", c.args)
		if kind, _ := got["type"].(string); kind != c.want {
			t.Errorf("%s: %v", c.args, got)
		}
		want := "one " + c.later
		if c.want == "" {
			want = "two " + c.later
		}
		if now := r.tree(t, "a", "b"); now != want {
			t.Errorf("%s leaves %q", c.args, now)
		}
	}
}

// A file that may not be changed is left alone and told; alone it is refused.
func TestEditSkips(t *testing.T) {
	t.Parallel()
	r := open(t, func(c *config.Config, _ *engine.Host) {
		c.Tools.FS.TrackReads, c.Tools.FS.MustReadBeforeWrite = true, true
	})
	r.write(t, "in/read", "one")
	r.write(t, "in/unread", "one")
	r.write(t, "in/changed", "one")
	r.write(t, "out/read", "one")
	r.write(t, "in/closed", "one")
	for _, name := range []string{"in/read", "in/changed", "out/read", "in/closed"} {
		if got := r.call(t, "filesystem.read", `{"path":"R/`+name+`"}`); got["content"] != "one" {
			t.Fatal(got)
		}
	}
	r.write(t, "in/changed", "one and more")
	must(t, os.Chmod(r.root+"/in/closed", 0o444))
	scope := &dialect.Scope{Readable: []string{r.root}, Writable: []string{r.root + "/in"}}
	edits := func(args string) map[string]any {
		t.Helper()
		return r.as(t, dialect.Call{Session: "s", Tool: "filesystem.edit", Scope: scope, Args: json.RawMessage(args)})
	}
	for name, want := range map[string]string{"in/unread": "ReadRequired", "in/changed": "FileModified",
		"out/read": "PathOutOfScope", "in/closed": "PermissionDenied"} {
		if got := edits(strings.Replace(editAll, `"R"`, `"R/`+name+`"`, 1)); got["type"] != want {
			t.Errorf("%s alone: %v", name, got)
		}
	}
	got := edits(editAll)
	kinds := map[string]any{}
	for _, s := range got["skipped"].([]any) {
		s := s.(map[string]any)
		kinds[strings.TrimPrefix(s["path"].(string), r.root+"/")] = s["type"]
	}
	if got["applied"] != "partial" || got["total_replacements"] != 1.0 || len(kinds) != 4 ||
		kinds["in/unread"] != "ReadRequired" || kinds["in/changed"] != "FileModified" ||
		kinds["out/read"] != "PathOutOfScope" || kinds["in/closed"] != "PermissionDenied" {
		t.Errorf("%v", got)
	}
	if now := r.tree(t, "in/read", "in/unread", "in/changed", "out/read", "in/closed"); now != "two one one and more one one" {
		t.Errorf("left is %q", now)
	}
}

// A text replaces no file that is none, and nothing in one is edited. Base64 says that bytes are meant.
func TestTextDoesNotReplaceWhatIsNone(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	for name, raw := range map[string]string{
		"a.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00", "a.gz": "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03IHDR",
		"a.db": "SQLite format 3\x00\x10\x00\x01\x01\x00 IHDR", "a.out": "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00 IHDR",
	} {
		r.write(t, name, raw)
		for tool, args := range map[string]string{
			"filesystem.write": `{"path":"R/` + name + `","content":"text"}`,
			"filesystem.edit":  `{"path":"R/` + name + `","pattern":"IHDR","replace":"x","replace_all":true}`,
		} {
			if got := r.call(t, tool, args); got["type"] != "NotText" || r.tree(t, name) != raw {
				t.Errorf("%s of %s: %v", tool, name, got)
			}
		}
		if got := r.call(t, "filesystem.write", `{"path":"R/`+name+`","content":"dGV4dA==","encoding":"binary"}`); got["type"] != nil || r.tree(t, name) != "text" {
			t.Errorf("bytes over %s: %v", name, got)
		}
	}
	got := r.call(t, "filesystem.edit", `{"path":"R","pattern":"text","replace":"x","replace_all":true}`)
	if got["applied"] != "full" {
		t.Errorf("texts by now: %v", got)
	}
}
