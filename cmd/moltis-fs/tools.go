package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"moltisfs/internal/dialect"
	"moltisfs/internal/nearest"
	"moltisfs/internal/serve/mcp"
	"moltisfs/tools"
)

func toolsCommand() *command {
	return &command{
		name:  "tools",
		short: "write the definitions of the tools, ready for a model's API, or explain one",
		args:  "[TOOL]", max: 1,
		long: `With TOOL it explains the arguments of that one to people. Formats: "anthropic" for
the Messages API, "openai" for Chat Completions, "openai-responses" for the Responses API and the
Agents SDK, both strict; "mcp" as tools/list answers, "json" with everything that is known of a
tool. Tools that the configuration
denies are left out.`,
		options: []option{
			opt("format", "FORMAT", "json unless told", "anthropic", "openai", "openai-responses",
				"mcp", "json"),
			configOption(),
			dialectOption(), readOnlyOption(),
		},
		examples: []string{"moltis-fs tools Grep", "moltis-fs tools --format anthropic",
			"moltis-fs tools --format openai --config moltis.toml"},
		run: writeTools,
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
	if name := in.arg(0); name != "" {
		d, err := definition(name, defs)
		if err == nil && in.given("format") {
			err = misuse("leave one of them out", "tools writes one tool, or all in a format")
		}
		if err != nil {
			return err
		}
		return in.write([]byte(toolHelp(d, in.width())))
	}
	var answer any
	switch in.option("format") {
	case "anthropic":
		answer = anthropicTools(defs)
	case "openai":
		answer, err = openAITools(defs, false)
	case "openai-responses":
		answer, err = openAITools(defs, true)
	case "mcp":
		raw, err := mcp.List(defs)
		if err != nil {
			return fmt.Errorf("encoding the tools: %w", err)
		}
		answer = json.RawMessage(raw)
	default:
		answer = list(defs)
	}
	if err != nil {
		return err
	}
	return writeJSON(in, answer)
}

func anthropicTools(defs []dialect.Definition) any {
	out := []any{}
	for _, d := range defs {
		out = append(out, struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}{d.Name, d.Description, d.InputSchema})
	}
	return out
}

// What help says of one tool: its arguments, made from the schema that models get.

