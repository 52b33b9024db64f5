package tools

import (
	"context"
	"encoding/json"
	"reflect"

	"moltisfs/internal/engine"
)

// Effect says what a tool may do to the world; the MCP annotations follow.
type Effect uint8

const (
	// Reads changes nothing.
	Reads Effect = iota
	// Overwrites replaces or removes what was there.
	Overwrites
)

// A Tool is one row of All: everything a surface needs to list and run it.
type Tool struct {
	Name, Title string
	// Description is for a model that knows the tool by heart: only what differs or surprises.
	Description string
	Effect      Effect
	Idempotent  bool

	args   reflect.Type // the argument struct
	fields []field      // as its tags declare them: schema and decoder derive from these
	run    func(context.Context, *Suite, *engine.Call, any) (Payload, error)
}

// All is every tool, in the order in which it is listed. Order matters: models
// and prompt caches see it.
var All = []Tool{
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
// back as *badRequest.
type checker interface{ check() error }

// define makes a row out of a typed run function. A is the argument struct.
func define[A any](t Tool, run func(context.Context, *Suite, *engine.Call, *A) (Payload, error)) Tool {
	t.args = reflect.TypeFor[A]()
	t.fields = fieldsOf(t.args)
	t.run = func(ctx context.Context, s *Suite, c *engine.Call, args any) (Payload, error) {
		return run(ctx, s, c, args.(*A))
	}
	return t
}

// decode makes the argument struct of a call, checked.
func (t *Tool) decode(raw json.RawMessage) (any, error) {
	args := reflect.New(t.args)
	if err := decode(raw, t.fields, args.Elem()); err != nil {
		return args.Interface(), err
	}
	if a, ok := args.Interface().(checker); ok {
		if err := a.check(); err != nil {
			return a, err
		}
	}
	return args.Interface(), nil
}

// definition is what a model is told.
func (t *Tool) definition() Definition {
	return Definition{
		Name:         t.Name,
		Title:        t.Title,
		Description:  t.Description,
		InputSchema:  inputSchema(t.fields),
		OutputSchema: outputSchema(),
		ReadOnly:     t.Effect == Reads,
		Destructive:  t.Effect == Overwrites,
		Idempotent:   t.Idempotent || t.Effect == Reads,
		OpenWorld:    false,
	}
}
