package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"moltisfs/internal/dialect"
	"moltisfs/internal/nearest"
	"moltisfs/tools"
)

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
