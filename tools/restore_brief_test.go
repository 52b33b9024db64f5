package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// An undo of 300 files says how many, and names the first.
func TestLongRestoreIsTold(t *testing.T) {
	t.Parallel()
	p := &CheckpointRestore{Restored: true, Run: &RestoredRun{Changes: 306}, Checkpoint: &CheckpointRow{Paths: make([]string, 300)}}
	for i := range 300 {
		p.Files = append(p.Files, RestoredFile{Path: fmt.Sprint("/w/f", i), Action: "restored", Added: 1})
	}
	text := p.Text()
	for _, want := range []string{"All that a script's run did, 306 changes:\n", "restored /w/f19 +1 -0\n", "and 280 more restored"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	raw, err := answer{p}.Brief()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Files []RestoredFile
		More  int `json:"files_more"`
	}
	if err := json.Unmarshal(raw, &got); err != nil || len(got.Files) != 20 || got.More != 280 || len(raw) > 2000 || len(p.Files) != 300 {
		t.Errorf("%d files and %d more in %d bytes: %v", len(got.Files), got.More, len(raw), err)
	}
}
