package engine_test

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	gitignore "moltisfs/grep/ignore"
	"moltisfs/internal/approval"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

func TestCreate(t *testing.T) {
	x := grow(t, nil)
	was, path := x.looks(), x.ws+"/d/f"
	if _, err := x.call("s").Create(ctx, path, []byte("one\n"), engine.Rules{}); err == nil {
		t.Error("made directories unasked")
	}
	done, err := x.call("s").Create(ctx, path, []byte("one\n"), engine.Rules{Parents: true})
	if err != nil || done.Checkpoint == "" || len(done.Made) != 1 {
		t.Errorf("%+v %v", done, err)
	}
	x.has("d/f", "one\n")
	for _, there := range []string{"d/f", "d"} {
		if _, err := x.call("s").Create(ctx, x.ws+"/"+there, []byte("two\n"), engine.Rules{}); err == nil {
			t.Errorf("%s was made over what is there", there)
		}
	}
	if _, err := x.call("s").Create(ctx, path, nil, engine.Rules{}); !engine.Conflicts.In(err) {
		t.Errorf("%v", err)
	}
	must(t, x.does(undoes))
	x.same("undone", was)
}

func TestAppend(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.TrackReads = true })
	path := x.ws + "/f"
	if _, err := x.call("s").Append(ctx, path, []byte("x"), engine.Rules{Parents: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	must(t, errOf(x.call("s").Create(ctx, path, []byte("one\n"), engine.Rules{})))
	x.write("f", "one\nothers\n")
	must(t, errOf(x.call("s").Append(ctx, path, []byte{0xff, '\n'}, engine.Rules{})))
	x.has("f", "one\nothers\n\xff\n")
	x.cfg.MustReadBeforeWrite = true
	x.reopen()
	x.write("f", "two\n")
	if _, err := x.call("s").Append(ctx, path, []byte("x"), engine.Rules{}); !engine.Modified.In(err) {
		t.Errorf("%v", err)
	}
	x.has("f", "two\n")
}

// Every dialect has the guards against accidents.
func TestGuards(t *testing.T) {
	x := grow(t, nil)
	path := x.write("f", "a\nb\nc\nd\n")
	no := func(*engine.Target, error) error { return nil }
	write := func(text string, meant bool) error {
		return lastOf(x.call("s").Write(ctx, engine.WriteArgs{Path: path, Text: text, Rules: engine.Rules{Meant: meant}}))
	}
	change := func(was, is string) error {
		return lastOf(x.call("s").Edit(ctx, engine.EditArgs{Path: path, Edits: []edit.Edit{{Old: was, New: is}}, Refuse: no}))
	}
	for what, err := range map[string]error{
		"emptied":          write("\n", false),
		"placeholder":      write("a\n// ... rest of the code unchanged\n", false),
		"edit to nothing":  change("a\nb\nc\nd\n", ""),
		"edit placeholder": change("b\nc\nd\n", "// ... rest of the code unchanged\n"),
	} {
		if !engine.Accident.In(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	x.has("f", "a\nb\nc\nd\n")
	must(t, write("", true))
	x.has("f", "")
}

// A plan is made anew where something moved while somebody was asked, and where nobody is, the change
// goes over what is there by then.
func TestMakerRunsAgain(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	path := x.write("d/f", "one\n")
	a.while = func() { x.write("d/f", "two\n") }
	if _, err := c.Append(ctx, path, []byte("x\n"), engine.Rules{}); !engine.ApprovalStale.In(err) {
		t.Errorf("%v", err)
	}
	x.has("d/f", "two\n")
	a.while = func() { _ = os.Chmod(path, 0o600) } // no other content
	must(t, errOf(c.Append(ctx, path, []byte("x\n"), engine.Rules{})))
	x.has("d/f", "two\nx\n")
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("the mode of in between is lost: %v %v", i, err)
	}
	a.while = func() { _ = os.Rename(filepath.Dir(path), x.ws+"/e") }
	if _, err := c.Append(ctx, path, []byte("x\n"), engine.Rules{}); err == nil {
		t.Error("written into a directory that was moved")
	}
	x.has("e/f", "two\nx\n")
}

// Not even by force does a restore overwrite what the store can't hold: it could not be brought back.
func TestForceLosesNothing(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 100 })
	x.write("a", "one\n")
	c := x.call("s")
	done, err := c.ChangeFiles(ctx, x.becomes("two\n", "a"))
	must(t, err)
	in := checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)}
	large := strings.Repeat("x", 101)
	x.write("a", large)
	if _, err := c.Restore(ctx, in, engine.RestoreOptions{OnConflict: engine.OnConflictForce}); !engine.WouldLose.In(err) {
		t.Errorf("what nobody holds was overwritten: %v", err)
	}
	x.has("a", large)
	// The plan looks first; should the file have grown since, the store says what it does not hold.
	m := x.becomes("three\n", "a")
	m.Whole, m.Checkpoint = true, true
	if _, err := c.ChangeFiles(ctx, m); !engine.NotStored.In(err) || !strings.Contains(err.Error(), x.ws+"/a") {
		t.Errorf("what the checkpoint does not hold was overwritten: %v", err)
	}
	x.has("a", large)
	x.write("a", "small\n")
	back, err := c.Restore(ctx, in, engine.RestoreOptions{OnConflict: engine.OnConflictForce})
	must(t, err)
	x.has("a", "one\n")
	must(t, errOf(c.Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(back.Checkpoint)}, engine.RestoreOptions{})))
	x.has("a", "small\n")
}

