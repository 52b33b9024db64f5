// Package capability is the dialect of capabilities: filesystem.read and twelve more,
// agent.session and alerts.send, as a published system has them, with tiers of permission and
// errors that say how to recover.
//
// filesystem.yaml says what each is: names, arguments, answers, errors and words. It is the one
// source of the schemas that models see, of capabilities.describe and of docs/capabilities.md.
// A test holds the argument structs beside it.
//
// The package knows names, schemas, shapes, words and errors. The engine does the work and keeps
// the promises. No file is touched but through it. The one thing looked at besides is the name of
// a user, for stat.
package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// Dialect is the capabilities over an engine, which other dialects may stand on too. It is safe for
// concurrent use.
type Dialect struct {
	e      *engine.Engine
	offer  offer
	listed []dialect.Definition // made once: servers ask at each call
	*Kept
}

// Kept holds the watches and events of sessions, which outlive the engine under a dialect.
type Kept struct {
	// Alerts tells operators of an alert, and says whether one is there; may be nil.
	Alerts func(Alert) bool
	logs   eventLogs
}

// EndWatches ends all watches, which are told that they are gone: another engine takes the place of
// theirs.
func (k *Kept) EndWatches() { k.logs.endWatches() }

// With gives the dialect the watches and events that another one has kept. It comes before any call.
func (d *Dialect) With(k *Kept) *Dialect {
	d.Kept = k
	return d
}

// Over is the dialect over an engine, which stays the caller's to close, with the tiers of the
// configuration. A tier that is looser than the text's is taken, with a warning. The error is a
// *config.Problem.
func Over(e *engine.Engine, cfg config.Capability) (*Dialect, error) {
	tiers, _, err := tiersOf(cfg)
	if err != nil {
		return nil, err
	}
	for _, w := range Warnings(cfg) {
		e.Logger().Warn("a capability is freer than its text has it", "key", w.Key, "why", w.Why)
	}
	o := offer{tiers, e.Tools()}
	return &Dialect{e: e, offer: o, listed: o.definitions(), Kept: &Kept{}}, nil
}

// DefinitionsUnder lists the definitions that a configuration leaves, in the order of the text.
func DefinitionsUnder(cfg config.Tools) ([]dialect.Definition, error) {
	tiers, _, err := tiersOf(cfg.Capability)
	if err != nil {
		return nil, err
	}
	return offer{tiers, engine.ToolsUnder(cfg)}.definitions(), nil
}

// Definitions implements [dialect.Dialect].
func (d *Dialect) Definitions() []dialect.Definition { return slices.Clone(d.listed) }

// A call is one call on its way.
type call struct {
	*engine.Call
	*Dialect
	def    *definition
	caller approval.Tier // that the call came with
	page   dialect.Page  // of the caller
}

// A list is an answer whose rows a page may leave out.
type list interface {
	rows() int
	first(n int) any // the answer with so many, which says that there are more
}

// A tool carries a capability out.
type tool struct {
	name    string
	args    *args.Spec
	run     func(context.Context, *call, any) (any, error)
	ownTime bool // it sets its own deadline, or takes what it takes
}

// define makes a row out of a typed run function. A is the argument struct; what run gives is
// answered as JSON.
func define[A any](name string, run func(context.Context, *call, *A) (any, error)) tool {
	return tool{name: name, args: args.Of[A](nil),
		run: func(ctx context.Context, c *call, in any) (any, error) { return run(ctx, c, in.(*A)) }}
}

// alone is a tool that keeps its own time.
func (t tool) alone() tool {
	t.ownTime = true
	return t
}

// table has the function that carries out each capability. A capability without a row is not offered.
var table = []tool{
	define("filesystem.read", runRead),
	define("filesystem.write", runWrite),
	define("filesystem.list", runList),
	define("filesystem.delete", runDelete),
	define("filesystem.restore", runRestore).alone(),
	define("filesystem.stat", runStat),
	define("filesystem.search", runSearch).alone(),
	define("filesystem.search_content", runSearchContent).alone(),
	define("filesystem.copy", runCopy).alone(),
	define("filesystem.move", runMove).alone(),
	define("filesystem.watch", runWatch),
	define("filesystem.append", runAppend),
	define("filesystem.edit", runEdit).alone(),
	define("agent.session", runSession),
	define("agent.events", runEvents).alone(),
	define("agent.unwatch", runUnwatch),
	define("alerts.send", runAlert),
}

