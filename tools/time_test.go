package tools

import (
	"testing"
	"time"

	"moltisfs/config"
)

// Every tool has a deadline but those that set their own, and beside it an approver has all of his time.
func TestEveryToolHasItsTime(t *testing.T) {
	s := &Suite{cfg: config.Default().Tools.FS}
	own := map[string]bool{"Glob": true, "Grep": true, "checkpoint_restore": true}
	for i := range table {
		tool, asked := &table[i], time.Duration(s.cfg.ApprovalTimeout)
		switch got := s.timeOf(tool, ""); {
		case own[tool.Name]:
			if got != 0 {
				t.Errorf("%s sets its own deadline, and has %s", tool.Name, got)
			}
		case got <= 0, tool.Effect != Reads && got <= asked:
			t.Errorf("%s has %s", tool.Name, got)
		}
	}
}