// Without checkpoint_before_mutation a change of one path goes without; one of several does not, because after a crash half-way nobody could
// take it back.
func TestSeveralPathsHaveACheckpoint(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = false })
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		done, err := x.call("s").ChangeFiles(ctx, x.becomes(strings.Repeat("1", len(names)), names...))
		if err != nil || (done.Checkpoint != "") != (len(names) > 1) {
			t.Errorf("%v: %+v %v", names, done, err)
		}
	}
}

// Nothing is changed whose checkpoint can't be stored: not one file, not several, and nothing is deleted.
func TestNoChangeWithoutAStore(t *testing.T) {
	x := grow(t, nil)
	x.writeAll("old\n", "a", "b")
	must(t, os.WriteFile(x.data+"/checkpoints", []byte("in the way"), 0o600))
	c := x.call("s")
	if _, err := c.ChangeFiles(ctx, x.becomes("new\n", "a", "b")); err == nil {
		t.Error("several paths were changed without a checkpoint")
	}
	if _, err := c.Delete(ctx, x.ws+"/a", engine.DeleteOptions{}); err == nil {
		t.Error("deleted without a checkpoint")
	}
	if _, err := c.ChangeFiles(ctx, x.becomes("new\n", "a")); err == nil {
		t.Error("an edit without its checkpoint")
	}
	x.has("a", "old\n")
	x.has("b", "old\n")
}

// A checkpoint that the store could not take is no checkpoint: the file stays as it was, the very
// object, and nothing of ours is beside it. What makes the edit fail here is the save itself: the store opens, and is full.
func TestNoEditWithoutItsCheckpoint(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxBytes = 1 << 20 })
	noise := make([]byte, 2<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	was := "one\n" + base64.StdEncoding.EncodeToString(noise) + "\n"
	path := x.write("a", was)
	before, err := os.Stat(path)
	must(t, err)
	done, _, err := x.call("s").Edit(ctx, engine.EditArgs{Path: path, Edits: []edit.Edit{{Old: "one\n", New: "two\n"}}})
	if full, ok := errors.AsType[*checkpoint.FullError](err); !ok || full.Max != 1<<20 || !engine.NotSaved.In(err) {
		t.Errorf("an edit without its checkpoint: %+v %v", done, err)
	}
	now, serr := os.Stat(path)
	names, rerr := os.ReadDir(x.ws)
	if serr != nil || rerr != nil || len(names) != 1 {
		t.Errorf("%v is left, %v %v", names, serr, rerr)
	}
	if x.has("a", was); !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime()) {
		t.Error("it is another file by now")
	}
}

var manyFiles = flag.Int("files", 300, "how many files a test of very many files changes at once")

// Each turn notices what was changed outside since the one before, also where it has looked before.
func TestEveryTurnLooksAnew(t *testing.T) {
	x := grow(t, nil)
	c := x.call("s")
	must(t, errOf(c.ChangeFiles(ctx, x.becomes("0\n", "a"))))
	for turn, content := range []string{"0\n", "1\n", "1\n", "2\n", "3\n"} {
		x.write("a", content)
		c.Turn = strconv.Itoa(turn)
		c.BeginTurn(ctx)
		if n, want := x.externals(), int(content[0]-'0'); n != want {
			t.Fatalf("turn %d: %d changes outside, should %d", turn, n, want)
		}
	}
}

