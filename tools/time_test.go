package tools

import "testing"

// Every tool has the engine's deadline but those that set their own.
func TestEveryToolHasItsTime(t *testing.T) {
	own := map[string]bool{"Glob": true, "Grep": true, "checkpoint_restore": true}
	for i := range table {
		if tool := &table[i]; tool.OwnTime != own[tool.Name] {
			t.Errorf("%s sets its own deadline: %v", tool.Name, tool.OwnTime)
		}
	}
}
