package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongNames: what is too long to be the name of anything comes back neither in an answer nor in
// the log.
func TestLongNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, data := filepath.ToSlash(filepath.Join(dir, "root")), filepath.Join(dir, "data")
	must(t, os.Mkdir(root, 0o700))
	for dialect, calls := range map[string][]string{
		"tools": {`Read {"file_path":LONG}`, `Read {"file_path":ABS}`, `Write {"file_path":ABS,"content":LONG}`, `Grep {"pattern":"x","path":ABS}`, `Grep {"pattern":"x","type":LONG}`,
			`Grep {"pattern":"x","output_mode":LONG}`, `Read {LONG:1}`, `Read {"file_path":"/x",LONG:1}`, `NotebookEdit {"notebook_path":ABS,"new_source":""}`, `checkpoints_list {"path":LONG}`},
		"capability": {`filesystem.read {"path":ABS}`, `filesystem.read {"path":"ROOT/a","encoding":LONG}`, `filesystem.move {"source":"ROOT/a","destination":ABS}`, `filesystem.list {LONG:1}`, `agent.unwatch {"watch_id":LONG}`},
		"jettson":    {`jettson_files_read {"path":LONG}`, `jettson_files_list {"path":LONG}`, `jettson_files_write {"path":"x",LONG:"y"}`},
	} {
		for _, c := range calls {
			long := strings.Repeat("é", 50_000)
			tool, sent, _ := strings.Cut(c, " ")
			sent = strings.NewReplacer("LONG", `"`+long+`"`, "ABS", `"`+root+"/"+long+`"`, "ROOT", root).Replace(sent)
			var out, errs bytes.Buffer
			run([]string{"call", "--json", "--root", root, "--data-dir", data, "--dialect", dialect, "--yes", tool, "-"}, streams{strings.NewReader(sent), &out, &errs, os.Getenv})
			if !json.Valid(out.Bytes()) || out.Len()+errs.Len() > 16<<10 {
				t.Errorf("%.60s: %d bytes, %d of errors: %.300s", c, out.Len(), errs.Len(), out.String()+errs.String())
			}
		}
	}
	log := recordsOf(t, data)
	if !strings.Contains(log, "é") {
		t.Error("the log has none of it")
	}
	for line := range strings.Lines(log) {
		if len(line) > 16<<10 {
			t.Errorf("a record of %d bytes: %.300s", len(line), line)
		}
	}
}
