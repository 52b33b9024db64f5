package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/audit"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/sandbox"
	"moltisfs/readers"
	"moltisfs/tools"
)

// TestCloseTwice: Close may be called again, at the same time too, and a call after it is refused, whatever the tool.
func TestCloseTwice(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation, fs.TrackReads = true, true }, tools.Options{})
	f := write(t, root+"/a.txt", "one\n")
	call(t, s, "Read", map[string]any{"file_path": f})
	call(t, s, "Write", map[string]any{"file_path": f, "content": "two\n"})
	call(t, s, "Grep", map[string]any{"pattern": "two"})
	must(t, s.Close())
	for _, d := range tools.Definitions() {
		p, err := s.Call(context.Background(), tools.Call{Tool: d.Name, Args: json.RawMessage(`{"file_path":"` + f + `","pattern":"two","content":"three\n"}`)})
		if p != nil || !errors.Is(err, tools.ErrClosed) {
			t.Errorf("%s after Close: %v, %v", d.Name, p, err)
		}
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing again: %v", err)
			}
		})
	}
	wg.Wait()
	has(t, f, "two\n")
}

// TestCloseDuringAQuestion: Close takes the question back, also from an approver that hears nothing, and the call changes nothing.
func TestCloseDuringAQuestion(t *testing.T) {
	t.Parallel()
	for _, obeys := range []bool{true, false} {
		for _, own := range []bool{true, false} { // whose approver it is
			asked, never := make(chan struct{}), make(chan struct{})
			defer close(never)
			ask := tools.ApproverFunc(func(ctx context.Context, _ tools.Question) (tools.Answer, error) {
				close(asked)
				if obeys {
					<-ctx.Done()
				} else {
					<-never
				}
				return tools.Answer{Decision: tools.Approved}, nil // too late
			})
			var o tools.Options
			c := tools.Call{Tool: "Write"}
			if own {
				c.Approver = ask
			} else {
				o.Approver = ask
			}
			s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, o)
			f := write(t, root+"/a.txt", "one\n")
			c.Args = json.RawMessage(`{"file_path":"` + f + `","content":"two\n"}`)
			ended := make(chan error)
			go func() {
				p, err := s.Call(context.Background(), c)
				if p != nil {
					t.Errorf("answered: %s", p.Text())
				}
				ended <- err
			}()
			<-asked
			closed := make(chan error)
			go func() { closed <- s.Close() }()
			if err := <-ended; !errors.Is(err, tools.ErrClosed) {
				t.Errorf("obeys %v: the call whose question was taken back: %v", obeys, err)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			has(t, f, "one\n")
			log := records(t, filepath.Join(filepath.Dir(root), "data"))
			if !strings.Contains(log, `"tool":"Write"`) {
				t.Errorf("it is not on record: %s", log)
			}
		}
	}
}

