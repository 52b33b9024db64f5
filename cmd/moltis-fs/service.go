package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/dialect/jettson"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/engine"
	"moltisfs/internal/hook"
	"moltisfs/internal/js"
	"moltisfs/internal/landlock"
	"moltisfs/internal/sandbox"
	"moltisfs/internal/sandbox/place"
	"moltisfs/tools"
)

// offered is one dialect that --dialect can name.
type offered struct {
	name        string
	definitions func(config.Tools) ([]dialect.Definition, error)
	over        func(*engine.Engine, config.Config, *sessionState) (dialect.Dialect, error)
}

// dialects are all that there are; the first is offered unless another is named.
func dialects() []offered {
	return []offered{
		{"tools", tools.DefinitionsUnder,
			func(e *engine.Engine, _ config.Config, _ *sessionState) (dialect.Dialect, error) {
				return tools.Over(e).Dialect(), nil
			}},
		{"capability", capability.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, k *sessionState) (dialect.Dialect, error) {
				d, err := capability.Over(e, cfg.Tools.Capability)
				if err == nil && k != nil {
					d = d.With(&k.Kept)
				}
				return d, err
			}},
		{"jettson", jettson.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, k *sessionState) (dialect.Dialect, error) {
				d, err := jettson.Over(e, cfg.Tools.Jettson)
				if err == nil && k != nil {
					d = d.With(k.homes)
				}
				return d, err
			}},
		{"jsfs", jsfs.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, _ *sessionState) (dialect.Dialect, error) {
				self, err := ownProgram()
				return jsfs.Over(e, jsfs.Options{Config: cfg.Tools.JS, Worker: js.Program{self, jsWorkerCommand().name}}), err
			}},
	}
}

