package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// A path that goes through a link is found under its true name, and one that is not found is no success.
func TestPurgeByTheNameOfALink(t *testing.T) {
	base := guardfs.Canonical(t.TempDir())
	data, tree := filepath.Join(base, "data"), filepath.Join(base, "t")
	must(t, os.MkdirAll(filepath.Join(tree, "rel7"), 0o700))
	if err := os.Symlink("rel7", filepath.Join(tree, "current")); err != nil {
		t.Skip("SKIPPED: no symbolic links:", err)
	}
	db, err := checkpoint.Open(filepath.Join(data, "checkpoints"), checkpoint.Options{})
	must(t, err)
	for _, name := range []string{"rel7/.env", "rel7/sub/key", "other"} {
		secret := []byte("the secret of " + name)
		_, err := db.Save(context.Background(), checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Session: "s1", Changes: []checkpoint.Change{{
			Path: filepath.ToSlash(filepath.Join(tree, name)), Before: checkpoint.State{Kind: checkpoint.File, Size: int64(len(secret))}, Content: secret,
			After: checkpoint.State{Kind: checkpoint.Absent},
		}}})
		must(t, err)
	}
	must(t, db.Close())
	link := filepath.ToSlash(filepath.Join(tree, "current"))
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"--path " + link + "/nothing --yes", exitRefused, "no path in the store matches " + link + "/nothing"},
		{"--path " + link + "/nothing --dry-run", exitRefused, "no path"},
		{"--path " + link + "/nothing --yes --json", exitRefused, `"not_found"`},
		{"--sha256 " + strings.Repeat("a", 64) + " --yes", exitRefused, "no content in the store has the SHA-256 aaaa"},
		{"--sha256 " + noBytes + " --yes", exitMisuse, "empty content"},
		{"--path rel7/.env --yes", exitMisuse, "not absolute"},
		{"--path " + link + "/.env --yes", exitOK, "purged 1 content of 1 checkpoint"},
		{"--path " + link + "/.env --yes", exitOK, "purged 0 contents"}, // it is known, and clean
		{"--path " + link + "/ --dry-run", exitOK, "would purge 1 content of 1 checkpoint"},
		{"--path other --dry-run", exitOK, "would purge 1 content of 1 checkpoint"},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"store", "purge", "--data-dir", data}, strings.Fields(c.args)...)
		status := run(args, streams{nil, &out, &errs, os.Getenv})
		if said := out.String() + errs.String(); status != c.status || !strings.Contains(said, c.says) {
			t.Errorf("%s: status %d: %s", c.args, status, said)
		}
	}
}

// A purge leaves the contents alone that an operation under way needs, --cut-off or not; those of a
// dead one go with --cut-off.
func TestPurgeLeavesTheLivingAlone(t *testing.T) {
	data := guardfs.Canonical(t.TempDir())
	db, err := checkpoint.Open(filepath.Join(data, "checkpoints"), checkpoint.Options{})
	must(t, err)
	_, err = db.Save(t.Context(), checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Session: "s1", Opening: checkpoint.Opening{Tag: "abc"}, Changes: []checkpoint.Change{{
		Path: "/w/secret", Before: checkpoint.State{Kind: checkpoint.File, Size: 1}, Content: []byte("s"), After: checkpoint.State{Kind: checkpoint.Absent},
	}}})
	if err == nil {
		err = db.Close()
	}
	must(t, err)
	locks, err := guardfs.OpenLocks(filepath.Join(data, "locks"))
	must(t, err)
	unlock, err := locks.For("the one that is alive").Lock(t.Context(), "op:abc")
	must(t, err)
	purge := func(want int, says string, more ...string) {
		t.Helper()
		args := append([]string{"store", "purge", "--data-dir", data, "--path", "secret", "--yes"}, more...)
		if status, out, errs := runWith(t, "", args...); status != want || !strings.Contains(out+errs, says) {
			t.Errorf("%v: status %d: %s%s", more, status, out, errs)
		}
	}
	purge(exitRefused, checkpoint.ErrUnderWay.Error())
	purge(exitRefused, checkpoint.ErrUnderWay.Error(), "--cut-off")
	unlock()
	purge(exitRefused, checkpoint.ErrCutOff.Error())
	purge(exitOK, "purged 1 content of 1 checkpoint", "--cut-off")
}