// A tree in the trash was not removed from outside; a file that the tools have put in its place since, and that is gone, was.
func TestRemovedAfterTheTreeWasParked(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 100 })
	c := x.call("s")
	x.write("t/big.bin", strings.Repeat("b", 101))
	again := x.becomes("a\n", "t/a")
	for i, want := range []int{0, 1} {
		must(t, errOf(c.ChangeFiles(ctx, again)))
		if i == 0 {
			if done, err := c.Delete(ctx, x.ws+"/t", engine.DeleteOptions{Recursive: true}); err != nil || done.Trashed[0].Parked == "" {
				t.Fatalf("%+v %v", done, err)
			}
		} else {
			must(t, os.RemoveAll(x.ws+"/t"))
		}
		c.Turn = strconv.Itoa(i)
		c.BeginTurn(ctx)
		if n := x.externals(); n != want {
			t.Errorf("step %d: %d changes outside, should %d", i, n, want)
		}
	}
}

// guarded is an engine over a new tree that holds names, and asks who about what runs code.
func guarded(t *testing.T, who approval.Approver, set func(*config.FS), names ...string) (e *engine.Engine, root string) {
	t.Helper()
	return guardedFor(t, who, gitignore.User{}, set, names...)
}

func guardedFor(t *testing.T, who approval.Approver, git gitignore.User, set func(*config.FS), names ...string) (e *engine.Engine, root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, name := range names {
		name, text, _ := strings.Cut(name, "=")
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval, cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths = false, root, []string{root + "/**"}
	if set != nil {
		set(&cfg.Tools.FS)
	}
	e, err = engine.Open(cfg, engine.Host{DataDir: t.TempDir() + "/data", Approver: who, GitUser: git})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return e, root
}

// asked notes the questions about what runs code, and says no to them.
type asked struct{ code [][]string }

func (a *asked) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	a.code = append(a.code, q.Code)
	if len(q.Code) == 0 || len(q.Warnings) == 0 || !strings.Contains(q.Warnings[0], q.Code[0]) {
		return approval.Answer{Decision: approval.Approved}, nil // which would be seen
	}
	return approval.Answer{}, nil
}

// checkAsked writes the file, and fails unless that is asked about, or is not.
func (a *asked) checkAsked(t *testing.T, e *engine.Engine, path string, want bool) {
	t.Helper()
	a.code = nil
	err := through(e, func(ctx context.Context, call *engine.Call) error {
		return lastOf(call.Write(ctx, engine.WriteArgs{Path: path, Text: "x", Rules: engine.Rules{Parents: true, Meant: true}}))
	})
	if (code(err) == engine.CodeApprovalDenied) != want || (len(a.code) == 1) != want {
		t.Errorf("%s: asked about %v, want %v: %v", path, a.code, want, err)
	}
}

