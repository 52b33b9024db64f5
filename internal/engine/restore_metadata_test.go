//go:build linux && !rooted

package engine_test

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// Where only the owner, the group or an attribute is another one, a restore gives it back, or says that it stays because somebody else set it.
func TestRestoreOfMetadataOnly(t *testing.T) {
	x := grow(t, nil)
	path := x.write("f", "same\n")
	set := func(value string) {
		t.Helper()
		if err := unix.Setxattr(path, "user.x", []byte(value), 0); err != nil {
			t.Skip("SKIPPED: no extended attributes here: ", err)
		}
	}
	set("first")
	if err := os.Chmod(path, 0o750); err != nil {
		t.Fatal(err)
	}
	pieces, uid := []string{"mode", "xattr:user.x"}, uint32(os.Getuid())
	if os.Getuid() == 0 {
		if err := os.Chown(path, 1000, 1001); err != nil {
			t.Skip("SKIPPED: root may not give files away: ", err)
		}
		pieces, uid = []string{"mode", "owner", "group", "xattr:user.x"}, 1000
	}
	done, err := x.Delete(ctx, x.call("s"), path, engine.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x.put("s", "f", "same\n")
	if _, u, _, attr := x.meta("f"); int(u) != os.Getuid() || attr != "" {
		t.Fatalf("made anew it has the owner %d and %q", u, attr)
	}
	id := checkpoint.ID(done.Checkpoint)
	dry, err := x.Restore(ctx, x.call("s"), checkpoint.Restore{ID: id}, engine.RestoreOptions{DryRun: true})
	if err != nil || dry.Idle || !slices.Equal(dry.Metadata[path].Set, pieces) {
		t.Errorf("a dry run says what would be set: %+v %v", dry, err)
	}
	got, err := x.restore(id, "")
	if err != nil {
		t.Fatal(err)
	}
	if of := got.Metadata[path]; !slices.Equal(of.Set, pieces) || of.Stays != nil || of.Dropped != nil {
		t.Errorf("%+v is said to have been set", of)
	}
	if _, u, _, attr := x.meta("f"); u != uid || attr != "first" {
		t.Errorf("it has the owner %d and %q", u, attr)
	}
	if got, err = x.restore(id, ""); err != nil || !got.Idle {
		t.Errorf("once more there is nothing to do: %+v %v", got, err)
	}
	set("theirs")
	if got, err = x.restore(id, ""); err != nil || !slices.Equal(got.Metadata[path].Stays, []string{"xattr:user.x"}) || !got.Idle {
		t.Errorf("what others set stays, and is said: %+v %v", got, err)
	}
	if _, _, _, attr := x.meta("f"); attr != "theirs" {
		t.Errorf("it has %q", attr)
	}
}

// A read-only file that the session made by a copy goes again with the undo; what others made read-only does not.
func TestUndoOfAReadOnlyCopy(t *testing.T) {
	x := grow(t, nil)
	path := x.write("from", "f\n")
	must(t, os.Chmod(path, 0o444))
	_, err := x.Copy(ctx, x.call("s"), engine.CopyArgs{From: path, To: x.ws + "/f"})
	must(t, err)
	if mode, _, _, _ := x.meta("f"); mode.Perm() != 0o444 {
		t.Fatalf("it was made as %v", mode)
	}
	for range 2 {
		_, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
		must(t, err)
		x.has("f", "-")
		_, err = x.Redo(ctx, x.call("s"), engine.RestoreOptions{})
		must(t, err)
		x.has("f", "f\n")
	}

	id := x.put("s", "g", "g\n")
	if err := os.Chmod(x.ws+"/g", 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := x.restore(id, ""); !engine.ReadOnly.In(err) {
		t.Errorf("what somebody else made read-only: %v", err)
	}
	x.has("g", "g\n")
}
