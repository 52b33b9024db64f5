package tools_test

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"

	"moltisfs/tools"
)

func TestDefinitionsAreClosedAndSmall(t *testing.T) {
	type listed struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	var all []listed
	for _, d := range tools.Definitions() {
		var in jsonschema.Schema
		if err := json.Unmarshal(d.InputSchema, &in); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if _, err := in.Resolve(nil); err != nil {
			t.Errorf("%s: the schema does not resolve: %v", d.Name, err)
		}
		if !strings.Contains(string(d.InputSchema), `"additionalProperties":false`) {
			t.Errorf("%s: the object is open", d.Name)
		}
		all = append(all, listed{d.Name, d.Description, d.InputSchema})
	}
	whole, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	// Words cost tokens, so what a model is sent of the whole default suite stays under 8 KB of JSON. Output
	// schemas and annotations stay with the client.
	if len(whole) >= 8<<10 {
		t.Errorf("the definitions have %d bytes of JSON", len(whole))
		for _, one := range all {
			raw, _ := json.Marshal(one)
			t.Errorf("%5d %s", len(raw), one.Name)
		}
	}
	t.Logf("%d bytes for %d tools", len(whole), len(all))
}

// The schemas of answers refuse what is not so, and every kind has a golden call. That real answers
// fit them is seen where these calls go over MCP.
func TestSchemasOfAnswers(t *testing.T) {
	schemas := map[string]*jsonschema.Resolved{}
	for _, d := range tools.Definitions() {
		var out jsonschema.Schema
		if err := json.Unmarshal(d.OutputSchema, &out); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		r, err := out.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		schemas[d.Name] = r
	}
	for tool, wrong := range map[string]map[string]any{ // the schemas refuse what is not so
		"Read": {"kind": "text", "file_path": "/a"},
		"Edit": {"kind": "not_found"},
		"Glob": {"kind": "glob", "truncated": false, "root": "/", "total": "7"},
		"Grep": {"kind": "grep", "mode": "content", "truncated": false, "root": "/", "total": 1},
	} {
		if schemas[tool].Validate(wrong) == nil {
			t.Errorf("%s takes %v", tool, wrong)
		}
	}
	kinds := map[string]bool{}
	err := filepath.WalkDir("../testdata/calls", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".txtar") {
			return err
		}
		ar, err := txtar.ParseFile(path)
		if err != nil {
			return err
		}
		for _, f := range ar.Files {
			switch f.Name {
			case "want":
				dec := json.NewDecoder(strings.NewReader(string(f.Data)))
				for dec.More() {
					var p map[string]any
					if err := dec.Decode(&p); err != nil {
						t.Errorf("%s: %v", path, err)
						break
					}
					kind, _ := p["kind"].(string)
					kinds[kind] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range append(tools.Kinds(), strings.Fields(`not_found permission_denied too_large not_regular_file path_denied bad_request symlink_refused must_read_before_write
		modified_since_read no_match not_unique conflict approval_denied approval_timeout unsupported`)...) {
		if !kinds[kind] {
			t.Errorf("no golden call answers %q", kind)
		}
	}
}
