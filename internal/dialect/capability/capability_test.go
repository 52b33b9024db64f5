package capability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
)

// A room is a dialect over an engine of its own, and a tree to work on.
type room struct {
	*Dialect
	e    *engine.Engine
	root string
	data string
}

// open makes one; change sets what is not as in the default, with nobody to be asked.
func open(t testing.TB, change func(*config.Config, *engine.Host)) room {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg, host := config.Default(), engine.Host{DataDir: filepath.Join(t.TempDir(), "data")}
	cfg.Tools.FS.AllowPaths, cfg.Tools.FS.WorkspaceRoot = []string{root + "/**"}, root
	cfg.Tools.FS.RequireApproval = false
	if change != nil {
		change(&cfg, &host)
	}
	e, err := engine.Open(cfg, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) //nolint:errcheck // nothing is read of it any more
	d, err := Over(e, cfg.Tools.Capability)
	if err != nil {
		t.Fatal(err)
	}
	return room{d, e, root, host.DataDir}
}

func (r room) write(t testing.TB, name, content string) string {
	t.Helper()
	p := filepath.Join(r.root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// call makes one call. R in args stands for the root.
func (r room) call(t *testing.T, tool, args string) map[string]any {
	t.Helper()
	return r.as(t, dialect.Call{Session: "s", Tool: tool, Args: json.RawMessage(args)})
}

func (r room) as(t *testing.T, c dialect.Call) map[string]any {
	t.Helper()
	c.Args = json.RawMessage(strings.ReplaceAll(string(c.Args), `"R`, `"`+r.root))
	a, err := r.Call(t.Context(), c)
	if err != nil {
		t.Fatalf("%s %s: %v", c.Tool, c.Args, err)
	}
	raw, err := a.JSON(true)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if wrapped := map[bool]string{false: `{"success":true,"data":`, true: `{"success":false,"error":`}; a.Text() !=
		wrapped[a.Refused()]+string(raw)+"}" {
		t.Errorf("the text is %s", a.Text())
	}
	def, _ := listedAs(r.Dialect, c.Tool)
	if def.OutputSchema != nil {
		fits(t, def.OutputSchema, out)
	}
	return out
}

// fits checks an answer against the schema that its tool announces.
func fits(t *testing.T, schema json.RawMessage, answer any) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Validate(answer); err != nil {
		t.Errorf("%v does not fit its schema: %v", answer, err)
	}
}

// What an argument struct says is what filesystem.yaml says.
func TestArgumentsAreThoseOfTheYAML(t *testing.T) {
	t.Parallel()
	for _, one := range table {
		d := known().find(one.name)
		if d == nil {
			t.Errorf("%s has a row and no definition", one.name)
			continue
		}
		bare := slices.Clone(d.Inputs)
		for i := range bare {
			bare[i].Description, bare[i].Items = "", slices.Clone(bare[i].Items)
			for j := range bare[i].Items {
				bare[i].Items[j].Description = ""
			}
		}
		var want, got any
		for raw, into := range map[*json.RawMessage]*any{new(object(bare, true)): &want, new(one.args.Schema()): &got} {
			if err := json.Unmarshal(*raw, into); err != nil {
				t.Fatal(err)
			}
		}
		w := strings.ReplaceAll(string(mustJSON(want)), `"description":"",`, "")
		if g := string(mustJSON(got)); w != g {
			t.Errorf("%s: the YAML has\n%s\nand the struct\n%s", one.name, w, g)
		}
	}
}

// Each cause of a refusal is told, with a type that has a description and a way out.
func TestEveryCauseIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range engine.Causes {
		for i := range known().Capabilities {
			d := &known().Capabilities[i]
			f := known().failing(d, d.kindOf(c))
			if f.Description == "" || len(f.Recovery) == 0 {
				t.Errorf("%s, as %s of %s: no description or no recovery", c.Name, d.kindOf(c), d.Name)
			}
		}
	}
	for _, f := range known().Common {
		if !slices.ContainsFunc(engine.Causes, func(c engine.Cause) bool { return slices.Contains(strings.Fields(refusal.Of(c).Type), f.Type) }) {
			t.Errorf("no cause is told as %s", f.Type)
		}
	}
}

func TestReadListStat(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	r.write(t, "a/b.txt", "grüße\n")
	r.write(t, "a/.h", "x")
	r.write(t, "odd/a\u202eb", "1\n2\u200b\u200b\n3\x1b\n")
	for _, c := range []struct{ tool, args, want string }{
		{"filesystem.read", `{"path":"R/a/b.txt"}`, `"content":"grüße\n"`},
		{"filesystem__read", `{"path":"R/a/b.txt","encoding":"binary"}`, `"content":"Z3LDvMOfZQo="`},
		{"filesystem.read", `{"path":"R/a/b.txt","limit":3}`, `"content":"grü"`},
		{"filesystem.read", `{"path":"R/a/b.txt","offset":3,"limit":2}`, `"content":"ß"`},
		{"filesystem.read", `{"path":"R/odd/a\u202eb"}`, `"hidden_chars":3,"hidden_lines":[2,3],"`},
		{"filesystem.list", `{"path":"R/odd"}`, `"odd_names":["\"a\\u202eb\""]`},
		{"filesystem.search", `{"path":"R/odd","pattern":"*"}`, `"odd_names":["\"a\\u202eb\""]`},
		{"filesystem.read", `{"path":"R/a/none"}`, `"type":"FileNotFound"`},
		{"filesystem.read", `{"path":"/etc/passwd"}`, `"type":"PathOutOfScope"`},
		{"filesystem.list", `{"path":"R/a"}`, `"total":1`},
		{"filesystem.list", `{"path":"R/a","include_hidden":true}`, `"total":2`},
		{"filesystem.list", `{"path":"R/a/b.txt"}`, `"type":"NotADirectory"`},
		{"filesystem.list", `{"path":"R/none"}`, `"type":"DirectoryNotFound"`},
		{"filesystem.stat", `{"path":"R/a/b.txt"}`, `"permissions":"rw-r--r--"`},
		{"filesystem.stat", `{"path":"R/x/y"}`, `"exists":false`},
		{"filesystem.stat", `{"pth":"R/x"}`, `use path`},
	} {
		got := string(mustJSON(r.call(t, c.tool, c.args)))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %s: no %s in %s", c.tool, c.args, c.want, got)
		}
	}
}

// listedAs is the definition that a tool is listed by, under any of its names.
func listedAs(d dialect.Dialect, name string) (dialect.Definition, bool) {
	for _, def := range d.Definitions() {
		if def.Name == name || slices.Contains(def.Also, name) {
			return def, true
		}
	}
	return dialect.Definition{}, false
}
