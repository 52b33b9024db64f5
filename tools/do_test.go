package tools_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/tools"
)

// hosted is a suite over a directory with one file, that an embedder has opened.
func hosted(t *testing.T, ask tools.Approver) (*tools.Suite, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	file := filepath.Join(work, "a.txt")
	if err := errors.Join(os.Mkdir(work, 0o755), os.WriteFile(file, []byte("one\ntwo\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Tools.FS.AllowPaths = []string{work + "/**"}
	cfg.Tools.FS.RequireApproval = ask != nil
	cfg.Tools.FS.CheckpointBeforeMutation = true
	s, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(dir, "data"), Approver: ask})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, file
}

func TestDo(t *testing.T) {
	t.Parallel()
	s, file := hosted(t, nil)
	ctx, as := context.Background(), tools.Call{Session: "s1"}
	is := func(want string) {
		t.Helper()
		if got, _ := os.ReadFile(file); string(got) != want {
			t.Errorf("the file is %q, want %q", got, want)
		}
	}
	read, err := tools.Do[*tools.Content](ctx, s, tools.ReadArgs{FilePath: file}, as)
	if err != nil || !strings.Contains(read.Text(), "one") {
		t.Fatal(read, err)
	}
	edit := tools.EditArgs{FilePath: file, OldString: "two", NewString: "2"}
	done, err := tools.Do[*tools.Edit](ctx, s, &edit, as)
	if err != nil || done.Replacements != 1 || len(done.Patch) != 1 || done.Patch[0].NewStart != 2 {
		t.Fatal(done, err)
	}
	is("one\n2\n")
	if _, err = s.Undo(ctx, as); err != nil {
		t.Fatal(err)
	}
	is("one\ntwo\n")
	if _, err = s.Redo(ctx, as); err != nil {
		t.Fatal(err)
	}
	is("one\n2\n")

	_, err = tools.Do[*tools.Edit](ctx, s, edit, as)
	if no, ok := errors.AsType[*tools.Refusal](err); !ok || no.Kind() != tools.KindNoMatch {
		t.Errorf("a refusal is %v", err)
	}
	_, err = tools.Do[*tools.Content](ctx, s, tools.ReadArgs{FilePath: file + "x"}, as)
	if no, ok := errors.AsType[*tools.Refusal](err); !ok || no.Kind() != tools.KindNotFound || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file is %v", err)
	}
	if _, err = tools.Do[*tools.Edit](ctx, s, tools.ReadArgs{FilePath: file}, as); err == nil {
		t.Error("a Read answered an *Edit")
	}
	if _, err = tools.Do[tools.Payload](ctx, s, struct{}{}, as); err == nil {
		t.Error("arguments of no tool were taken")
	}
	if _, err = tools.Do[tools.Payload](ctx, s, tools.GlobArgs{Pattern: "*"}, as); err == nil {
		t.Error("a Glob without a path, where there is no workspace, was not refused")
	}
}

// Every row of the table knows its own arguments, and no two have the same.
func TestEveryToolHasTypedArguments(t *testing.T) {
	for _, args := range []any{
		tools.ReadArgs{}, tools.WriteArgs{}, tools.EditArgs{}, tools.MultiEditArgs{}, tools.NotebookEditArgs{}, tools.GlobArgs{},
		tools.GrepArgs{}, tools.CheckpointsListArgs{}, tools.CheckpointDiffArgs{}, tools.CheckpointRestoreArgs{},
	} {
		if n := tools.TakenBy(args); n != 1 {
			t.Errorf("%T is the arguments of %d tools", args, n)
		}
	}
}

func TestCancelledIsToldAsOne(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s, file := hosted(t, tools.ApproverFunc(func(ctx context.Context, _ tools.Question) (tools.Answer, error) {
		close(asked)
		<-ctx.Done()
		return tools.Answer{Reason: "the call was cancelled"}, nil
	}))
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := tools.Do[*tools.Content](ctx, s, tools.ReadArgs{FilePath: file}, tools.Call{}); err != nil {
		t.Fatal(err)
	}
	go func() { <-asked; cancel() }()
	p, err := tools.Do[*tools.Write](ctx, s, tools.WriteArgs{FilePath: file, Content: "x"}, tools.Call{})
	if !errors.Is(err, context.Canceled) || p != nil {
		t.Errorf("while it asked: %v, %v", p, err)
	}
	if got, _ := os.ReadFile(file); string(got) != "one\ntwo\n" {
		t.Errorf("a cancelled call left %q", got)
	}
	if _, err = tools.Do[*tools.Grep](ctx, s, tools.GrepArgs{Pattern: "o", Path: new(filepath.Dir(file))}, tools.Call{}); !errors.Is(err, context.Canceled) {
		t.Errorf("before it began: %v", err)
	}
}

func TestAllIsACopy(t *testing.T) {
	was := tools.All()[0].Name
	all := tools.All()
	all[0].Name = "Cat"
	for i := range all {
		for j := range all[i].Follows {
			all[i].Follows[j] = "Cat"
		}
	}
	for _, tool := range tools.All() {
		if tool.Name == "Cat" || strings.Contains(strings.Join(tool.Follows, " "), "Cat") {
			t.Errorf("%s was changed from outside", was)
		}
	}
}

// What a host does to the store is on record, and none of it is done without.
func TestUpkeep(t *testing.T) {
	t.Parallel()
	s, file := hosted(t, nil)
	ctx, as := t.Context(), tools.Call{Session: "s1"}
	if _, err := tools.Do[*tools.Write](ctx, s, tools.WriteArgs{FilePath: filepath.Dir(file) + "/new", Content: "x"}, as); err != nil {
		t.Fatal(err)
	}
	all := checkpoint.Scope{AllSessions: true}
	var id checkpoint.ID
	must := func(name string, do func(context.Context, *checkpoint.DB) error) {
		t.Helper()
		if err := s.Upkeep(ctx, name, do); err != nil {
			t.Fatal(err)
		}
	}
	must("pin", func(ctx context.Context, db *checkpoint.DB) error {
		page, err := db.List(ctx, checkpoint.Filter{AllSessions: true})
		if err == nil {
			id = page.Checkpoints[0].ID
			err = db.Pin(ctx, id, all)
		}
		return err
	})
	if _, err := s.Undo(ctx, as); err != nil { // the new file goes to the trash
		t.Fatal(err)
	}
	var trash checkpoint.TrashPage
	look := func(ctx context.Context, db *checkpoint.DB) (err error) {
		trash, err = db.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true})
		return err
	}
	if must("look", look); len(trash.Entries) != 1 {
		t.Fatalf("in the trash: %v", trash.Entries)
	}
	if err := s.EmptyTrash(ctx, trash.Entries); err != nil {
		t.Fatal(err)
	}
	if must("look", look); len(trash.Entries) != 0 {
		t.Errorf("still in the trash: %v", trash.Entries)
	}
	if err := s.Upkeep(ctx, "fail", func(context.Context, *checkpoint.DB) error { return fs.ErrInvalid }); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
	log := filepath.Join(filepath.Dir(filepath.Dir(file)), "data", "audit-changes", "audit.jsonl")
	text, _ := os.ReadFile(log)
	for _, want := range []string{`"outcome","call":`, `"dialect":"operator","tool":"pin"`, `"tool":"empty_trash"`, `"tool":"fail"`, `"tool":"start"`, `"version":"host","policy":"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not on record:\n%s", want, text)
		}
	}
	// No record, nothing done.
	if err := errors.Join(os.Remove(log), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	ran := false
	if err := s.Upkeep(ctx, "pin", func(context.Context, *checkpoint.DB) error { ran = true; return nil }); err == nil || ran {
		t.Errorf("without a record: ran %t, %v", ran, err)
	}
	if err := errors.Join(os.Remove(log), s.Close()); err != nil {
		t.Error(err)
	}
	if err := s.Upkeep(ctx, "pin", look); !errors.Is(err, tools.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
