package config

import (
	"fmt"
	"strings"
	"testing"
)

// A list of tools with a slip of the pen must not do nothing in silence: a name near one of ours is
// an error with its place, any other that is none of ours a warning.
func TestToolNames(t *testing.T) {
	for _, c := range []struct{ entry, near, warned string }{
		{"Read", "", ""},
		{"*", "", ""},
		{"check*", "", ""},
		{"write", "Write", ""},
		{"Edti", "Edit", ""},
		{"Reed", "Read", ""},
		{"read_file", "", "yes"},
		{"multi-edit", "MultiEdit", ""},
		{"NotebookEdits", "NotebookEdit", ""},
		{"checkpoint_restor", "checkpoint_restore", ""},
		{"checkpoints_diff", "checkpoint_diff", ""},
		{"checkpont_*", "", "yes"},
		{"exec", "", "yes"},
		{"browser", "", "yes"},
		{"memory_search", "", "yes"},
		{"web_*", "", "yes"},
		{"process", "", "yes"},
		{"Bash", "", ""},
		{"bash", "Bash", ""},
		{"KillShel", "KillShell", ""},
		{"NotebookRead", "", "yes"},
		{"TodoWrite", "", "yes"},
		{"storage.fetch", "", "yes"},
		{strings.Repeat("Read", 30), "", "yes"},
	} {
		for _, list := range []string{"allow", "deny"} {
			src := fmt.Sprintf("[tools.policy]\n%s = [\"Glob\", %q]\n", list, c.entry)
			want := ""
			if c.near != "" {
				want = fmt.Sprintf("m.toml:2:1: tools.policy.%s[1]: %q is no tool; did you mean %q?", list, c.entry, c.near)
			}
			cfg, err := Decode([]byte(src), "m.toml")
			if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
				t.Errorf("%s %q: %v, want %s", list, c.entry, err, want)
			}
			if err != nil {
				continue
			}
			w := cfg.Warnings()
			Locate([]byte(src), "m.toml", w...)
			if got := len(w) > 0; got != (c.warned != "") {
				t.Errorf("%s %q: warnings %v", list, c.entry, w)
			}
			if len(w) > 0 && !strings.HasPrefix(w[0].Error(), fmt.Sprintf("m.toml:2:1: tools.policy.%s: no tools of ours, so without effect here: %q;", list, c.entry)) {
				t.Errorf("%s %q: %v", list, c.entry, w[0])
			}
		}
	}
}

// A workspace_root alone reads like a wall and is none.
func TestRootAloneIsWarned(t *testing.T) {
	for src, want := range map[string]bool{
		"":                       false,
		`workspace_root = "/w"`:  true,
		`workspace_root = "/w/"`: true,
		"workspace_root = \"/w\"\nallow_paths = [\"/w/**\"]": false,
	} {
		c, err := Decode([]byte("[tools.fs]\n"+src), "m.toml")
		must(t, err)
		w := c.Warnings()
		if len(w) > 0 != want {
			t.Errorf("%s: %v", src, w)
		}
		if want && !strings.Contains(w[0].Error(), `add allow_paths = ["/w/**"]`) {
			t.Errorf("%s: %v", src, w[0])
		}
	}
}
