//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// Somebody moves a directory before the N-th system call of a rewind that removes what is in it, for some N: what can't
// be put back is told, and nothing is made again at the old place. It comes back as soon as the directory does.
func TestDirectoryMovedDuringARewind(t *testing.T) {
	t.Parallel()
	names := []string{"n1", "n2", "sub/n3", "sub/n4"}
	told := 0
	stride := cmp.Or(*every, 23)
	for n := first(stride); ; n += stride {
		x := grow(t, nil)
		system := callsOf(x)
		x.write("kept", "old")
		x.BeginTurn(ctx, x.call("s"))
		for _, name := range names {
			x.puts("t", "new/"+name, name)
		}
		x.puts("t", "kept", "new")
		var count atomic.Int64
		moved := false
		hook := func(string) *guardfs.Fault {
			if count.Add(1) == n {
				moved = os.Rename(x.ws+"/new", x.ws+"/moved") == nil
			}
			return nil
		}
		system.hook.Store(&hook)
		_, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{})
		system.hook.Store(nil)
		if count.Load() < n {
			break
		}
		there := func(dir, name string) bool {
			_, err := os.Lstat(x.ws + dir + name)
			return err == nil
		}
		var missing []string
		for _, name := range names {
			if !there("/moved/", name) && !there("/new/", name) {
				missing = append(missing, x.ws+"/new/"+name)
			}
		}
		half, ok := factsOf[engine.HalfFacts](err, engine.HalfMade)
		if err != nil && missing != nil {
			told++
			if !ok || slices.ContainsFunc(missing, func(name string) bool { return !slices.Contains(half.Left, name) }) {
				t.Errorf("moved before call %d: %v is gone: %v", n, missing, err)
			}
		}
		x.Close()
		x.open()
		for _, name := range names {
			if moved && err != nil && there("/moved/", name) && there("/new/", name) {
				t.Errorf("moved before call %d: %s is there twice, after %v", n, name, err)
			}
		}
		if moved && err != nil && !there("", "/new") { // what is in no place is in the directory, under a temporary name
			must(t, os.Rename(x.ws+"/moved", x.ws+"/new"))
			x.Close()
			x.open()
		}
		for _, name := range names {
			if moved && err != nil && !there("/moved/", name) && !there("/new/", name) {
				t.Errorf("moved before call %d: %s is gone, after %v", n, name, err)
			}
		}
		if left := x.halfWay(); left != nil {
			t.Errorf("moved before call %d: %v is still half-way", n, left)
		}
		if err != nil && !strings.Contains(x.looks(), "/kept") {
			t.Errorf("moved before call %d: kept is gone", n)
		}
	}
	if told == 0 {
		t.Error("nothing was ever removed before the directory was moved: the test tests nothing")
	}
}
