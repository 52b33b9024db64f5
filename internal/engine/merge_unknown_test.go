//go:build linux && !rooted

package engine_test

import (
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// What an imported call left behind nobody recorded, nor where it was purged: there is nothing to merge by, which is a conflict, and neither "nothing
// had to be changed" nor an error.
func TestMergeByWhatIsNotKnown(t *testing.T) {
	for _, purge := range []bool{false, true} {
		x := grow(t, nil)
		const old, edited, now = "1\n2\n3\n", "1\n2\nthree\n", "0\n1\n2\nthree\n"
		path := x.write("f", old)
		c := x.call("s")
		db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
		must(t, err)
		var id checkpoint.ID
		if purge {
			id = x.put("s", "f", edited)
			_, err := db.Purge(ctx, checkpoint.Purge{Hash: engine.HashOf([]byte(edited))})
			must(t, err)
		} else {
			st := checkpoint.State{Kind: checkpoint.File, Mode: 0o644, Size: int64(len(old)), Hash: engine.HashOf([]byte(old))}
			saved, err := db.Save(ctx, checkpoint.Op{Kind: checkpoint.KindImport, Principal: c.Principal, Session: c.Session,
				Changes: []checkpoint.Change{{Path: path, Before: st, After: st, Content: []byte(old)}}})
			must(t, err)
			id = saved.ID
		}
		must(t, db.Close())
		x.write("f", now)
		for _, r := range []checkpoint.Restore{{ID: id}, {ID: id, Mode: checkpoint.ModeInverse}} {
			for _, how := range []string{engine.OnConflictMerge, engine.OnConflictRefuse} {
				if done, err := x.Restore(ctx, c, r, engine.RestoreOptions{OnConflict: how}); len(blockedBy(err)) != 1 {
					t.Errorf("purged %v, %s, mode %q: it must be a conflict: %+v %v", purge, how, r.Mode, done, err)
				}
			}
		}
		x.has("f", now)
		if purge {
			files, left, _, err := x.Compare(ctx, c, checkpoint.Restore{ID: id}, false)
			if err != nil || len(files) != 0 || len(left) != 1 {
				t.Errorf("what it became is not there to be shown: %+v %+v %v", files, left, err)
			}
		}
		if _, err := x.Restore(ctx, c, checkpoint.Restore{ID: id}, engine.RestoreOptions{OnConflict: engine.OnConflictForce}); err != nil {
			t.Fatal(err)
		}
		x.has("f", old)
	}
}
