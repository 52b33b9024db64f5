package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	gitignore "moltisfs/grep/ignore"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
)

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
	for _, c := range []struct {
		op, from, to string
		code         string // what is asked about, below the root; "": nothing is
		want         engine.Code
	}{
		{"move", "p", "q", "p/sub/.github/workflows/x.yml", engine.CodeApprovalDenied},
		{"move", "plain", "sub/.git", "sub/.git", engine.CodeApprovalDenied},
		{"move", "plain", ".github/workflows/n", ".github/workflows/n", engine.CodeApprovalDenied},
		{"move", "plain/hooks", ".git/modules", ".git/modules", engine.CodeApprovalDenied},
		{"move", ".git", "gone", ".git", engine.CodeApprovalDenied},
		{"move", "a", "link/x", ".git/x", engine.CodeApprovalDenied},
		{"move", "g", ".github", ".github/workflows/x.yml", engine.CodeApprovalDenied},
		{"create", "", ".cursor/y", "conf/y", engine.CodeApprovalDenied},
		{"create", "", "through/y", "conf/y", engine.CodeApprovalDenied},
		{"copy", "p", "q", "q/sub/.github/workflows/x.yml", engine.CodeApprovalDenied},
		{"delete", "p", "", "p/sub/.github/workflows/x.yml", engine.CodeApprovalDenied},
		{"delete", "githooks", "", "githooks/z", engine.CodeApprovalDenied},
		{"move", "w", "githooks/w", "githooks/w", engine.CodeApprovalDenied},
		{"create", "", "githooks/new", "githooks/new", engine.CodeApprovalDenied},
		{"create", "", "n/.husky/x", "n/.husky/x", engine.CodeApprovalDenied},
		{"delete", "keys", "", "", engine.CodeConflict},
		{"move", "keys", "k", "", engine.CodePathDenied},
		{"copy", "keys", "k", "", engine.CodePathDenied},
		{"create", "", ".ssh/x", "", engine.CodePathDenied},
		{"create", "", "Makefile", "", ""},
		{"create", "", "c/HEAD", "c/HEAD", engine.CodeApprovalDenied},
		{"create", "", "c/head/x", "", ""},
		{"create", "", "n/.hg/x", "n/.hg/x", engine.CodeApprovalDenied},
		{"move", "w", "x", "", ""},
		{"delete", "x", "", "", ""},
	} {
		who.code = nil
		rules := engine.Rules{Parents: true}
		from, to := filepath.Join(root, c.from), filepath.Join(root, c.to)
		err := through(e, func(ctx context.Context, call *engine.Call) (err error) {
			switch c.op {
			case "move":
				_, err = e.Move(ctx, call, engine.MoveArgs{From: from, To: to, Rules: rules})
			case "copy":
				_, err = e.Copy(ctx, call, engine.CopyArgs{From: from, To: to, Recursive: true, Rules: rules})
			case "delete":
				_, err = e.Delete(ctx, call, from, engine.DeleteOptions{Recursive: true})
			case "create":
				_, err = e.Create(ctx, call, to, []byte("x"), rules)
			}
			return err
		})
		if code(err) != c.want {
			t.Errorf("%s %s %s: %v", c.op, c.from, c.to, err)
		}
		switch {
		case c.code == "" && who.code != nil:
			t.Errorf("%s %s %s: asked about %v", c.op, c.from, c.to, who.code)
		case c.code != "" && (len(who.code) != 1 || !slices.Contains(who.code[0], filepath.Join(root, c.code))):
			t.Errorf("%s %s %s: asked about %v, not %s", c.op, c.from, c.to, who.code, c.code)
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
		who.code = nil
		err := through(e, func(ctx context.Context, call *engine.Call) error {
			_, err := e.Create(ctx, call, filepath.Join(root, name), []byte("x"), engine.Rules{Parents: true})
			return err
		})
		if (code(err) == engine.CodeApprovalDenied) != want || (len(who.code) == 1) != want {
			t.Errorf("%s: asked about %v, want %v: %v", name, who.code, want, err)
		}
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
		who.code = nil
		err := through(e, func(ctx context.Context, call *engine.Call) error {
			_, _, err := e.Write(ctx, call, engine.WriteArgs{Path: filepath.Join(root, name), Text: "x", Rules: engine.Rules{Parents: true, Meant: true}})
			return err
		})
		if (code(err) == engine.CodeApprovalDenied) != want || (len(who.code) == 1) != want {
			t.Errorf("%s: asked about %v, want %v: %v", name, who.code, want, err)
		}
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
		who.code = nil
		err := through(e, func(ctx context.Context, call *engine.Call) error {
			_, _, err := e.Write(ctx, call, engine.WriteArgs{Path: filepath.Join(root, name), Text: "x", Rules: engine.Rules{Parents: true, Meant: true}})
			return err
		})
		if (code(err) == engine.CodeApprovalDenied) != want || (len(who.code) == 1) != want {
			t.Errorf("%s: asked about %v, want %v: %v", name, who.code, want, err)
		}
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
		var at *engine.Done
		remove := func(ctx context.Context, c *engine.Call) (err error) {
			at, err = e.Delete(ctx, c, dir, engine.DeleteOptions{Recursive: true})
			return err
		}
		back := func(ctx context.Context, c *engine.Call) error {
			_, err := e.Restore(ctx, c, checkpoint.Restore{ID: checkpoint.ID(at.Checkpoint)}, engine.RestoreOptions{})
			return err
		}
		untrash := func(ctx context.Context, c *engine.Call) error {
			_, err := e.Untrash(ctx, c, at.Trashed[0].ID, false)
			return err
		}
		for _, op := range []func(context.Context, *engine.Call) error{remove, back, remove, untrash} {
			was := there()
			for _, yes = range []bool{false, true} {
				err := through(e, op)
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