// TestTreesThatHoldCode: what is inside of a tree counts, under the names that it has and under those
// that it would get; so do the hooks of a configured directory. What holds nothing of it is not asked
// about, and a tree with secrets in it stays.
func TestTreesThatHoldCode(t *testing.T) {
	t.Parallel()
	who := &asked{}
	e, root := guarded(t, who, nil, "p/sub/.github/workflows/x.yml", "plain/config", "plain/hooks/y",
		"githooks/z", ".git/HEAD=ref: refs/heads/main", ".git/config=[core]\n\thooksPath = githooks\n", "keys/tls/a.key", "w/a.txt", "a",
		"g/workflows/x.yml", "conf/x")
	for name, to := range map[string]string{"link": ".git", ".cursor": "conf", "through": ".cursor"} {
		must(t, os.Symlink(to, filepath.Join(root, name)))
	}
	for i, c := range []struct {
		do   act
		code string // what is asked about, below the root; "": nothing is
		want engine.Code
	}{
		{moves("p", "q"), "p/sub/.github/workflows/x.yml", engine.CodeApprovalDenied},
		{moves("plain", "sub/.git"), "sub/.git", engine.CodeApprovalDenied},
		{moves("plain", ".github/workflows/n"), ".github/workflows/n", engine.CodeApprovalDenied},
		{moves("plain/hooks", ".git/modules"), ".git/modules", engine.CodeApprovalDenied},
		{moves(".git", "gone"), ".git", engine.CodeApprovalDenied},
		{moves("a", "link/x"), ".git/x", engine.CodeApprovalDenied},
		{moves("g", ".github"), ".github/workflows/x.yml", engine.CodeApprovalDenied},
		{creates(".cursor/y", "x"), "conf/y", engine.CodeApprovalDenied},
		{creates("through/y", "x"), "conf/y", engine.CodeApprovalDenied},
		{copies("p", "q"), "q/sub/.github/workflows/x.yml", engine.CodeApprovalDenied},
		{deletes("p"), "p/sub/.github/workflows/x.yml", engine.CodeApprovalDenied},
		{deletes("githooks"), "githooks/z", engine.CodeApprovalDenied},
		{moves("w", "githooks/w"), "githooks/w", engine.CodeApprovalDenied},
		{creates("githooks/new", "x"), "githooks/new", engine.CodeApprovalDenied},
		{creates("n/.husky/x", "x"), "n/.husky/x", engine.CodeApprovalDenied},
		{deletes("keys"), "", engine.CodeConflict},
		{moves("keys", "k"), "", engine.CodePathDenied},
		{copies("keys", "k"), "", engine.CodePathDenied},
		{creates(".ssh/x", "x"), "", engine.CodePathDenied},
		{creates("Makefile", "x"), "", ""},
		{creates("c/HEAD", "x"), "c/HEAD", engine.CodeApprovalDenied},
		{creates("c/head/x", "x"), "", ""},
		{creates("n/.hg/x", "x"), "n/.hg/x", engine.CodeApprovalDenied},
		{moves("w", "x"), "", ""},
		{deletes("x"), "", ""},
	} {
		who.code = nil
		err := through(e, func(ctx context.Context, call *engine.Call) error { return c.do(ctx, call, root) })
		if code(err) != c.want {
			t.Errorf("%d: %v", i, err)
		}
		switch {
		case c.code == "" && who.code != nil:
			t.Errorf("%d: asked about %v", i, who.code)
		case c.code != "" && (len(who.code) != 1 || !slices.Contains(who.code[0], filepath.Join(root, c.code))):
			t.Errorf("%d: asked about %v, not %s", i, who.code, c.code)
		}
	}
}

// TestGitElsewhere: git's own directory under another name, and a directory of hooks behind a link, are
// asked about by their true names.
func TestGitElsewhere(t *testing.T) {
	t.Parallel()
	who := &asked{}
	e, root := guarded(t, who, nil,
		"s/.git=gitdir: store\n", "s/store/HEAD=ref: refs/heads/main", "s/store/config=[core]\n\thooksPath = to\n",
		"l/true/HEAD=ref: refs/heads/main", "s/hk/a", "s/gd/x")
	must(t, os.Symlink("hk", filepath.Join(root, "s/to")))
	must(t, os.Symlink("true", filepath.Join(root, "l/.git")))
	for name, want := range map[string]bool{"s/hk/b": true, "s/store/hooks/x": true, "l/true/hooks/x": true, "l/true/config": true,
		"s/to/b": true, "s/gd/y": false, "l/truer": false, "s/hkk": false} {
		who.checkAsked(t, e, filepath.Join(root, name), want)
	}
}

// TestGitIncludes: each core.hooksPath counts, also the user's, a relative one, and one behind a
// condition; so do the files that have it.
func TestGitIncludes(t *testing.T) {
	t.Parallel()
	who := &asked{}
	user := gitignore.User{Files: []string{"/user"}, Read: func(string) ([]byte, error) { return []byte("[core]\n\thooksPath = all\n"), nil }}
	e, root := guardedFor(t, who, user, nil, "none/x",
		"r/.git/config=[core]\n\thooksPath = first\n\thooksPath = second\n[include]\n\tpath = ../inc\n[includeIf \"onbranch:x\"]\n\tpath = ../if\n",
		"r/inc=[core]\n\thooksPath = third\n", "r/if=[core]\n\thooksPath = fourth\n")
	for name, want := range map[string]bool{"r/all/a": true, "r/first/a": true, "r/second/a": true, "r/third/a": true, "r/fourth/a": true,
		"r/inc": true, "r/if": true, "r/fifth/a": false, "all/a": false, "none/all/a": false} {
		who.checkAsked(t, e, filepath.Join(root, name), want)
	}
}

