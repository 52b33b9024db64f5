package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/ndjson"
	"moltisfs/internal/refusal"
	"moltisfs/tools"
)

func callCommand() *command {
	return &command{
		name:  "call",
		short: "call one tool",
		long: `Calls TOOL. Its arguments are words: the first is the tool's first required argument, and NAME=VALUE is
any other. Or they are one JSON object; "-" reads that from standard input. "moltis-fs help TOOL" explains
them. Relative paths are taken from the working directory.

On a terminal, and with --text, the answer is text, and a refusal is told on standard error.
Elsewhere, and with --json, it is the payload as one line of JSON. Approvals are asked on the
terminal, or with --approve queue answered from elsewhere, as by moltis-fs approvals; --yes answers
them with yes, but for what runs code later; --approve yes-exec answers that too.

The exit status is 0 for a success, 1 for a refusal, 2 for an unknown tool and other misuse, 3 when
the host is broken, and 130 after Ctrl-C.`,
		args: "TOOL [VALUE] [NAME=VALUE...] | TOOL JSON | TOOL -", min: 1, max: maxPaths, ids: toolNames,
		options: options("yes approve json dialect read-only"+onSuite,
			opt("text", "", "answer as text for people (default on a terminal)"),
			opt("turn", "NAME", "the user's prompt that this call belongs to; it groups checkpoints"),
		),
		examples: []string{
			`moltis-fs call Read README.md`,
			`moltis-fs call Grep TODO path=src output_mode=content`,
			`moltis-fs call Edit '{"file_path": "a.txt", "old_string": "30", "new_string": "60"}'`,
			`moltis-fs call --yes Write - < arguments.json`,
		},
		run: runCall,
	}
}

// toolNames gives the names of the tools.
func toolNames(context.Context, *invocation) (names []string) {
	for _, d := range tools.Definitions() {
		names = append(names, d.Name)
	}
	return names
}

// maxArguments is how many bytes the arguments of a call may have.
const maxArguments = 64 << 20

func runCall(ctx context.Context, in *invocation) error {
	debug.SetGCPercent(400) // a process of one call: most need no collection
	if in.given("text") && in.given("json") {
		return misuse(seeHelp(in.command), "--text does not go with --json")
	}
	args, err := in.callArgs()
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	s, err := in.forCalls(ctx)
	if err != nil {
		return err
	}
	c := dialect.Call{Principal: in.option("principal"), Session: in.option("session"),
		Turn: in.option("turn"), Client: program + " call", Tool: in.arg(0), Args: args}
	if here := s.directory(c); takesPaths(c.Tool) && here != "" {
		c.Args = absoluteArgs(args, here, searches(c.Tool) && s.cfg.Tools.FS.WorkspaceRoot == "")
	}
	return closing(s, callOnce(ctx, in, s, c))
}

// callArgs gives the arguments of the call as JSON: what is written as JSON, or what the words say. For example, the words
// "README.md limit=5" of Read are {"file_path": "README.md", "limit": "5"}; the tool takes a number that is written as text.
func (in *invocation) callArgs() ([]byte, error) {
	words := in.args[1:]
	if len(words) == 0 {
		return []byte("{}"), nil
	}
	if words[0] == "-" && len(words) == 1 {
		args, err := in.readArgument("-", maxArguments)
		if err != nil {
			return nil, misuse("send less at once", "reading the arguments: %v", err)
		}
		return args, nil
	}
	if strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		if len(words) > 1 {
			return nil, misuse("give one JSON object in quotes, or words", "%q comes after the JSON", words[1])
		}
		return []byte(words[0]), nil
	}
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return nil, unusableConfig(err, from)
	}
	defs, err := in.definitionsOf(cfg)
	if err != nil {
		return nil, err
	}
	tool, err := definition(in.arg(0), defs)
	if err != nil {
		return nil, err
	}
	var schema schemaOf
	_ = json.Unmarshal(tool.InputSchema, &schema) // it is ours
	given, order := map[string]string{}, orderOf(tool.InputSchema)
	for _, word := range words {
		name, value, named := strings.Cut(word, "=")
		if !named || !slices.Contains(order, name) {
			i := slices.IndexFunc(order, func(n string) bool { return slices.Contains(schema.Required, n) })
			if i < 0 || given[order[i]] != "" || named && len(name) > 2 && args.Nearest(name, order) != "" {
				return nil, notAWord(tool, order, word)
			}
			name, value = order[i], word
		}
		if _, twice := given[name]; twice {
			return nil, misuse("give it once", "%s is given twice", name)
		}
		given[name] = value
	}
	return encoded(given, "")
}

