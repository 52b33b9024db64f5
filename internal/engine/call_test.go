package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// Every way out of Do has one record, whose outcome is the dialect's word or ours.
func TestDoRecordsEveryWayOut(t *testing.T) {
	boom := errors.New("boom")
	refuse := func(context.Context, error) string { return "refused" }
	broken := func(context.Context, error) string { return "" }
	for _, c := range []struct {
		name    string
		call    engine.Call
		op      operation
		outcome string
		err     string // part of Do's error; "" when it has none
	}{
		{"done", engine.Call{}, operation{Run: func(context.Context) error { return nil }}, "ok", ""},
		{"refused", engine.Call{}, operation{Run: func(context.Context) error { return boom }, Refuse: refuse}, "refused", ""},
		{"not decoded", engine.Call{}, operation{Decode: func(json.RawMessage) (any, error) { return nil, boom }, Refuse: refuse}, "refused", ""},
		{"bad name", engine.Call{Session: strings.Repeat("s", engine.MaxName+1)}, operation{Refuse: refuse}, "refused", ""},
		{"host", engine.Call{}, operation{Run: func(context.Context) error { return boom }, Refuse: broken}, "host_error", "boom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := grow(t, nil)
			c.call.Tool = "Probe"
			err := do(t.Context(), x.Engine, &c.call, c.op)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("Do answers %v; want %q", err, c.err)
			}
			records := recorded(t, x)
			if len(records) != 1 || records[0].Outcome != c.outcome || records[0].Call == "" {
				t.Errorf("recorded %+v; want one record, %q", records, c.outcome)
			}
		})
	}
	x := grow(t, nil)
	x.Shut()
	if err := do(t.Context(), x.Engine, &engine.Call{}, operation{}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after Shut: %v", err)
	}
}

// An operation ends in its time, and every one has such a time.
func TestTimeOfACall(t *testing.T) {
	x := grow(t, nil)
	free := operation{Run: func(ctx context.Context) error {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > time.Hour || time.Until(end) < time.Minute {
			t.Errorf("%v, a deadline at %s", ok, end)
		}
		return nil
	}}
	must(t, do(t.Context(), x.Engine, &engine.Call{Tool: "Probe"}, free))
	late := operation{
		Time: time.Nanosecond, Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		Refuse: func(_ context.Context, err error) string { return err.Error() },
	}
	err := do(t.Context(), x.Engine, &engine.Call{Tool: "Probe"}, late)
	if got := recorded(t, x)[1].Outcome; err != nil || !strings.HasSuffix(got, context.DeadlineExceeded.Error()) {
		t.Errorf("%v, %q", err, got)
	}
}

// mkdir is a change that makes directories and nothing else.
func (x *tree) mkdir(names ...string) (m engine.Files) {
	for _, name := range names {
		m.Dirs = append(m.Dirs, x.ws+"/"+name)
	}
	return m
}

// An approver sees each directory that a change makes or removes, and each change has
// a digest of its own.
func TestDirectoriesAreApprovedByName(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	digests := map[string]string{}
	sees := func(what string, err error, summary string, paths ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		got, said, digest := a.last(x)
		if !slices.Equal(got, paths) || said != summary {
			t.Errorf("%s: asked about %q: %q, should be %q: %q", what, got, said, paths, summary)
		}
		if other := digests[digest]; other != "" {
			t.Errorf("%s has the digest of %s", what, other)
		}
		digests[digest] = what
		if c.Trace.Digest != digest {
			t.Errorf("%s: the record has the digest %s", what, c.Trace.Digest)
		}
		for _, p := range paths {
			if !slices.Contains(c.Trace.Paths, x.ws+"/"+p) {
				t.Errorf("%s: the record does not name %s: %q", what, p, c.Trace.Paths)
			}
		}
	}
	_, err := c.ChangeFiles(ctx, x.mkdir("a"))
	sees("mkdir a", err, "creates directory a", "a")
	_, err = c.ChangeFiles(ctx, x.mkdir("b"))
	sees("mkdir b", err, "creates directory b", "b")
	_, err = c.ChangeFiles(ctx, x.mkdir("e/1", "e/2", "e/3"))
	sees("mkdir e/…", err, "creates 4 directories: e, e/1, e/2, …", "e", "e/1", "e/2", "e/3")

	write := x.becomes("one\n", "n1/n2/f")
	write.Summary = "write 4 bytes"
	_, err = c.ChangeFiles(ctx, write)
	sees("write", err, "write 4 bytes; creates 2 directories: n1, n1/n2", "n1", "n1/n2", "n1/n2/f")
	_, err = c.Undo(ctx, engine.RestoreOptions{})
	sees("undo", err, "restore 3 paths; removes 2 directories: n1/n2, n1", "n1", "n1/n2", "n1/n2/f")
	_, err = c.Redo(ctx, engine.RestoreOptions{})
	sees("redo", err, "restore 3 paths; creates 2 directories: n1, n1/n2", "n1", "n1/n2", "n1/n2/f")

	c.Tool = "another" // by which the same change is another one
	for _, d := range []string{"a", "b"} {
		_, err = c.Delete(ctx, x.ws+"/"+d, engine.DeleteOptions{})
		sees("delete "+d, err, "delete "+d, d)
	}
	tree, err := c.Delete(ctx, x.ws+"/n1", engine.DeleteOptions{Recursive: true})
	sees("delete n1", err, "delete n1", "n1")
	_, err = c.Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(tree.Checkpoint)}, engine.RestoreOptions{})
	sees("restore n1", err, "restore 1 path", "n1")
}

