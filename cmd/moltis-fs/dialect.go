package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/dialect/jettson"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/engine"
	"moltisfs/internal/sandbox/place"
	"moltisfs/tools"
)

// offered is one dialect that --dialect can name.
type offered struct {
	name        string
	definitions func(config.Tools) ([]dialect.Definition, error)
	over        func(*engine.Engine, config.Config, *lasting) (dialect.Dialect, error)
}

// dialects are all that there are; the first is offered unless another is named.
func dialects() []offered {
	return []offered{
		{"tools", tools.DefinitionsUnder,
			func(e *engine.Engine, _ config.Config, _ *lasting) (dialect.Dialect, error) {
				return tools.Over(e).Dialect(), nil
			}},
		{"capability", capability.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, k *lasting) (dialect.Dialect, error) {
				d, err := capability.Over(e, cfg.Tools.Capability)
				if err == nil && k != nil {
					d = d.With(&k.Kept)
				}
				return d, err
			}},
		{"jettson", jettson.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, k *lasting) (dialect.Dialect, error) {
				d, err := jettson.Over(e, cfg.Tools.Jettson)
				if err == nil && k != nil {
					d = d.With(k.homes)
				}
				return d, err
			}},
		{"jsfs", jsfs.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, _ *lasting) (dialect.Dialect, error) {
				worker, err := jsProgram()
				return jsfs.Over(e, jsfs.Options{Config: cfg.Tools.JS, Worker: worker}), err
			}},
	}
}

// dialects are those that the command line names.
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

// over stands the dialects that the command line names on an engine, as one.
func (in *invocation) over(e *engine.Engine, cfg config.Config) (dialect.Dialect, error) {
	chosen, err := in.dialects()
	if err != nil {
		return nil, err
	}
	var ds []dialect.Dialect
	for _, one := range chosen {
		d, err := one.over(e, cfg, in.lasting)
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

// A standing is the engine that a server has now, with its dialects. On SIGHUP the configuration is
// read again and another one takes its place: each call ends under the rules that it began with. A
// configuration that can't be used changes nothing.
type standing struct {
	open    func(before *stand) (*stand, error)
	lasting *lasting
	changed chan struct{} // another one has taken its place

	mu   sync.RWMutex
	now  *stand
	gone sync.WaitGroup // those that are closing
}

// lasting keeps the events and workspaces of sessions. It lives through reloads.
type lasting struct {
	capability.Kept
	homes *engine.Homes
}

type stand struct {
	dialect.Dialect
	e     *engine.Engine
	cfg   config.Config
	calls sync.WaitGroup
	boxes *sandboxes // nil: there are none
}

// opens opens an engine with the dialects of the command line, for calls of an agent. before is what
// stood until a reload; nil: nothing did.
func (in *invocation) opens(ctx context.Context, approver tools.Approver, before *stand,
	change func(*config.Config, *tools.Options)) (*stand, error) {
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
	if err := in.unboxed(cfg.Tools.Sandbox); err != nil {
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
	s := &stand{Dialect: d, e: e, cfg: cfg}
	if o.cfg.Tools.Sandbox.Mode != "off" {
		o.root = cfg.Tools.FS.WorkspaceRoot
		in.sandboxed(ctx, s, before, o)
	}
	return s, nil
}

// Close closes the engine, and those in sandboxes first.
func (s *stand) Close() error { return errors.Join(s.boxes.Close(), s.e.Close()) }

func (s *stand) handOver() {
	hand := func(e *engine.Engine) error { e.HandOver(); return nil }
	_ = errors.Join(s.boxes.each(hand), hand(s.e)) // it can't fail
}

// stands opens what a server has. change adapts options, as in openEngineAs.
func (in *invocation) stands(ctx context.Context, approver tools.Approver,
	change func(*config.Config, *tools.Options)) (*standing, error) {
	in.lasting = &lasting{homes: &engine.Homes{}}
	s := &standing{lasting: in.lasting, changed: make(chan struct{}, 1), open: func(before *stand) (*stand, error) {
		return in.opens(ctx, approver, before, func(cfg *config.Config, o *tools.Options) {
			o.Program = tools.Program{Name: in.programName(), Reloads: before != nil}
			change(cfg, o)
		})
	}}
	var err error
	s.now, err = s.open(nil)
	return s, err
}

// hearing reloads at each SIGHUP until its end is called. On a terminal that signal means that the
// terminal is gone: then it is a stop.
func (s *standing) hearing(in *invocation, stop func()) (end func()) {
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

func (s *standing) reload() (policy string, err error) {
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
	s.lasting.EndWatches() // what waits for an event of theirs ends, so that the one before can close
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

// use is what stands now, until done.
func (s *standing) use() (now *stand, done func()) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.now.calls.Add(1)
	return s.now, s.now.calls.Done
}

func (s *standing) Close() error {
	s.gone.Wait()
	return s.now.Close()
}

func (s *standing) Definitions() []dialect.Definition {
	now, done := s.use()
	defer done()
	return now.Definitions()
}

func (s *standing) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	now, done := s.use()
	defer done()
	return now.Call(ctx, c)
}

// EndSession ends a session of a principal in the engine that serves calls now.
func (s *standing) EndSession(ctx context.Context, principal, session string) error {
	now, done := s.use()
	defer done()
	if d, ok := now.Dialect.(dialect.Sessions); ok {
		return d.EndSession(ctx, principal, session)
	}
	return nil
}

func (s *standing) Events(ctx context.Context, c dialect.Call, after int64, most int) (dialect.Events, error) {
	now, done := s.use()
	defer done()
	if d, ok := now.Dialect.(dialect.Feed); ok {
		return d.Events(ctx, c, after, most)
	}
	<-ctx.Done()
	return dialect.Events{Next: after}, nil
}

// runName is what the session of a server's run is called where nobody names it.
func runName() string {
	return time.Now().UTC().Format("run-20060102-150405-") + strings.ToLower(rand.Text()[:6])
}
