package main

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

// Ids that Moltis gave.
const (
	moltisEdit   = "0123456789abcdef0123456789abcdef"
	moltisOlder  = "11111111111111111111111111111111"
	moltisFolder = "aaaaaaaabbbbccccddddeeeeeeeeeeee"
	moltisNew    = "00000000000000000000000000000009"
	moltisTorn   = "ffffffffffffffffffffffffffffffff"
)

// layMoltis writes Moltis' checkpoints as Moltis does: of a file that was changed twice, of a
// directory that was emptied, of a file that was made; and one that a crash left without a manifest.
func layMoltis(t *testing.T, store, work string) {
	manifest := func(id string, at int, reason, path string, kind any, existed bool, backup any) {
		b, err := json.MarshalIndent(map[string]any{"id": id, "created_at": at, "reason": reason, "source_path": filepath.Join(work, path),
			"source_kind": kind, "existed": existed, "backup_path": backup}, "", "  ")
		must(t, err)
		laid(t, filepath.Join(store, id, "manifest.json"), string(b))
	}
	laid(t, filepath.Join(store, moltisOlder, "snapshot", "file"), "first\n")
	manifest(moltisOlder, 1750000000, "Write", "f", "file", true, "snapshot/file")
	laid(t, filepath.Join(store, moltisEdit, "snapshot", "file"), "second\n")
	manifest(moltisEdit, 1750000050, "Edit", "f", "file", true, "snapshot/file")
	laid(t, filepath.Join(store, moltisFolder, "snapshot", "dir", "sub", "y"), "y\n")
	manifest(moltisFolder, 1750000100, "delete_skill", "lib", "directory", true, "snapshot/dir")
	manifest(moltisNew, 1750000200, "Write", "new", nil, false, nil)
	laid(t, filepath.Join(store, moltisTorn, "snapshot", "file"), "half")
	laid(t, filepath.Join(store, "turns.jsonl"), fmt.Sprintf(
		`{"run_id":"run-7","session_key":"main","created_at":1750000200,"checkpoint_ids":[%q],"source_paths":[%q]}`+"\n",
		moltisNew, filepath.Join(work, "new")))
	laid(t, filepath.Join(work, "f"), "third\n")
	laid(t, filepath.Join(work, "new"), "new\n")
}

// Imported checkpoints are restored by the ids that Moltis gave them, over the command line and MCP.
func TestMoltisIDs(t *testing.T) {
	t.Parallel()
	h := inTwoProjects(t)
	work, store := filepath.Join(h.dir, "m"), filepath.Join(h.dir, "moltis", "checkpoints")
	layMoltis(t, store, work)
	out, _ := h.run("", "store", "import", store)
	h.says(out, "skipped "+moltisTorn+`: (.|\n)*imported 4 checkpoints, 0 were here already, 1 skipped`)
	out, _ = h.run("", "store", "import", store)
	h.says(out, "imported 0 checkpoints, 4 were here already")

	restore := func(id, more string) string { return `checkpoint_restore {"id":"` + id + `"` + more + `}` }
	const force = `,"on_conflict":"force"`
	// Over MCP, in a session that has never heard of them. Moltis did not keep what came after them,
	// so that what is there now has to be given up in words.
	got := h.serve("m", "", "", `checkpoint_diff {"id":"`+moltisEdit+`"}`, restore(moltisEdit, ""), restore(moltisEdit, force))
	h.says(got[0], `-second\n\+third`)
	h.says(got[1], "on_conflict(.|\n)*changed outside")
	h.says(got[2], `^restored .*/m/f \+1 -1`)
	h.holds("m/f", "second\n")
	h.says(h.serve("m", "", "", restore(moltisOlder, ""))[0], `^restored .*/m/f`) // what came of it is known
	h.holds("m/f", "first\n")
	// At the terminal.
	h.run("", "restore", moltisNew, "--root", work, "--on-conflict", "force", "--yes")
	if _, err := os.Lstat(filepath.Join(work, "new")); err == nil {
		t.Error("what was not there still is")
	}
	// By a Go host, which undoes it again.
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval, cfg.Tools.FS.CheckpointBeforeMutation = false, true
	suite, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(h.dir, "data")})
	must(t, err)
	defer suite.Close()
	as := tools.Call{Session: "host", Tool: "checkpoint_restore"}
	as.Args = json.RawMessage(strings.TrimPrefix(restore(moltisFolder, force), "checkpoint_restore "))
	p, err := suite.Call(t.Context(), as)
	if done, ok := p.(*tools.CheckpointRestore); err != nil || !ok || !done.Restored {
		t.Fatalf("%v: %s", err, p.Text())
	}
	h.holds("m/lib/sub/y", "y\n")
	as.Args = json.RawMessage(`{"id":"` + moltisTorn + `"}`)
	if p, err = suite.Call(t.Context(), as); err != nil || p.Kind() != "bad_request" {
		t.Errorf("%v: %s", err, p.Text())
	}
	h.says(p.Text(), "no checkpoint was imported under it")
}
