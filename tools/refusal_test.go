package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/fleet"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/outage"
	"moltisfs/internal/policy"
	"moltisfs/internal/refusal"
	"moltisfs/internal/session"
	"moltisfs/readers"
)

// refusals pairs errors of the rooms below, and of the system, with the kind that a model is told. Golden calls have the others.
var refusals = []struct {
	err  error
	kind string
}{
	{guardfs.ErrPseudo, KindPathDenied},
	{&guardfs.TooLargeError{Path: "/f", Size: 3 << 20, Max: 1 << 20}, KindTooLarge},
	{&guardfs.ConflictError{Path: "/f", Why: guardfs.Replaced}, KindConflict},
	{&guardfs.LockedError{}, KindConflict},
	{fleet.ErrFenced, KindIOError},
	{fmt.Errorf("%w (%w)", outage.OfDatabase(syscall.ECONNREFUSED), fleet.ErrFenced), KindIOError},
	{engine.Refuse(engine.OtherView, "/f", "g"), KindConflict},
	{&policy.ChainError{Path: "/f", Operation: "rm", Err: syscall.EIO}, KindPolicyError},
	{guardfs.ErrUnwatchable, KindUnsupported},
	{notSaved(syscall.ENOSPC), KindIOError},
	{notSaved(&checkpoint.DiskFullError{Err: syscall.ENOSPC}), KindIOError},
	{&checkpoint.DiskFullError{Err: syscall.ENOSPC}, KindIOError},
	{notSaved(&checkpoint.GoneError{Dir: "/d"}), KindIOError},
	{notSaved(checkpoint.ErrBusy), KindIOError},
	{&checkpoint.GoneError{Dir: "/d"}, KindIOError},
	{checkpoint.ErrBusy, KindIOError},
	{checkpoint.ErrReadOnly, KindIOError},
	{checkpoint.ErrInUse, KindIOError},
	{notSaved(&checkpoint.FullError{Bytes: 2, Max: 1}), KindIOError},
	{&edit.TooManyError{}, KindLimit},
	{&edit.TooLargeError{}, KindLimit},
	{&readers.Limit{}, KindLimit},
	{&readers.TooLarge{}, KindTooLarge},
	{&readers.Damaged{}, KindUnsupported},
	{&readers.Encrypted{}, KindUnsupported},
	{&checkpoint.CorruptError{}, KindIOError},
	{syscall.EACCES, KindPermissionDenied},
	{syscall.EPERM, KindPermissionDenied},
	{syscall.ENAMETOOLONG, KindBadRequest},
	{syscall.ENOSPC, KindIOError},
	{syscall.EROFS, KindPermissionDenied},
	{syscall.EIO, KindIOError},
	{context.DeadlineExceeded, KindDeadline},
	{context.Canceled, KindDeadline},
}

func notSaved(err error) error { return engine.Refuse(engine.NotSaved, "", err) }

// failed is the refusal of an Edit that fails with err; nil where the host is broken.
func (s *Suite) failed(args *EditArgs, err error) (r *Refusal) {
	//nolint:errcheck // that of a broken host
	engine.Do(context.Background(), s.engine, &engine.Call{Tool: "Edit"}, engine.Operation[any, answer]{
		Run: func(context.Context, any) (answer, error) { return answer{}, err },
		Refuse: func(_ context.Context, c *engine.Call, _ any, no *engine.Refusal) (answer, string) {
			r = s.refuse(c, "Edit", args, no)
			return answer{Payload: r}, r.Reason
		}})
	return r
}

