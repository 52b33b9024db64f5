package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/confine"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/sandbox"
	"moltisfs/internal/sandbox/place"
	"moltisfs/tools"
)

// sandboxes is a dialect whose calls run where [tools.sandbox] has their sessions: on this machine, or in a sandbox. Each
// sandbox has an engine of its own, with a data directory of its own on this machine, opened when a call needs it.
type sandboxes struct {
	dialect.Dialect // of this machine
	opener
	over func(*engine.Engine, config.Config) (dialect.Dialect, error)
	fall bool // nothing real was there at the start, and none is required: all run on this machine

	mu   sync.Mutex
	at   map[string]*box // by the name of the place
	gone sync.WaitGroup  // those that are closing
}

// box is a sandbox with its engine.
type box struct {
	at    *place.Place
	calls int       // that need it now, under the lock of all
	over  bool      // the last of them closes it
	used  time.Time // last

	opened atomic.Pointer[stand] // nil: it is not open
	mu     sync.Mutex            // of opening
	err    error                 // why not
	tried  time.Time
}

const (
	mostBoxes  = 32              // open at once while nobody needs them
	tryAgainIn = 2 * time.Second // after a sandbox could not be reached
)

// opener opens engines in sandboxes, as one on this machine was.
type opener struct {
	in   *invocation
	cfg  config.Config // as it stands in the file
	root string        // of this machine
	as   tools.Options
	log  func(line string)
}

// sandboxed has the calls of a stand run where [tools.sandbox] says, and says what is so at the
// start. A reload takes nobody out of a sandbox that is gone: before is what stood until then.
func (in *invocation) sandboxed(ctx context.Context, s, before *stand, o opener) {
	b := &sandboxes{Dialect: s.Dialect, opener: o, over: in.over, at: map[string]*box{}}
	s.boxes, s.Dialect = b, b
	p, err := b.place("local", "default")
	if err == nil {
		err = p.Real()
	}
	if c := o.cfg.Tools.Sandbox; err == nil && !place.PerSession(c) {
		box, done := b.take(p, false)
		defer done()
		inside, no := box.open(ctx, b, func(string) {})
		if err = no; err == nil && c.Mode == "all" {
			s.cfg = inside.cfg // what is said of this configuration is about there
		}
	}
	if err == nil {
		return
	}
	say := "calls that belong into it are refused until it is there"
	had := before != nil && before.boxes != nil && !before.boxes.fall
	if b.fall = !o.cfg.Tools.Sandbox.Require && !had && ctx.Err() == nil; b.fall {
		say = "the tools operate on this machine, for all sessions; bound them with allow_paths"
	}
	in.warn([]*config.Problem{{Key: "tools.sandbox", Why: "no real sandbox backend is available (" + sandbox.Cause(err) + "): " + say,
		Hint: program + " doctor says more"}})
}

// unboxed refuses what can't be used with sandboxes, at a start and at a reload.
func (in *invocation) unboxed(cfg config.Sandbox) error {
	switch {
	case cfg.Mode == "off":
	case in.command.path == "acp":
		return misuse("serve such sessions by "+program+" mcp or serve",
			"the files of an editor are on this machine: acp can't be used with [tools.sandbox]")
	case in.given("confine"):
		return misuse("leave it out: a worker is held to its root by itself",
			"--confine can't be used with [tools.sandbox]: the kernel would hold what starts a worker, too")
	}
	return nil
}

// place is the sandbox of a session.
func (o *opener) place(principal, session string) (*place.Place, error) {
	return place.Of(o.cfg.Tools.Sandbox, o.as.Worker[0], o.root, principal, session)
}