// closable opens one of each type that holds files and can be closed, and has it do something; guardfs has a test of its own for its files. use is
// the call of a user who is late: its error has to say that it is closed. nil: it needs nothing that was given back.
var closable = map[string]func(t *testing.T, dir string) (close func() error, use func() error){
	"internal/engine.Engine": func(t *testing.T, dir string) (func() error, func() error) {
		cfg := config.Default().Tools.FS
		cfg.TrackReads, cfg.CheckpointBeforeMutation = true, true
		e, err := engine.OpenOver(engine.Options{Config: cfg, Judge: policy.AllowAll{}, DataDir: dir})
		must(t, err)
		use := func() error { return e.Record(&engine.Call{}, time.Now(), "ok", nil) }
		must(t, use())
		return e.Close, use
	},
	"internal/audit.Log": func(t *testing.T, dir string) (func() error, func() error) {
		l, err := audit.Options{}.Open(dir + "/audit")
		must(t, err)
		use := func() error { return l.Append(audit.Record{Tool: "Read"}) }
		must(t, use())
		return l.Close, use
	},
	"internal/sandbox.Session": func(t *testing.T, dir string) (func() error, func() error) {
		s, err := sandbox.Start(t.Context(), sandbox.Options{
			Command: []string{os.Args[0], workerArg, dir}, Root: dir, Build: "test"})
		if err != nil && strings.Contains(err.Error(), "takes Linux") {
			t.Skip("SKIPPED: ", err)
		}
		must(t, err)
		f, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}, Calls: s.Calls()})
		must(t, err)
		t.Cleanup(func() { f.Close() })
		return s.Close, func() error { _, err := f.Resolve(dir, guardfs.Read); return err }
	},
	"checkpoint.DB": func(t *testing.T, dir string) (func() error, func() error) {
		db, err := checkpoint.Open(dir+"/checkpoints", checkpoint.Options{})
		must(t, err)
		return db.Close, func() error { _, err := db.List(context.Background(), checkpoint.Filter{}); return err }
	},
	"readers.Readers": func(t *testing.T, dir string) (func() error, func() error) {
		r, err := readers.New(readers.Config{CacheDir: dir + "/cache"})
		must(t, err)
		_, err = r.Read(context.Background(), readers.Source{R: strings.NewReader("one\n"), Size: 4}, readers.Options{})
		must(t, err)
		return r.Close, nil
	},
	"internal/guardfs.FS": func(t *testing.T, dir string) (func() error, func() error) {
		f := guarded(t)
		use := func() error {
			h, err := f.Resolve(dir, guardfs.Read)
			if err == nil {
				h.Close()
			}
			return err
		}
		must(t, use())
		return f.Close, use
	},
	"internal/guardfs.Dir": func(t *testing.T, dir string) (func() error, func() error) {
		h, err := guarded(t).Resolve(dir, guardfs.Read)
		must(t, err)
		defer h.Close()
		d, err := h.Dir()
		must(t, err)
		return d.Close, func() error { _, _, err := d.List(nil); return err }
	},
	"internal/engine.Watching": func(t *testing.T, dir string) (func() error, func() error) {
		e, err := engine.OpenOver(engine.Options{
			Config: config.Default().Tools.FS, Judge: policy.AllowAll{}, DataDir: t.TempDir(),
		})
		must(t, err)
		t.Cleanup(func() { e.Close() })
		var w *engine.Watching
		c := &engine.Call{}
		_, err = engine.Do(t.Context(), e, c, engine.Operation[any, *dialect.Object]{
			Run: func(ctx context.Context, _ any) (_ *dialect.Object, err error) {
				w, err = c.Watch(ctx, dir, true)
				return &dialect.Object{}, err
			},
			Refuse: func(_ context.Context, _ *engine.Call, _ any, no *engine.Refusal) (*dialect.Object, string) {
				return nil, ""
			},
		})
		if errors.Is(err, guardfs.ErrUnwatchable) {
			t.Skip("SKIPPED: nothing can be watched here: ", err)
		}
		must(t, err)
		return w.Close, func() error { _, err := w.Events(t.Context(), 1); return err }
	},
	"internal/guardfs.Watcher": func(t *testing.T, dir string) (func() error, func() error) {
		w, err := guarded(t).NewWatcher()
		if err != nil {
			t.Skip("SKIPPED: nothing can be watched here: ", err)
		}
		return w.Close, func() error { return w.Events(func(guardfs.Event) {}) }
	},
}

// does calls a tool, which must not refuse.
func does(t *testing.T, s *tools.Suite, tool string, args map[string]any) {
	t.Helper()
	if p := call(t, s, tool, args); tools.Refused(p) {
		t.Errorf("%s %v: %s", tool, args, mustEncode(t, p))
	}
}

// has compares the content of a file with want.
func has(t *testing.T, file, want string) {
	t.Helper()
	if got := content(t, file); got != want {
		t.Errorf("%s has %q, want %q", file, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// guarded is a file system that stays open until the test ends.
func guarded(t *testing.T) *guardfs.FS {
	f, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestClosedTwice: whatever is closed again, or used when it is closed, does no harm to files that have got its numbers.
func TestClosedTwice(t *testing.T) {
	for name, open := range closable {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			close, use := open(t, dir)
			must(t, close())
			var theirs []*os.File
			for i := range 60 {
				f, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprint(i)))
				must(t, err)
				defer f.Close()
				theirs = append(theirs, f)
			}
			if use != nil {
				if err := use(); err == nil || !strings.Contains(err.Error(), "closed") {
					t.Errorf("used when it is closed it says %v", err)
				}
			}
			for range 2 {
				if err := close(); err != nil {
					t.Errorf("closed again it says %v", err)
				}
			}
			for _, f := range theirs {
				if info, err := f.Stat(); err != nil || info.Size() != 0 {
					t.Errorf("another one's file: %v, %v", info, err)
				}
				if _, err := f.WriteString("still mine"); err != nil {
					t.Errorf("another one's file was closed: %v", err)
				}
			}
		})
	}
}
