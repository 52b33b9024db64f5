package engine_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// What the operator wrote as zero reaches the store as zero.
func TestZeroOfRetentionIsMeant(t *testing.T) {
	c := config.Default().Tools.FS.Checkpoint
	c.KeepWithin, c.KeepLast = 0, 5
	if o, err := engine.StoreOptions(c); err != nil || o.KeepWithin != checkpoint.KeepNone || o.KeepLast != 5 {
		t.Errorf("%+v %v", o, err)
	}
	c.KeepWithin, c.KeepLast = config.Duration(time.Hour), 0
	if o, err := engine.StoreOptions(c); err != nil || o.KeepWithin != time.Hour || o.KeepLast != checkpoint.KeepNone {
		t.Errorf("%+v %v", o, err)
	}
}

// A name that goes through a link holds for what is stored, which is under true names, and goes on to hold when the link leads elsewhere.
func TestExcludeFollowsLinks(t *testing.T) {
	dir := guardfs.Canonical(t.TempDir())
	for _, d := range []string{"rel7", "rel8", "secrets/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "current")
	if err := os.Symlink("rel7", link); err != nil {
		t.Skip("SKIPPED: no symbolic links:", err)
	}
	c := config.Default().Tools.FS.Checkpoint
	c.Exclude = []string{filepath.ToSlash(link) + "/.env", "**/secrets"}
	o, err := engine.StoreOptions(c)
	if err != nil {
		t.Fatal(err)
	}
	excluded := func(want bool, names ...string) {
		t.Helper()
		for _, n := range names {
			if got := o.Exclude(filepath.ToSlash(filepath.Join(dir, n))); got != want {
				t.Errorf("%s: excluded is %v", n, got)
			}
		}
	}
	excluded(true, "rel7/.env", "secrets/deep/key", "a/secrets")
	excluded(false, "rel8/.env", "rel7/a")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("rel8", link); err != nil {
		t.Fatal(err)
	}
	excluded(true, "rel8/.env", "rel7/.env")
}
