// Package jsfs is JavaScript as a dialect over the engine: one tool, run_js, whose scripts have a
// global fs of eleven methods. Each call of fs is an ordinary call of the engine, of the principal
// and session that runs the script: policy, approval, checkpoint, trash and audit are as in every
// dialect. It knows methods, parameters and words; internal/js runs the scripts.
//
// The methods, their defaults and their words are those of the published page "Filesystem access".
// Errors of the system are told as Rust's std::io does, with Node's code beside it.
package jsfs

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	random "math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"moltisfs/config"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/js"
	"moltisfs/internal/policy"
	"moltisfs/internal/refusal"
	"moltisfs/internal/share"
)

// Name is how the dialect is on record, and Tool its one tool.
const (
	Name = "jsfs"
	Tool = "run_js"
)

// Names are the tool and the operations of fs, as [tools.policy] names them.
func Names() []string {
	names := []string{Tool}
	for _, o := range operations {
		names = append(names, "fs."+o.name)
	}
	return names
}

// Options are the parts of the dialect.
type Options struct {
	Config config.JS
	Worker js.Program // runs js.Work
}

// Dialect is the tool. It is safe for concurrent use.
type Dialect struct {
	e     *engine.Engine
	o     Options
	slots *share.Pool // scripts that run
}

// Over is the dialect over an engine, which stays the caller's to close.
func Over(e *engine.Engine, o Options) *Dialect {
	return &Dialect{e, o, share.New(scriptsAtOnce)}
}

// EndSession implements [dialect.Sessions].
func (d *Dialect) EndSession(_ context.Context, principal, session string, forever bool) error {
	return d.e.EndSession(principal, session, forever)
}

type runArgs struct {
	Code   *string `json:"code,omitempty" doc:"The script."`
	File   *string `json:"file,omitempty" doc:"A script in the workspace, in the place of code."`
	Time   *int    `json:"timeout_secs,omitempty" default:"30" min:"1" max:"300" doc:"Time it may take."`
	Memory *int    `json:"heap_memory_max_mb,omitempty" default:"64" min:"4" doc:"Its memory."`
}

// The time and the megabytes of a script, unless the call says otherwise.
const (
	usualTime   = 30 * time.Second
	usualMemory = 64
)

const (
	doc = "Runs JavaScript (an ES module; await at the top) and returns what it wrote" +
		" to the console."
	docFS = " Use it to read, change and write many files in one call.\n" +
		"There is a global fs, whose methods are all async: readFile(path, \"buffer\"?), " +
		"writeFile(path, data), appendFile, readdir (names), stat {size, isFile, isDirectory, " +
		"isSymlink, readonly, mtimeMs, atimeMs, birthtimeMs}, mkdir(path, {recursive}), " +
		"rm(path, {recursive}), unlink, rename, copyFile, exists. " +
		"Relative paths begin at the workspace root.\n" +
		"There are no modules, no process and no network. Refusals are exceptions that say what " +
		"to do."
	docUndo    = " One undo takes back a whole run."
	docExample = "\nExample: for (const f of await fs.readdir(\"src\")) if (f.endsWith(\".js\")) " +
		"{ const s = await fs.readFile(\"src/\" + f); const t = s.replaceAll(\"oldName\", " +
		"\"newName\"); if (t !== s) { await fs.writeFile(\"src/\" + f, t); console.log(f); } }"
	docNone = "\nThere are no files, no modules, no process and no network."
)

var spec = args.Of[runArgs](nil)

const outputSchema = `{"type":"object","properties":{"output":{"type":"string"},` +
	`"error":{"type":["string","null"]},"hint":{"type":"string"},` +
	`"changed":{"type":"array","items":{"type":"string"}},"changed_more":{"type":"integer"},` +
	`"checkpoints":{"type":"array","items":{"type":"string"}},"turn":{"type":"string"}}}`

// Definitions are the tools that [tools.policy] leaves.
func (d *Dialect) Definitions() []dialect.Definition {
	return definitions(d.e.Tools(), d.hasFS(), d.e.Config().CheckpointBeforeMutation)
}

// hasFS says whether scripts have an fs.
func (d *Dialect) hasFS() bool { return d.e.HasChain() || d.o.Config.Filesystem }