// A link and a mode that come back are told, and two links to different places have two digests.
func TestLinksAndModesAreApprovedByName(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	digests := map[string]bool{}
	for _, target := range []string{"f", "g"} {
		must(t, os.Symlink(target, x.ws+"/l"))
		done, err := c.Delete(ctx, x.ws+"/l", engine.DeleteOptions{})
		must(t, err)
		a.asked = nil
		must(t, errOf(c.Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)}, engine.RestoreOptions{})))
		if want := x.ws + "/l becomes a symbolic link to " + target; !slices.Contains(a.asked[0].Warnings, want) {
			t.Errorf("warned of %q, not that %s", a.asked[0].Warnings, want)
		}
		_, _, digest := a.last(x)
		digests[digest] = true
		must(t, os.Remove(x.ws+"/l"))
	}
	if len(digests) != 2 {
		t.Error("two links have one digest")
	}
}

// A directory that may not be made or removed is refused before anybody is asked.
func TestNobodyIsAskedAboutADeniedDirectory(t *testing.T) {
	x, a := asking(t)
	x.write("no/f", "f\n")
	x.deny = x.ws + "/no/d"
	x.reopen()
	c := x.call("s")
	c.Approver = a
	if _, err := c.ChangeFiles(ctx, x.mkdir("no/d")); err == nil {
		t.Error("made a denied directory")
	}
	outside := engine.Files{Dirs: []string{x.data + "/d"}}
	if _, err := c.ChangeFiles(ctx, outside); err == nil {
		t.Error("made a directory outside")
	}
	must(t, os.Mkdir(x.deny, 0o755))
	drop := engine.Files{Drop: []string{x.deny}}
	if _, err := c.ChangeFiles(ctx, drop); err == nil {
		t.Error("removed a denied directory")
	}
	if len(a.asked) > 0 {
		t.Errorf("asked about %+v", a.asked)
	}
}

// More directories than were approved are not made: the question is put again, with all of them.
func TestMoreDirectoriesThanApprovedAreStale(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	must(t, os.Mkdir(x.ws+"/n1", 0o755))
	a.while = func() { _ = os.Remove(x.ws + "/n1") }
	write := x.becomes("one\n", "n1/n2/f")
	_, err := c.ChangeFiles(ctx, write)
	if !engine.ApprovalStale.In(err) {
		t.Errorf("%v", err)
	}
	if now := x.looks(); strings.Contains(now, "n1") {
		t.Errorf("it was made all the same:\n%s", now)
	}
	// Fewer are fine.
	a.while = func() { _ = os.Mkdir(x.ws+"/n1", 0o755) }
	must(t, errOf(c.ChangeFiles(ctx, write)))
	x.has("n1/n2/f", "one\n")
}

// A few files that go are a warning each; more are one, so that no other is lost among them.
func TestManyRemovals(t *testing.T) {
	x, a := asking(t)
	c := x.call("s")
	c.Approver = a
	for files, want := range map[int]int{2: 2, 7: 1} {
		var names []string
		for i := range files {
			names = append(names, fmt.Sprintf("many%d/%d", files, i))
		}
		write := x.becomes("one\n", names...)
		must(t, errOf(c.ChangeFiles(ctx, write)))
		a.asked = nil
		must(t, errOf(c.Undo(ctx, engine.RestoreOptions{})))
		got := a.asked[0].Warnings
		if len(got) != want || want == 1 && got[0] != "7 files will be removed" {
			t.Errorf("%d files: the warnings are %q", files, got)
		}
		a.asked = nil
	}
}

