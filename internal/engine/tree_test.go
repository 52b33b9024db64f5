package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/audit"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// inside is the real policy: dir is allowed, and denied is not.
func inside(dir, denied string) guardfs.Judge {
	o := policy.Options{Allow: []string{dir + "/**"}, Canonical: guardfs.Canonical}
	if denied != "" {
		o.Deny = []string{denied}
	}
	free, err := everything()
	if err == nil {
		o.Identify, o.Census = policy.Identify(free), policy.Census(free)
	}
	p, perr := policy.New(o)
	if err = errors.Join(err, perr); err != nil {
		panic(err)
	}
	return p
}

// everything gives the file system that opens every path, by which the policy itself looks at the tree.
var everything = sync.OnceValues(func() (*guardfs.FS, error) {
	return guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
})

type tree struct {
	*engine.Engine
	t    testing.TB
	ws   string
	data string
	cfg  config.FS
	deny string
	root string // that may be touched, unless it is ws

	fault func(op string) *guardfs.Fault
	calls guardfs.Calls // nil: those of this machine
}

// grow makes an engine over a fresh tree. change may be nil.
func grow(t testing.TB, change func(*config.FS)) *tree {
	t.Helper()
	return growIn(t, t.TempDir(), change)
}

func growIn(t testing.TB, dir string, change func(*config.FS)) *tree {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	must(t, err)
	x := &tree{t: t, ws: dir + "/ws", data: dir + "/data", cfg: config.Default().Tools.FS}
	for _, d := range []string{x.ws, x.data} {
		must(t, os.Mkdir(d, 0o700))
	}
	x.cfg.RequireApproval, x.cfg.CheckpointBeforeMutation = false, true
	if change != nil {
		change(&x.cfg)
	}
	x.open()
	t.Cleanup(func() { x.Close() })
	return x
}

// small makes everything above 100 bytes too large for the store, so that it is parked.
func small(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 100 }

func (x *tree) open() {
	x.t.Helper()
	e, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(cmp.Or(x.root, x.ws), x.deny), DataDir: x.data, Fault: x.fault, Calls: x.calls})
	must(x.t, err)
	if x.Engine = e; x.calls != nil {
		e.AtHome()
	}
}

// reopen is the next start.
func (x *tree) reopen() {
	x.t.Helper()
	must(x.t, x.Close())
	x.open()
}

// open2 is another engine over the tree, which may touch root only.
func (x *tree) open2(root string) *tree {
	x.t.Helper()
	y := *x
	e, err := engine.OpenOver(engine.Options{Config: x.cfg, Judge: inside(root, x.deny), DataDir: x.data})
	must(x.t, err)
	y.Engine = e
	x.t.Cleanup(func() { e.Close() })
	return &y
}

func (x *tree) call(session string) *engine.Call {
	return x.Begin(&engine.Call{ID: "c", Principal: "p", Session: session, Tool: "test"})
}

// turn is a call with which a turn of the session begins.
func (x *tree) turn(session, turn string) *engine.Call {
	c := x.call(session)
	c.Turn = turn
	c.BeginTurn(ctx)
	return c
}

func (x *tree) write(name, content string) string {
	x.t.Helper()
	path := x.ws + "/" + name
	must(x.t, os.MkdirAll(filepath.Dir(path), 0o750))
	must(x.t, os.WriteFile(path, []byte(content), 0o640))
	return path
}

// put writes a file by way of the engine and returns its checkpoint.
func (x *tree) put(session, name, content string) checkpoint.ID {
	x.t.Helper()
	done, err := x.call(session).ChangeFiles(ctx, x.becomes(content, name))
	must(x.t, err)
	return checkpoint.ID(done.Checkpoint)
}

// holding is a Files.Next that gives each file the content.
func holding(content string) func([]*engine.Target) error {
	return func(ts []*engine.Target) error {
		for _, t := range ts {
			t.After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
		}
		return nil
	}
}

// gone is a Files.Next that removes each file.
func gone(ts []*engine.Target) error {
	for _, t := range ts {
		t.After = engine.After{Kind: guardfs.KindAbsent}
	}
	return nil
}

