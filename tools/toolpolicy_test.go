package tools_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// What is left by which lists. NotebookEdit goes with Edit, checkpoint_restore with the last of Write, Edit and MultiEdit, unless
// they are allowed by their very names.
func TestReadOnlyByNames(t *testing.T) {
	var names, quiet []string
	for _, tool := range tools.All() {
		if names = append(names, tool.Name); tool.Effect == tools.Reads {
			quiet = append(quiet, tool.Name)
		}
	}
	all, reads := strings.Join(names, " "), strings.Join(quiet, " ")
	without := func(drop string) string { // all but those
		return strings.Join(slices.DeleteFunc(slices.Clone(names), func(n string) bool {
			return slices.Contains(strings.Fields(drop), n)
		}), " ")
	}
	for _, c := range []struct{ allow, deny, want string }{
		{"", "", all},
		{"*", "", all},
		{"", "Write Edit MultiEdit", reads},
		{"*", "Write Edit MultiEdit", reads},
		{"", "Write Edit* Multi*", reads},
		{"", "Write Multi* checkpoint*", without("Write MultiEdit checkpoints_list checkpoint_diff checkpoint_restore")},
		{"", "Write Edit MultiEdit NotebookEdit checkpoint_restore", reads},
		{"Read Glob Grep exec", "", "Read Glob Grep"},
		{"", "Edit", without("Edit NotebookEdit")},
		{"", "Write MultiEdit", without("Write MultiEdit")},
		{"Read NotebookEdit", "", "Read NotebookEdit"},
		{"Read Notebook*", "", "Read"},
		{"Read checkpoint_*", "", "Read checkpoint_diff"},
		{"Read checkpoint_restore", "", "Read checkpoint_restore"},
		{"* NotebookEdit", "Write Edit MultiEdit", without("Write Edit MultiEdit checkpoint_restore")},
		{"* checkpoint_restore", "Write Edit MultiEdit", reads + " checkpoint_restore"},
		{"NotebookEdit Read", "Edit NotebookEdit", "Read"},
		{"checkpoint_restore Read", "check*", "Read"},
	} {
		cfg := config.Default()
		cfg.Tools.Policy = config.Policy{Allow: strings.Fields(c.allow), Deny: strings.Fields(c.deny)}
		s, err := tools.Open(cfg, tools.Options{DataDir: t.TempDir()})
		if err != nil {
			t.Fatalf("allow %q deny %q: %v", c.allow, c.deny, err)
		}
		t.Cleanup(func() { s.Close() })
		var listed []string
		for _, d := range s.Definitions() {
			listed = append(listed, d.Name)
		}
		if got := strings.Join(listed, " "); got != c.want {
			t.Errorf("allow %q deny %q leaves\n%s, not\n%s", c.allow, c.deny, got, c.want)
		}
		for _, name := range strings.Fields(all) { // and a call agrees with the list
			_, err := s.Call(context.Background(), tools.Call{Tool: name, Args: []byte(`{}`)})
			unknown, no := errors.AsType[*tools.UnknownToolError](err)
			if no == slices.Contains(listed, name) || err != nil && !no {
				t.Errorf("allow %q deny %q: calling %s answers %v", c.allow, c.deny, name, err)
			}
			if no && unknown.Nearest != "" && !slices.Contains(listed, unknown.Nearest) {
				t.Errorf("allow %q deny %q: calling %s names %s, which is not there", c.allow, c.deny, name, unknown.Nearest)
			}
		}
	}
}

// Lists that leave nothing to call are a mistake.
func TestNoToolLeft(t *testing.T) {
	for _, c := range []struct{ allow, deny, key string }{
		{"exec browser", "", "tools.policy.allow"},
		{"", "*", "tools.policy.deny"},
		{"Read exec", "Read", "tools.policy.deny"},
		{"Notebook*", "", "tools.policy.allow"},
	} {
		cfg := config.Default()
		cfg.Tools.Policy = config.Policy{Allow: strings.Fields(c.allow), Deny: strings.Fields(c.deny)}
		_, err := tools.Open(cfg, tools.Options{DataDir: t.TempDir()})
		if p, ok := errors.AsType[*config.Problem](err); !ok || p.Key != c.key || !strings.Contains(p.Why, "no tool at all") {
			t.Errorf("allow %q deny %q: %v", c.allow, c.deny, err)
		}
	}
}
