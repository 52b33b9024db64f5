//go:build linux && !rooted

package engine_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// The child of TestKilledTakingBack: it starts, and kills itself before its N-th system call on the tree.
func TestKilledTakingBackChild(t *testing.T) {
	dir, at, ok := strings.Cut(os.Getenv("TAKING_BACK_CHILD"), ":")
	if !ok {
		t.Skip("only run by TestKilledTakingBack")
	}
	n, err := strconv.ParseInt(at, 10, 64)
	must(t, err)
	cfg := config.Default().Tools.FS
	cfg.Durability, cfg.Checkpoint.Durability = "none", "relaxed"
	var count atomic.Int64
	e, err := engine.Open(engine.Options{Config: cfg, Judge: inside{dir + "/ws", ""}, DataDir: dir + "/data", Fault: func(string) *guardfs.Fault {
		if count.Add(1) == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}})
	must(t, err)
	must(t, e.Close())
}

// A process that takes back what another has left half-way is killed before its N-th system call, for every third N: the next one finishes that, and no temporary
// file stays.
func TestKilledTakingBack(t *testing.T) {
	littered := 0
	for n := 1; ; n += 3 {
		x := grow(t, nil)
		x.Close()
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
		child := exec.Command(os.Args[0], "-test.run=^TestKilledTakingBackChild$")
		child.Env = append(os.Environ(), "TAKING_BACK_CHILD="+filepath.Dir(x.ws)+":"+strconv.Itoa(n))
		out, err := child.CombinedOutput()
		if err == nil {
			break // it came to its end
		}
		if !strings.Contains(err.Error(), "killed") {
			t.Fatalf("call %d: %v\n%s", n, err, out)
		}
		litter := func() []string {
			names, _ := filepath.Glob(x.ws + "/.moltis-*")
			return names
		}
		littered += len(litter())
		x.open()
		x.has("a", "old")
		x.has("b", "old")
		x.has("c", "old")
		if names := litter(); names != nil {
			t.Errorf("killed before call %d: %v is left", n, names)
		}
		if left, _ := filepath.Glob(x.data + "/checkpoints/journal/ck-*"); left != nil {
			t.Errorf("killed before call %d: %v is left", n, left)
		}
	}
	if littered == 0 {
		t.Error("no kill ever left a temporary file: the test tests less than it should")
	}
}
