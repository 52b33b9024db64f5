package main

import (
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// An operation under way is nobody's business: check names it only once it is cut off, which is no fault of the store, and a purge leaves
// its contents alone, which go with --cut-off then.
func TestOperationUnderWay(t *testing.T) {
	data := guardfs.Canonical(t.TempDir())
	db, err := checkpoint.Open(filepath.Join(data, "checkpoints"), checkpoint.Options{})
	must(t, err)
	file := checkpoint.State{Kind: checkpoint.File, Mode: 0o644, Size: 1}
	saved, err := db.Save(t.Context(), checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Session: "s1", Opening: checkpoint.Opening{Tag: "abc"}, Changes: []checkpoint.Change{
		{Path: "/w/secret", Role: "target", Before: file, Content: []byte("s"), After: checkpoint.State{Kind: checkpoint.Absent}},
		{Path: "/w/b", Role: "target", After: file, AfterContent: []byte("b")}}})
	must(t, err)
	locks, err := guardfs.OpenLocks(filepath.Join(data, "locks"))
	must(t, err)
	unlock, err := locks.For("the one that is alive").Lock(t.Context(), "op:abc")
	must(t, err)
	run := func(want int, says, line string) {
		t.Helper()
		status, out, errs := runWith(t, "", append(strings.Fields(line), "--data-dir", data)...)
		if status != want || !strings.Contains(out+errs, says) {
			t.Errorf("%s: status %d, not %d and %q: %s%s", line, status, want, says, out, errs)
		}
		if named := strings.Contains(out, string(saved.ID)); strings.HasPrefix(line, "store check") && named != (says != ": sound") {
			t.Errorf("%s names it: %v", line, named)
		}
	}
	run(exitOK, ": sound", "store check")
	run(exitRefused, checkpoint.ErrUnderWay.Error(), "store purge --path secret --yes")
	run(exitRefused, checkpoint.ErrUnderWay.Error(), "store purge --path secret --yes --cut-off")
	unlock()
	run(exitOK, string(saved.ID), "store check")
	run(exitOK, string(saved.ID), "store check --json")
	must(t, db.Close())
	run(exitOK, string(saved.ID), "store check")
	run(exitRefused, checkpoint.ErrCutOff.Error(), "store purge --path secret --yes")
	run(exitOK, "purged 1 content of 1 checkpoint", "store purge --path secret --yes --cut-off")
}