// open opens an engine in a sandbox. Closing it ends the worker. The configuration is that of inside.
func (o *opener) open(ctx context.Context, p *place.Place) (*engine.Engine, config.Config, sandbox.Hello, error) {
	var no sandbox.Hello
	cfg, err := o.cfg.At(p.Root)
	if err != nil {
		return nil, cfg, no, err
	}
	if err := o.outOfReach(p); err != nil {
		return nil, cfg, no, err
	}
	wall := p.Root
	if len(o.cfg.Tools.FS.AllowPaths) == 0 {
		wall = "" // the allow list says the same
	}
	s, err := sandbox.Start(ctx, sandbox.Options{Command: p.Worker(), Root: p.Root, Build: readBuild().id(),
		Log: func(line string) { o.log(p.ID + ": " + line) }})
	if err != nil {
		return nil, cfg, no, err
	}
	e, err := engine.Open(cfg, engine.Host{
		DataDir: sandboxData(o.as.DataDir, p.ID), Approver: o.as.Approver, Logger: o.as.Logger, GitUser: o.as.GitUser,
		Identities: o.as.Identities, Progress: o.as.Progress, Hooks: o.as.Hooks,
		Program: engine.Program{Name: o.as.Program.Name, Reloads: o.as.Program.Reloads, Worker: o.as.Worker,
			Policies: loadPolicies},
		Root: engine.Root{Only: wall, MayBeGone: o.as.RootMayBeGone,
			Place: engine.Place{Calls: s.Calls(), Where: p.ID, End: s.Close}},
	})
	if err != nil {
		return nil, cfg, no, errors.Join(err, s.Close())
	}
	return e, cfg, s.Hello(), nil
}

// outOfReach says that a sandbox holds nothing of ours and lies in nothing of ours, as far as that can
// be told: there it would be an agent's like any other file, with the program and the rules that the
// next start obeys.
func (o *opener) outOfReach(p *place.Place) error {
	if p.Dir == "" {
		return nil
	}
	dir := resolved(p.Dir)
	for _, ours := range append([]string{o.as.DataDir}, o.as.Protect...) {
		if at := resolved(ours); ours != "" && (liesIn(dir, at) || liesIn(at, dir)) {
			return fmt.Errorf("its directory %s has %s in it or lies there, which no agent may reach: keep that "+
				"elsewhere", p.Dir, ours)
		}
	}
	return nil
}

// resolved is a path without links, as far as it leads anywhere.
func resolved(path string) string {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		return at
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

// sandboxData is where the history of a sandbox is.
func sandboxData(dir, id string) string { return filepath.Join(dir, "sandboxes", id) }

// take is the box of a place, which stays until done. over: nobody comes again.
func (b *sandboxes) take(p *place.Place, over bool) (one *box, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one = b.at[p.ID]; one == nil {
		one = &box{at: p}
		b.at[p.ID] = one
	}
	one.calls, one.over = one.calls+1, over
	return one, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		one.calls--
		one.used = time.Now()
		if one.over && one.calls == 0 {
			b.close(one)
		} else if len(b.at) > mostBoxes {
			b.drop()
		}
	}
}

// drop closes the box that nobody has needed for the longest time. b.mu is held.
func (b *sandboxes) drop() {
	var oldest *box
	for _, one := range b.at {
		if one.calls == 0 && (oldest == nil || one.used.Before(oldest.used)) {
			oldest = one
		}
	}
	if oldest != nil {
		b.close(oldest)
	}
}

// close takes a box out, which nobody needs. b.mu is held.
func (b *sandboxes) close(one *box) {
	delete(b.at, one.at.ID)
	if s := one.opened.Load(); s != nil {
		b.gone.Go(func() { _ = s.e.Close() }) // what it could not write is in its log
	}
}

// open opens a box that is not. Why it could not goes to say.
func (x *box) open(ctx context.Context, b *sandboxes, say func(line string)) (*stand, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.opened.Load(); s != nil || x.err != nil && time.Since(x.tried) < tryAgainIn {
		return s, x.err
	}
	e, cfg, _, err := b.opener.open(ctx, x.at)
	var d dialect.Dialect
	if err == nil {
		if d, err = b.over(e, cfg); err != nil {
			err = closing(e, err)
		}
	}
	if x.err, x.tried = err, time.Now(); err != nil {
		say(x.at.ID + ": " + sandbox.Cause(err))
		return nil, err
	}
	s := &stand{Dialect: d, e: e, cfg: cfg}
	x.opened.Store(s)
	return s, nil
}

// of is where the calls of a session belong; nil: on this machine.
func (b *sandboxes) of(principal, session string) (*place.Place, error) {
	principal, session = cmp.Or(principal, "local"), cmp.Or(session, "default")
	if b.fall || !place.Has(b.cfg.Tools.Sandbox, principal, session) {
		return nil, nil
	}
	return b.place(principal, session)
}

