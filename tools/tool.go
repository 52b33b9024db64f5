package tools

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/policy"
)

// Effect says what a tool may do to the world; the MCP annotations follow.
type Effect uint8

const (
	// Reads changes nothing.
	Reads Effect = iota
	// Overwrites replaces or removes what was there.
	Overwrites
)

// A Tool is one row of [All]: everything a surface needs to list and run it.
type Tool struct {
	Name, Title string
	// Description is for a model that knows the tool by heart: only what differs or surprises.
	Description string
	Effect      Effect
	Idempotent  bool
	// Follows are tools that this one does the work of by another road. It is denied with the last of
	// them, unless it is allowed by name.
	Follows []string

	// OwnTime says that the tool sets its own deadline, as a search does, or takes what it takes, as a
	// restore of many files does.
	OwnTime bool

	Search Search

	aliases []args.Alias // other agents' names for the arguments

	// answers has an empty one of each kind of success: their types are the schema of the answers.
	answers []Payload

	args *args.Spec        // schema and decoder
	is   func(in any) bool // whether these are its arguments, as a struct
	run  func(context.Context, *Suite, *engine.Call, any) (Payload, error)
	at   func(path string, there bool) any

	output func() json.RawMessage // the schema of its answers
}

// All is every tool, in the order in which it is listed. Order matters: models and prompt caches
// see it. It is a copy: what a host changes in it changes no suite.
func All() []Tool {
	out := slices.Clone(table)
	for i := range out {
		out[i].Follows = slices.Clone(out[i].Follows)
	}
	return out
}

var table = []Tool{
	readTool,
	writeTool,
	editTool,
	multiEditTool,
	notebookEditTool,
	globTool,
	grepTool,
	checkpointsListTool,
	checkpointDiffTool,
	checkpointRestoreTool,
}

// A checker is an argument struct with rules beyond its types. Problems come
// back as *args.Error.
type checker interface{ check() error }

// An asker is an argument struct that names a part of a tree or of a file.
type asker interface{ asked() engine.Asked }

// A dryRunner is an argument struct that can ask what would be changed.
type dryRunner interface{ dryRun() bool }

// define makes a row out of a typed run function. A is the argument struct. at makes arguments that
// have the tool work on a path: tests send them for every strange one. there says that a file with
// the text "a" is there.
func define[A any](t Tool, run func(context.Context, *Suite, *engine.Call, *A) (Payload, error),
	at func(path string, there bool) A) Tool {
	if len(t.answers) == 0 {
		panic("tools: " + t.Name + " has no answers")
	}
	t.at = func(path string, there bool) any { return at(path, there) }
	t.args = args.Of[A](&args.Names{Tool: t.Name, Changes: t.Effect != Reads, Aliases: t.aliases})
	t.output = sync.OnceValue(func() json.RawMessage {
		out, err := plainJSON(outputSchema(t.answers))
		if err != nil {
			panic("tools: a schema that can't be encoded: " + err.Error())
		}
		return out
	})
	t.is = func(in any) bool {
		switch in.(type) {
		case A, *A:
			return true
		}
		return false
	}
	t.run = func(ctx context.Context, s *Suite, c *engine.Call, in any) (Payload, error) {
		return run(ctx, s, c, in.(*A))
	}
	return t
}

// decode makes the argument struct of a call, checked. note says what was taken as what.
func (t *Tool) decode(raw json.RawMessage) (in any, note string, err error) {
	in, note, err = t.args.Take(raw)
	if err == nil {
		if a, ok := in.(checker); ok {
			err = a.check()
		}
	}
	return in, note, err
}

type badArgument = args.Error

// bad is an argument that can't be taken.
func bad(hint, format string, a ...any) error { return args.Errorf(hint, format, a...) }

// allowed reports whether [tools.policy] leaves the tool.
func (t *Tool) allowed(p policy.Tools) bool {
	return p.Allows(t.Name, t.Effect != Reads, t.Follows...)
}

// definition is what a model is told.
func (t *Tool) definition() Definition {
	return Definition{
		Name:         t.Name,
		Title:        t.Title,
		Description:  t.Description,
		InputSchema:  t.args.Schema(),
		OutputSchema: t.output(),
		ReadOnly:     t.Effect == Reads,
		Destructive:  t.Effect == Overwrites,
		Idempotent:   t.Idempotent || t.Effect == Reads,
		OpenWorld:    false,
		Search:       t.Search,
	}
}
