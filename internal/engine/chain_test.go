package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

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
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a": "alpha\n", "d/b": "beta\n", "d/e/c": "gamma\n", "x/f": "phi\n",
		".env": "KEY=1\n", "secret/k": "key\n"} {
		os.MkdirAll(filepath.Join(ws, filepath.Dir(name)), 0o700)
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, c, ws
}

// ended runs op as a dialect does, and gives what the call came to.
func ended(e *engine.Engine, changes bool, op func(context.Context, *engine.Call) error) (err error) {
	c := &engine.Call{Tool: "Probe", Principal: "ci", Session: "s1", Dialect: "test"}
	c.Headers = map[string]string{"team": "red"}
	herr := e.Do(context.Background(), c, engine.Operation{Changes: changes,
		Run:    func(ctx context.Context) error { return op(ctx, c) },
		Refuse: func(_ context.Context, no error) string { err = no; return string(engine.Reason(no).Code) },
	})
	return errors.Join(err, herr)
}

type act = func(*engine.Engine, context.Context, *engine.Call, string) error

func reading(name string) act {
	return func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		return e.Read(ctx, c, ws+name, func(_ context.Context, s *engine.Source) (*engine.Sight, error) {
			_, sight, err := s.Bytes(ctx, 0, -1, 1<<20)
			return sight, err
		})
	}
}

func searching(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
	m, err := match.Compile("a", match.Options{})
	if err == nil {
		_, err = e.Search(ctx, c, ws, grep.Query{Matcher: m})
	}
	return err
}

// What is asked, for each operation.
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
	{"stat", false, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Stat(ctx, c, ws+"/a", true)
		return err
	}, "stat /a"},
	{"list", false, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.List(ctx, c, ws)
		return err
	}, "readdir "},
	{"list a tree", false, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.ListTree(ctx, c, engine.TreeArgs{Path: ws + "/d"}, func(engine.Entry) error { return nil })
		return err
	}, "readdir /d; readdir /d/e"},
	{"search", false, searching,
		"readFile /a; readFile /d/b; readFile /d/e/c; readFile /secret/k; readFile /x/f; readdir ; readdir /d; readdir /d/e; readdir /secret; readdir /x"},
	{"mkdir", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Mkdir(ctx, c, engine.MkdirArgs{Path: ws + "/m/n/o", Rules: engine.Rules{Parents: true}})
		return err
	}, "mkdir /m/n/o true"},
	{"create with parents", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Create(ctx, c, ws+"/p/q/new", []byte("new\n"), engine.Rules{Parents: true})
		return err
	}, "writeFile /p/q/new; mkdir /p false; mkdir /p/q false"},
	{"overwrite", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Rewrite(ctx, c, ws+"/a", engine.Rules{}, engine.Plan{}, func(t *engine.Target) error {
			t.After = engine.After{Kind: guardfs.KindFile, Content: []byte("other\n")}
			return nil
		})
		return err
	}, "readFile /a; writeFile /a"},
	{"append", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Append(ctx, c, ws+"/a", []byte("more\n"), engine.Rules{})
		return err
	}, "appendFile /a"},
	{"copy", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Copy(ctx, c, engine.CopyArgs{From: ws + "/a", To: ws + "/x/../copy"})
		return err
	}, "copyFile /a -> /x/../copy=/copy"},
	{"move", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Move(ctx, c, engine.MoveArgs{From: ws + "/copy", To: ws + "/moved"})
		return err
	}, "rename /copy -> /moved"},
	{"move a tree", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Move(ctx, c, engine.MoveArgs{From: ws + "/d", To: ws + "/t"})
		return err
	}, "rename /d -> /t; rename /d/b -> /t/b; rename /d/e -> /t/e; rename /d/e/c -> /t/e/c"},
	{"remove", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Delete(ctx, c, ws+"/moved", engine.DeleteOptions{})
		return err
	}, "rm /moved false"},
	{"remove a tree", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Delete(ctx, c, ws+"/t", engine.DeleteOptions{Recursive: true})
		return err
	}, "rm /t true; rm /t/b true; rm /t/e true; rm /t/e/c true"},
	{"undo", true, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
		_, err := e.Undo(ctx, c, engine.RestoreOptions{})
		return err
	}, "mkdir /t false; mkdir /t/e false; stat /t; stat /t/b; stat /t/e; stat /t/e/c; writeFile /t; writeFile /t/b; writeFile /t/e; writeFile /t/e/c"},
}

func TestWhatAChainIsAsked(t *testing.T) {
	e, c, ws := chained(t, nil)
	for _, a := range acts {
		err := ended(e, a.changes, func(ctx context.Context, call *engine.Call) error { return a.do(e, ctx, call, ws) })
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
		before := treeOf(t, ws)
		for _, a := range acts {
			if a.name == "undo" {
				continue // there is nothing
			}
			err := ended(e, a.changes, func(ctx context.Context, call *engine.Call) error { return a.do(e, ctx, call, ws) })
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
		if after := treeOf(t, ws); after != before {
			t.Errorf("%s: changed\n%s\nto\n%s", name, before, after)
		}
	}
}

func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		text, _ := os.ReadFile(name)
		out = append(out, name+" "+string(text))
		return err
	})
	return strings.Join(out, "\n")
}

