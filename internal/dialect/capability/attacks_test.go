package capability

import (
	"encoding/json"
	"os"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// An entry of the trash comes back to its own place only, for its own principal, under the rules of
// today, and over nothing. The control is a restore that may be.
func TestAttacksOnTheTrash(t *testing.T) {
	t.Parallel()
	r := open(t, func(_ *config.Config, h *engine.Host) { h.Approver = decides(approval.Approved) })
	outside := t.TempDir()
	trashed := func(name string) string {
		t.Helper()
		r.write(t, name, "GOOD")
		p, _ := r.call(t, "filesystem.delete", `{"path":"R/`+name+`"}`)["trash_path"].(string)
		if p == "" {
			t.Fatal("it is not in the trash")
		}
		return p
	}
	for name, c := range map[string]struct {
		before func(trash string) string // what is sent in its place
		as     dialect.Call
		want   string
	}{
		"control":          {func(p string) string { return p }, dialect.Call{}, ""},
		"another's":        {func(p string) string { return p }, dialect.Call{Principal: "eve"}, "NotInTrash"},
		"another id":       {func(p string) string { return p[:len("trash:")+4] + "x/f" }, dialect.Call{}, "NotInTrash"},
		"out of the trash": {func(string) string { return "trash:../../etc/passwd" }, dialect.Call{}, "NotInTrash"},
		"a path":           {func(string) string { return "/etc/passwd" }, dialect.Call{}, "NotInTrash"},
		"over a file": {func(p string) string { r.write(t, "over a file/f", "NEW"); return p }, dialect.Call{},
			"DestinationExists"},
		"over a link": {func(p string) string {
			must(t, os.Symlink(outside+"/x", r.root+"/over a link/f"))
			return p
		}, dialect.Call{}, "DestinationExists"},
		"under a link": {func(p string) string {
			must(t, os.Rename(r.root+"/under a link", r.root+"/was"))
			must(t, os.Symlink(outside, r.root+"/under a link"))
			return p
		}, dialect.Call{}, "PathOutOfScope"},
		"out of scope by now": {func(p string) string { return p },
			dialect.Call{Scope: &dialect.Scope{Readable: []string{r.root + "/none"}, Writable: []string{r.root + "/none"}}},
			"PathOutOfScope"},
	} {
		p := c.before(trashed(name + "/f"))
		c.as.Session, c.as.Tool, c.as.Args = "s", "filesystem.restore", json.RawMessage(mustJSON(map[string]string{"path": p}))
		got := r.as(t, c.as)
		if kind, _ := got["type"].(string); kind != c.want {
			t.Errorf("%s: %v", name, got)
		}
		now, err := os.ReadFile(r.root + "/" + name + "/f")
		if back := err == nil && string(now) == "GOOD"; back != (c.want == "") {
			t.Errorf("%s: there is %q, %v", name, now, err)
		}
	}
	if all, err := os.ReadDir(outside); err != nil || len(all) > 0 {
		t.Errorf("outside is %v, %v", all, err)
	}
}