// dialects lists the dialects that the command line names.
func (in *invocation) dialects() (out []offered, err error) {
	all := dialects()
	given := in.option("dialect")
	if given == "" {
		return all[:1], nil
	}
	for name := range strings.SplitSeq(given, ",") {
		i := slices.IndexFunc(all, func(d offered) bool { return d.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, misuse("the dialects are "+dialectNames(), "there is no dialect %q", name)
		}
		if !slices.ContainsFunc(out, func(d offered) bool { return d.name == all[i].name }) {
			out = append(out, all[i])
		}
	}
	return out, nil
}

func dialectNames() string {
	var names []string
	for _, d := range dialects() {
		names = append(names, d.name)
	}
	return strings.Join(names, ", ")
}

// definitionsOf are the tools of the dialects that the command line names, under a configuration
// but without an engine.
func (in *invocation) definitionsOf(cfg config.Config) ([]dialect.Definition, error) {
	chosen, err := in.dialects()
	if err != nil {
		return nil, err
	}
	var all []dialect.Definition
	for _, d := range chosen {
		defs, err := d.definitions(cfg.Tools)
		if err != nil {
			return nil, err
		}
		all = append(all, defs...)
	}
	return all, nil
}

// over opens the dialects that the command line names over an engine, as one.
func (in *invocation) over(e *engine.Engine, cfg config.Config) (dialect.Dialect, error) {
	chosen, err := in.dialects()
	if err != nil {
		return nil, err
	}
	var ds []dialect.Dialect
	for _, one := range chosen {
		d, err := one.over(e, cfg, in.sessions)
		if errors.Is(err, jettson.ErrNoWorkspace) {
			return nil, misuse("name one with --root", "%v", err)
		}
		if err != nil {
			return nil, fmt.Errorf("opening the dialect %s: %w", one.name, err)
		}
		ds = append(ds, d)
	}
	return dialect.Join(ds...), nil
}

// A reloadable is the engine that a server has now, with its dialects. On SIGHUP the configuration is
// read again and another one takes its place: each call ends under the rules that it began with. A
// configuration that can't be used changes nothing.
type reloadable struct {
	open     func(before *instance) (*instance, error)
	sessions *sessionState
	changed  chan struct{} // another one has taken its place

	mu     sync.RWMutex
	now    *instance
	failed string         // why the last reading of the configuration was not taken
	gone   sync.WaitGroup // those that are closing
}

// sessionState keeps the events and workspaces of sessions. It lives through reloads.
type sessionState struct {
	capability.Kept
	homes *engine.Homes
}

// An instance is an engine with its dialects, as one reading of the configuration has it.
type instance struct {
	dialect.Dialect
	e         *engine.Engine
	cfg       config.Config
	file      config.Config // as it stands in the file
	loaded    time.Time
	calls     sync.WaitGroup
	sandboxes *sandboxes // nil: there are none
}

// openInstance opens an engine with the dialects of the command line, for calls of an agent. before is
// the instance until a reload, nil at the start. change adapts options, as in openEngineAs.
func (in *invocation) openInstance(ctx context.Context, approver tools.Approver, before *instance,
	change func(*config.Config, *tools.Options)) (*instance, error) {
	o := opener{in: in, log: in.sandboxLog}
	e, cfg, err := in.openEngineAs(approver, func(cfg *config.Config, as *tools.Options) {
		if change(cfg, as); cfg.Tools.Sandbox.Mode != "off" {
			as.Program.Where = place.Host
		}
		o.cfg, o.as = *cfg, *as
	})
	if err != nil {
		return nil, err
	}
	if err := in.checkSandbox(cfg.Tools.Sandbox); err != nil {
		return nil, closing(e, err)
	}
	in.warnOf(cfg)
	here := cfg
	if c := cfg.Tools.Sandbox; c.All() { // no call runs here, so no workspace has to be
		here.Tools.Jettson.Workspaces = c.Root
	}
	d, err := in.over(e, here)
	if err != nil {
		return nil, closing(e, err)
	}
	s := &instance{Dialect: d, e: e, cfg: cfg, file: o.cfg, loaded: time.Now()}
	if o.cfg.Tools.Sandbox.Mode != "off" {
		o.root = cfg.Tools.FS.WorkspaceRoot
		in.openSandboxes(ctx, s, before, o)
	}
	return s, nil
}

// Close closes the engine, and those in sandboxes first.
func (s *instance) Close() error { return errors.Join(s.sandboxes.Close(), s.e.Close()) }

func (s *instance) handOver() {
	hand := func(e *engine.Engine) error { e.HandOver(); return nil }
	_ = errors.Join(s.sandboxes.each(hand), hand(s.e)) // it can't fail
}

// openReloadable opens what a server has. observer hears of each call; nil: nobody does.
func (in *invocation) openReloadable(ctx context.Context, approver tools.Approver,
	observer hook.Observer) (*reloadable, error) {
	in.sessions = &sessionState{homes: &engine.Homes{}}
	s := &reloadable{sessions: in.sessions, changed: make(chan struct{}, 1), open: func(before *instance) (*instance, error) {
		return in.openInstance(ctx, approver, before, func(_ *config.Config, o *tools.Options) {
			o.Program = tools.Program{Name: in.programName(), Reloads: before != nil}
			o.Hooks.Observer = observer
		})
	}}
	var err error
	s.now, err = s.open(nil)
	in.serving = s
	return s, err
}

// hearing reloads at each SIGHUP until its end is called. On a terminal that signal means that the
// terminal is gone: then it is a stop.
func (s *reloadable) hearing(in *invocation, stop func()) (end func()) {
	heard, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(heard, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range heard {
			if f, ok := in.in.(*os.File); ok && isTerminal(f) {
				stop()
				continue
			}
			policy, err := s.reload()
			s.mu.Lock()
			if s.failed = ""; err != nil {
				s.failed = err.Error()
			}
			s.mu.Unlock()
			if err != nil {
				fmt.Fprintf(in.err, "%s: the configuration is not taken, what held before still holds:\n", program)
				report(in.err, err)
				continue
			}
			fmt.Fprintf(in.err, "%s: the configuration was read again; policy %.12s\n", program, policy)
		}
	}()
	return func() {
		signal.Stop(heard)
		close(heard)
		<-done
	}
}

func (s *reloadable) reload() (policy string, err error) {
	s.mu.RLock()
	old := s.now
	s.mu.RUnlock()
	next, err := s.open(old)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.now = next
	s.mu.Unlock()
	s.sessions.EndWatches() // what waits for an event of theirs ends, so that the one before can close
	select {
	case s.changed <- struct{}{}:
	default: // that is still to be seen
	}
	s.gone.Go(func() {
		old.calls.Wait()
		old.handOver()
		_ = old.Close() // it is told where the next one meets the same
	})
	return next.e.Policy(), nil
}

// remote is how the methods of operators see what is served.
func (s *reloadable) remote(in *invocation) remote {
	return remote{
		config: func() (config.Config, string) {
			s.mu.RLock()
			defer s.mu.RUnlock()
			from := in.findConfig(in.option("config"))
			if abs, err := filepath.Abs(from); err == nil && from != "" {
				from = abs // a reader elsewhere has another working directory
			}
			return s.now.file, from
		},
		served: func() *served {
			s.mu.RLock()
			defer s.mu.RUnlock()
			return &served{Loaded: s.now.loaded, ReloadError: s.failed}
		},
		approver: func() (tools.Approver, error) { return in.approveBy(cmp.Or(in.option("approve"), "queue")) },
	}
}

// use is the instance that serves calls now, until done.
func (s *reloadable) use() (now *instance, done func()) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.now.calls.Add(1)
	return s.now, s.now.calls.Done
}

