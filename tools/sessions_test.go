package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestSessionsEditOneFile: sessions that work on different lines of one file at once never lose each other's edits and are never sent back
// for nothing: an edit of text that still stands where it was is applied, and says what else has changed.
func TestSessionsEditOneFile(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) {
		fs.TrackReads = true
	}, tools.Options{})
	const sessions, rounds = 6, 25
	var text strings.Builder
	for i := range sessions {
		fmt.Fprintf(&text, "line of session %d: 0;\n%s", i, strings.Repeat("filler\n", 5))
	}
	file := write(t, filepath.Join(root, "f.txt"), text.String())
	told := 0
	var mu sync.Mutex
	var wg, read sync.WaitGroup
	read.Add(sessions)
	for i := range sessions {
		wg.Go(func() {
			do := func(tool string, args map[string]any) tools.Payload {
				raw, err := json.Marshal(args)
				if err != nil {
					t.Error(err)
				}
				p, err := s.Call(context.Background(), tools.Call{Session: fmt.Sprint(i), Tool: tool, Args: raw})
				if err != nil {
					t.Errorf("session %d: %v", i, err)
				}
				return p
			}
			do("Read", map[string]any{"file_path": file})
			read.Done()
			read.Wait() // whoever edits later than the first sees that others did
			for n := range rounds {
				p := do("Edit", map[string]any{"file_path": file, "old_string": fmt.Sprintf("session %d: %d;", i, n), "new_string": fmt.Sprintf("session %d: %d;", i, n+1)})
				if tools.Refused(p) {
					t.Errorf("session %d, edit %d: %s", i, n, mustEncode(t, p))
					return
				}
				if e := p.(*tools.Edit); e.ChangedMeanwhile != "" {
					mu.Lock()
					told++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	got := content(t, file)
	for i := range sessions {
		if !strings.Contains(got, fmt.Sprintf("line of session %d: %d;\n", i, rounds)) {
			t.Errorf("edits of session %d are lost:\n%s", i, got)
		}
	}
	if told == 0 {
		t.Error("nobody was told that others changed the file")
	}
	t.Logf("%d edits, %d of them were told what others had changed", sessions*rounds, told)
}
