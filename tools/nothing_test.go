package tools_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestNothingFound: a search without a hit says which other reading has one, and next finds it.
func TestNothingFound(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	write(t, root+"/Makefile", "\t$(INSTALL) x\nfoo bar\n")
	write(t, root+"/src/a.py", "def count():\n    return issue.count()\nclass Big:\n    pass\n")
	write(t, root+"/src/b.go", "func Parse(x int) {}\nvar y = a?.b\n")
	write(t, root+"/src/[id].ts", "alpha\nbeta ${issue.expected}\n")
	write(t, root+"/src/UP.PYX", "x\n")
	write(t, root+"/.gitignore", "out/\n")
	write(t, root+"/out/gen/made.txt", "generated_only\n")
	for _, c := range []struct {
		tool string
		args map[string]any
		next map[string]any // what differs; nil: nothing is offered
	}{
		{"Grep", map[string]any{"pattern": "$(INSTALL)"}, map[string]any{"pattern": `\$\(INSTALL\)`}},
		{"Grep", map[string]any{"pattern": "${issue.expected}"}, map[string]any{"pattern": `\$\{issue\.expected\}`}},
		{"Grep", map[string]any{"pattern": `nope\|Parse`}, map[string]any{"pattern": "nope|Parse"}},
		{"Grep", map[string]any{"pattern": "/Par.e/"}, map[string]any{"pattern": "Par.e"}},
		{"Grep", map[string]any{"pattern": `"Parse"`}, map[string]any{"pattern": "Parse"}},
		{"Grep", map[string]any{"pattern": "-i parse"}, map[string]any{"pattern": "parse", "-i": true}},
		{"Grep", map[string]any{"pattern": `count\\(\\)`}, map[string]any{"pattern": `count\(\)`}},
		{"Grep", map[string]any{"pattern": `Big:[\s\S]*pass`}, map[string]any{"multiline": true}},
		{"Grep", map[string]any{"pattern": "PARSE"}, map[string]any{"-i": true}},
		{"Grep", map[string]any{"pattern": "foo  bar"}, map[string]any{"pattern": `foo\s+bar`}},
		{"Grep", map[string]any{"pattern": "Parse", "glob": "*.(py|go)"}, map[string]any{"glob": "*.{py,go}"}},
		{"Grep", map[string]any{"pattern": "Parse", "glob": `**\*.go`}, map[string]any{"glob": "**/*.go"}},
		{"Grep", map[string]any{"pattern": "Parse", "glob": ".go"}, map[string]any{"glob": "*.go"}},
		{"Grep", map[string]any{"pattern": "alpha", "glob": "src/[id].ts"}, map[string]any{"glob": `src/\[id\].ts`}},
		{"Grep", map[string]any{"pattern": "generated_only"}, map[string]any{"path": "$/out/gen"}},
		{"Grep", map[string]any{"pattern": "stands_nowhere"}, nil},
		{"Grep", map[string]any{"pattern": "stands(nowhere)"}, nil},
		{"Grep", map[string]any{"pattern": "?.b"}, map[string]any{"pattern": `\?\.b`}},
		{"Glob", map[string]any{"pattern": "*.(py|go)"}, map[string]any{"pattern": "*.{py,go}"}},
		{"Glob", map[string]any{"pattern": `src\*.py`}, map[string]any{"pattern": "src/*.py"}},
		{"Glob", map[string]any{"pattern": "*.pyx"}, map[string]any{"pattern": "*.[pP][yY][xX]"}},
		{"Glob", map[string]any{"pattern": ".py"}, map[string]any{"pattern": "*.py"}},
		{"Glob", map[string]any{"pattern": "src/[id].ts"}, map[string]any{"pattern": `src/\[id\].ts`}},
		{"Glob", map[string]any{"pattern": "made.txt"}, map[string]any{"path": "$/out/gen"}},
		{"Glob", map[string]any{"pattern": "src"}, map[string]any{"pattern": "src/**"}},
		{"Glob", map[string]any{"pattern": `.*\.py$`}, map[string]any{"pattern": "*.py"}},
		{"Glob", map[string]any{"pattern": "*.py *.go"}, map[string]any{"pattern": "*.py,*.go"}},
		{"Glob", map[string]any{"pattern": "**/ *.py"}, map[string]any{"pattern": "**/*.py"}},
		{"Glob", map[string]any{"pattern": "~/src/*.py"}, map[string]any{"pattern": "src/*.py"}},
		{"Glob", map[string]any{"pattern": "${workspaceFolder}/src/*.py"}, map[string]any{"pattern": "src/*.py"}},
		{"Glob", map[string]any{"pattern": filepath.Base(root) + "/src/*.py"}, map[string]any{"pattern": "src/*.py"}},
		{"Glob", map[string]any{"pattern": "~/src/*.zig"}, nil},
		{"Glob", map[string]any{"pattern": "*.zig"}, nil},
		{"Glob", map[string]any{"pattern": "docs/*.go"}, nil}, // what is elsewhere was not asked for
	} {
		got := payloadMap(t, call(t, s, c.tool, c.args))
		next, _ := got["next"].(map[string]any)
		for try := 0; c.next != nil && next == nil && try < 20; try++ { // a moment is short on a busy machine
			got = payloadMap(t, call(t, s, c.tool, c.args))
			next, _ = got["next"].(map[string]any)
		}
		if c.next == nil {
			if next != nil || got["note"] != nil {
				t.Errorf("%s %v: offered %v, %v", c.tool, c.args, next, got["note"])
			}
			continue
		}
		want := map[string]any{}
		for k, v := range c.args {
			want[k] = v
		}
		for k, v := range c.next {
			if want[k] = v; v == nil {
				delete(want, k)
			} else if text, ok := v.(string); ok {
				want[k] = strings.ReplaceAll(text, "$/", root+"/")
			}
		}
		if next == nil || !same(next["args"], want) {
			t.Errorf("%s %v: next %v, want %v (%v)", c.tool, c.args, next, want, got["note"])
			continue
		}
		hit := payloadMap(t, call(t, s, c.tool, want))
		if hit["total"] == float64(0) || hit["next"] != nil {
			t.Errorf("%s %v: what was offered finds nothing", c.tool, want)
		}
		if note, _ := got["note"].(string); got["kind"] != "bad_request" && note == "" || len(note) > 200 {
			t.Errorf("%s %v: the note is %q", c.tool, c.args, note)
		}
	}
}