// An approver's answer is on record: who, and why, and that nobody did where the caller was gone first.
func TestAnswersAreOnRecord(t *testing.T) {
	for _, c := range []struct {
		answer approval.Answer
		err    error
		want   string
		cause  engine.Cause
	}{
		{approval.Answer{Decision: approval.Denied, By: "ann", Reason: "no caps"}, nil, "denied by ann: no caps", engine.NotApproved},
		{approval.Answer{Decision: approval.Denied, By: "ann"}, nil, "denied by ann", engine.NotApproved},
		{approval.Answer{Decision: approval.Cancelled, Reason: "the call was cancelled"}, nil, "cancelled", engine.Cancelled},
		{approval.Answer{}, context.Canceled, "cancelled", engine.Cancelled}, {approval.Answer{}, context.DeadlineExceeded, "timed_out", engine.NotAnswered},
		{approval.Answer{Decision: approval.NobodyToAsk, Reason: "ask elsewhere"}, nil, "nobody_to_ask", engine.NobodyToAsk},
		{approval.Answer{Decision: 77}, nil, "unknown", engine.NotApproved}, {approval.Answer{Decision: approval.Approved}, errors.New("broken"), "", engine.Unknown},
	} {
		call := &engine.Call{}
		err := call.Answered(t.Context(), "/w/a", c.answer, c.err)
		if !c.cause.In(err) || call.Trace.Approval != c.want {
			t.Errorf("%+v, %v: %q, %v", c.answer, c.err, call.Trace.Approval, err)
		}
	}
	call := &engine.Call{}
	if err := call.Answered(t.Context(), "/w/a", approval.Answer{Decision: approval.Approved, By: "ann", Reason: "fine"}, nil); err != nil || call.Trace.Approval != "approved by ann: fine" {
		t.Errorf("%q, %v", call.Trace.Approval, err)
	}
}

// A call can do nothing outside of Do: what is not on record does not happen. A method that is new is in
// this test without a word.
func TestNoWayAroundTheRecord(t *testing.T) {
	x := grow(t, nil)
	over := x.call("s")
	over.Turn = "t"
	must(t, do(t.Context(), x.Engine, over, operation{Run: func(context.Context) error { return nil }}))
	typ := reflect.TypeFor[*engine.Call]()
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		_, own := reflect.TypeFor[*engine.Engine]().MethodByName(m.Name)
		if own || slices.Contains([]string{"Answered", "AskPolicy", "Held", "Unsaved"}, m.Name) { // they touch nothing
			continue
		}
		for _, c := range []*engine.Call{{Tool: "Probe", Turn: "t"}, over} {
			in := []reflect.Value{reflect.ValueOf(c)}
			for j := 1; j < m.Type.NumIn(); j++ {
				switch p := m.Type.In(j); {
				case p == reflect.TypeFor[context.Context]():
					in = append(in, reflect.ValueOf(t.Context()))
				case p.Kind() == reflect.String:
					in = append(in, reflect.ValueOf(x.ws).Convert(p))
				default:
					in = append(in, reflect.Zero(p))
				}
			}
			func() {
				defer func() { recover() }() //nolint:errcheck // that is what is to happen
				out := m.Func.Call(in)
				if err, _ := out[len(out)-1].Interface().(error); err == nil {
					t.Errorf("%s works outside of Do", m.Name)
				}
			}()
		}
	}
}

// A panic ends as a broken host, and is on record.
func TestPanicIsRecorded(t *testing.T) {
	for name, op := range map[string]operation{
		"run":    {Run: func(context.Context) error { panic("at the disco") }},
		"change": {Changes: true, Run: func(context.Context) error { panic("at the disco") }},
		"refuse": {Run: func(context.Context) error { return errors.New("no") }, Refuse: func(context.Context, error) string { panic("at the disco") }},
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			err := do(t.Context(), x.Engine, &engine.Call{Tool: "Probe"}, op)
			r := recorded(t, x)
			if err == nil || len(r) != 1 || r[0].Outcome != "host_error" || !strings.Contains(r[0].Error, "at the disco") {
				t.Errorf("%v; on record: %+v", err, r)
			}
		})
	}
}

// The limit refuses what is over it by its name, for that session alone, and lets calls in again
// after the time that it tells.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := grow(t, func(c *config.FS) { c.Limits = config.Limits{CallsPerSecond: 2} })
		try := func(session string) (no *engine.Refusal) {
			do(t.Context(), x.Engine, x.call(session), operation{
				Run:    func(context.Context) error { return nil },
				Refuse: func(_ context.Context, err error) string { no = engine.Reason(err); return "refused" },
			})
			return no
		}
		for i := range 20 {
			if no := try("s"); no != nil {
				t.Fatalf("call %d: %v", i, no)
			}
		}
		no := try("s")
		if no == nil || no.Cause != engine.TooManyCalls {
			t.Fatalf("one too many: %v", no)
		}
		f := no.Facts.(engine.CallFacts)
		if f.Limit != "calls_per_second" || f.Wait <= 0 {
			t.Errorf("%+v", f)
		}
		if no := try("other"); no != nil {
			t.Errorf("another session: %v", no)
		}
		time.Sleep(f.Wait + 1)
		if no := try("s"); no != nil {
			t.Errorf("after %s: %v", f.Wait, no)
		}
	})
}

func TestCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, wait := grow(t, func(c *config.FS) { c.Limits = config.Limits{CallsAtOnce: 3} }), make(chan bool)
		try := func(run func(context.Context) error) (no *engine.Refusal) {
			do(t.Context(), x.Engine, x.call("s"), operation{Run: run,
				Refuse: func(_ context.Context, err error) string { no = engine.Reason(err); return "refused" }})
			return no
		}
		for range 3 {
			go try(func(context.Context) error { <-wait; return nil })
		}
		synctest.Wait()
		quick := func(context.Context) error { return nil }
		if no := try(quick); no == nil || no.Facts != (engine.CallFacts{Limit: "calls_at_once", Most: 3}) {
			t.Errorf("the fourth: %v", no)
		}
		close(wait)
		synctest.Wait()
		if no := try(quick); no != nil {
			t.Errorf("after they ended: %v", no)
		}
	})
}

// A call that does not end is left behind. One that has not begun to change anything never does so
// afterwards; one that has is told as what it is.
func TestLeftBehind(t *testing.T) {
	for _, began := range []bool{false, true} {
		t.Run(fmt.Sprint("began ", began), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := grow(t, nil)
				path := x.write("a.txt", "old\n")
				x.Close()
				frozen, once := make(chan bool), sync.Once{}
				x.fault = func(op string) *guardfs.Fault {
					if began && op == "rename" {
						once.Do(func() { <-frozen }) // as a system call is: no context ends it
					}
					return nil
				}
				x.open()
				x.Hurry(0)
				late := make(chan error, 1)
				c := x.call("s")
				var left *engine.Refusal
				op := operation{Changes: true, Time: time.Second,
					Run: func(ctx context.Context) error {
						if !began {
							<-frozen
							ctx = context.WithoutCancel(ctx) // an operation that has not looked at it yet
						}
						_, _, err := c.Write(ctx, engine.WriteArgs{Path: path, Text: "new\n"})
						late <- err
						return err
					},
					Refuse: func(_ context.Context, no error) string { left = engine.Reason(no); return string(left.Code) },
				}
				start := time.Now()
				if err := do(t.Context(), x.Engine, c, op); err != nil || left.Cause != engine.NoAnswer || left.Facts != (engine.StuckFacts{began}) {
					t.Fatalf("%v, %+v", err, left)
				}
				if took := time.Since(start); took > 3*time.Minute {
					t.Errorf("its caller waited %s", took)
				}
				if n := len(recorded(t, x)); n != 1+map[bool]int{true: 1}[began] {
					t.Errorf("%d records", n)
				}
				close(frozen)
				err := <-late
				now, _ := os.ReadFile(path)
				if !began && (err == nil || string(now) != "old\n") {
					t.Errorf("it changed the file after its caller was gone: %v, %q", err, now)
				}
				if began && string(now) != "old\n" && string(now) != "new\n" {
					t.Errorf("the file is torn: %q", now)
				}
			})
		})
	}
}

// Calls that are left behind are bounded, and those of one principal are no others' business.
func TestLeftBehindIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, frozen := grow(t, nil), make(chan bool)
		x.Hurry(0)
		var calls sync.WaitGroup
		try := func(principal string) (err error) {
			c := x.call("s")
			c.Principal = principal
			do(t.Context(), x.Engine, c, operation{Time: time.Second,
				Run:    func(context.Context) error { <-frozen; return nil },
				Refuse: func(_ context.Context, no error) string { err = no; return "refused" },
			})
			return err
		}
		for range 32 {
			calls.Go(func() { try("p") })
		}
		calls.Wait()
		if err := try("p"); !engine.TooManyCalls.In(err) {
			t.Errorf("one more: %v", err)
		}
		if err := try("q"); !engine.NoAnswer.In(err) {
			t.Errorf("another principal: %v", err)
		}
		close(frozen)
		synctest.Wait()
		if err := try("p"); err != nil {
			t.Errorf("after the file system answered: %v", err)
		}
	})
}

// chain is a policy chain that answers as a function does, and remembers what it was asked.
type chain struct {
	mu    sync.Mutex
	says  func(policy.Input) (bool, error)
	asked []policy.Input
	data  string
}

func (c *chain) Decide(_ context.Context, in policy.Input) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, in)
	if c.says == nil {
		return true, nil
	}
	return c.says(in)
}