// notAWord refuses a word of a call, and shows how the call is written.
func notAWord(tool dialect.Definition, names []string, word string) error {
	hint := fmt.Sprintf("write NAME=VALUE with one of %s, or one JSON object; see %s help %s", strings.Join(names, ", "), program, tool.Name)
	if len(names) == 0 {
		hint = "it takes no arguments"
	}
	if name, value, named := strings.Cut(word, "="); named && len(name) > 2 {
		if near := args.Nearest(name, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", shellWord(near+"="+value))
		}
	}
	return misuse(hint, "%s has no argument for %q", tool.Name, word)
}

// forCalls opens what the calls of this command line are made on.
func (in *invocation) forCalls(ctx context.Context) (s *instance, err error) {
	if in.given("yes") && in.given("approve") {
		return nil, misuse(seeHelp(in.command), "--yes and --approve both say who approves")
	}
	approver, err := in.approver("run it with --yes", "run it in a terminal",
		"run it with --approve queue", "set require_approval = false in [tools.fs]")
	if err != nil {
		return nil, err
	}
	if how := in.option("approve"); how != "" {
		if approver, err = in.approveBy(how); err != nil {
			return nil, err
		}
	}
	if err := in.implyRoot(); err != nil {
		return nil, err
	}
	s, err = in.openInstance(ctx, approver, nil, func(_ *config.Config, o *tools.Options) { o.Program.Name = in.programName() })
	if err == nil && in.implied {
		in.tellOpen(s.cfg, in.openText(s.cfg), in.approves("terminal"))
	}
	return s, err
}

func callOnce(ctx context.Context, in *invocation, d dialect.Dialect, c dialect.Call) error {
	a, err := d.Call(ctx, c)
	if u, ok := errors.AsType[*dialect.UnknownToolError](err); ok {
		_, nearest := definition(u.Tool, d.Definitions())
		return cmp.Or(nearest, err)
	}
	if err != nil {
		return err
	}
	if p, ok := a.(payload); ok {
		if b, ok := p.Unwrap().(*tools.Bash); ok && b.Status == "running" {
			fmt.Fprintf(in.err, "%s: warning: %s ends with this command, and what it changes is dropped; leave run_in_background out\n", program, b.ShellID)
		}
	}
	if in.given("text") || !in.given("json") && in.terminal() != nil {
		return in.showAnswer(a)
	}
	line, err := a.JSON(true)
	if err != nil {
		return err
	}
	return ending(in.write(append(line, '\n')), refusedIf(a.Refused()))
}

// How a call reads to a person: paths from the working directory, answers as text.

// pathKeys are the arguments of the tools that hold one path or a list of them.
var pathKeys = []string{"file_path", "filePath", "path", "notebook_path", "paths"}

// members calls f with each name and value of a JSON object, in its order, a name that comes twice
// too. It is false where raw is no object.
func members(raw []byte, f func(name string, v json.RawMessage)) bool {
	object := bytes.TrimSpace(raw)
	if !json.Valid(object) || object[0] != '{' {
		return false
	}
	ndjson.Members(object, func(key []byte, from, to int) {
		var name string
		_ = json.Unmarshal(key, &name) // it is valid
		f(name, object[from:to])
	})
	return true
}