// reach is where a session's calls run, with its name, until done. The error says why it can't be reached.
func (b *sandboxes) reach(ctx context.Context, principal, session string) (d dialect.Dialect, where string,
	done func(), err error) {
	p, err := b.of(principal, session)
	switch {
	case err != nil:
		b.log("not found: " + err.Error())
		return b.Dialect, "sandbox", func() {}, err
	case p == nil:
		return b.Dialect, place.Host, func() {}, nil
	}
	one, done := b.take(p, false)
	s, err := one.open(context.WithoutCancel(ctx), b, b.log)
	if err != nil {
		return b.Dialect, p.ID, done, err
	}
	return s.Dialect, p.ID, done, nil
}

// Call carries out a call where its session has its place. It never runs anywhere else.
func (b *sandboxes) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	d, where, done, err := b.reach(ctx, c.Principal, c.Session)
	defer done()
	if err != nil {
		c.Unavailable = &dialect.Unreachable{Where: where, Err: err}
	}
	a, err := d.Call(ctx, c)
	if err != nil {
		return a, err
	}
	return located{a, where}, nil
}

// EndSession ends a session, and with it a sandbox that is the session's own. One that is not open
// has nothing of it.
func (b *sandboxes) EndSession(ctx context.Context, principal, session string) error {
	d := b.Dialect
	if p, _ := b.of(principal, session); p != nil { // of a name that can't be, no call was made
		one, done := b.take(p, place.PerSession(b.cfg.Tools.Sandbox))
		defer done()
		s := one.opened.Load()
		if s == nil {
			return nil
		}
		d = s.Dialect
	}
	if s, ok := d.(dialect.Sessions); ok {
		return s.EndSession(ctx, principal, session)
	}
	return nil
}

func (b *sandboxes) Events(ctx context.Context, c dialect.Call, after int64, most int) (dialect.Events, error) {
	d, _, done, err := b.reach(ctx, c.Principal, c.Session)
	defer done()
	if f, ok := d.(dialect.Feed); ok && err == nil {
		return f.Events(ctx, c, after, most)
	}
	<-ctx.Done()
	return dialect.Events{Next: after}, nil
}

// each does something with every engine that is open.
func (b *sandboxes) each(do func(*engine.Engine) error) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, one := range b.at {
		if s := one.opened.Load(); s != nil {
			errs = append(errs, do(s.e))
		}
	}
	return errors.Join(errs...)
}

func (b *sandboxes) Close() error {
	err := b.each((*engine.Engine).Close)
	if b != nil {
		b.gone.Wait()
	}
	return err
}

// located is an answer that says where its call ran.
type located struct {
	dialect.Answer
	where string
}

// Text has it where its form does: in the object, or as a last line.
func (l located) Text() string {
	text := l.Answer.Text()
	if _, is := l.Answer.(payload); !is && json.Valid([]byte(text)) {
		object, _ := l.in([]byte(text), nil) // it can't fail
		return string(object)
	}
	_, line := l.inside()
	return strings.TrimSuffix(text, "\n") + "\n" + line
}

// inside is the answer itself, and the line.
func (l located) inside() (dialect.Answer, string) { return l.Answer, "[where: " + l.where + "]" }

func (l located) JSON(bytes bool) ([]byte, error) { return l.in(l.Answer.JSON(bytes)) }

func (l located) in(object []byte, err error) ([]byte, error) {
	n := len(object)
	if err != nil || n < 2 || object[n-1] != '}' {
		return object, err
	}
	end := `"where":"` + l.where + `"}`
	if n > 2 {
		end = "," + end
	}
	return append(slices.Clip(object[:n-1]), end...), nil
}

func (l located) Brief() ([]byte, error) {
	if brief, ok := l.Answer.(dialect.Brief); ok {
		return l.in(brief.Brief())
	}
	return l.JSON(false)
}

// named is the sandbox that --sandbox names: p is nil where only its history can be told.
func (o *opener) named(name string) (id string, p *place.Place, err error) {
	who := cmp.Or(o.in.option("principal"), "local")
	info, gone := os.Stat(sandboxData(o.as.DataDir, name))
	if isID := gone == nil && info.IsDir() && filepath.Base(filepath.Join("/", name)) == name; isID {
		p, err = o.place(who, cmp.Or(o.in.option("session"), "default"))
		if err != nil || p.ID != name {
			return name, nil, misuse("name its session in the place of it, or in --session; the configuration has to be "+
				"the one that it was made with", "[tools.sandbox] leads to no sandbox %s", visible(name))
		}
		return name, p, nil
	}
	if !place.Has(o.cfg.Tools.Sandbox, who, name) {
		return "", nil, misuse("its name stands in answers and in the audit log", "there is no sandbox %s, and no "+
			"session of that name is in one", visible(name))
	}
	if p, err = o.place(who, name); err != nil {
		return "", nil, misuse("", "%v", err)
	}
	return p.ID, p, nil
}

