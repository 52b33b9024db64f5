package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/checkpoint"
)

// On a read-only file system the commands work that the hint of the others names, and nothing is broken.
func TestReadOnlyDataDirectory(t *testing.T) {
	dir, tree := t.TempDir(), t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m,mode=0700"); err != nil {
		t.Skip("SKIPPED: no tmpfs can be mounted here:", err)
	}
	defer unix.Unmount(dir, 0) //nolint:errcheck // nothing is left to be said of it
	config := filepath.Join(tree, "c.toml")
	must(t, os.WriteFile(config, []byte("[tools.fs]\nrequire_approval = false\ncheckpoint_before_mutation = true\n"), 0o600))
	moltis := func(want int, args ...string) string {
		t.Helper()
		status, out, errs := runWith(t, "", append(args, "--config", config, "--data-dir", dir)...)
		if status != want {
			t.Errorf("%v: status %d: %s%s", args, status, out, errs)
		}
		return errs
	}
	moltis(exitOK, "call", "Write", fmt.Sprintf(`{"file_path":%q,"content":"1"}`, filepath.Join(tree, "a")))
	db, err := checkpoint.Open(filepath.Join(dir, "checkpoints"), checkpoint.Options{})
	if err == nil { // of which nobody can tell there whether it is being carried out
		_, err = db.Save(t.Context(), checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Opening: checkpoint.Opening{Tag: "t"}})
		err = errors.Join(err, db.Close())
	}
	must(t, err)
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for _, line := range []string{"log", "checkpoint show ck-1H0", "store stats", "store check", "store export", "trash list"} {
		moltis(exitOK, strings.Fields(line)...)
		for _, word := range strings.Fields(line) {
			if word != "ck-1H0" && !strings.Contains(worksReadOnly, word) {
				t.Errorf("%s works, and the hint does not say so", line)
			}
		}
	}
	for _, line := range []string{"diff ck-1H0", "diff ck-1H0 --after --root " + tree, "undo --dry-run", "checkpoint pin ck-1H0"} {
		if errs := moltis(exitRefused, strings.Fields(line)...); !strings.Contains(errs, "read-only file system") || !strings.Contains(errs, "hint: "+worksReadOnly) {
			t.Errorf("%s: %s", line, errs)
		}
	}
	if strings.Contains(worksReadOnly, "diff") {
		t.Errorf("diff does not work: %s", worksReadOnly)
	}
}