// told are the questions since the last time, short: operation path[=resolved][ -> destination].
func (c *chain) told(ws string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	short := func(name string) string { return strings.ReplaceAll(name, ws, "") }
	for _, in := range c.asked {
		s := in.Operation + " " + short(in.Path)
		if in.ResolvedPath != in.Path {
			s += "=" + short(in.ResolvedPath)
		}
		if in.Destination != "" {
			s += " -> " + short(in.Destination)
			if in.ResolvedDestination != in.Destination {
				s += "=" + short(in.ResolvedDestination)
			}
		}
		if in.Recursive != nil {
			s += fmt.Sprint(" ", *in.Recursive)
		}
		out = append(out, s)
	}
	c.asked = nil
	return strings.Join(out, "; ")
}

// chained opens an engine over a small tree, with a chain.
func chained(t *testing.T, says func(policy.Input) (bool, error)) (*engine.Engine, *chain, string) {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, text := range map[string]string{"a": "alpha\n", "d/b": "beta\n", "d/e/c": "gamma\n", "x/f": "phi\n",
		".env": "KEY=1\n", "secret/k": "key\n"} {
		os.MkdirAll(filepath.Join(ws, filepath.Dir(name)), 0o700)
		must(t, os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600))
	}
	os.Symlink("d/b", ws+"/l")
	os.Symlink("/etc/hostname", ws+"/out")
	cfg := config.Default()
	fs := &cfg.Tools.FS
	fs.RequireApproval, fs.PoliciesMode = false, "all"
	fs.AllowPaths, fs.RespectGitignore = []string{ws + "/**"}, false
	c := &chain{says: says, data: t.TempDir() + "/data"}
	e, err := engine.Open(cfg, engine.Host{DataDir: c.data,
		Program: engine.Program{Policies: func(string, []string) (policy.Chain, error) { return c, nil }}})
	must(t, err)
	t.Cleanup(func() { e.Close() })
	return e, c, ws
}

func TestWhatAChainIsAsked(t *testing.T) {
	e, c, ws := chained(t, nil)
	for _, a := range acts {
		err := ended(e, a.changes, ws, a.do)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", a.name, err)
		}
		for _, in := range c.asked {
			if in.Principal != "ci" || in.Session != "s1" || in.Dialect != "test" || in.Headers["team"] != "red" {
				t.Errorf("%s: who asks is not told: %+v", a.name, in)
			}
		}
		got := strings.Split(c.told(ws), "; ")
		if slices.Sort(got[min(1, len(got)):]); a.name == "search" || a.name == "undo" { // in no order
			slices.Sort(got)
		}
		if got := strings.Join(got, "; "); got != a.asked {
			t.Errorf("%s asked\n%s\nwant\n%s", a.name, got, a.asked)
		}
	}
}

// A no, a failure and a panic of the chain end each operation, and nothing has changed.
func TestAChainRefuses(t *testing.T) {
	for name, says := range map[string]func(policy.Input) (bool, error){
		"no":        func(policy.Input) (bool, error) { return false, nil },
		"undecided": func(policy.Input) (bool, error) { return false, &policy.Undecided{Why: "no rule"} },
		"fails":     func(policy.Input) (bool, error) { return false, errors.New("the server is gone") },
		"yes, but":  func(policy.Input) (bool, error) { return true, errors.New("the server is gone") },
		"panics":    func(policy.Input) (bool, error) { panic("no") },
	} {
		e, c, ws := chained(t, says)
		x := &tree{t: t, ws: ws}
		before := x.looks()
		for _, a := range acts {
			if a.name == "undo" {
				continue // there is nothing
			}
			err := ended(e, a.changes, ws, a.do)
			want := engine.CodePathDenied
			if name != "no" && name != "undecided" {
				want = engine.CodePolicyError
			}
			if r := engine.Reason(err); r == nil || r.Code != want {
				t.Errorf("%s, %s: %v", name, a.name, err)
			}
			if n := len(c.asked); want == engine.CodePolicyError && n > 1 {
				t.Errorf("%s, %s: asked %d times after a failure", name, a.name, n)
			}
			c.asked = nil
		}
		if after := x.looks(); after != before {
			t.Errorf("%s: changed\n%s\nto\n%s", name, before, after)
		}
	}
}