// absoluteArgs gives the arguments raw of a tool with every relative path taken from the directory
// here, as in {"file_path": "a.txt"}; agents have none. Arguments that are no object are left to the tool.
// search is set where a tool wants a path and has no root to fall back on.
func absoluteArgs(raw []byte, here string, search bool) []byte {
	absolute := func(v json.RawMessage) json.RawMessage {
		var p string
		if json.Unmarshal(v, &p) != nil || p == "" || filepath.IsAbs(p) || strings.Contains(p, "://") {
			return v
		}
		out, err := encoded(filepath.Join(here, p), "")
		if err != nil {
			return v
		}
		return bytes.TrimSpace(out)
	}
	out := []byte{'{'}
	put := func(name string, v json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name) // a string is always JSON
		out = append(append(append(out, quoted...), ':'), v...)
	}
	if !members(raw, func(name string, v json.RawMessage) {
		if slices.Contains(pathKeys, name) {
			search = false
			var list []json.RawMessage
			if json.Unmarshal(v, &list) == nil && list != nil {
				for i := range list {
					list[i] = absolute(list[i])
				}
				v, _ = json.Marshal(list) // of what was JSON
			} else {
				v = absolute(v)
			}
		}
		put(name, v)
	}) {
		return raw
	}
	if search {
		put("path", absolute(json.RawMessage(`"."`)))
	}
	return append(out, '}')
}

// searches says whether a tool looks below its path, or below the root without one.
func searches(tool string) bool {
	return slices.ContainsFunc(tools.Definitions(), func(d dialect.Definition) bool {
		return d.Name == tool && slices.Contains(orderOf(d.InputSchema), "path")
	})
}

// takesPaths says whether a tool is one whose paths are those of the file system. Those of jettson
// are not, and the capabilities have their own rule.
func takesPaths(tool string) bool {
	return slices.ContainsFunc(tools.Definitions(), func(d dialect.Definition) bool {
		return d.Name == tool || slices.Contains(d.Also, tool)
	})
}

// showAnswer writes an answer for a person; a refusal goes to standard error.
func (in *invocation) showAnswer(a dialect.Answer) error {
	inside, where := a, ""
	if at, ok := a.(located); ok {
		inside, where = at.inside()
	}
	p, ok := inside.(payload)
	if !ok {
		return in.showText(a.Text(), a.Refused())
	}
	return in.showPayload(p.Unwrap(), where)
}

// showPayload is showAnswer for a payload of the tools, and a line on where that was.
func (in *invocation) showPayload(p tools.Payload, where string) error {
	p = in.forOperator(p)
	if r, ok := p.(*tools.Refusal); ok {
		e := &exitError{status: exitRefused, what: strings.TrimSpace(r.Message + " " + where), hint: aside(r.Hint)}
		if t, ok := r.Fields.(interface{ Text() string }); ok {
			return &withLines{e, t.Text()}
		}
		return e
	}
	text := strings.TrimRight(in.textOf(p), "\n") + "\n" + where
	return in.showText(text, tools.Refused(p))
}

// showText writes a text; one of a refusal goes to standard error.
func (in *invocation) showText(text string, isRefusal bool) error {
	text = strings.TrimRight(text, "\n") + "\n"
	if isRefusal {
		return &exitError{status: exitRefused, what: strings.TrimSpace(text)}
	}
	return in.write([]byte(text))
}

// forOperator gives the payload p with a hint for a person, and without a next call of a tool.
func (in *invocation) forOperator(p tools.Payload) tools.Payload {
	r, ok := p.(*tools.Refusal)
	if !ok {
		return p
	}
	names := func(name string) string { return optionNames[name] }
	if in.command.name == "call" || in.remote != nil {
		names = nil // the arguments are those of the tool
	}
	own := *r
	own.Next, own.Hint = nil, r.ForPerson(names, map[string]string{
		"config": in.findConfig(in.option("config")), "editor": in.besideEditor()})
	return &own
}

// optionNames maps the tools and arguments that hints name to the commands and options of the command line.
var optionNames = map[string]string{"checkpoints_list": program + " log", "label": "--label", "on_conflict": "--on-conflict",
	"paths": "the PATHs", "since": "--since"}

// aside makes a clause of a hint, to follow "hint: ".
func aside(hint string) string {
	if word, _, _ := strings.Cut(hint, " "); takesPaths(word) {
		return strings.TrimSuffix(hint, ".")
	}
	return refusal.Clause(hint)
}

