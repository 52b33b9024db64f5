package main

import (
	"strings"
	"testing"

	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
)

// A hint to a person at the command line names no tool and no argument of one.
func TestHintsToAPerson(t *testing.T) {
	t.Parallel()
	for _, c := range engine.Causes {
		for _, moment := range []string{"", "restore", "trash", "undo", "merging", "named", "off"} {
			told := refusal.Tell(&engine.Refusal{Cause: c, Path: "/f"}, refusal.Voice{Now: map[string]string{moment: "yes"},
				Names: func(name string) string { return optionNames[name] }})
			for _, word := range []string{"checkpoints_list", "checkpoint_restore", "on_conflict", "in paths", "Glob", "acknowledge", "expected_hash"} {
				if strings.Contains(told.Person, word) {
					t.Errorf("%s: %q", c.Name, told.Person)
				}
			}
		}
	}
}