// A path in a tree that the chain closes is not shown, not moved and not removed with it.
func TestAChainWithinATree(t *testing.T) {
	e, _, ws := chained(t, func(in policy.Input) (bool, error) {
		return !strings.Contains(in.ResolvedPath, "/secret/") && !strings.HasSuffix(in.ResolvedPath, "/e"), nil
	})
	must(t, ended(e, false, ws, func(ctx context.Context, c *engine.Call, _ string) error {
		m, _ := match.Compile("key|gamma|beta", match.Options{})
		r, err := c.Search(ctx, ws, grep.Query{Matcher: m}, false)
		if err == nil && (len(r.Files) != 1 || r.Files[0].Path != ws+"/d/b" || r.Skipped.Denied == 0) {
			t.Errorf("found %+v", r)
		}
		return err
	}))
	x := &tree{t: t, ws: ws}
	before := x.looks()
	for name, op := range map[string]act{"move": moves("secret", "open"), "copy": copies("secret", "open"), "remove": deletes("secret")} {
		if err := ended(e, true, ws, op); err == nil || x.looks() != before {
			t.Errorf("%s took what is closed with it: %v", name, err)
		}
	}
}

// A chain that fails in the middle of a search ends it: what was found may be less than there is.
func TestAChainFailsOnTheWay(t *testing.T) {
	e, _, ws := chained(t, func(in policy.Input) (bool, error) {
		if strings.HasSuffix(in.Path, "/c") {
			return true, errors.New("out of order")
		}
		return true, nil
	})
	err := ended(e, false, ws, searching)
	if no, ok := errors.AsType[*policy.ChainError](err); !ok || no.Operation != "readFile" {
		t.Error(err)
	}
}

// The weakness that the original documents: a rule about what stands in front, and "..". The
// guard holds whatever the chain says, and resolved_path tells where a path leads.
func TestDotsAndLinksPastAChain(t *testing.T) {
	for _, c := range []struct {
		path     string
		spelled  engine.Code // under a rule on path
		resolved engine.Code // under a rule on resolved_path
	}{
		{"/d/b", "", ""},
		{"/d/../a", "", engine.CodePathDenied}, // within the guard's tree: only resolved_path tells
		{"/d/../../../../../etc/passwd", engine.CodePathDenied, engine.CodePathDenied},
		{"/d/../.env", engine.CodePathDenied, engine.CodePathDenied},
		{"/d/../out", engine.CodePathDenied, engine.CodePathDenied},
		{"/a", engine.CodePathDenied, engine.CodePathDenied},
	} {
		for of, want := range map[string]engine.Code{"path": c.spelled, "resolved_path": c.resolved} {
			var ws string // known before the first question
			e, _, dir := chained(t, func(in policy.Input) (bool, error) {
				name := map[string]string{"path": in.Path, "resolved_path": in.ResolvedPath}[of]
				return strings.HasPrefix(name, ws+"/d/"), nil
			})
			ws = dir
			err := ended(e, false, ws, reading(c.path))
			if code(err) != want {
				t.Errorf("%s under a rule on %s: %v, want %s", c.path, of, err, want)
			}
		}
	}
}

// A dialect says in its own words what a call is; what leads elsewhere by then is asked about anew.
func TestADialectsOwnQuestion(t *testing.T) {
	e, c, ws := chained(t, nil)
	for _, a := range []struct {
		in    policy.Input
		do    act
		asked string
	}{
		{policy.Input{Operation: "readFile", Path: "a", ResolvedPath: "/a", Encoding: "utf8"}, reading("/a"), "readFile a=/a"},
		{policy.Input{Operation: "readFile", Path: "l", ResolvedPath: "/l"}, reading("/l"), "readFile l=/d/b"},
		{policy.Input{Operation: "exists", Path: "d/e", ResolvedPath: "/d/e"}, stats("/d/e"), "exists d/e=/d/e"},
		{policy.Input{Operation: "readdir", Path: "d", ResolvedPath: "/d"}, lists("/d"), "readdir d=/d"},
		{policy.Input{Operation: "stat", Path: "a", ResolvedPath: "/a"}, reading("/a"), "stat a=/a; readFile /a"},
		{policy.Input{Operation: "readFile", Path: "a", ResolvedPath: "/a"}, reading("/d/b"), "readFile a=/a; readFile /d/b"},
		{policy.Input{Operation: "writeFile", Path: "a", ResolvedPath: "/a"}, rewrites, "writeFile a=/a"},
		{policy.Input{Operation: "rename", Path: "a", Destination: "z", ResolvedPath: "/a", ResolvedDestination: "/z"}, moves("a", "z"), "rename a=/a -> z=/z"},
	} {
		a.in.ResolvedPath = ws + a.in.ResolvedPath
		if a.in.ResolvedDestination != "" {
			a.in.ResolvedDestination = ws + a.in.ResolvedDestination
		}
		changes := a.in.Operation == "writeFile" || a.in.Operation == "rename"
		if err := ended(e, changes, ws, func(ctx context.Context, call *engine.Call, ws string) error {
			if err := call.AskPolicy(a.in); err != nil {
				return err
			}
			return a.do(ctx, call, ws)
		}); err != nil {
			t.Error(a.in.Operation, err)
		}
		if c.asked[0].Encoding != a.in.Encoding {
			t.Error("the encoding is lost")
		}
		if got := c.told(ws); got != a.asked {
			t.Errorf("asked %s, want %s", got, a.asked)
		}
	}
}

