package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// Every time that is shown to people can be given back as an option, and means the same moment there.
func TestShownTimesAreTaken(t *testing.T) {
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("SKIPPED: no time zones here")
	}
	was := time.Local
	time.Local = york
	t.Cleanup(func() { time.Local = was })
	dir := t.TempDir()
	db, err := checkpoint.Open(filepath.Join(dir, "checkpoints"), checkpoint.Options{})
	must(t, err)
	at := time.Date(2026, 7, 21, 23, 30, 0, 0, york)
	for i := range 3 {
		if _, err := db.Save(context.Background(), checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Principal: "p", Session: "s", Time: at.Add(time.Duration(i) * time.Minute), Changes: []checkpoint.Change{{
			Path: "/p/a", Role: "target", Before: checkpoint.State{Kind: checkpoint.File, Mode: 0o644, Size: 1}, After: checkpoint.State{Kind: checkpoint.Absent}, Content: []byte("x"),
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, db.Close())
	list := func(args ...string) []string {
		t.Helper()
		status, out, errs := runWith(t, "", append([]string{"log", "--all", "--data-dir", dir}, args...)...)
		if status != exitOK {
			t.Fatalf("%v: status %d: %s", args, status, errs)
		}
		return slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return !strings.HasPrefix(line, "ck-") })
	}
	middle, _, _ := strings.Cut(list()[1], " ")
	_, shown, _ := runWith(t, "", "checkpoint", "show", middle, "--data-dir", dir)
	for _, form := range []string{strings.Fields(shown)[1], "2026-07-21T23:31:00-04:00", "2026-07-21 23:31:00 -0400", "2026-07-21 23:31", "2026-07-22T03:31:00Z"} {
		if since, until := list("--since", form), list("--until", form); len(since) != 2 || len(until) != 1 || !strings.HasPrefix(since[1], middle) {
			t.Errorf("%s: since\n%s\nuntil\n%s", form, since, until)
		}
	}
	if day := list("--since", "2026-07-21", "--until", "2026-07-22"); len(day) != 3 {
		t.Errorf("of the local day: %s", day)
	}
	if status, out, errs := runWith(t, "", "store", "stats", "--data-dir", dir); status != exitOK || !strings.Contains(out, "2026-07-21T23:30:00-04:00") {
		t.Errorf("stats: %s%s", out, errs)
	}
}

// A mistake on the command line ends with the same status in every command.
func TestMistakesEndAlike(t *testing.T) {
	dir := t.TempDir()
	db, err := checkpoint.Open(filepath.Join(dir, "checkpoints"), checkpoint.Options{})
	must(t, err)
	must(t, db.Close())
	for _, line := range []string{
		"checkpoint show ck-UUU", "checkpoint pin ck-UUU", "checkpoint unpin ck-UUU", "diff ck-UUU", "restore ck-UUU",
		"trash restore tr-UUU", "restore tr-UUU", "diff nonsense", "restore nonsense --dry-run",
		"log --since monday", "log --until monday", "diff --since monday", "checkpoint rewind --since monday", "store export --since monday",
	} {
		for _, how := range []string{"", " --json"} {
			if how != "" && strings.Contains(line, "export") {
				continue
			}
			var out, errs bytes.Buffer
			status := run(append(strings.Fields(line+how), "--data-dir", dir), streams{nil, &out, &errs, os.Getenv})
			if said := out.String() + errs.String(); status != exitMisuse || !strings.Contains(said, "hint") {
				t.Errorf("%s%s: status %d: %s", line, how, status, said)
			}
		}
	}
}