func toolsCommand() *command {
	return &command{
		name:  "tools",
		short: "print the definitions of the tools",
		long: `A list with everything that is known of each tool, its input_schema as models get it. Tools
that the configuration denies are left out. "moltis-fs help TOOL" explains one to people.`,
		options:  options("config dialect tool-prefix read-only"),
		examples: []string{"moltis-fs tools --config moltis.toml", "moltis-fs tools | jq 'map({name, description, input_schema})'"},
		run:      writeTools,
	}
}

func writeTools(_ context.Context, in *invocation) error {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return unusableConfig(err, from)
	}
	defs, err := in.definitionsOf(cfg)
	if err != nil {
		return err
	}
	return writeJSON(in, list(defs))
}

// A schemaOf is the part of a JSON Schema that help shows.
type schemaOf struct {
	Type        any                        `json:"type"`
	Description string                     `json:"description"`
	Enum        []string                   `json:"enum"`
	Default     any                        `json:"default"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Required    []string                   `json:"required"`
}

// orderOf gives the names of an object's properties as the schema has them: the important ones come first.
func orderOf(schema json.RawMessage) (out []string) {
	var s struct{ Properties json.RawMessage }
	_ = json.Unmarshal(schema, &s) // it is ours
	members(s.Properties, func(name string, _ json.RawMessage) { out = append(out, name) })
	return out
}

// toolHelp explains the arguments of the tool d, as in "pattern  string, required. The regular expression".
func toolHelp(d dialect.Definition) string {
	var s schemaOf
	_ = json.Unmarshal(d.InputSchema, &s) // it is ours
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n%s\n\nUsage: %s call %s '{ARGUMENTS IN JSON}'\n\nArguments:\n", d.Name, d.Title, wrap(d.Description, width),
		program, d.Name)
	for _, name := range orderOf(d.InputSchema) {
		var a schemaOf
		_ = json.Unmarshal(s.Properties[name], &a)
		line := cmp.Or(strings.Join(a.Enum, " | "), fmt.Sprint(a.Type))
		if slices.Contains(s.Required, name) {
			line += ", required"
		}
		if a.Default != nil {
			line += fmt.Sprintf(" (default: %v)", a.Default)
		}
		const column = 18
		text := strings.ReplaceAll(wrap(line+". "+a.Description, width-column), "\n", "\n"+strings.Repeat(" ", column))
		fmt.Fprintf(&b, "  %-*s %s\n", column-3, name, text)
	}
	if takesPaths(d.Name) {
		b.WriteString("\nAt the command line, relative paths start at the working directory.\n")
	}
	return b.String()
}

// definition is a tool by its name, or misuse that names the nearest.
func definition(name string, defs []dialect.Definition) (dialect.Definition, error) {
	var names []string
	for _, d := range defs {
		if d.Name == name || slices.Contains(d.Also, name) {
			return d, nil
		}
		names = append(names, d.Name)
	}
	hint := "the tools are " + strings.Join(names, ", ")
	if near := args.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	if name == "exec" || slices.Contains(config.ShellTools, name) {
		hint = "it is there with enabled = true in [tools.run], unless [tools.policy] or read_only take it away"
	}
	return dialect.Definition{}, misuse(hint, "there is no tool %q", name)
}

// besideEditor says that the history of a session of moltis-fs acp may be about text that is not on
// the disk.
func (in *invocation) besideEditor() string {
	if !strings.HasPrefix(in.option("session"), "acp-") {
		return ""
	}
	return " Text that an editor has not saved is not seen here: undo it there, or save it first."
}

// textOf is an answer of forOperator for people.
func (in *invocation) textOf(p tools.Payload) string {
	switch p := p.(type) {
	case *tools.CheckpointRestore:
		text := *p
		text.UndoID = nil
		out := text.Text()
		if p.Unchanged {
			out += strings.TrimSpace(in.besideEditor())
		}
		if p.UndoID != nil {
			out += "\nTo undo this restore: " + in.likeThis("restore "+*p.UndoID)
		}
		return strings.TrimPrefix(out, "\n")
	case *tools.CheckpointDiff:
		text := *p
		text.Truncated = false
		if p.Truncated {
			return text.Text() + "\n[more diffs are left out: name the PATHs]"
		}
	}
	return p.Text()
}
