package tools_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

// TestToolPrefix: with tool_prefix all that a caller reads of tools has their prefixed names, the audit log and the policy the others.
func TestToolPrefix(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	s, root := suite(t, func(fs *config.FS) { fs.ToolPrefix = "files_" }, tools.Options{DataDir: data})
	bare := regexp.MustCompile(`\b(Read|Write|Edit|MultiEdit|NotebookEdit|Glob|Grep|checkpoints_list|checkpoint_diff|checkpoint_restore)\b`)
	for _, d := range s.Definitions() {
		if text := d.Name + d.Description + string(d.InputSchema); !strings.HasPrefix(d.Name, "files_") || bare.MatchString(text) {
			t.Errorf("%s has the bare names %q", d.Name, bare.FindAllString(text, -1))
		}
	}
	write(t, filepath.Join(root, "a.txt"), "one\n")
	write(t, filepath.Join(root, "n.ipynb"), `{"cells":[{"cell_type":"code","id":"a","metadata":{},"outputs":[],"execution_count":null,"source":["1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	write(t, filepath.Join(root, "Read Grep", "x.txt"), "one\n") // names of the user's stay
	for _, c := range []struct{ tool, args, want string }{
		{"files_Read", `{"file_path":"$R/none/x/y"}`, `"tool":"files_Glob"`},
		{"files_Read", `{"file_path":"$R/*.txt"}`, `find them with files_Glob|"tool":"files_Read"`},
		{"files_Read", `{"file_path":"$R/Read Grep/none"}`, `/Read Grep.*"tool":"files_`},
		{"files_Write", `{"file_path":"$R/a.txt","content":"x","append":true}`, `use files_Edit`},
		{"files_Edit", `{"file_path":"$R/a.txt","old_string":"","new_string":"x"}`, `use files_Write`},
		{"files_NotebookEdit", `{"notebook_path":"$R/n.ipynb","new_source":"x"}`, `cell_id that files_Read shows`},
		{"files_NotebookEdit", `{"notebook_path":"$R/a.txt","cell_id":"a","new_source":"x"}`, `as files_Read shows it`},
		{"files_checkpoint_restore", `{"id":"ck-0000000000"}`, `files_checkpoints_list`},
		{"Read", `{"file_path":"$R/a.txt"}`, `one`}, // nobody else's can be meant
	} {
		a, err := s.Dialect().Call(t.Context(), dialect.Call{Session: "s", Tool: c.tool, Args: []byte(strings.ReplaceAll(c.args, "$R", root))})
		if err != nil {
			t.Fatal(c.tool, err)
		}
		body, err := a.JSON(true)
		if err != nil || !regexp.MustCompile(c.want).Match(body) {
			t.Errorf("%s %s: want %s\n%s %v", c.tool, c.args, c.want, body, err)
		}
	}
	if _, err := s.Call(t.Context(), tools.Call{Tool: "files_Raed"}); err == nil || !strings.Contains(err.Error(), "files_Read") {
		t.Errorf("an unknown tool: %v", err)
	}
	log, err := os.ReadFile(filepath.Join(data, "audit", "audit.jsonl"))
	if err != nil || strings.Contains(string(log), `"tool":"files_Read"`) || !strings.Contains(string(log), `"tool":"Read"`) {
		t.Errorf("the audit log: %v\n%.2000s", err, log)
	}
}