// DefinitionsUnder lists the definitions of the tools that a configuration leaves.
func DefinitionsUnder(cfg config.Tools) ([]dialect.Definition, error) {
	return definitions(engine.ToolsUnder(cfg), cfg.FS.HasPolicies() || cfg.JS.Filesystem,
		cfg.FS.CheckpointBeforeMutation), nil
}

func definitions(lists policy.Tools, fs, undo bool) []dialect.Definition {
	if !lists.Allows(Tool, false) {
		return nil
	}
	reads, more := !lists.Allows("fs.writeFile", true, engine.Changing...), docFS+docExample
	switch {
	case !fs:
		reads, more = true, docNone
	case reads:
		more = docFS + " Changes of files are refused here."
	case undo:
		more = docFS + docUndo + docExample
	}
	return []dialect.Definition{{
		Name: Tool, Title: "Run JavaScript", Description: doc + more, ReadOnly: reads, Destructive: !reads,
		InputSchema: spec.Schema(), OutputSchema: json.RawMessage(outputSchema),
	}}
}

// reply is the answer of a run.
type reply struct {
	Output      string   `json:"output"`
	Error       *string  `json:"error"`
	Hint        string   `json:"hint,omitempty"`
	Changed     []string `json:"changed,omitempty"` // absolute paths, in the order of the changes
	More        int      `json:"changed_more,omitempty"`
	Checkpoints []string `json:"checkpoints,omitempty"`
	Turn        string   `json:"turn,omitempty"` // takes all of them back
}

// run is one call on its way.
type run struct {
	*engine.Call
	*Dialect
	in dialect.Call
	id int64 // what its changes have in common: one undo takes them back

	mu    sync.Mutex
	reply reply
	known map[string]bool // paths in reply, and those beyond
	busy  sync.Map        // by path, the lock of who changes it
}

// alone waits until no other call of the run changes these paths: of calls side by side each finds
// the outcome of those before it.
func (r *run) alone(paths []string) (over func()) {
	var held []*sync.Mutex
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		m, _ := r.busy.LoadOrStore(p, new(sync.Mutex))
		held = append(held, m.(*sync.Mutex))
		held[len(held)-1].Lock()
	}
	return func() {
		for _, m := range held {
			m.Unlock()
		}
	}
}

// mostTold bounds the paths and the checkpoints that an answer lists: a hundred cost a model 2,500 tokens.
const mostTold = 20

// Call runs a script.
func (d *Dialect) Call(ctx context.Context, in dialect.Call) (dialect.Answer, error) {
	if in.Turn == "" { // one run is one turn
		in.Turn = "js-" + rand.Text()[:12]
	}
	r := &run{Dialect: d, in: in, Call: engine.NewCall(in, Name, in.Tool),
		id: 1 + random.Int64N(math.MaxInt64), known: map[string]bool{}}
	if in.Tool != Tool || len(d.Definitions()) == 0 {
		return nil, d.e.Unknown(ctx, r.Call, in, nil,
			&dialect.UnknownToolError{Tool: in.Tool, Nearest: d.nearest(in.Tool)})
	}
	op := engine.Operation[*runArgs, *dialect.Object]{Args: in.Args, Time: d.o.time(nil) + d.e.OwnTime(true), Decode: r.decode}
	return refusal.Do(ctx, d.e, r.Call, op, func(ctx context.Context, a *runArgs) (any, error) {
		err := r.script(ctx, a)
		return r.fitted(), err
	}, func(no *engine.Refusal) any { return reply{Error: new(why(no))} })
}

// fitted is the reply with as much of the output as the caller's page has room for.
func (r *run) fitted() reply {
	out, page := r.reply, r.in.Page
	if page.Bytes == 0 {
		return out
	}
	page = r.e.Page(page)
	show := func(n int) string {
		if out.Output = r.reply.Output; n < len(out.Output) {
			part := strings.ToValidUTF8(out.Output[:n], "")
			out.Output = fmt.Sprintf("%s\n[%d more bytes are left out: this client shows no more]", part, len(out.Output)-len(part))
		}
		raw, err := args.Encode(out)
		if err != nil {
			return ""
		}
		return string(raw)
	}
	show(page.Fit(len(r.reply.Output), show))
	return out
}

func (d *Dialect) nearest(tool string) string {
	if len(d.Definitions()) == 0 {
		return ""
	}
	return args.Nearest(tool, []string{Tool})
}