// TestGitScripts: a file that a word of any setting names is asked about, there or not, whatever the key
// is; so is what is in a directory of templates. Files beside it are not.
func TestGitScripts(t *testing.T) {
	t.Parallel()
	who := &asked{}
	user := gitignore.User{Home: "/nowhere", Files: []string{"/user"}, Read: func(string) ([]byte, error) {
		return []byte("[alias]\n\tu = !./user.sh\n\tst = status\n[core]\n\tpager = ~/p.sh\n"), nil
	}}
	e, root := guardedFor(t, who, user, nil, "r/real.sh=old", "r/.git/config="+`
[core]
	fsmonitor = tools/fsm.sh
	sshCommand = sh ssh.sh -i keys/id
	editor = "./ed it.sh"
	pager = less
	askPass = ./link.sh
[filter "x"]
	clean = bin/clean --file=%f
	smudge = 'bin/smudge'
	process = env A=1 ./bin/process
[alias]
	l = "!f() { ./lint.sh \"$@\"; }; f"
	t = "!$PWD/t.sh"
	g = "!$(git rev-parse --show-toplevel)/tools/g.sh"
[diff]
	external = d/ext
[diff "y"]
	command = d/cmd
	textconv = d/conv
[merge "z"]
	driver = m/drv %O %A %B
[credential]
	helper = !c/helper
[gpg]
	program = gpg.sh
[sequence]
	editor = seq.sh
[init]
	templateDir = tpl
	defaultBranch = main
[hook "w"]
	command = "hooked.sh; other.sh"
[trailer "v"]
	cmd = |trail.sh
`)
	must(t, os.Symlink("real.sh", filepath.Join(root, "r/link.sh")))
	for name, want := range map[string]bool{"r/tools/fsm.sh": true, "r/ssh.sh": true, "r/keys/id": true, "r/ed it.sh": true, "r/real.sh": true, "r/bin/clean": true,
		"r/bin/smudge": true, "r/bin/process": true, "r/lint.sh": true, "r/t.sh": true, "r/tools/g.sh": true, "r/d/ext": true, "r/d/cmd": true, "r/d/conv": true,
		"r/m/drv": true, "r/c/helper": true, "r/gpg.sh": true, "r/seq.sh": true, "r/tpl/any/x": true, "r/hooked.sh": true, "r/other.sh": true,
		"r/trail.sh": true, "r/user.sh": true, "r/tools/other.sh": false, "r/main/a.go": false, "r/bin/x": false, "r/sub/lint.sh": false, "lint.sh": false,
		"r/d/x": false, "r/less/a": false, "r/README.md": false, "user.sh": false} {
		who.checkAsked(t, e, filepath.Join(root, name), want)
	}
}

// TestCodeGoesAndComesBack only with a yes to that: one file of it by a restore, and a whole tree by
// way of the trash.
func TestCodeGoesAndComesBack(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{false, true} {
		yes := false
		e, root := guarded(t, approvalFunc(func(ctx context.Context, q approval.Question) (approval.Answer, error) {
			if yes {
				return approval.YesToCode("test").Ask(ctx, q)
			}
			return approval.Yes("test").Ask(ctx, q)
		}), func(fs *config.FS) {
			if fs.CheckpointBeforeMutation = true; whole {
				fs.Checkpoint.MaxFileBytes = 3
			}
		}, "d/sub/.husky/pre-commit=a hook")
		dir := filepath.Join(root, "d")
		there := func() bool { _, err := os.Stat(filepath.Join(dir, "sub/.husky/pre-commit")); return err == nil }
		for _, op := range []act{deletes("d"), undoes, deletes("d"), untrashes} {
			was := there()
			for _, yes = range []bool{false, true} {
				err := through(e, func(ctx context.Context, c *engine.Call) error { return op(ctx, c, root) })
				if (err == nil) != yes || there() != (was != yes) {
					t.Fatalf("whole %v, yes %v: it was there: %v, and is: %v; %v", whole, yes, was, there(), err)
				}
				if !yes && engine.Reason(err).Cause != engine.RunsCode {
					t.Errorf("whole %v: %v", whole, err)
				}
			}
		}
	}
}