func (s *reloadable) Close() error {
	s.gone.Wait()
	return s.now.Close()
}

func (s *reloadable) Definitions() []dialect.Definition {
	now, done := s.use()
	defer done()
	return now.Definitions()
}

func (s *reloadable) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	now, done := s.use()
	defer done()
	return now.Call(ctx, c)
}

// EndSession ends a session of a principal in the engine that serves calls now.
func (s *reloadable) EndSession(ctx context.Context, principal, session string, forever bool) error {
	now, done := s.use()
	defer done()
	return endSession(ctx, now.Dialect, principal, session, forever)
}

func endSession(ctx context.Context, d dialect.Dialect, principal, session string, forever bool) error {
	if s, ok := d.(dialect.Sessions); ok {
		return s.EndSession(ctx, principal, session, forever)
	}
	return nil
}

func (s *reloadable) Events(ctx context.Context, c dialect.Call, after int64, most int) (dialect.Events, error) {
	now, done := s.use()
	defer done()
	return events(ctx, now.Dialect, c, after, most)
}

// events gives the events of the dialect d; without any it waits until the caller goes.
func events(ctx context.Context, d dialect.Dialect, c dialect.Call, after int64, most int) (dialect.Events, error) {
	if f, ok := d.(dialect.Feed); ok {
		return f.Events(ctx, c, after, most)
	}
	<-ctx.Done()
	return dialect.Events{Next: after}, nil
}

// runName gives a server's run a name for its session, where nobody names one.
func runName() string {
	return time.Now().UTC().Format("run-20060102-150405-") + strings.ToLower(rand.Text()[:6])
}

// sandboxes is a dialect whose calls run where [tools.sandbox] has their sessions: on this machine, or in a sandbox. Each
// sandbox has an engine of its own, with a data directory of its own on this machine, opened when a call needs it.
type sandboxes struct {
	dialect.Dialect // of this machine
	opener
	over     func(*engine.Engine, config.Config) (dialect.Dialect, error)
	fallback bool // nothing real was there at the start, and none is required: all run on this machine

	mu   sync.Mutex
	at   map[string]*sandboxEngine // by the name of the place
	gone sync.WaitGroup            // those that are closing
}

// A sandboxEngine is a sandbox with its engine.
type sandboxEngine struct {
	at    *place.Place
	calls int       // that need it now, under the lock of all
	over  bool      // the last of them closes it
	used  time.Time // last

	opened atomic.Pointer[instance] // nil: it is not open
	mu     sync.Mutex               // of opening
	err    error                    // why not
	tried  time.Time
}

