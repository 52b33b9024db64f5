package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// Sessions that work side by side, each on its own line of one file and all
// reading and searching meanwhile, lose nothing. Who is told that others changed the file reads it again and goes on.
func TestSessionsSideBySide(t *testing.T) {
	t.Parallel()
	const sessions, rounds = 8, 25
	s, root := suite(t, func(fs *config.FS) {
		fs.TrackReads, fs.MustReadBeforeWrite, fs.CheckpointBeforeMutation = true, true, true
	}, tools.Options{})
	var lines strings.Builder
	for i := range sessions {
		fmt.Fprintf(&lines, "counter%d=0;\n", i)
	}
	file := write(t, root+"/shared.txt", lines.String())
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			run := func(tool string, args map[string]any) tools.Payload {
				raw, err := json.Marshal(args)
				if err != nil {
					t.Error(err)
				}
				p, err := s.Call(t.Context(), tools.Call{Session: fmt.Sprint("s", i), Tool: tool, Args: raw})
				if err != nil {
					t.Errorf("%s: %v", tool, err)
				}
				return p
			}
			run("Read", map[string]any{"file_path": file})
			for n := range rounds {
				edit := map[string]any{"file_path": file, "old_string": fmt.Sprintf("counter%d=%d;", i, n), "new_string": fmt.Sprintf("counter%d=%d;", i, n+1)}
				p := run("Edit", edit)
				for tries := 0; p != nil && (p.Kind() == tools.KindConflict || p.Kind() == tools.KindModified) && tries < 1000; tries++ {
					run("Read", map[string]any{"file_path": file})
					p = run("Edit", edit)
				}
				if p == nil || tools.Refused(p) {
					t.Errorf("session %d, round %d: %v", i, n, p)
					return
				}
				switch n % 3 {
				case 0:
					run("Grep", map[string]any{"pattern": "counter", "output_mode": "content"})
				case 1:
					run("Glob", map[string]any{"pattern": "*.txt"})
				case 2:
					run("checkpoints_list", nil)
				}
			}
		})
	}
	wg.Wait()
	got := content(t, file)
	for i := range sessions {
		if want := fmt.Sprintf("counter%d=%d;\n", i, rounds); !strings.Contains(got, want) {
			t.Errorf("session %d lost an edit: no %q in\n%s", i, want, got)
		}
	}
}