// unput removes a file as a restore does: the store has what it was.
func (x *tree) unput(c *engine.Call, name string) checkpoint.ID {
	x.t.Helper()
	done, err := c.ChangeFiles(ctx, engine.Files{Paths: []string{x.ws + "/" + name}, Next: gone})
	must(x.t, err)
	return checkpoint.ID(done.Checkpoint)
}

// looks is the tree as text: a line a name, with mode and content.
func (x *tree) looks() string {
	x.t.Helper()
	var out string
	err := filepath.WalkDir(x.ws, func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if guardfs.IsTrash(e.Name()) && x.cfg.Fleet.On() { // that of a fleet is there
			return filepath.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		out += p[len(x.ws):] + " " + info.Mode().String()
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			out += " -> " + to
		case info.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out += " " + string(b)
		}
		out += "\n"
		return nil
	})
	must(x.t, err)
	return out
}

// same fails unless the tree looks as it did.
func (x *tree) same(when, was string) {
	x.t.Helper()
	if now := x.looks(); now != was {
		x.t.Fatalf("%s:\n%s\nwas\n%s", when, now, was)
	}
}

func rewindTo(turn string) checkpoint.Restore { return checkpoint.Restore{Turn: turn} }

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// becomes is a change that gives each file the content.
func (x *tree) becomes(content string, names ...string) engine.Files {
	m := engine.Files{Parents: true, Next: holding(content)}
	for _, name := range names {
		m.Paths = append(m.Paths, x.ws+"/"+name)
	}
	return m
}

// has fails unless the file holds content; "-" is absence.
func (x *tree) has(name, content string) {
	x.t.Helper()
	b, err := os.ReadFile(x.ws + "/" + name)
	if err != nil && (content != "-" || !errors.Is(err, os.ErrNotExist)) || err == nil && string(b) != content {
		x.t.Fatalf("%s holds %.40q %v, want %.40q", name, b, err, content)
	}
}

// settled fails where a change is open.
func (x *tree) settled() {
	x.t.Helper()
	if left, err := x.HalfWay(context.Background()); left != nil || err != nil {
		x.t.Errorf("open: %v %v", left, err)
	}
}

// externals counts what is on record as changed outside.
func (x *tree) externals() (n int) {
	x.t.Helper()
	page, err := x.call("s").Checkpoints(ctx, checkpoint.Filter{Limit: 100})
	must(x.t, err)
	for _, c := range page.Checkpoints {
		if c.Kind == checkpoint.KindExternal {
			n++
		}
	}
	return n
}