const (
	maxIdle    = 32              // open at once while nobody needs them
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

// openSandboxes has the calls of an instance run where [tools.sandbox] says, and says what is so at the
// start. A reload takes nobody out of a sandbox that is gone: before is the instance until then.
func (in *invocation) openSandboxes(ctx context.Context, s, before *instance, o opener) {
	b := &sandboxes{Dialect: s.Dialect, opener: o, over: in.over, at: map[string]*sandboxEngine{}}
	s.sandboxes, s.Dialect = b, b
	p, err := b.place("local", "default")
	if err == nil {
		err = p.Real()
	}
	if c := o.cfg.Tools.Sandbox; err == nil && !place.PerSession(c) {
		sandboxEngine, done := b.take(p, false)
		defer done()
		inside, no := sandboxEngine.open(ctx, b, func(string) {})
		if err = no; err == nil && c.Mode == "all" {
			s.cfg = inside.cfg // what is said of this configuration is about there
		}
	}
	if err == nil {
		return
	}
	say := "calls that belong into it are refused until it is there"
	had := before != nil && before.sandboxes != nil && !before.sandboxes.fallback
	if b.fallback = !o.cfg.Tools.Sandbox.Require && !had && ctx.Err() == nil; b.fallback {
		say = "the tools operate on this machine, for all sessions; bound them with allow_paths"
	}
	in.warn([]*config.Problem{{Key: "tools.sandbox", Why: "no real sandbox backend is available (" + sandbox.Cause(err) + "): " + say,
		Hint: program + " doctor says more"}})
}

// checkSandbox refuses what can't be used with sandboxes, at a start and at a reload.
func (in *invocation) checkSandbox(cfg config.Sandbox) error {
	switch {
	case cfg.Mode == "off":
	case in.command.path == "acp":
		return misuse("serve such sessions by "+program+" mcp or serve",
			"the files of an editor are on this machine: acp can't be used with [tools.sandbox]")
	}
	return nil
}

// place is the sandbox of a session.
func (o *opener) place(principal, session string) (*place.Place, error) {
	return place.Of(o.cfg.Tools.Sandbox, o.as.Worker[0], o.root, principal, session)
}

// open opens an engine in a sandbox. Closing it ends the worker. The configuration is that of inside.
func (o *opener) open(ctx context.Context, p *place.Place) (*engine.Engine, config.Config, error) {
	cfg, err := o.cfg.At(p.Root)
	if err != nil {
		return nil, cfg, err
	}
	if err := o.outOfReach(p); err != nil {
		return nil, cfg, err
	}
	wall := p.Root
	if len(o.cfg.Tools.FS.AllowPaths) == 0 {
		wall = "" // the allow list says the same
	}
	s, err := sandbox.Start(ctx, sandbox.Options{Command: p.Worker(), Root: p.Root, Build: readBuild().fingerprint(),
		Log: func(line string) { o.log(p.ID + ": " + line) }})
	if err != nil {
		return nil, cfg, err
	}
	e, err := engine.Open(cfg, engine.Host{
		DataDir: sandboxData(o.as.DataDir, p.ID), Approver: o.as.Approver, Logger: o.as.Logger, GitUser: o.as.GitUser,
		Identities: o.as.Identities, Hooks: o.as.Hooks,
		Program: engine.Program{Name: o.as.Program.Name, Reloads: o.as.Program.Reloads, Worker: o.as.Worker,
			Policies: loadPolicies},
		Root: engine.Root{Only: wall, MayBeGone: o.as.RootMayBeGone,
			Location: engine.Location{Calls: s.Calls(), Where: p.ID, End: s.Close}},
	})
	if err != nil {
		return nil, cfg, errors.Join(err, s.Close())
	}
	return e, cfg, nil
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

// sandboxData is the data directory of the sandbox id below the one of this machine, dir.
func sandboxData(dir, id string) string { return filepath.Join(dir, "sandboxes", id) }

// take finds or adds the sandbox of the place p, and keeps it until done is called. over: no call comes after this one.
func (b *sandboxes) take(p *place.Place, over bool) (one *sandboxEngine, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one = b.at[p.ID]; one == nil {
		one = &sandboxEngine{at: p}
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
		} else if len(b.at) > maxIdle {
			b.drop()
		}
	}
}

// drop closes the sandbox that nobody has needed for the longest time. b.mu is held.
func (b *sandboxes) drop() {
	var oldest *sandboxEngine
	for _, one := range b.at {
		if one.calls == 0 && (oldest == nil || one.used.Before(oldest.used)) {
			oldest = one
		}
	}
	if oldest != nil {
		b.close(oldest)
	}
}

// close takes a sandbox out, which nobody needs. b.mu is held.
func (b *sandboxes) close(one *sandboxEngine) {
	delete(b.at, one.at.ID)
	if s := one.opened.Load(); s != nil {
		b.gone.Go(func() { _ = s.e.Close() }) // what it could not write is in its log
	}
}

// open opens the engine of the sandbox, unless it is open. say hears why it could not.
func (x *sandboxEngine) open(ctx context.Context, b *sandboxes, say func(line string)) (*instance, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.opened.Load(); s != nil || x.err != nil && time.Since(x.tried) < tryAgainIn {
		return s, x.err
	}
	e, cfg, err := b.opener.open(ctx, x.at)
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
	s := &instance{Dialect: d, e: e, cfg: cfg}
	x.opened.Store(s)
	return s, nil
}

// of gives the place of the calls of a session; nil is this machine.
func (b *sandboxes) of(principal, session string) (*place.Place, error) {
	principal, session = cmp.Or(principal, "local"), cmp.Or(session, "default")
	if b.fallback || !place.Has(b.cfg.Tools.Sandbox, principal, session) {
		return nil, nil
	}
	return b.place(principal, session)
}

// reach gives the dialect that carries out the calls of a session, and the name of its place. It stays
// open until done. The error says why it can't be reached.
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
func (b *sandboxes) EndSession(ctx context.Context, principal, session string, forever bool) error {
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
	return endSession(ctx, d, principal, session, forever)
}

func (b *sandboxes) Events(ctx context.Context, c dialect.Call, after int64, most int) (dialect.Events, error) {
	d, _, done, err := b.reach(ctx, c.Principal, c.Session)
	defer done()
	if err != nil {
		d = nil
	}
	return events(ctx, d, c, after, most)
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

// Text adds the place to the text: in its JSON object, or as a last line.
func (l located) Text() string {
	text := l.Answer.Text()
	if _, is := l.Answer.(payload); !is && json.Valid([]byte(text)) {
		object, _ := l.withWhere([]byte(text), nil) // it can't fail
		return string(object)
	}
	_, line := l.inside()
	return strings.TrimSuffix(text, "\n") + "\n" + line
}

// inside gives the answer without the place, and the line for it.
func (l located) inside() (dialect.Answer, string) { return l.Answer, "[where: " + l.where + "]" }

func (l located) JSON(bytes bool) ([]byte, error) { return l.withWhere(l.Answer.JSON(bytes)) }

func (l located) withWhere(object []byte, err error) ([]byte, error) {
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
		return l.withWhere(brief.Brief())
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

// opener gives the opener of sandboxes for an operator, as the command line says.
func (in *invocation) opener() (*opener, error) {
	s, err := in.settings()
	if err != nil {
		return nil, err
	}
	protect, err := in.ownFiles(&s)
	return &opener{in: in, cfg: s.cfg, root: cmp.Or(s.root, s.cfg.Tools.FS.WorkspaceRoot), log: in.sandboxLog,
		as: tools.Options{Worker: []string{s.self, workerCommand().name}, DataDir: s.dir, Protect: protect}}, err
}

func (in *invocation) sandboxLog(line string) {
	fmt.Fprintf(in.err, "%s: sandbox %s\n", program, visible(line))
}

// directory is the start of relative paths in a person's call: the root of its sandbox, or else
// the working directory. "" if neither is known; the call itself then tells why.
func (s *instance) directory(c dialect.Call) string {
	if s.sandboxes != nil {
		switch p, err := s.sandboxes.of(c.Principal, c.Session); {
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
	e, cfg, err := o.open(context.Background(), p)
	if err != nil {
		err = &exitError{exitBroken, fmt.Sprintf("the sandbox %s can't be reached: %s", p.ID, sandbox.Cause(err)),
			byHand(p), tools.KindUnavailable}
	}
	return e, cfg, err
}

// sandboxPlace gives the place that --sandbox names, until done; this machine without that option.
func (in *invocation) sandboxPlace() (at engine.Location, done func(), err error) {
	if in.option("sandbox") == "" {
		return at, func() {}, nil
	}
	e, _, err := in.openEngineAs(nil, func(_ *config.Config, o *tools.Options) { o.RootMayBeGone = true })
	if err != nil {
		return at, nil, err
	}
	return e.Location(), func() { _ = e.Close() }, nil // it only looked, and what it removed is removed
}

// sandboxWorkerCommand makes the system calls of sandboxed sessions where it runs. The program that
// serves the sessions starts it by what [tools.sandbox] says.
func sandboxWorkerCommand() *command {
	return &command{
		name: "worker", hidden: true, short: "make the system calls of a sandboxed session",
		options: options("root"),
		run: func(_ context.Context, in *invocation) error {
			w := sandbox.Work{Root: in.values["root"], Build: readBuild().fingerprint(), Confine: confineWorker}
			return w.Run(0, 1)
		},
	}
}

// confineWorker has the kernel keep the process in the root, where it can.
func confineWorker(root string) (bool, error) {
	if landlock.ABI() == 0 {
		return false, nil
	}
	return true, landlock.Restrict([]string{"/proc/self/mountinfo"}, []string{root}) // searches look at that
}

func byHand(p *place.Place) string {
	return "try it by hand: " + strings.Join(p.Command(p.Program, "version"), " ")
}

// instructions gives the text that an MCP client may pass to its model once, in the words of the
// dialects that are offered: defs are their tools, cfg the configuration.
func (in *invocation) instructions(cfg config.Config, defs []dialect.Definition) string {
	var b strings.Builder
	b.WriteString(strings.Join(in.manners(cfg), " "))
	if writes(defs) && cfg.Tools.FS.MustReadBeforeWrite {
		b.WriteString(" Read a file before changing it.")
	}
	return b.String()
}

// manners say of each dialect what it offers, and how paths are written there.
func (in *invocation) manners(cfg config.Config) (out []string) {
	where := " Paths are absolute."
	if root := cfg.Tools.FS.WorkspaceRoot; root != "" {
		where += " The workspace is " + root
		if in.option("root") != "" {
			where += "; nothing outside of it is open"
		}
		where += "."
	}
	chosen, _ := in.dialects() // they are open
	for _, d := range chosen {
		switch d.name {
		case "jettson":
			out = append(out, "jettson_files_* see /workspace and nothing else. Their paths are relative to it.")
		case "jsfs":
			out = append(out, "run_js runs JavaScript; its fs, where it has one, is under an operator's policy."+where)
		case "capability":
			out = append(out, "filesystem.* are file capabilities under an operator's policy."+where)
		default:
			out = append(out, "File tools under an operator's policy."+where)
		}
		if d.name != "jettson" {
			where = "" // said
		}
	}
	return out
}

func writes(defs []dialect.Definition) bool {
	return slices.ContainsFunc(defs, func(d dialect.Definition) bool { return !d.ReadOnly })
}

// asking tells a model how its changes are approved: first where its client asks its user, then elsewhere, by --approve.
func asking(cfg config.Config, defs []dialect.Definition, how string) (say [2]string) {
	if !asksFirst(cfg, defs) {
		return say
	}
	say[0] = " Each change is put before the user, with its diff."
	switch {
	case how == "elicitation":
		say[1] = " Changes need approval and this client can't ask for it, so they are refused, unless the " +
			"operator starts the server with --approve yes or queue."
	case how == "never", how == "terminal" && !hasTerminal():
		say[1] = " Changes are refused for now."
	case how == "terminal", how == "queue":
		say[1] = say[0]
	}
	return say
}

// asksFirst says whether changes are asked about.
func asksFirst(cfg config.Config, defs []dialect.Definition) bool {
	return writes(defs) && cfg.Tools.FS.RequireApproval
}

// payload is an answer of the tools.
type payload interface{ Unwrap() tools.Payload }
