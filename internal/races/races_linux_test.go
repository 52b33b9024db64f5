package races

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/js"
	"moltisfs/internal/testdir"
	"moltisfs/tools"
)

var (
	calls = flag.Int("calls", 420, "racing calls of TestTradingPlaces in all: go test ./internal/races -args -calls 1000000")
	most  = flag.Duration("for", 0, "how long TestTradingPlaces may take about; 0: as long as the calls do")
	views = flag.Int("views", 1, "how often a call that changes nothing is made where others are made once: it costs a tenth")
)

// worker has this program run a script.
const worker = "js-worker"

func TestMain(m *testing.M) {
	if l := liars[os.Getenv(liarMark)]; l != nil {
		l.fd = 3
		l.serve()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == worker {
		if js.Work(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	remove := testdir.InMemory()
	code := m.Run()
	remove()
	os.Exit(code)
}

// A race is a tree in which two names trade places all the time, the calls that are made there, and
// the mistakes that must come to a victim there.
type race struct {
	name  string
	tree  []string
	swap  [2]string
	steps []step
	bad   []string
}

// parts is the share of the calls that a race gets: those on trees cost ten times as much.
func (r *race) parts() int {
	if strings.HasPrefix(r.swap[0], "t/") {
		return 1
	}
	return 8
}

// A step is one call. In its arguments R is the root, N a number, TRASHED what was deleted last.
type step struct {
	tool, args string
	fresh      bool // what trades places, and no b, must be there
	views      bool // it changes nothing, and costs so little that it is made several times
}

// onFiles are calls about d/f, b beside it, and a, which never trades places.
var onFiles = []step{
	{tool: "Read", args: `{"file_path":"R/d/f"}`, views: true},
	{tool: "Grep", args: `{"pattern":"VIC|OURS","path":"R","output_mode":"content"}`, views: true},
	{tool: "Grep", args: `{"pattern":"VIC|OURS","path":"R/d","output_mode":"content"}`, views: true},
	{tool: "Glob", args: `{"pattern":"**","path":"R/d"}`, views: true},
	{tool: "Write", args: `{"file_path":"R/d/f","content":"OURS N\n"}`, fresh: true},
	{tool: "checkpoint_diff", args: `{"turn":"T"}`},
	{tool: "checkpoint_restore", args: `{"id":"undo"}`},
	{tool: "checkpoint_restore", args: `{"id":"redo"}`},
	{tool: "Edit", args: `{"file_path":"R/d/f","old_string":"OURS","new_string":"OURS N"}`},
	{tool: "checkpoint_restore", args: `{"id":"undo","on_conflict":"force"}`},
	{tool: "MultiEdit", args: `{"file_path":"R/d/f","edits":[{"old_string":"OURS","new_string":"OURS\nN"}]}`},
	{tool: "checkpoint_restore", args: `{"turn":"T","on_conflict":"merge"}`},
	{tool: "Write", args: `{"file_path":"R/d/n","content":"OURS N\n"}`},
	{tool: "checkpoint_restore", args: `{"id":"undo"}`},
	{tool: "filesystem.read", args: `{"path":"R/d/f"}`, views: true},
	{tool: "filesystem.stat", args: `{"path":"R/d/VICTIM"}`, views: true},
	{tool: "filesystem.list", args: `{"path":"R/d"}`, views: true},
	{tool: "filesystem.search", args: `{"path":"R","pattern":"**/*"}`, views: true},
	{tool: "filesystem.search_content", args: `{"path":"R/d","pattern":"[A-Z]{4}","regex":true}`, views: true},
	{tool: "filesystem.write", args: `{"path":"R/d/f","content":"OURS N\n"}`},
	{tool: "filesystem.append", args: `{"path":"R/d/f","content":"N\n"}`},
	{tool: "filesystem.edit", args: `{"path":"R/d/f","pattern":"OURS","replace":"OURS N","replace_all":true}`, fresh: true},
	{tool: "filesystem.copy", args: `{"source":"R/d/f","destination":"R/b","overwrite":true}`},
	{tool: "filesystem.copy", args: `{"source":"R/a","destination":"R/d/f","overwrite":true}`, fresh: true},
	{tool: "filesystem.move", args: `{"source":"R/d/f","destination":"R/b","overwrite":true}`, fresh: true},
	{tool: "filesystem.move", args: `{"source":"R/b","destination":"R/d/f","overwrite":true}`},
	{tool: "filesystem.delete", args: `{"path":"R/d/f"}`, fresh: true},
	{tool: "filesystem.restore", args: `{"path":"TRASHED"}`},
	{tool: "run_js", args: `{"code":"const d = 'R/d', f = 'R/d/f', b = 'R/b';
for (let i = 0; i < 2; i++) for (const all of [[() => fs.readFile(f), () => fs.readdir(d), () => fs.stat(f)],
  [() => fs.writeFile(f, 'OURS N'), () => fs.appendFile(f, 'OURS'), () => fs.copyFile(f, b)],
  [() => fs.mkdir(d + '/n'), () => fs.rm(d + '/n'), () => fs.rename(b, f)]])
  for (const r of await Promise.allSettled(all.map((go) => go()))) console.log(r.value ?? String(r.reason));"}`, fresh: true},
}

// onTrees are calls about t, in which sub trades places, and b, where it is copied and moved to.
var onTrees = []step{
	{tool: "copy tree", args: `t b`, fresh: true},
	{tool: "checkpoint_restore", args: `{"id":"undo"}`},
	{tool: "delete tree", args: `t`, fresh: true},
	{tool: "checkpoint_restore", args: `{"id":"undo"}`},
	{tool: "delete tree", args: `t`, fresh: true},
	{tool: "restore tree", args: `TRASHED`},
	{tool: "filesystem.move", args: `{"source":"R/t","destination":"R/b"}`, fresh: true},
	{tool: "checkpoint_restore", args: `{"id":"undo"}`},
	{tool: "filesystem.move", args: `{"source":"R/t/sub","destination":"R/b"}`, fresh: true},
	{tool: "filesystem.move", args: `{"source":"R/b","destination":"R/t/sub"}`},
	{tool: "filesystem.copy", args: `{"source":"R/t/sub/f","destination":"R/b"}`, fresh: true},
	{tool: "filesystem.edit", args: `{"path":"R/t","pattern":"OURS","replace":"OURS N","replace_all":true}`, fresh: true},
	{tool: "checkpoint_restore", args: `{"turn":"T"}`},
	{tool: "delete tree", args: `t/sub`, fresh: true},
	{tool: "checkpoint_restore", args: `{"id":"undo"}`},
	{tool: "Grep", args: `{"pattern":"VIC|OURS","path":"R","output_mode":"content"}`, views: true},
	{tool: "Write", args: `{"file_path":"R/t/sub/n/m","content":"OURS N\n","create_parents":true}`, fresh: true},
	{tool: "checkpoint_restore", args: `{"id":"undo"}`},
}

var (
	anyMistake  = []string{"read", "search", "write", "copy", "onto", "delete", "move"}
	leafMistake = []string{"read", "write", "copy", "onto"}
	treeMistake = []string{"copy tree", "delete tree", "restore tree"}
)

var races = []race{
	{"directory and a link to a denied one", []string{"a = OURS", "d/f = OURS", "l => secret"},
		[2]string{"d", "l"}, onFiles, anyMistake},
	{"directory and a link outside", []string{"a = OURS", "d/f = OURS", "l => ../out"},
		[2]string{"d", "l"}, onFiles, anyMistake},
	{"file and a link to a denied one", []string{"a = OURS", "d/f = OURS", "l => ../secret/f"},
		[2]string{"d/f", "l"}, onFiles, leafMistake},
	{"file and a link outside", []string{"a = OURS", "d/f = OURS", "l => ../../out/f"},
		[2]string{"d/f", "l"}, onFiles, leafMistake},
	{"file and a hard link of a denied one", []string{"a = OURS", "d/f = OURS", "h ~ secret/f"},
		[2]string{"d/f", "h"}, onFiles, leafMistake},
	{"part of a tree and a link to a denied one", []string{"t/f = OURS", "t/sub/f = OURS", "t/sub/g = OURS", "l => ../secret"},
		[2]string{"t/sub", "l"}, onTrees, treeMistake},
	{"part of a tree and a link outside", []string{"t/f = OURS", "t/sub/f = OURS", "t/sub/g = OURS", "l => ../../out"},
		[2]string{"t/sub", "l"}, onTrees, treeMistake},
}

// tally counts the calls of a tool.
type tally struct {
	calls, served int
	last          string // what was answered, where none was served
}

// ways are the ways to hold paths here: by openat2, and by the walk where the kernel has none. The
// code of other systems, with the tag rooted, has one.
func ways(t *testing.T) []string {
	e := newEngine(t, t.TempDir(), "kernel")
	defer e.Close()
	if e.Containment() == "best_effort" {
		return []string{"best_effort"}
	}
	return []string{"kernel", "walk"}
}

func newEngine(t *testing.T, dir, way string) *engine.Engine {
	t.Helper()
	return engineFor(t, dir, way, []string{dir + "/ws/secret/**"})
}

func engineFor(t *testing.T, dir, way string, deny []string) *engine.Engine {
	t.Helper()
	cfg := config.Default()
	cfg.Tools.FS.Audit.MaxBytes = 1 << 30
	f := &cfg.Tools.FS
	f.WorkspaceRoot = dir + "/ws"
	f.AllowPaths, f.DenyPaths = []string{dir + "/ws/**"}, deny
	f.RequireApproval, f.CheckpointBeforeMutation = false, true
	f.Checkpoint.KeepWithin, f.Checkpoint.KeepLast = config.Duration(time.Minute), 2
	must(t, os.MkdirAll(f.WorkspaceRoot, 0o755))
	e, err := engine.Open(cfg, engine.Host{DataDir: dir + "/data", Approver: approval.Yes("races"), Fault: func(op string) *guardfs.Fault {
		if way == "walk" && op == "openat2" {
			return &guardfs.Fault{Err: syscall.ENOSYS}
		}
		return nil
	}})
	must(t, err)
	return e
}

// Paths trade places under calls of every dialect: nothing that may not be seen is, and
// nothing that may not be changed is. Each mistake falls in the same race.
func TestTradingPlaces(t *testing.T) {
	byTool := map[string]*tally{}
	ways := ways(t)
	parts := 0
	for i := range races {
		parts += races[i].parts() * len(ways)
	}
	for i := range races {
		r := &races[i]
		each := max(*calls*r.parts()/parts, len(r.steps))
		for _, way := range ways {
			t.Run(r.name+"/"+way, func(t *testing.T) {
				a := newArena(t, r)
				for _, m := range r.bad {
					t.Logf("%s falls at %d", m, a.falls(t, m))
				}
				before := a.swaps.Load()
				var end time.Time
				if *most > 0 {
					end = time.Now().Add(*most / time.Duration(len(races)*len(ways)))
				}
				made := run(t, a, way, each, end, byTool)
				swaps := a.swaps.Load() - before
				if t.Logf("%d calls, %d trades of places", made, swaps); swaps < int64(made)/10 {
					t.Error("too few trades of places for a race")
				}
			})
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(byTool)) {
		sum := byTool[tool]
		t.Logf("%s: %d of %d served", tool, sum.served, sum.calls)
		if sum.served == 0 && sum.calls > 100 {
			t.Errorf("no %s was served, which makes its races none: %s", tool, sum.last)
		}
	}
}

// runner makes the calls of one race.
type runner struct {
	*engine.Engine
	tools, capabilities dialect.Dialect
	scripts             dialect.Dialect
	a                   *arena
	trashed, session    string
	turn                string
	entry               checkpoint.TrashID
}

// run makes n calls of a race, or as many as there is time for, and says how many that were.
func run(t *testing.T, a *arena, way string, n int, end time.Time, byTool map[string]*tally) (made int) {
	t.Helper()
	e := newEngine(t, a.dir, way)
	defer e.Close()
	if e.Containment() != way {
		t.Fatalf("paths are held by %s, not %s", e.Containment(), way)
	}
	capabilities, err := capability.Over(e, config.Capability{})
	must(t, err)
	withFS := config.Default().Tools.JS
	withFS.Filesystem = true
	scripts := jsfs.Over(e, jsfs.Options{Config: withFS, Worker: js.Program{os.Args[0], worker}})
	r := &runner{Engine: e, tools: tools.Over(e).Dialect(), capabilities: capabilities, scripts: scripts, a: a}
	harm := 0
	for at := 0; made < n && (end.IsZero() || time.Now().Before(end)); at++ { // at is in the steps
		s := a.race.steps[at%len(a.race.steps)]
		if at%len(a.race.steps) == 0 {
			r.session, r.turn = fmt.Sprint("s", made/1000), fmt.Sprint("t", made)
		}
		if s.fresh || at%len(a.race.steps) == 0 {
			a.quietly(func() { a.remade(t, "b") })
		}
		times := 1
		if s.views {
			times = min(*views, n-made)
		}
		sum := byTool[s.tool]
		if sum == nil {
			sum = &tally{}
			byTool[s.tool] = sum
		}
		for range times {
			served, text := r.make(t, s, made)
			why := ""
			if !s.views {
				why = a.harmed()
			}
			if strings.Contains(text, victim) && !strings.Contains(s.args, victim) {
				why = "the answer tells: " + text
			}
			if where := a.copied(a.ws("b")); !s.views && where != "" {
				why = "it is in " + where
			}
			if made++; made%500 == 0 {
				a.quietly(func() {
					if where := a.sweep(t); where != "" {
						why = "it is in " + where
					}
				})
			}
			if why != "" {
				t.Errorf("call %d, %s %s: %s", made, s.tool, s.args, why)
				a.quietly(func() { a.layVictims(t) })
				if harm++; harm > 3 {
					t.Fatal("and so on")
				}
			}
			if sum.calls++; served {
				sum.served++
			} else {
				sum.last = text
			}
		}
	}
	return made
}

// remade is mend, and a name that is none of the tree is taken away.
func (a *arena) remade(t *testing.T, not string) {
	t.Helper()
	must(t, os.RemoveAll(a.ws(not)))
	a.mend(t)
}

// make makes one call, and says whether it was served and what it answered.
func (r *runner) make(t *testing.T, s step, n int) (served bool, text string) {
	t.Helper()
	if strings.HasSuffix(s.tool, "tree") {
		return r.onTree(t, s)
	}
	d := r.tools
	if s.tool == jsfs.Tool {
		d = r.scripts
	}
	if strings.HasPrefix(s.tool, "filesystem.") {
		d = r.capabilities
	}
	args := strings.NewReplacer("\n", " ", `"R/`, `"`+r.a.ws(""), `'R/`, `'`+r.a.ws(""), `"R"`, `"`+r.a.dir+`/ws"`, "N", fmt.Sprint(n), `"T"`, `"`+r.turn+`"`,
		"TRASHED", cmp.Or(r.trashed, "trash:none")).Replace(s.args)
	answer, err := d.Call(t.Context(), dialect.Call{Session: r.session, Turn: r.turn, Tool: s.tool, Args: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("call %d, %s: %v", n, s.tool, err)
	}
	raw, err := answer.JSON(true)
	must(t, err)
	text = answer.Text() + string(raw)
	if s.tool == jsfs.Tool && !strings.Contains(text, `"error":null`) {
		t.Errorf("call %d: the script did not run to its end: %s", n, text)
	}
	if s.tool == "filesystem.delete" {
		var got struct {
			TrashPath string `json:"trash_path"`
		}
		_ = json.Unmarshal(raw, &got)
		r.trashed = got.TrashPath
	}
	return !answer.Refused(), text
}

// onTree does what no dialect has: whole trees are copied and deleted by the engine alone.
func (r *runner) onTree(t *testing.T, s step) (served bool, text string) {
	t.Helper()
	served = true
	c := &engine.Call{Session: r.session, Turn: r.turn, Dialect: "races", Tool: s.tool}
	name := strings.Fields(s.args)
	_, err := engine.Do(t.Context(), r.Engine, c, engine.Operation[any, *dialect.Object]{Changes: true,
		Run: func(ctx context.Context, _ any) (_ *dialect.Object, err error) {
			switch s.tool {
			case "copy tree":
				_, err = c.Copy(ctx, engine.CopyArgs{From: r.a.ws(name[0]), To: r.a.ws(name[1]), Recursive: true})
			case "delete tree":
				var done *engine.Done
				done, err = c.Delete(ctx, r.a.ws(name[0]), engine.DeleteOptions{Recursive: true})
				if err == nil && len(done.Trashed) > 0 {
					r.entry = done.Trashed[0].ID
				}
			default:
				_, err = c.Untrash(ctx, r.entry, false)
			}
			return &dialect.Object{}, err
		},
		Refuse: func(_ context.Context, _ *engine.Call, _ any, no *engine.Refusal) (*dialect.Object, string) {
			served, text = false, no.Error()
			return &dialect.Object{}, string(no.Code)
		}})
	if err != nil && !errors.Is(err, engine.ErrClosed) {
		t.Fatalf("%s: %v", s.tool, err)
	}
	return served, text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