type approvalFunc func(context.Context, approval.Question) (approval.Answer, error)

func (f approvalFunc) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	return f(ctx, q)
}

// The undo of a run passes all doors, as one plan: what is in the way of one path is in the way of all.
func TestUndoOfARunIsGuarded(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.run()
	x.cfg.RequireApproval = true
	x.reopen()
	no := &decider{}
	undo := func(what string, c *engine.Call, want engine.Cause) {
		t.Helper()
		was := x.looks()
		if _, err := c.Undo(ctx, engine.RestoreOptions{}); !want.In(err) || x.looks() != was {
			t.Fatalf("%s: %v\n%s", what, err, x.looks())
		}
	}
	undo("nobody to ask", x.call("s"), engine.NobodyToAsk)
	c := x.call("s")
	c.Approver = no
	undo("refused", c, engine.NotApproved)
	if len(no.asked) != 1 || !strings.Contains(no.asked[0].Diff, "-twice") || len(no.asked[0].Paths) < 5 {
		t.Errorf("asked %+v", no.asked)
	}
	x.write("made/deep/f", "others\n")
	yes := x.call("s")
	yes.Approver = &asker{}
	undo("what others changed", yes, engine.Conflicts)
	x.write("made/deep/f", "f\n")
	if _, err := yes.Undo(ctx, engine.RestoreOptions{}); err != nil || strings.Contains(x.looks(), "made") {
		t.Fatalf("%v\n%s", err, x.looks())
	}
}

// decider says no.
type decider struct{ asked []approval.Question }

func (d *decider) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	d.asked = append(d.asked, q)
	return approval.Answer{Decision: approval.Denied}, nil
}

// A limit that the operator wrote as zero reaches the store as zero.
func TestZeroOfRetentionIsMeant(t *testing.T) {
	c := config.Default().Tools.FS.Checkpoint
	c.KeepWithin, c.KeepLast = 0, 5
	if o, err := engine.StoreOptions(c, nil); err != nil || o.KeepWithin != checkpoint.KeepNone || o.KeepLast != 5 {
		t.Errorf("%+v %v", o, err)
	}
	c.KeepWithin, c.KeepLast = config.Duration(time.Hour), 0
	if o, err := engine.StoreOptions(c, nil); err != nil || o.KeepWithin != time.Hour || o.KeepLast != checkpoint.KeepNone {
		t.Errorf("%+v %v", o, err)
	}
}

// A name that goes through a link holds for what is stored, which is under true names, and goes on to hold when the link leads elsewhere.
func TestExcludeFollowsLinks(t *testing.T) {
	dir := guardfs.Canonical(t.TempDir())
	for _, d := range []string{"rel7", "rel8", "secrets/deep"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	link := filepath.Join(dir, "current")
	if err := os.Symlink("rel7", link); err != nil {
		t.Skip("SKIPPED: no symbolic links:", err)
	}
	c := config.Default().Tools.FS.Checkpoint
	c.Exclude = []string{filepath.ToSlash(link) + "/.env", "**/secrets"}
	o, err := engine.StoreOptions(c, nil)
	must(t, err)
	excluded := func(want bool, names ...string) {
		t.Helper()
		for _, n := range names {
			if got := o.Exclude(filepath.ToSlash(filepath.Join(dir, n))); got != want {
				t.Errorf("%s: excluded is %v", n, got)
			}
		}
	}
	excluded(true, "rel7/.env", "secrets/deep/key", "a/secrets")
	excluded(false, "rel8/.env", "rel7/a")
	must(t, os.Remove(link))
	must(t, os.Symlink("rel8", link))
	excluded(true, "rel8/.env", "rel7/.env")
}

// run has a script change this and that, some of it twice: "kept" and all below "old" were there before.
func (x *tree) run() {
	x.t.Helper()
	x.write("kept", "kept\n")
	x.write("old/a/1", "1\n")
	x.write("old/2", "2\n")
	c := x.call("s")
	c.Run = 7
	for _, do := range []act{writes("once\n", "kept"), writes("twice\n", "kept"), writes("it stays\n", "new"), mkdirs("made/deep"),
		writes("f\n", "made/deep/f"), writes("one\n", "made/a/1"), appends("kept", "and more\n")} {
		must(x.t, do(ctx, c, x.ws))
	}
}