// Policies that nobody can evaluate open nothing.
func TestPoliciesWithoutAnEvaluator(t *testing.T) {
	for _, change := range []func(*config.FS){
		func(fs *config.FS) { fs.PoliciesMode = "any" },
		func(fs *config.FS) { fs.Policies = []string{"file:///p.rego"} },
	} {
		cfg := config.Default()
		change(&cfg.Tools.FS)
		for _, with := range []func(string, []string) (policy.Chain, error){nil,
			func(string, []string) (policy.Chain, error) { return nil, errors.New("bad") }} {
			_, err := engine.Open(cfg, engine.Host{DataDir: t.TempDir() + "/data", Program: engine.Program{Policies: with}})
			if p, ok := errors.AsType[*config.Problem](err); !ok || p.Key != "tools.fs.policies" {
				t.Error(err)
			}
		}
	}
}

// Once a change is on record nobody is asked any more: what was begun must end, or be taken back,
// whatever a policy would say of that.
func TestNobodyIsAskedAmidAChange(t *testing.T) {
	e, c, ws := chained(t, nil)
	intents := func() int {
		text, err := os.ReadFile(c.data + "/audit-changes/audit.jsonl")
		must(t, err)
		return strings.Count(string(text), `"phase":"intent"`)
	}
	for _, a := range acts {
		if !a.changes {
			continue
		}
		before := intents()
		c.says = func(in policy.Input) (bool, error) {
			if intents() != before {
				t.Errorf("%s asked %s %s amid the change", a.name, in.Operation, in.Path)
			}
			return true, nil
		}
		if err := ended(e, true, ws, a.do); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		if intents() != before+1 {
			t.Errorf("%s: no intent is on record", a.name)
		}
	}
}

// A watch outlives its call: the chain is asked about what it tells, and one that failed is asked again.
func TestAWatchUnderAChain(t *testing.T) {
	var failed atomic.Bool
	e, _, ws := chained(t, func(in policy.Input) (bool, error) {
		if strings.HasSuffix(in.ResolvedPath, "/one") && failed.CompareAndSwap(false, true) {
			return false, errors.New("the server is gone")
		}
		return !strings.HasSuffix(in.ResolvedPath, "/hidden"), nil
	})
	var w *engine.Watching
	ctx, cancel := context.WithCancel(t.Context())
	c := &engine.Call{Tool: "Probe"}
	must(t, do(ctx, e, c, operation{Run: func(ctx context.Context) (err error) {
		w, err = c.Watch(ctx, ws+"/d", true)
		return err
	}, Refuse: func(_ context.Context, err error) string { t.Error(err); return "no" }}))
	defer w.Close()
	cancel() // as the caller's context ends
	for _, name := range []string{"one", "hidden", "two"} {
		must(t, os.Mkdir(ws+"/d/"+name, 0o700))
	}
	told := ""
	for !strings.Contains(told, "/two") {
		within, stop := context.WithTimeout(t.Context(), 10*time.Second)
		events, err := w.Events(within, 10)
		if stop(); err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			told += " " + strings.TrimPrefix(ev.Path, ws)
		}
	}
	if !failed.Load() {
		t.Error("nobody was asked after the call: " + told)
	}
}

// A cause is found in the errors of the rooms below as it is in refusals: what a policy server that fails refused is on record as
// denied by the policies.
func TestCausesInErrors(t *testing.T) {
	below := &policy.ChainError{Path: "/w/a", Err: errors.New("connection refused")}
	for _, c := range []struct {
		cause engine.Cause
		err   error
		want  bool
	}{
		{engine.ChainFailed, below, true}, {engine.ChainFailed, fmt.Errorf("reading: %w", below), true}, {engine.Denied, below, false},
		{engine.Pseudo, guardfs.ErrPseudo, true}, {engine.Absent, fs.ErrNotExist, true}, {engine.Conflicts, engine.Refuse(engine.Conflicts, "/w/a", nil), true},
		{engine.Conflicts, engine.Refuse(engine.WouldLose, "/w/a", nil), false}, {engine.Unknown, nil, false}, {engine.Unknown, errors.New("?"), true},
		{engine.Unknown, engine.ErrHost, false},
	} {
		if got := c.cause.In(c.err); got != c.want {
			t.Errorf("%s in %v: %v", c.cause.Name, c.err, got)
		}
	}
	data := t.TempDir()
	cfg := config.Default()
	cfg.Tools.FS.AllowPaths = []string{"/w/**"}
	e, err := engine.Open(cfg, engine.Host{DataDir: data})
	must(t, err)
	defer e.Close()
	for err, want := range map[error]string{error(below): `"decision":"denied","rule":"policies"`, fmt.Errorf("x: %w", guardfs.ErrPseudo): `"decision":"denied","rule":"pseudo"`,
		error(&policy.Denied{Path: "/w/a", Rule: "deny_paths"}): `"decision":"denied","rule":"deny_paths"`, fs.ErrNotExist: `"decision":"allowed"`} {
		must(t, e.Record(&engine.Call{Tool: "Read"}, time.Now(), "policy_error", err))
		log, _ := os.ReadFile(filepath.Join(data, "audit", "audit.jsonl"))
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, want) {
			t.Errorf("%v: on record %s", err, last)
		}
	}
}