// TestWhatGoesWrongHasItsKind: each error from below has its kind, a sentence and a
// next move, also when it comes wrapped; what has none is an io_error.
func TestWhatGoesWrongHasItsKind(t *testing.T) {
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot = t.TempDir()
	s, err := Open(cfg, Options{DataDir: t.TempDir() + "/data"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	args := &EditArgs{FilePath: cfg.Tools.FS.WorkspaceRoot + "/f"}
	for _, c := range refusals {
		r := s.failed(args, fmt.Errorf("doing it: %w", c.err))
		if r == nil || r.Reason != c.kind || r.Message == "" || r.Hint == "" {
			t.Errorf("%T %v: %+v; want %s", c.err, c.err, r, c.kind)
		}
	}
	if r := s.failed(args, errors.New("what nobody thought of")); r == nil || r.Reason != KindIOError || strings.Contains(r.Message, "nobody") {
		t.Errorf("an unknown error became %+v", r)
	}
	for _, host := range []error{engine.ErrHost, ErrClosed} {
		if r := s.failed(args, fmt.Errorf("doing it: %w", host)); r != nil {
			t.Errorf("%v became %+v", host, r)
		}
	}
}

// The tools and arguments that hints name are there, and whatever else looks like one is a key of the configuration.
func TestHintsNameWhatThereIs(t *testing.T) {
	known := map[string]bool{"line": true}
	for _, d := range Definitions() {
		known[d.Name] = true
		var schema struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(d.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for name := range schema.Properties {
			known[name] = true
		}
	}
	for _, name := range refusal.Names {
		if !known[name] {
			t.Errorf("no tool is called, or takes, %s", name)
		}
	}
	keys, err := os.ReadFile("../moltis.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`\{?\b(\w+[_.]\w+|Glob|Grep|checkpoint)\b`)
	condition := regexp.MustCompile(`\{\w+=[^}]*\}`)
	for _, c := range engine.Causes {
		row := refusal.Of(c)
		for _, w := range word.FindAllString(condition.ReplaceAllString(row.Hint+" "+row.Person, ""), -1) {
			if !strings.HasPrefix(w, "{") && !strings.Contains(string(keys), w) && !known[w] && !slices.Contains([]string{"shift_jis", "checkpoint"}, w) {
				t.Errorf("a hint of %s names %s", c.Name, w)
			}
		}
	}
}

// A single page is written as one.
func TestRestOfADocument(t *testing.T) {
	r := &Refusal{}
	facts := &engine.Refusal{Facts: &session.Seen{Unit: "page", Lines: 100, Ranges: []session.Range{{First: 1, Last: 99}}}}
	(&about{Refusal: facts, path: "/f"}).readRest(r, true)
	if r.Next == nil || r.Next.Args["pages"] != "100" {
		t.Errorf("%+v", r.Next)
	}
}

// TestOddNames: names that can't be read as they are, told once and in ASCII; a root's own name and
// names of one script are not told.
func TestOddNames(t *testing.T) {
	t.Parallel()
	got := engine.OddNames("/z\u200b", slices.Values([]string{"/z\u200b/ok.txt", "/z\u200b/a\u202egnp.exe",
		"/z\u200b/a\u202egnp.exe", "/z\u200b/ünï.txt", "/z\u200b/日本.txt", "/z\u200b/p\u0430.py", "/z\u200b/e\x1b[2J"}))
	if want := []string{`"a\u202egnp.exe"`, `"p\u0430.py"`, `"e\x1b[2J"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	const line = "\n[names that are not what they seem: \"a\\u202eb\"]"
	odd := []string{`"a\u202eb"`}
	if g := (&Glob{Paths: []string{"/a"}, OddNames: odd}).Text(); g != "/a"+line {
		t.Errorf("%q", g)
	}
	g := &Grep{Files: []string{"/r/a\u202eb"}, Counts: []GrepCount{{Path: "/r/b\u202e"}}, Matches: []GrepMatch{{Path: "/r/c\u202e"}}}
	if got := engine.OddNames("/r", g.listed); !slices.Equal(got, []string{`"a\u202eb"`, `"b\u202e"`, `"c\u202e"`}) {
		t.Errorf("%q", got)
	}
	many := []string{"/1\u202e", "/2\u202e", "/3\u202e", "/4\u202e", "/5\u202e", "/6\u202e"}
	if got := engine.OddNames("/", slices.Values(many)); len(got) != 5 {
		t.Errorf("%q", got)
	}
}

// An undo of 300 files says how many, and names the first.
func TestLongRestoreIsTold(t *testing.T) {
	t.Parallel()
	p := &CheckpointRestore{Restored: true, Run: &RestoredRun{Changes: 306}, Checkpoint: &CheckpointRow{Paths: make([]string, 300)}}
	for i := range 300 {
		p.Files = append(p.Files, RestoredFile{Path: fmt.Sprint("/w/f", i), Action: "restored", Added: 1})
	}
	text := p.Text()
	for _, want := range []string{"All that a script's run did, 306 changes:\n", "restored /w/f19 +1 -0\n", "and 280 more restored"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	raw, err := answer{Payload: p}.Brief()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Files []RestoredFile
		More  int `json:"files_more"`
	}
	if err := json.Unmarshal(raw, &got); err != nil || len(got.Files) != 20 || got.More != 280 || len(raw) > 2000 || len(p.Files) != 300 {
		t.Errorf("%d files and %d more in %d bytes: %v", len(got.Files), got.More, len(raw), err)
	}
}