// under opens an engine with the rules of an operator.
func under(t *testing.T, change func(*config.FS)) *engine.Engine {
	t.Helper()
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval = false
	change(&cfg.Tools.FS)
	e, err := engine.Open(cfg, engine.Host{DataDir: t.TempDir() + "/data"})
	must(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// through runs op as a dialect does.
func through(e *engine.Engine, op func(context.Context, *engine.Call) error) (err error) {
	c := &engine.Call{Tool: "Probe"}
	herr := do(ctx, e, c, operation{
		Run:    func(ctx context.Context) error { err = op(ctx, c); return err },
		Refuse: func(_ context.Context, err error) string { return string(engine.Reason(err).Code) },
	})
	return errors.Join(err, herr)
}

// code is the kind of a refusal, "" for none.
func code(err error) engine.Code {
	if err == nil {
		return ""
	}
	if r := engine.Reason(err); r != nil {
		return r.Code
	}
	return "host"
}

func errOf[T any](_ T, err error) error { return err }

// operation is an engine.Operation without arguments and answers.
type operation struct {
	Changes bool
	Time    time.Duration
	Args    json.RawMessage
	Decode  func(json.RawMessage) (any, error)
	Run     func(context.Context) error
	Refuse  func(context.Context, error) string
}

// do carries op out.
func do(ctx context.Context, e *engine.Engine, c *engine.Call, op operation) error {
	return errOf(engine.Do(ctx, e, c, engine.Operation[any, *dialect.Object]{
		Changes: op.Changes, Time: op.Time, Args: op.Args, Decode: op.Decode,
		Run: func(ctx context.Context, _ any) (*dialect.Object, error) { return &dialect.Object{}, op.Run(ctx) },
		Refuse: func(ctx context.Context, _ *engine.Call, _ any, no *engine.Refusal) (*dialect.Object, string) {
			return &dialect.Object{}, op.Refuse(ctx, no)
		},
	}))
}

// recorded is the audit log of x.
func recorded(t *testing.T, x *tree) (out []audit.Record) {
	t.Helper()
	must(t, audit.ReadBack(t.Context(), filepath.Join(x.data, "audit"), audit.Mark{}, time.Time{}, false, func(_ []byte, e *audit.Entry, _ audit.Mark, _ bool) bool {
		out = append(out, e.Record)
		for _, p := range e.Paths {
			out[len(out)-1].Paths = append(out[len(out)-1].Paths, string(p))
		}
		return false
	}))
	slices.Reverse(out)
	return out
}

// asker says yes to everything, and remembers what it was asked.
type asker struct {
	asked []approval.Question
	while func() // what happens while it thinks
}

func (a *asker) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	a.asked = append(a.asked, q)
	if a.while != nil {
		a.while()
	}
	return approval.Answer{Decision: approval.Approved}, nil
}

// last is the only question since the last call, with its paths below the workspace.
func (a *asker) last(x *tree) (paths []string, summary, digest string) {
	x.t.Helper()
	if len(a.asked) != 1 {
		x.t.Fatalf("%d questions", len(a.asked))
	}
	q := a.asked[0]
	a.asked = nil
	for _, p := range q.Paths {
		paths = append(paths, strings.TrimPrefix(p, x.ws+"/"))
	}
	slices.Sort(paths)
	return paths, strings.ReplaceAll(q.Summary, x.ws+"/", ""), q.Digest
}

func asking(t *testing.T) (*tree, *asker) {
	x := grow(t, func(fs *config.FS) { fs.RequireApproval = true })
	return x, &asker{}
}

// factsOf are the facts of a refusal for this cause; ok says that err is one.
func factsOf[T any](err error, cause engine.Cause) (facts T, ok bool) {
	r, is := errors.AsType[*engine.Refusal](err)
	if !is || r.Cause != cause {
		return facts, false
	}
	facts, ok = r.Facts.(T)
	return facts, ok
}

// blockedBy are the reasons of a restore that was refused.
func blockedBy(err error) (whys []engine.Why) {
	blocked, _ := factsOf[[]engine.Blocked](err, engine.Conflicts)
	for _, b := range blocked {
		whys = append(whys, b.Why)
	}
	return whys
}

// trashed lists what lies in the trash of the data directory, payloads and sidecars.
func (x *tree) trashed() (files, info []string) {
	files, _ = filepath.Glob(x.data + "/.moltis-trash-*/files/*")
	info, _ = filepath.Glob(x.data + "/.moltis-trash-*/info/*")
	return files, info
}

// reading is the content of a file; "-" is absence.
func (x *tree) reading(name string) string {
	x.t.Helper()
	b, err := os.ReadFile(x.ws + "/" + name)
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	must(x.t, err)
	return string(b)
}

// An act is a call that does something in the workspace ws. Its names are below ws.
type act = func(ctx context.Context, c *engine.Call, ws string) error

// does carries an act out as a call of the session s.
func (x *tree) does(a act) error { return a(ctx, x.call("s"), x.ws) }

func undoes(ctx context.Context, c *engine.Call, _ string) error {
	return errOf(c.Undo(ctx, engine.RestoreOptions{}))
}

func redoes(ctx context.Context, c *engine.Call, _ string) error {
	return errOf(c.Redo(ctx, engine.RestoreOptions{}))
}

// rewinds takes back the turn t.
func rewinds(ctx context.Context, c *engine.Call, _ string) error {
	return errOf(c.Restore(ctx, rewindTo("t"), engine.RestoreOptions{}))
}

// writes gives each file the content, by one change, with the directories above it.
func writes(content string, names ...string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.ChangeFiles(ctx, (&tree{ws: ws}).becomes(content, names...)))
	}
}