// sandboxDir is the data directory that --sandbox says.
func (in *invocation) sandboxDir(dir string) (string, error) {
	name := in.option("sandbox")
	if name == "" {
		return dir, nil
	}
	o, err := in.opener()
	if err != nil {
		return "", err
	}
	id, _, err := o.named(name)
	if id == "" {
		return "", err
	}
	return sandboxData(dir, id), nil // of one whose sandbox is gone, the history is there
}

// opener is what opens a sandbox for an operator, as the command line says.
func (in *invocation) opener() (*opener, error) {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return nil, unusableConfig(err, from)
	}
	root, err := in.root()
	if err != nil {
		return nil, err
	}
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	dir, err := in.hostData()
	if err != nil {
		return nil, err
	}
	protect, err := in.ownFiles(from, self, cfg.Tools.FS)
	return &opener{in: in, cfg: cfg, root: cmp.Or(root, cfg.Tools.FS.WorkspaceRoot), log: in.sandboxLog,
		as: tools.Options{Worker: []string{self, workerCommand().name}, DataDir: dir,
			Protect: protect}}, err
}

func (in *invocation) sandboxLog(line string) {
	fmt.Fprintf(in.err, "%s: sandbox %s\n", program, visible(line))
}

// directory is what relative paths of a person's call start from: the root of its sandbox, or else
// the working directory. "" if neither is known; the call itself then tells why.
func (s *stand) directory(c dialect.Call) string {
	if s.boxes != nil {
		switch p, err := s.boxes.of(c.Principal, c.Session); {
		case err != nil:
			return ""
		case p != nil:
			return p.Root
		}
	}
	here, _ := os.Getwd()
	return here
}

// engineIn opens the engine of --sandbox; nil without that.
func (in *invocation) engineIn(cfg config.Config, as tools.Options) (*engine.Engine, config.Config, error) {
	o, err := in.opener()
	if err != nil {
		return nil, cfg, err
	}
	_, p, err := o.named(in.option("sandbox"))
	if err != nil {
		return nil, cfg, err
	}
	as.DataDir = o.as.DataDir
	o.cfg, o.as = cfg, as
	e, cfg, _, err := o.open(context.Background(), p)
	if err != nil {
		err = unreached(p, err)
	}
	return e, cfg, err
}

// sandboxPlace is where --sandbox is, until done; this machine without that.
func (in *invocation) sandboxPlace() (at engine.Place, done func(), err error) {
	if in.option("sandbox") == "" {
		return at, func() {}, nil
	}
	e, _, err := in.openEngineAs(nil, func(_ *config.Config, o *tools.Options) { o.RootMayBeGone = true })
	if err != nil {
		return at, nil, err
	}
	return e.Place(), func() { _ = e.Close() }, nil // it only looked, and what it removed is removed
}

func (in *invocation) emptyTrash(ctx context.Context, db *checkpoint.DB, going []checkpoint.Trashed) error {
	at, done, err := in.sandboxPlace()
	if err != nil {
		return err
	}
	defer done()
	return engine.EmptyTrash(ctx, at, db, going)
}

// sandboxWorkerCommand makes the system calls of sandboxed sessions where it runs. The program that
// serves the sessions starts it by what [tools.sandbox] says.
func sandboxWorkerCommand() *command {
	return &command{
		name: "worker", hidden: true, short: "make the system calls of a sandboxed session",
		options: options("root"),
		run: func(_ context.Context, in *invocation) error {
			w := sandbox.Work{Root: in.values["root"], Build: readBuild().id(), Confine: confineWorker}
			return w.Run(0, 1)
		},
	}
}

// confineWorker has the kernel keep the process in the root, where it can.
func confineWorker(root string) (bool, error) {
	if confine.ABI() == 0 {
		return false, nil
	}
	return true, confine.Restrict([]confine.Rule{{Path: root, Right: confine.Write, Dir: true},
		{Path: "/proc/self/mountinfo", Right: confine.Read}}, false, nil) // searches look at that
}

// id tells builds apart.
func (b build) id() string {
	return fmt.Sprintf("%s %s %v %s/%s", b.Version, b.Revision, b.Modified, b.OS, b.Arch)
}
