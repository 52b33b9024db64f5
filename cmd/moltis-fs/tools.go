package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
		short: "write the definitions of the tools, ready for a model's API",
		long: `Formats: "anthropic" for the Messages API, "openai" for Chat Completions,
"openai-responses" for the Responses API and the Agents SDK; "mcp" as tools/list answers, "json" with
everything that is known of a tool. Tools that the configuration denies are left out. "moltis-fs help
TOOL" explains one to people.`,
		options: options("config dialect read-only",
			opt("format", "FORMAT", "json unless told", "anthropic", "openai", "openai-responses", "mcp", "json")),
		examples: []string{"moltis-fs tools --format anthropic",
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
	format := in.option("format")
	if format == "mcp" {
		raw, err := mcp.List(defs)
		if err != nil {
			return fmt.Errorf("encoding the tools: %w", err)
		}
		return writeJSON(in, json.RawMessage(raw))
	}
	out := []any{}
	for _, d := range defs {
		type function struct {
			Type        string          `json:"type,omitempty"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema,omitempty"`
			Parameters  json.RawMessage `json:"parameters,omitempty"`
			Strict      *bool           `json:"strict,omitempty"`
		}
		f := function{Name: d.Name, Description: d.Description, Parameters: d.InputSchema}
		switch format {
		case "anthropic":
			f.InputSchema, f.Parameters = d.InputSchema, nil
			out = append(out, f)
		case "openai":
			out = append(out, map[string]any{"type": "function", "function": f})
		case "openai-responses":
			f.Type, f.Strict = "function", new(bool) // there a schema is strict unless told
			out = append(out, f)
		default:
			out = append(out, d)
		}
	}
	return writeJSON(in, out)
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
