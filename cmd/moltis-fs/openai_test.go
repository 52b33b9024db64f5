package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

// In strict mode every object is closed and every argument required; what may be left out takes
// null, and no keyword is used that the mode has not.
func TestOpenAIStrict(t *testing.T) {
	t.Parallel()
	for _, flat := range []bool{false, true} {
		answer, err := openAITools(tools.Definitions(), flat)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		type function struct {
			Type, Name, Description string
			Parameters              *jsonschema.Schema
			Strict                  bool
		}
		var list []struct {
			function
			Function function
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		for i, d := range tools.Definitions() {
			f := list[i].function
			if !flat {
				f = list[i].Function
			}
			if list[i].Type != "function" || f.Name != d.Name || f.Description == "" || !f.Strict {
				t.Errorf("flat %v: %s: %s", flat, d.Name, raw)
				continue
			}
			strictly(t, d.Name, f.Parameters)
		}
	}
}

func strictly(t *testing.T, where string, s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Default != nil {
		t.Errorf("%s has a default", where)
	}
	strictly(t, where+"[]", s.Items)
	if s.Properties == nil {
		return
	}
	if s.AdditionalProperties == nil || len(s.Required) != len(s.Properties) {
		t.Errorf("%s: requires %v of %d", where, s.Required, len(s.Properties))
	}
	for name, p := range s.Properties {
		strictly(t, where+"."+name, p)
	}
}

func TestOpenAIStrictForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, want string
		strict   bool
	}{
		{`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer","default":250,"description":"rows"}},"required":["b"],"additionalProperties":false}`,
			`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":["integer","null"],"description":"rows; default 250"}},"required":["b","a"],"additionalProperties":false}`, true},
		{`{"type":"object","properties":{"m":{"type":"string","enum":["x","y"],"default":"x"}},"additionalProperties":false}`,
			`{"type":"object","properties":{"m":{"type":["string","null"],"enum":["x","y",null],"description":"default x"}},"additionalProperties":false,"required":["m"]}`, true},
		{`{"type":"object","properties":{},"additionalProperties":false}`,
			`{"type":"object","properties":{},"additionalProperties":false,"required":[]}`, true},
		{`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"boolean"}},"additionalProperties":false}}},"required":["l"],"additionalProperties":false}`,
			`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":["boolean","null"]}},"additionalProperties":false,"required":["x"]}}},"required":["l"],"additionalProperties":false}`, true},
		{`{"type":"object","properties":{"any":{"type":"object"}},"additionalProperties":false}`, "", false},
		{`{"type":"object","properties":{"any":{}},"additionalProperties":false}`, "", false},
	} {
		answer, err := openAITools([]dialect.Definition{{Name: "t", InputSchema: json.RawMessage(c.in)}}, true)
		if err != nil {
			t.Fatal(err)
		}
		got := answer.([]any)[0].(openAITool)
		if !c.strict {
			c.want = c.in
		}
		if string(got.Parameters) != c.want || got.Strict != c.strict {
			t.Errorf("%s\ngives %s\nwant  %s", c.in, got.Parameters, c.want)
		}
	}
}

// A strict model sends every argument, and null for what it leaves out. Each tool takes that.
func TestStrictCallsAreTaken(t *testing.T) {
	t.Parallel()
	h := inTwoProjects(t)
	laid(t, filepath.Join(h.dir, "a", "n.ipynb"), `{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	given := map[string]string{
		"Read": `"file_path":"$/a/f"`, "Write": `"file_path":"$/a/w","content":"x"`, "Edit": `"file_path":"$/a/f","old_string":"one","new_string":"1"`,
		"MultiEdit":    `"file_path":"$/a/g","edits":[{"old_string":"one","new_string":"1","replace_all":null}]`,
		"NotebookEdit": `"notebook_path":"$/a/n.ipynb","new_source":"x","edit_mode":"insert","cell_type":"code"`,
		"Glob":         `"pattern":"*"`, "Grep": `"pattern":"1"`, "checkpoints_list": ``, "checkpoint_diff": `"since":"1h"`, "checkpoint_restore": `"id":"undo"`,
	}
	var calls []string
	for _, d := range tools.Definitions() {
		answer, err := openAITools([]dialect.Definition{d}, true)
		if err != nil {
			t.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(answer.([]any)[0].(openAITool).Parameters, &s); err != nil {
			t.Fatal(err)
		}
		args := map[string]any{}
		if err := json.Unmarshal([]byte("{"+given[d.Name]+"}"), &args); err != nil {
			t.Fatal(err)
		}
		for _, name := range s.Required {
			if _, ok := args[name]; !ok {
				args[name] = nil
			}
		}
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, d.Name+" "+string(raw))
	}
	for _, c := range calls { // one after the other: calls of one run go side by side, and the last one undoes
		text := h.serve("a", "strict", "", c)[0]
		null := strings.Contains(text, "null") && !strings.HasPrefix(c, "checkpoint_diff ") // it shows what the notebook holds now
		if text == "" || strings.Contains(text, "may not") || null || strings.Contains(text, "missing") || strings.Contains(text, "argument") {
			t.Errorf("%s: %s", c, text)
		}
	}
	h.holds("a/f", "1\n")
	h.holds("a/g", "1\n")
}