// TestAWordThatIsTwoThings: a bare word that is an extension and a directory is answered with both,
// and no call.
func TestAWordThatIsTwoThings(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	write(t, root+"/web/js/a.css", "needle\n")
	write(t, root+"/b.js", "needle\n")
	for tool, args := range map[string]map[string]any{"Glob": {"pattern": "js"}, "Grep": {"pattern": "needle", "glob": "js"}} {
		got := payloadMap(t, call(t, s, tool, args))
		note, _ := got["note"].(string)
		if got["next"] != nil || !strings.Contains(note, "*.js: 1 file") || !strings.Contains(note, "**/js/**: 1 file") {
			t.Errorf("%s: %v, next %v", tool, note, got["next"])
		}
	}
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// TestNothingDeniedIsFound: what is denied is in no other reading either.
func TestNothingDeniedIsFound(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**"} }, tools.Options{})
	write(t, root+"/secret/plan.txt", "Needle(x)\n")
	write(t, root+"/.gitignore", "secret/\n")
	write(t, root+"/a.txt", "b\n")
	for tool, patterns := range map[string][]string{"Grep": {"needle", "Needle(x)", `"Needle"`, `x\|Needle`}, "Glob": {"plan.txt", "PLAN.TXT", "secret", "secret/plan.*"}} {
		for _, p := range patterns {
			got := payloadMap(t, call(t, s, tool, map[string]any{"pattern": p}))
			if got["next"] != nil || got["note"] != nil {
				t.Errorf("%s %s: %v %v", tool, p, got["next"], got["note"])
			}
		}
	}
}

// payloadMap is a payload as a gateway sees it.
func payloadMap(t *testing.T, p tools.Payload) map[string]any {
	t.Helper()
	raw, err := tools.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