func toolOf(name string) *tool {
	i := slices.IndexFunc(table, func(t tool) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return &table[i]
}

// Call implements [dialect.Dialect].
func (d *Dialect) Call(ctx context.Context, in dialect.Call) (dialect.Answer, error) {
	name := dotted(in.Tool)
	def, t := known().find(name), toolOf(name)
	c := &call{Dialect: d, def: def, caller: in.Tier, Call: engine.NewCall(in, "capability", name)}
	if def == nil || t == nil || !d.offer.allows(def) {
		var follows, names []string
		if def != nil {
			follows = def.followed(d.e.Tools())
		}
		for _, one := range d.listed {
			names = append(names, one.Name, dotted(one.Name))
		}
		return nil, d.e.Unknown(ctx, c.Call, in, follows,
			&dialect.UnknownToolError{Tool: in.Tool, Nearest: args.Nearest(in.Tool, names)})
	}
	c.Tier = d.offer.tier(def, in.Tier)
	if in.Page.Bytes > 0 { // else it is a program, which takes all
		c.page = d.e.Page(in.Page)
	}
	limit := d.e.TimeFor(def.Changes, c.Tier)
	if t.ownTime {
		limit = d.e.OwnTime(def.Changes)
	}
	out, err := engine.Do(ctx, d.e, c.Call, engine.Operation[any, *answer]{
		Changes: def.Changes, Follows: def.followed(d.e.Tools()), Time: limit,
		Args: in.Args,
		Decode: func(raw json.RawMessage) (any, error) {
			decoded, err := t.args.Decode(raw)
			if err != nil {
				return decoded, err
			}
			if v, ok := decoded.(interface{ check() error }); ok {
				err = v.check()
			}
			if v, ok := decoded.(interface{ dryRun() bool }); ok {
				c.Trace.DryRun = v.dryRun()
			}
			c.Trace.Paths = pathsOf(decoded)
			if a, ok := decoded.(interface{ asked() engine.Asked }); ok {
				c.Trace.Asked = a.asked()
			}
			return decoded, err
		},
		Run: func(ctx context.Context, decoded any) (*answer, error) {
			v, err := t.run(ctx, c, decoded)
			if l, ok := v.(list); ok && err == nil {
				if n := c.page.Fit(l.rows(), func(n int) string { return textOf(l.first(n)) }); n < l.rows() {
					v = l.first(n)
				}
			}
			if err != nil {
				return nil, err
			}
			return succeed(name, v)
		},
		Refuse: func(ctx context.Context, by *engine.Call, decoded any, no *engine.Refusal) (*answer, string) {
			if no.Cause == engine.Unknown {
				d.e.Logger().Error("a call failed for a reason without a row", "tool", name, "err", no.Err)
			}
			as := &call{Dialect: d, def: def, caller: in.Tier, Call: by}
			return as.refuse(ctx, decoded, no), string(no.Code)
		},
	})
	if err != nil {
		return nil, err
	}
	if c.Trace.Unrecorded {
		out.warn("the outcome could not be written to the audit log")
	}
	return out, nil
}

// An answer is the data of a success, or the one object of an error, on one line.
type answer struct{ dialect.Object }

func succeed(name string, v any) (*answer, error) {
	data, err := args.Encode(v)
	return &answer{dialect.Object{Of: name, Content: data}}, err
}

// textOf is the text of a success.
func textOf(v any) string {
	a, err := succeed("", v)
	if err != nil {
		return ""
	}
	return a.Text()
}

// Text is the answer as it is said over JSON-RPC.
func (a *answer) Text() string {
	if a.No {
		return `{"success":false,"error":` + string(a.Content) + "}"
	}
	return `{"success":true,"data":` + string(a.Content) + "}"
}

// Replaced gives the answer that a hook puts in the place of a. An error stays one.
func (a *answer) Replaced(raw json.RawMessage) (*answer, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return a, errors.New("the result is no JSON object")
	}
	now := *a
	if a.No {
		if err := json.Unmarshal(fields["type"], &now.Of); err != nil || now.Of == "" {
			return a, errors.New("the error has no type")
		}
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return a, err
	}
	now.Content = line.Bytes()
	return &now, nil
}

// warn says what went wrong beside the call.
func (a *answer) warn(what string) {
	head := bytes.TrimSuffix(a.Content, []byte("}"))
	if len(head) > 1 {
		head = append(head[:len(head):len(head)], ',')
	}
	a.Content = append(append(append(head, `"warnings":`...), mustJSON([]string{what})...), '}')
}
