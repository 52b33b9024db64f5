package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"moltisfs/internal/dialect"
	"moltisfs/internal/serve/mcp"
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

// answer writes v in JSON, or for people what format says.
func (in *invocation) answer(v any, format string, args ...any) error {
	if in.given("json") {
		return writeJSON(in, v)
	}
	return in.write(fmt.Appendf(nil, format, args...))
}

// list is [] in JSON where it is empty, not null.
func list[T any](l []T) []T { return append([]T{}, l...) }

// writeJSON writes an answer for people and programs: indented, and < > & as they are.
func writeJSON(in *invocation, answer any) error {
	b, err := encoded(answer, "  ")
	if err != nil {
		return err
	}
	return in.write(b)
}

func encoded(answer any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(answer); err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return b.Bytes(), nil
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
