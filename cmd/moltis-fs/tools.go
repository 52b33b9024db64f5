package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"moltisfs/dialect"
	"moltisfs/internal/serve/mcp"
	"moltisfs/tools"
)

func toolsCommand() *command {
	return &command{
		name:  "tools",
		short: "write the definitions of the tools, ready for a model's API",
		long: `Formats: "anthropic" for the tools of the Messages API, "openai" for those of Chat Completions, "mcp" as tools/list
answers, "json" with everything that is known of a tool. Tools that the configuration denies are left out.`,
		options: []option{
			{name: "format", value: "FORMAT", words: []string{"anthropic", "openai", "mcp", "json"}, doc: "json unless told"},
			configOption(),
		},
		examples: []string{"moltis-fs tools --format anthropic", "moltis-fs tools --format openai --config moltis.toml"},
		run:      writeTools,
	}
}

func writeTools(_ context.Context, in *invocation) error {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return unusableConfig(err, from)
	}
	defs, err := tools.DefinitionsUnder(cfg.Tools.Policy)
	if err != nil {
		return err
	}
	var answer any
	switch in.option("format") {
	case "anthropic":
		answer = anthropicTools(defs)
	case "openai":
		answer = openAITools(defs)
	case "mcp":
		raw, err := mcp.List(defs)
		if err != nil {
			return fmt.Errorf("encoding the tools: %w", err)
		}
		answer = json.RawMessage(raw)
	default:
		answer = allOf(defs)
	}
	return writeJSON(in, answer)
}

// writeJSON writes an answer for people and programs: indented, and < > & as they are.
func writeJSON(in *invocation, answer any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(answer); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	if _, err := in.out.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

func anthropicTools(defs []dialect.Definition) any {
	type one struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	out := []one{}
	for _, d := range defs {
		out = append(out, one{d.Name, d.Description, d.InputSchema})
	}
	return out
}

func openAITools(defs []dialect.Definition) any {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type one struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	out := []one{}
	for _, d := range defs {
		out = append(out, one{"function", function{d.Name, d.Description, d.InputSchema}})
	}
	return out
}

func allOf(defs []dialect.Definition) any {
	type one struct {
		Name         string          `json:"name"`
		Title        string          `json:"title"`
		Description  string          `json:"description"`
		ReadOnly     bool            `json:"read_only"`
		Destructive  bool            `json:"destructive"`
		Idempotent   bool            `json:"idempotent"`
		OpenWorld    bool            `json:"open_world"`
		InputSchema  json.RawMessage `json:"input_schema"`
		OutputSchema json.RawMessage `json:"output_schema"`
	}
	out := []one{}
	for _, d := range defs {
		out = append(out, one{d.Name, d.Title, d.Description, d.ReadOnly, d.Destructive, d.Idempotent, d.OpenWorld, d.InputSchema, d.OutputSchema})
	}
	return out
}
