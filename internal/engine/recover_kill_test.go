//go:build linux && !rooted

package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// A process that takes back what another has left half-way is killed before its N-th system call: the next one finishes that, and no temporary
// file stays.
func TestKilledTakingBack(t *testing.T) {
	littered := 0
	x := grow(t, nil)
	litter := func() []string {
		names, _ := filepath.Glob(x.ws + "/.moltis-*")
		return names
	}
	db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{Durability: checkpoint.Relaxed, Settles: true})
	must(t, err)
	state := func(s string) checkpoint.State {
		return checkpoint.State{Kind: checkpoint.File, Mode: 0o640, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Size: int64(len(s)), Hash: engine.HashOf([]byte(s))}
	}
	op := checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "p", Session: "s"}
	for i, name := range []string{"a", "b", "c"} {
		x.write(name, []string{"new", "new", "old"}[i])
		op.Changes = append(op.Changes, checkpoint.Change{Path: x.ws + "/" + name, Role: "target", Before: state("old"), Content: []byte("old"), After: state("new"), AfterContent: []byte("new")})
	}
	saved, err := db.Save(ctx, op)
	must(t, err)
	in, err := db.Intend(saved.ID)
	must(t, err)
	must(t, in.Leave())
	must(t, db.Close())
	kills(t, "recover", x, nil, func(n int64, _ bool, _ string) string {
		left := len(litter())
		littered += left
		x.open()
		for _, name := range []string{"a", "b", "c"} {
			x.has(name, "old")
		}
		must(t, x.Close())
		if names := litter(); names != nil {
			t.Errorf("killed before call %d: %v is left", n, names)
		}
		if left, _ := filepath.Glob(x.data + "/checkpoints/journal/ck-*"); left != nil {
			t.Errorf("killed before call %d: %v is left", n, left)
		}
		return fmt.Sprint(left)
	})
	if littered == 0 {
		t.Error("no kill ever left a temporary file: the test tests less than it should")
	}
}