// A schemaOf is what help tells of a JSON Schema.
type schemaOf struct {
	Type        any                        `json:"type"`
	Description string                     `json:"description"`
	Enum        []any                      `json:"enum"`
	Default     any                        `json:"default"`
	Minimum     any                        `json:"minimum"`
	Items       *schemaOf                  `json:"items"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Required    []string                   `json:"required"`
}

// typeText is the type of an argument in plain words.
func (s *schemaOf) typeText() string {
	if len(s.Enum) > 0 {
		var words []string
		for _, e := range s.Enum {
			words = append(words, fmt.Sprint(e))
		}
		return strings.Join(words, " | ")
	}
	switch s.Type {
	case "string":
		return "text"
	case "integer", "number":
		return "number"
	case "boolean":
		return "true or false"
	case "array":
		if s.Items != nil && s.Items.Type == "object" {
			return "list of {" + strings.Join(keysOf(s.Items.Properties), ", ") + "}"
		}
		return "list of " + cmp.Or(map[any]string{"string": "texts"}[s.Items.Type], "values")
	}
	return fmt.Sprint(cmp.Or(s.Type, any("value")))
}

func keysOf(m map[string]json.RawMessage) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// orderOf are the keys of an object's properties as the schema has them: what matters comes first.
func orderOf(schema json.RawMessage) (out []string) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		var v json.RawMessage
		if err != nil || !ok || dec.Decode(&v) != nil {
			return out
		}
		out = append(out, name)
	}
	return out
}

// toolHelp is what there is to know of a tool to call it from the command line.
func toolHelp(d dialect.Definition, width int) string {
	var s schemaOf
	_ = json.Unmarshal(d.InputSchema, &s) // it is ours
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n%s\n\nArguments:\n", d.Name, d.Title, wrap(d.Description, width))
	example := map[string]any{}
	for _, name := range orderOf(d.InputSchema) {
		var a schemaOf
		_ = json.Unmarshal(s.Properties[name], &a)
		line := a.typeText()
		if slices.Contains(s.Required, name) {
			line += ", required"
			example[name] = exampleOf(name, &a)
		}
		if a.Default != nil {
			line += fmt.Sprintf("; %v unless told", a.Default)
		}
		if a.Minimum != nil {
			line += fmt.Sprintf("; at least %v", a.Minimum)
		}
		if a.Description != "" {
			line += ". " + strings.ToUpper(a.Description[:1]) + a.Description[1:]
		}
		if slices.Contains(pathKeys, name) && takesPaths(d.Name) {
			line = strings.Replace(line, "Absolute", "From the working directory or absolute;", 1)
			line = strings.TrimSuffix(line, ";")
		}
		const column = 18
		text := strings.ReplaceAll(wrap(line, width-column), "\n", "\n"+strings.Repeat(" ", column))
		fmt.Fprintf(&b, "  %-*s %s\n", column-3, name, text)
	}
	if len(example) == 0 && d.Name == "checkpoint_restore" {
		example["id"] = "undo"
	}
	args, _ := encoded(example, "")
	fmt.Fprintf(&b, "\nExample:\n  %s call %s %s\n", program, d.Name,
		shellWord(strings.TrimSpace(string(args))))
	return b.String()
}

// exampleOf is a value that fits an argument.
func exampleOf(name string, a *schemaOf) any {
	switch {
	case strings.HasSuffix(name, "path"):
		return map[bool]string{true: "notes.ipynb", false: "README.md"}[name == "notebook_path"]
	case name == "pattern":
		return "TODO"
	case name == "edits":
		return []any{map[string]any{"old_string": "one", "new_string": "two"}}
	case len(a.Enum) > 0:
		return a.Enum[0]
	case a.Type == "integer":
		return 1
	case a.Type == "boolean":
		return true
	}
	return map[string]string{"old_string": "one", "new_string": "two", "content": "hello\n",
		"new_source": "x = 1", "id": "undo"}[name]
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
	if near := nearest.Of(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return dialect.Definition{}, misuse(hint, "there is no tool %q", name)
}

// isTool says whether help is asked for a tool of the dialect tools.
func isTool(name string) (dialect.Definition, bool) {
	d, err := definition(name, tools.Definitions())
	return d, err == nil
}

// openAITool is a function as the Responses API and the Agents SDK have it.
type openAITool struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// openAITools are the definitions as OpenAI's strict mode wants them: every argument is required,
// and one that may be left out takes null. With flat they are for the Responses API, else for Chat
// Completions. What strict mode can't say, as an object with any members, is not strict.
func openAITools(defs []dialect.Definition, flat bool) (any, error) {
	out := []any{}
	for _, d := range defs {
		t := openAITool{Name: d.Name, Description: d.Description, Parameters: d.InputSchema}
		s, err := membersIn(d.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", d.Name, err)
		}
		switch err := s.strict(); {
		case err == nil:
			t.Parameters, t.Strict = s.encoded(), true
		case !errors.Is(err, errOpen):
			return nil, fmt.Errorf("the schema of %s: %w", d.Name, err)
		}
		if flat {
			t.Type = "function"
			out = append(out, t)
		} else {
			out = append(out, map[string]any{"type": "function", "function": t})
		}
	}
	return out, nil
}

// members is a JSON object in its order, which models see.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

func membersIn(raw json.RawMessage) (out members, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err = dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: fmt.Sprint(name)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (s members) encoded() json.RawMessage {
	var b bytes.Buffer
	for i, m := range s {
		b.WriteByte("{,"[min(i, 1)])
		name, _ := json.Marshal(m.name) // a string never fails
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	if len(s) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (s members) of(name string) json.RawMessage {
	for _, m := range s {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (s *members) set(name string, v any) {
	raw, _ := json.Marshal(v) // strings, lists of them, and what was JSON before
	for i := range *s {
		if (*s)[i].name == name {
			(*s)[i].value = raw
			return
		}
	}
	*s = append(*s, member{name, raw})
}

var errOpen = errors.New("an object that is open")

// strict makes a schema strict, with all below it.
func (s *members) strict() error {
	if items := s.of("items"); items != nil {
		in, err := membersIn(items)
		if err == nil {
			err = in.strict()
		}
		if err != nil {
			return err
		}
		s.set("items", in.encoded())
	}
	s.withoutDefault()
	if string(s.of("type")) != `"object"` {
		if s.of("type") == nil && s.of("enum") == nil {
			return errOpen
		}
		return nil
	}
	if string(s.of("additionalProperties")) != "false" || s.of("properties") == nil {
		return errOpen
	}
	properties, err := membersIn(s.of("properties"))
	if err != nil {
		return err
	}
	var required, all []string
	if raw := s.of("required"); raw != nil {
		if err := json.Unmarshal(raw, &required); err != nil {
			return err
		}
	}
	for i, p := range properties {
		in, err := membersIn(p.value)
		if err == nil {
			err = in.strict()
		}
		if err != nil {
			return err
		}
		if !slices.Contains(required, p.name) {
			in.orNull()
		}
		properties[i].value, all = in.encoded(), append(all, p.name)
	}
	s.set("properties", properties.encoded())
	s.set("required", append([]string{}, all...))
	return nil
}

// withoutDefault tells a default in words: strict mode has no such keyword.
func (s *members) withoutDefault() {
	fallback := s.of("default")
	if fallback == nil {
		return
	}
	*s = slices.DeleteFunc(*s, func(m member) bool { return m.name == "default" })
	doc := ""
	_ = json.Unmarshal(s.of("description"), &doc) // "" where there is none
	if doc != "" {
		doc += "; "
	}
	s.set("description", doc+"default "+string(bytes.Trim(fallback, `"`)))
}

// orNull lets null say that an argument is left out.
func (s *members) orNull() {
	var one string
	if json.Unmarshal(s.of("type"), &one) == nil && one != "" {
		s.set("type", []string{one, "null"})
	}
	var enum []any
	if json.Unmarshal(s.of("enum"), &enum) == nil && enum != nil {
		s.set("enum", append(enum, nil))
	}
}
