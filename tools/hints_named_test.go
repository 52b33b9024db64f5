package tools_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// A hint speaks of fields by their names. Who gets text alone finds them there, each once.
func TestHintsNameWhatTheTextHas(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := filepath.Join(dir, "f")
	if err := os.WriteFile(f, []byte("x a x\nfunc main() {\n\tcall(one, two, three)\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval = false
	s, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(t.TempDir(), "data")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct{ tool, args, name string }{
		{"Edit", `"old_string":"x","new_string":"y"`, "contexts"},
		{"Edit", `"old_string":"func main() {\n\tfall(one, 2, three)\n}\n","new_string":"y"`, "resend"},
		{"MultiEdit", `"edits":[{"old_string":"x a x","new_string":"something else"},{"old_string":"zzz qqq www","new_string":"y"}]`, "text_there"},
	} {
		p, err := s.Call(t.Context(), tools.Call{Tool: c.tool, Args: json.RawMessage(fmt.Sprintf(`{"file_path":%q,%s}`, f, c.args))})
		if err != nil {
			t.Fatal(err)
		}
		hint := p.(*tools.Refusal).Hint
		if !strings.Contains(hint, c.name) || strings.Count(p.Text(), c.name+", ") != 1 {
			t.Errorf("%s %s: hint %q\n%s", c.tool, c.args, hint, p.Text())
		}
	}
}
