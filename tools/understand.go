package tools

import (
	"encoding/json"
	"strings"

	"moltisfs/internal/args"
	"moltisfs/internal/foreign"
)

// understood is what was made of the arguments of a call before it began.
type understood struct {
	raw  json.RawMessage // in our names where all of it is certain
	in   any
	err  error
	note string // which names were taken for which
}

// understand decodes the arguments. Where they are not ours, it reads them as those of other
// agents' tools. What is not certain of that is offered as the next call.
func (t *Tool) understand(raw json.RawMessage) (u understood) {
	in, err := t.decode(raw)
	if err == nil {
		return understood{raw, in, nil, ""}
	}
	defer func() { // it is not within Engine.Do, which has a guard of its own
		if recover() != nil {
			u = understood{raw, in, err, ""}
		}
	}()
	r := foreign.Read(foreign.Tool{Name: t.Name, Changes: t.Effect != Reads,
		Fields: t.args.Fields()}, raw)
	if r == nil {
		return understood{raw, in, err, ""}
	}
	ours, wrong := t.decode(r.Args)
	if wrong == nil && r.Wrong == nil {
		return understood{r.Args, ours, nil, r.Note}
	}
	refused := &args.Error{What: strings.Join(r.Wrong, "; "), Hint: r.Hint, Tool: r.Tool}
	if still, ok := wrong.(*args.Error); ok && r.Tool == "" && still.Hint != r.Hint &&
		!strings.Contains(refused.What, still.What) {
		refused.What = strings.TrimPrefix(refused.What+"; "+still.What, "; ")
		refused.Hint = strings.TrimPrefix(refused.Hint+"; "+still.Hint, "; ")
	}
	if r.Tool != "" {
		_, wrong = row(r.Tool).decode(r.Args)
	}
	if wrong == nil && r.Offer {
		refused.Call = r.Args
	}
	return understood{raw, ours, refused, ""}
}

// decode is for the call as it came and, where hooks made another of it, for that.
func (u *understood) decode(t *Tool, raw json.RawMessage) (any, error) {
	if len(raw) == len(u.raw) && (len(raw) == 0 || &raw[0] == &u.raw[0]) {
		return u.in, u.err
	}
	u.note = ""
	return t.decode(raw)
}

// badArgument says all that is wrong with the arguments, and which would be right.
func badArguments(a *about, r *Refusal) {
	e := factsOf[*badArgument](a)
	tool := row(a.tool)
	if e.Tool != "" {
		tool = row(e.Tool)
	}
	if in, err := tool.decode(e.Call); e.Call != nil && err == nil && tool.allowed(a.s.tools) {
		r.Next = again(tool.Name, in, nil)
		path, there := pathOf(in), &tree{about: &about{s: a.s, call: a.call, tool: tool.Name, args: in}}
		if path != "" && tool.Name != "Write" && a.call != nil && !there.Fits(path) {
			r.Next = nil // it would be refused for its path
		}
	}
}

// read tells which names were taken for which.
func (c *Content) read(note string) { c.Note = note }
func (g *Glob) read(note string)    { g.Note = joined(note, g.Note) }
func (g *Grep) read(note string)    { g.Note = joined(note, g.Note) }
func (c *Changed) read(note string) { c.Note = note }

func (p *Checkpoints) read(note string)       { p.Note = joined(note, p.Note) }
func (p *CheckpointDiff) read(note string)    { p.Note = note }
func (p *CheckpointRestore) read(note string) { p.Note = note }

func (n *NotebookEdit) read(note string) { n.Note = joined(note, n.Note) }

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