func (r *run) decode(raw json.RawMessage) (*runArgs, error) {
	given, err := spec.Decode(raw)
	if err != nil {
		return nil, err
	}
	a := given.(*runArgs)
	if (a.Code == nil) == (a.File == nil) {
		return nil, args.Errorf("give code or file", "one of code and file is needed")
	}
	if c := a.Code; c != nil { // the record says which script it was
		sum := sha256.Sum256([]byte(*c))
		r.Trace.Asked.Pattern = "sha256:" + hex.EncodeToString(sum[:])
	} else {
		r.Trace.Asked.Pattern = *a.File
	}
	return a, nil
}

// time is how long a script may run.
func (o Options) time(asked *int) time.Duration {
	most := time.Duration(o.Config.Time)
	if asked == nil {
		return min(usualTime, most)
	}
	return min(time.Duration(*asked)*time.Second, most)
}

// memory is the size of a script's heap.
func (o Options) memory(asked *int) int64 {
	n := usualMemory
	if asked != nil {
		n = *asked
	}
	return min(int64(min(n, math.MaxInt32))<<20, o.Config.Memory)
}

// script runs the script, and collects its outcome.
func (r *run) script(ctx context.Context, a *runArgs) error {
	turn, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.e.Ending(), cancel)()
	if err := r.slots.Take(turn, r.Principal, 1); err != nil {
		return cmp.Or(ctx.Err(), engine.ErrClosed)
	}
	defer r.slots.Give(r.Principal, 1)
	s := js.Script{FS: r.hasFS(), Time: r.o.time(a.Time),
		Memory: r.o.memory(a.Memory),
		Output: mostOutput, Stack: mostFrames, AtOnce: callsAtOnce}
	if a.File != nil {
		if !s.FS {
			return args.Errorf("give code", "there is no file without an fs")
		}
		got, err := r.call(ctx, js.Request{Op: "readFile", Path: *a.File, Encoding: "utf8"})
		if err != nil {
			r.reply.Error = new(err.Error())
			return nil
		}
		s.Code = string(got.Data)
	} else {
		s.Code = *a.Code
	}
	out, err := r.o.Worker.Run(ctx, s, r.call)
	switch { // of a run that was cut off too the answer tells what it changed
	case errors.Is(err, js.ErrNoWorker):
		return err
	case err != nil && ctx.Err() == nil:
		r.e.Logger().Error("a script was cut off", "err", err)
		out.Error = "the engine failed: the script was cut off, and what it did until then stays"
	}
	r.reply.Output = out.Output
	if out.Error != "" {
		r.reply.Error = new(out.Error)
	}
	if strings.Contains(out.Error, "fs is not defined") && !s.FS {
		r.reply.Hint = "the operator gives scripts an fs by a filesystem policy, or by " +
			"filesystem = true in [tools.js]"
	}
	if len(r.reply.Changed) > 0 && r.e.Config().CheckpointBeforeMutation {
		r.reply.Turn = r.in.Turn
	}
	return nil
}

const (
	scriptsAtOnce = 4         // that run in this program; others wait
	callsAtOnce   = 8         // of one script that run side by side
	mostOutput    = 100 << 10 // bytes of one script
	mostFrames    = 5000      // of functions within functions in one script
)

// changed notes the paths that a call of fs has changed.
func (r *run) changed(c *engine.Call, paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paths {
		switch {
		case r.known[p]:
		case len(r.reply.Changed) < mostTold:
			r.known[p] = true
			r.reply.Changed = append(r.reply.Changed, p)
		default:
			r.known[p] = true
			r.reply.More++
		}
	}
	if id := c.Trace.Checkpoint; id != "" && len(r.reply.Checkpoints) < mostTold &&
		!slices.Contains(r.reply.Checkpoints, id) {
		r.reply.Checkpoints = append(r.reply.Checkpoints, id)
	}
}

// at is a path of the script's, from the root on.
func (d *Dialect) at(p string) string {
	if p == "" || path.IsAbs(p) {
		return p
	}
	root := d.e.Root()
	if root == "" {
		root = d.e.Config().WorkspaceRoot
	}
	if root == "" {
		return p
	}
	return strings.TrimSuffix(root, "/") + "/" + p
}
