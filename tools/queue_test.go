package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/tools"
)

// With the queue as approver a change waits until it is approved elsewhere; what changed meanwhile is stale; and no tool reaches
// the questions and answers.
func TestQueueApproves(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	q := queue.Open(filepath.Join(data, "approvals"))
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval, fs.AllowPaths = true, nil }, tools.Options{Approver: q, DataDir: data})
	f := write(t, root+"/a\u202etxt", "one\n")
	answer := func(edit func(), d approval.Decision, reason string) tools.Payload {
		t.Helper()
		answered := make(chan tools.Payload)
		go func() {
			answered <- call(t, s, "Edit", map[string]any{"file_path": f, "old_string": "one", "new_string": "two"})
		}()
		var list []queue.Entry
		for len(list) == 0 {
			time.Sleep(time.Millisecond)
			var err error
			if list, err = q.List(false); err != nil {
				t.Error(err)
				break
			}
		}
		shown, err := q.Get(list[0].ID)
		if err != nil {
			t.Error(err)
		}
		if card := approval.Card(shown.Question, 100); strings.Contains(card, "\u202e") || !strings.Contains(card, `a\u{202e}txt`) ||
			!strings.Contains(card, "+two") {
			t.Errorf("%q", card)
		}
		p := call(t, s, "Read", map[string]any{"file_path": filepath.Join(data, "approvals", list[0].ID+".question")})
		if p.Kind() != tools.KindPathDenied {
			t.Errorf("a tool reads the question: %s", p.Text())
		}
		edit()
		if err := q.Saw(list[0].ID, queue.By{Name: "ann"}); err != nil {
			t.Error(err)
		}
		if _, err := q.Answer(list[0].ID, d, queue.By{Name: "ann"}, reason); err != nil {
			t.Error(err)
		}
		return <-answered
	}
	p := answer(func() {}, approval.Denied, "not that file")
	if p.Kind() != tools.KindApprovalDenied || !strings.Contains(p.Text(), "not that file") || content(t, f) != "one\n" {
		t.Errorf("%s %s", p.Kind(), p.Text())
	}
	p = answer(func() { os.WriteFile(f, []byte("one\nforeign\n"), 0o600) }, approval.Approved, "")
	if p.Kind() != tools.KindApprovalStale || content(t, f) != "one\nforeign\n" {
		t.Errorf("%s %s", p.Kind(), p.Text())
	}
	p = answer(func() {}, approval.Approved, "")
	if p.Kind() != "edit" || content(t, f) != "two\nforeign\n" {
		t.Errorf("%s %s", p.Kind(), p.Text())
	}
}
