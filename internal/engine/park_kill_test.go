//go:build linux && !rooted

package engine_test

import (
	"errors"
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

// The child of TestKilledParking: it deletes or undoes, and kills itself before its N-th system call on the tree.
func TestKilledParkingChild(t *testing.T) {
	how := strings.Split(os.Getenv("PARKING_CHILD"), ":")
	if len(how) != 3 {
		t.Skip("only run by TestKilledParking")
	}
	n, err := strconv.ParseInt(how[2], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default().Tools.FS
	cfg.RequireApproval, cfg.CheckpointBeforeMutation = false, true
	cfg.Durability, cfg.Checkpoint.Durability = "none", "relaxed"
	small(&cfg)
	var count atomic.Int64
	var on atomic.Bool
	e, err := engine.Open(engine.Options{Config: cfg, Judge: inside{how[1] + "/ws", ""}, DataDir: how[1] + "/data", Fault: func(string) *guardfs.Fault {
		if on.Load() && count.Add(1) == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	c := &engine.Call{ID: "c", Principal: "p", Session: "s", Tool: "test"}
	if how[0] == "delete" {
		_, err = e.Delete(ctx, c, how[1]+"/ws/t", engine.DeleteOptions{Recursive: true})
	} else {
		_, err = e.Undo(ctx, c, engine.RestoreOptions{})
	}
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
}

// A process is killed before every system call of a deletion that parks and of its undo: after the next start the tree is whole, in its place or in
// the trash, and the trash says which.
func TestKilledParking(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some two hundred processes")
	}
	moved := map[bool]int{}
	for _, step := range []string{"delete", "undo"} {
		for n := 1; ; n++ {
			x := grow(t, small)
			x.write("t/big.bin", strings.Repeat("b", 101))
			x.write("t/sub/b.txt", "b\n")
			whole := x.looks()
			if step == "undo" {
				if _, err := x.Delete(ctx, x.call("s"), x.ws+"/t", engine.DeleteOptions{Recursive: true}); err != nil {
					t.Fatal(err)
				}
			}
			x.Close()
			child := exec.Command(os.Args[0], "-test.run=^TestKilledParkingChild$")
			child.Env = append(os.Environ(), "PARKING_CHILD="+step+":"+filepath.Dir(x.ws)+":"+strconv.Itoa(n))
			out, err := child.CombinedOutput()
			if err != nil && !strings.Contains(err.Error(), "killed") {
				t.Fatalf("%v\n%s", err, out)
			}
			x.open()
			page, lerr := x.Trash(ctx, x.call("s"), checkpoint.TrashFilter{})
			if lerr != nil {
				t.Fatal(lerr)
			}
			there := x.looks() == whole
			files, _ := x.trashed()
			switch {
			case there && len(files) == 0 && len(page.Entries) == 0:
			case !there && len(files) == 1 && len(page.Entries) == 1 && page.Entries[0].Parked == files[0]:
				if _, err := x.Untrash(ctx, x.call("s"), page.Entries[0].ID, false); err != nil || x.looks() != whole {
					t.Fatalf("%s, call %d: coming back: %v\n%s", step, n, err, x.looks())
				}
			default:
				t.Fatalf("%s, call %d: in the tree\n%s\nin the trash %v, listed %+v", step, n, x.looks(), files, page.Entries)
			}
			moved[there]++
			x.Close()
			os.RemoveAll(filepath.Dir(x.ws))
			if err == nil {
				break
			}
		}
	}
	if moved[true] < 10 || moved[false] < 10 {
		t.Errorf("killed too early or too late to tell anything: %v", moved)
	}
}
