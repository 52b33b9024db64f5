//go:build linux && !rooted

package engine_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"

	"golang.org/x/sys/unix"
)

// What somebody changed outside between two calls of one turn is a conflict for every restore that crosses it, merge keeps it, and having been
// kept once it is still not dropped.
func TestChangedOutsideBetweenTwoCalls(t *testing.T) {
	const old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	edited := func(s string, lines ...string) string {
		for _, l := range lines {
			s = strings.Replace(s, l+"\n", l+" edited\n", 1)
		}
		return s
	}
	for _, by := range []string{"id", "turn", "since"} {
		t.Run(by, func(t *testing.T) {
			x := grow(t, nil)
			x.write("f", old)
			c := x.call("s")
			c.Turn = "t1"
			x.BeginTurn(ctx, c)
			start := time.Now()
			first := x.put("s", "f", edited(old, "2"))
			x.write("f", edited(old, "2", "6"))
			x.put("s", "f", edited(old, "2", "6", "10"))
			in := map[string]checkpoint.Restore{"id": {ID: first}, "turn": {Turn: "t1"}, "since": {Since: start}}[by]
			restore := func(how string) (*engine.Restored, error) {
				return x.Restore(ctx, c, in, engine.RestoreOptions{OnConflict: how})
			}
			refused := func() {
				t.Helper()
				if _, err := restore(""); !engine.Conflicts.In(err) {
					t.Fatalf("it must be a conflict: %v", err)
				}
			}
			refused()
			if done, err := restore(engine.OnConflictSkip); err != nil || len(done.Skipped) != 1 {
				t.Fatalf("skip: %+v %v", done, err)
			}
			x.has("f", edited(old, "2", "6", "10"))
			if _, err := restore(engine.OnConflictMerge); err != nil {
				t.Fatal(err)
			}
			x.has("f", edited(old, "6"))
			refused() // what was kept is kept
			if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			x.has("f", edited(old, "2", "6", "10"))
			if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil { // of the second edit alone
				t.Fatal(err)
			}
			x.has("f", edited(old, "2", "6"))
			if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); !engine.Conflicts.In(err) {
				t.Fatalf("undo over it must be a conflict: %v", err)
			}
			if _, err := x.Undo(ctx, c, engine.RestoreOptions{OnConflict: engine.OnConflictMerge}); err != nil {
				t.Fatal(err)
			}
			x.has("f", edited(old, "6"))
			refused()
			if _, err := restore(engine.OnConflictForce); err != nil {
				t.Fatal(err)
			}
			x.has("f", old)
		})
	}
}

// Also of what the tools created: it does not go to the trash without a word.
func TestCreatedThenChangedOutside(t *testing.T) {
	x := grow(t, nil)
	c := x.call("s")
	c.Turn = "t1"
	x.BeginTurn(ctx, c)
	x.put("s", "f", "made\n")
	x.write("f", "made\nby hand\n")
	x.put("s", "f", "made\nby hand\nedited\n")
	if _, err := x.Restore(ctx, c, checkpoint.Restore{Turn: "t1"}, engine.RestoreOptions{}); !engine.Conflicts.In(err) {
		t.Fatalf("it must be a conflict: %v", err)
	}
	x.has("f", "made\nby hand\nedited\n")
}

