package tools

// badArgument says all that is wrong with the arguments, and which would be right.
func badArguments(a *about, r *Refusal) {
	e := factsOf[*badArgument](a)
	tool := row(a.tool)
	if e.Tool != "" {
		tool = row(e.Tool)
	}
	if in, _, err := tool.decode(e.Call); e.Call != nil && err == nil && tool.allowed(a.s.tools) {
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
