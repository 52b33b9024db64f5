//go:build unix

package capability

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/engine"
)

// No recovery is the call that was refused, with what it leaves to its defaults too, and none reads or lists what is not there.
func TestRecoveriesAreOtherCalls(t *testing.T) {
	t.Parallel()
	x := open(t, func(_ *config.Config, h *engine.Host) { h.Approver = decides(approval.Approved) })
	x.write(t, "a.txt", "hi")
	x.write(t, "b.txt", "ho")
	x.write(t, "d/f", "")
	if err := syscall.Mkfifo(filepath.Join(x.root, "fifo"), 0o600); err != nil {
		t.Skip("SKIPPED: there are no fifos here: ", err)
	}
	for range watchesOfSession {
		if a := x.call(t, "filesystem.watch", `{"path":"R"}`); a["watch_id"] == nil {
			t.Skip("SKIPPED: nothing can be watched on this system")
		}
	}
	trash := func(name string) string {
		x.write(t, name, "was here")
		a := x.call(t, "filesystem.delete", `{"path":"R/`+name+`"}`)
		id, _ := a["trash_path"].(string)
		if id == "" {
			t.Fatalf("%s", mustJSON(a))
		}
		x.write(t, name+"/in", "") // a directory is in its place
		return id
	}
	for _, c := range []struct{ tool, args, kind, want string }{ // want: each recovery with its path
		{"filesystem.watch", `{"path":"R"}`, "TooManyWatches", "cancel_existing"},
		{"filesystem.watch", `{"path":"R","recursive":false,"event_types":[]}`, "TooManyWatches", "cancel_existing"},
		{"filesystem.watch", `{"path":"R","recursive":true}`, "TooManyWatches", "reduce_scope R, cancel_existing"},
		{"filesystem.list", `{"path":"R/a.txt/x"}`, "NotADirectory", "look R/a.txt"},
		{"filesystem.list", `{"path":"R/a.txt/x/y/z"}`, "NotADirectory", "look R/a.txt"},
		{"filesystem.list", `{"path":"R/fifo"}`, "NotADirectory", "look R/fifo"},
		{"filesystem.list", `{"path":"R/a.txt"}`, "NotADirectory", "read R/a.txt"},
		{"filesystem.read", `{"path":"R/none/deep/x"}`, "FileNotFound", "search R, list R"},
		{"filesystem.read", `{"path":"R/d/x"}`, "FileNotFound", "search R/d, list R/d"},
		{"filesystem.search", `{"path":"R/none/y","pattern":"*"}`, "DirectoryNotFound", "list R"},
		{"filesystem.copy", `{"source":"R/a.txt","destination":"R/b.txt"}`, "DestinationExists", "overwrite"},
		{"filesystem.copy", `{"source":"R/a.txt","destination":"R/d","overwrite":true}`, "NotAFile", "stat R/d"},
		{"filesystem.move", `{"source":"R/a.txt","destination":"R/b.txt"}`, "DestinationExists", "overwrite"},
		{"filesystem.move", `{"source":"R/none","destination":"R/b.txt","overwrite":true}`, "FileNotFound", "search R"},
		{"filesystem.restore", `{"path":"` + trash("gone.txt") + `"}`, "DestinationExists", "move"},
		{"filesystem.delete", `{"path":"R/d"}`, "DirectoryNotEmpty", "list_contents R/d"},
	} {
		a := x.call(t, c.tool, c.args)
		var said struct{ Recovery []recovery }
		if err := json.Unmarshal(mustJSON(a), &said); err != nil || a["type"] != c.kind {
			t.Errorf("%s %s: %v, %s", c.tool, c.args, err, mustJSON(a))
		}
		var got []string
		for _, r := range said.Recovery {
			at, _ := r.Inputs["path"].(string)
			got = append(got, strings.TrimSpace(r.Action+" "+strings.Replace(at, x.root, "R", 1)))
			next := slices.Contains([]string{"filesystem.read", "filesystem.list", "filesystem.search", "filesystem.stat"}, r.Capability)
			if next && r.Inputs != nil {
				if b := x.call(t, r.Capability, string(mustJSON(r.Inputs))); b["type"] != nil && b["recovery"] != nil {
					t.Errorf("%s %s: its recovery is refused: %s", c.tool, c.args, mustJSON(b))
				}
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, got, c.want)
		}
	}
}