func creates(name, content string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.Create(ctx, ws+"/"+name, []byte(content), engine.Rules{Parents: true}))
	}
}

func appends(name, tail string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.Append(ctx, ws+"/"+name, []byte(tail), engine.Rules{}))
	}
}

// mkdirs makes a directory, with those above it.
func mkdirs(name string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.Mkdir(ctx, engine.MkdirArgs{Path: ws + "/" + name, Rules: engine.Rules{Parents: true}}))
	}
}

// moves moves a file or tree, over a file that is there, with the directories above the new name.
func moves(from, to string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.Move(ctx, engine.MoveArgs{From: ws + "/" + from, To: ws + "/" + to, Overwrite: true, Rules: engine.Rules{Parents: true}}))
	}
}

// copies copies a file or tree, over a file that is there, with the directories above the new name.
func copies(from, to string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.Copy(ctx, engine.CopyArgs{From: ws + "/" + from, To: ws + "/" + to, Recursive: true, Overwrite: true, Rules: engine.Rules{Parents: true}}))
	}
}

// deletes deletes a file or tree.
func deletes(name string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.Delete(ctx, ws+"/"+name, engine.DeleteOptions{Recursive: true}))
	}
}

// filtered are the lines of looks that keep wants.
func filtered(looks string, keep func(name, mode string) bool) (out string) {
	for line := range strings.Lines(looks) {
		if name, mode, _ := strings.Cut(line, " "); keep(name, mode) {
			out += line
		}
	}
	return out
}

// bare leaves out directories, and files with the temporary names of guardfs: either may stay behind where nothing worked any more.
func bare(looks string) string {
	return filtered(looks, func(name, mode string) bool {
		return mode != "" && !strings.HasPrefix(mode, "d") && !strings.Contains(name, "/.moltis-")
	})
}

// dirs leaves out all but directories.
func dirs(looks string) string {
	return filtered(looks, func(_, mode string) bool { return strings.HasPrefix(mode, "d") })
}

// backAndForth undoes, redoes and undoes the last change: the tree is as it was, as it is, and as it was.
func (x *tree) backAndForth(what, was string) {
	x.t.Helper()
	is := x.looks()
	for i, step := range []act{undoes, redoes, undoes} {
		want := []string{was, is, was}[i]
		if err := x.does(step); err != nil || x.looks() != want {
			x.t.Fatalf("%s: %v\n%.2000s\nshould be\n%.2000s", what, err, x.looks(), want)
		}
	}
}

// lastOf is errOf of three results.
func lastOf[A, B any](_ A, _ B, err error) error { return err }

// becomes makes this of a file or link.
func becomes(name string, after engine.After) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		path := ws + "/" + name
		return errOf(c.ChangeFiles(ctx, engine.Files{Paths: []string{path}, Links: map[string]bool{path: true}, Next: func(ts []*engine.Target) error {
			ts[0].After = after
			return nil
		}}))
	}
}

// untrashes brings back what was deleted last.
func untrashes(ctx context.Context, c *engine.Call, _ string) error {
	page, err := c.Trash(ctx, checkpoint.TrashFilter{})
	if err != nil || len(page.Entries) == 0 {
		return errors.Join(err, errors.New("nothing is in the trash"))
	}
	return errOf(c.Untrash(ctx, page.Entries[0].ID, false))
}

// own leaves out the names that are ours.
func own(looks string) string {
	return filtered(looks, func(name, _ string) bool { return !strings.Contains(name, "/.moltis-") })
}

// writeAll writes several files.
func (x *tree) writeAll(content string, names ...string) {
	x.t.Helper()
	for _, name := range names {
		x.write(name, content)
	}
}

// haveAll fails unless all of these files hold content.
func (x *tree) haveAll(content string, names ...string) {
	x.t.Helper()
	for _, name := range names {
		x.has(name, content)
	}
}