// What the chain closes of a tree is not shown, not moved and not removed with it.
func TestAChainWithinATree(t *testing.T) {
	e, _, ws := chained(t, func(in policy.Input) (bool, error) {
		return !strings.Contains(in.ResolvedPath, "/secret/") && !strings.HasSuffix(in.ResolvedPath, "/e"), nil
	})
	in := func(changes bool, op func(context.Context, *engine.Call) error) error { return ended(e, changes, op) }
	if err := in(false, func(ctx context.Context, c *engine.Call) error {
		m, _ := match.Compile("key|gamma|beta", match.Options{})
		r, err := e.Search(ctx, c, ws, grep.Query{Matcher: m})
		if err == nil && (len(r.Files) != 1 || r.Files[0].Path != ws+"/d/b" || r.Skipped.Denied == 0) {
			t.Errorf("found %+v", r)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	before := treeOf(t, ws)
	for name, op := range map[string]func(context.Context, *engine.Call) error{
		"move": func(ctx context.Context, c *engine.Call) error {
			_, err := e.Move(ctx, c, engine.MoveArgs{From: ws + "/secret", To: ws + "/open"})
			return err
		},
		"copy": func(ctx context.Context, c *engine.Call) error {
			_, err := e.Copy(ctx, c, engine.CopyArgs{From: ws + "/secret", To: ws + "/open", Recursive: true})
			return err
		},
		"remove": func(ctx context.Context, c *engine.Call) error {
			_, err := e.Delete(ctx, c, ws+"/secret", engine.DeleteOptions{Recursive: true})
			return err
		},
	} {
		if err := in(true, op); err == nil || treeOf(t, ws) != before {
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
	err := ended(e, false, func(ctx context.Context, c *engine.Call) error { return searching(e, ctx, c, ws) })
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
			var ws string
			e, _, dir := chained(t, func(in policy.Input) (bool, error) {
				name := map[string]string{"path": in.Path, "resolved_path": in.ResolvedPath}[of]
				return strings.HasPrefix(name, ws+"/d/"), nil
			})
			ws = dir
			err := ended(e, false, func(ctx context.Context, call *engine.Call) error { return reading(c.path)(e, ctx, call, ws) })
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
		{policy.Input{Operation: "exists", Path: "d/e", ResolvedPath: "/d/e"}, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
			_, err := e.Stat(ctx, c, ws+"/d/e", true)
			return err
		}, "exists d/e=/d/e"},
		{policy.Input{Operation: "readdir", Path: "d", ResolvedPath: "/d"}, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
			_, err := e.List(ctx, c, ws+"/d")
			return err
		}, "readdir d=/d"},
		{policy.Input{Operation: "stat", Path: "a", ResolvedPath: "/a"}, reading("/a"), "stat a=/a; readFile /a"},
		{policy.Input{Operation: "readFile", Path: "a", ResolvedPath: "/a"}, reading("/d/b"), "readFile a=/a; readFile /d/b"},
		{policy.Input{Operation: "writeFile", Path: "a", ResolvedPath: "/a"}, func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
			_, err := e.Rewrite(ctx, c, ws+"/a", engine.Rules{}, engine.Plan{}, func(t *engine.Target) error {
				t.After = engine.After{Kind: guardfs.KindFile, Content: []byte("other\n")}
				return nil
			})
			return err
		}, "writeFile a=/a"},
		{policy.Input{Operation: "rename", Path: "a", Destination: "z", ResolvedPath: "/a", ResolvedDestination: "/z"},
			func(e *engine.Engine, ctx context.Context, c *engine.Call, ws string) error {
				_, err := e.Move(ctx, c, engine.MoveArgs{From: ws + "/a", To: ws + "/z"})
				return err
			}, "rename a=/a -> z=/z"},
	} {
		a.in.ResolvedPath = ws + a.in.ResolvedPath
		if a.in.ResolvedDestination != "" {
			a.in.ResolvedDestination = ws + a.in.ResolvedDestination
		}
		changes := a.in.Operation == "writeFile" || a.in.Operation == "rename"
		if err := ended(e, changes, func(ctx context.Context, call *engine.Call) error {
			if err := e.Asks(call, a.in); err != nil {
				return err
			}
			return a.do(e, ctx, call, ws)
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
		if err != nil {
			t.Fatal(err)
		}
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
		if err := ended(e, true, func(ctx context.Context, call *engine.Call) error { return a.do(e, ctx, call, ws) }); err != nil {
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
	if err := e.Do(ctx, c, engine.Operation{Run: func(ctx context.Context) (err error) {
		w, err = e.Watch(ctx, c, ws+"/d", true)
		return err
	}, Refuse: func(_ context.Context, err error) string { t.Error(err); return "no" }}); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cancel() // as the caller's context ends
	for _, name := range []string{"one", "hidden", "two"} {
		if err := os.Mkdir(ws+"/d/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
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