// What an outsider took back is on record too, and nobody's conflict.
func TestOutsiderTookBack(t *testing.T) {
	x := grow(t, nil)
	path := x.write("f", "0\n")
	c := x.call("s")
	turn := func(name string) {
		c.Turn = name
		x.BeginTurn(ctx, c)
	}
	turn("t1")
	if _, err := x.Delete(ctx, c, path, engine.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	x.write("f", "by hand\n")
	turn("t2")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	turn("t3")
	page, err := x.Checkpoints(ctx, c, checkpoint.Filter{Kind: checkpoint.KindExternal})
	if err != nil || len(page.Checkpoints) != 2 {
		t.Fatalf("both changes must be on record: %+v %v", page, err)
	}
	if _, err := x.Restore(ctx, c, checkpoint.Restore{Turn: "t1"}, engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	x.has("f", "0\n")
}

// What others changed and took back is nobody's conflict.
func TestOthersTookBack(t *testing.T) {
	x := grow(t, nil)
	x.write("f", "0\n")
	x.put("s", "f", "1\n")
	x.put("u", "f", "2\n")
	if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); !engine.Conflicts.In(err) {
		t.Fatalf("it must be a conflict: %v", err)
	}
	if _, err := x.Undo(ctx, x.call("u"), engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	x.has("f", "0\n")
}

func (x *tree) meta(name string) (mode os.FileMode, uid, gid uint32, attr string) {
	x.t.Helper()
	i, err := os.Stat(x.ws + "/" + name)
	if err != nil {
		x.t.Fatal(err)
	}
	st := i.Sys().(*syscall.Stat_t)
	var v [64]byte
	n, _ := unix.Getxattr(x.ws+"/"+name, "user.x", v[:])
	return i.Mode(), st.Uid, st.Gid, string(v[:max(n, 0)])
}

// What somebody else removed or changed comes back by the checkpoint of that with the metadata that the tools had left it.
func TestExternalComesBackWithItsMetadata(t *testing.T) {
	x := grow(t, nil)
	path := x.write("old", "old\n")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(path, "user.x", []byte("kept"), 0); err != nil {
		t.Skip("no extended attributes here:", err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, 1000, 1001); err != nil {
			t.Fatal(err)
		}
	}
	c := x.call("s")
	turn := func(name string) {
		c.Turn = name
		x.BeginTurn(ctx, c)
	}
	turn("t1")
	x.put("s", "old", "old, edited\n")
	x.put("s", "made", "made\n")
	x.put("s", "shared", "made\n")
	type meta struct {
		mode     os.FileMode
		uid, gid uint32
		attr     string
	}
	look := func(name string) meta { m, u, g, a := x.meta(name); return meta{m, u, g, a} }
	was := map[string]meta{"old": look("old"), "made": look("made"), "shared": look("shared")}
	if err := errors.Join(os.Remove(path), os.Remove(x.ws+"/made")); err != nil {
		t.Fatal(err)
	}
	x.write("shared", "by hand\n")
	turn("t2")
	page, err := x.Checkpoints(ctx, c, checkpoint.Filter{Kind: checkpoint.KindExternal})
	if err != nil || len(page.Checkpoints) != 1 {
		t.Fatalf("%+v %v", page, err)
	}
	if _, err := x.Restore(ctx, c, checkpoint.Restore{ID: page.Checkpoints[0].ID}, engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	x.has("old", "old, edited\n")
	x.has("made", "made\n")
	x.has("shared", "made\n")
	for name, want := range was {
		if got := look(name); got != want {
			t.Errorf("%s came back with %+v, want %+v", name, got, want)
		}
	}
}

// What somebody set outside is theirs: a restore of the content leaves it. What was made anew gets all it had.
func TestRestoreLeavesMetadataThatOthersSet(t *testing.T) {
	x := grow(t, nil)
	path := x.write("f", "old\n")
	id := x.put("s", "f", "new\n")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(path, "user.x", []byte("theirs"), 0); err != nil {
		t.Skip("no extended attributes here:", err)
	}
	if _, err := x.restore(id, ""); err != nil {
		t.Fatal(err)
	}
	x.has("f", "old\n")
	if mode, _, _, attr := x.meta("f"); mode != 0o600 || attr != "theirs" {
		t.Errorf("it has now %v %q", mode, attr)
	}
	if _, err := x.Delete(ctx, x.call("s"), path, engine.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	x.put("s", "f", "made anew\n")
	if mode, _, _, _ := x.meta("f"); mode == 0o600 {
		t.Fatalf("a new file has %v", mode)
	}
	for range 2 {
		if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if mode, _, _, attr := x.meta("f"); mode != 0o600 || attr != "theirs" {
		t.Errorf("it came back with %v %q", mode, attr)
	}
}