// ended runs op as a dialect does, and gives what the call came to.
func ended(e *engine.Engine, changes bool, ws string, op act) (err error) {
	c := &engine.Call{Tool: "Probe", Principal: "ci", Session: "s1", Dialect: "test"}
	c.Headers = map[string]string{"team": "red"}
	herr := do(context.Background(), e, c, operation{Changes: changes,
		Run:    func(ctx context.Context) error { return op(ctx, c, ws) },
		Refuse: func(_ context.Context, no error) string { err = no; return string(engine.Reason(no).Code) },
	})
	return errors.Join(err, herr)
}

func reading(name string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		return c.Read(ctx, ws+name, func(_ context.Context, s *engine.Source) (*engine.ReadRecord, error) {
			_, sight, err := s.Bytes(ctx, 0, -1, 1<<20)
			return sight, err
		})
	}
}

func searching(ctx context.Context, c *engine.Call, ws string) error {
	m, err := match.Compile("a", match.Options{})
	if err == nil {
		_, err = c.Search(ctx, ws, grep.Query{Matcher: m}, false)
	}
	return err
}

func stats(name string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error { return errOf(c.Stat(ctx, ws+name, true)) }
}

func lists(name string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error { return errOf(c.List(ctx, ws+name)) }
}

// rewrites makes another text of what the file a holds.
func rewrites(ctx context.Context, c *engine.Call, ws string) error {
	return errOf(c.Rewrite(ctx, ws+"/a", engine.Rules{}, engine.Plan{}, func(t *engine.Target) error {
		t.After = engine.After{Kind: guardfs.KindFile, Content: []byte("other\n")}
		return nil
	}))
}

// acts are operations, with the questions that each asks the chain.
var acts = []struct {
	name    string
	changes bool
	do      act
	asked   string
}{
	{"read", false, reading("/a"), "readFile /a"},
	{"read through dots", false, reading("/d/../a"), "readFile /d/../a=/a"},
	{"read through a link", false, reading("/l"), "readFile /l=/d/b"},
	{"read what is not there", false, reading("/none"), "readFile /none"},
	{"stat", false, stats("/a"), "stat /a"},
	{"list", false, lists(""), "readdir "},
	{"list a tree", false, func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.ListTree(ctx, engine.TreeArgs{Path: ws + "/d"}, func(engine.Entry) error { return nil }))
	}, "readdir /d; readdir /d/e"},
	{"search", false, searching,
		"readFile /a; readFile /d/b; readFile /d/e/c; readFile /secret/k; readFile /x/f; readdir ; readdir /d; readdir /d/e; readdir /secret; readdir /x"},
	{"mkdir", true, mkdirs("m/n/o"), "mkdir /m/n/o true"},
	{"create with parents", true, creates("p/q/new", "new\n"), "writeFile /p/q/new; mkdir /p false; mkdir /p/q false"},
	{"overwrite", true, rewrites, "readFile /a; writeFile /a"},
	{"append", true, appends("a", "more\n"), "appendFile /a"},
	{"copy", true, copies("a", "x/../copy"), "copyFile /a -> /x/../copy=/copy"},
	{"move", true, moves("copy", "moved"), "rename /copy -> /moved"},
	{"move a tree", true, moves("d", "t"), "rename /d -> /t; rename /d/b -> /t/b; rename /d/e -> /t/e; rename /d/e/c -> /t/e/c"},
	{"remove", true, func(ctx context.Context, c *engine.Call, ws string) error {
		return errOf(c.Delete(ctx, ws+"/moved", engine.DeleteOptions{}))
	}, "rm /moved false"},
	{"remove a tree", true, deletes("t"), "rm /t true; rm /t/b true; rm /t/e true; rm /t/e/c true"},
	{"undo", true, undoes, "mkdir /t false; mkdir /t/e false; stat /t; writeFile /t; writeFile /t/b; writeFile /t/e/c"},
}
