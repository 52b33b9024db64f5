//go:build linux

package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// parkings are a deletion that parks, and its undo.
var parkings = map[string]func(e *engine.Engine, ws string) error{
	"park": func(e *engine.Engine, ws string) error {
		_, err := e.Delete(ctx, maker(), ws+"/t", engine.DeleteOptions{Recursive: true})
		return err
	},
	"bring back": func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	},
}

// A process is killed before every system call of a deletion that parks and of its undo: after the next start the tree is whole, in its place or in
// the trash, and the trash says which.
func TestKilledParking(t *testing.T) {
	grow(t, nil).needsTrash()
	var mu sync.Mutex
	moved := map[bool]int{}
	t.Cleanup(func() {
		if moved[true] < 10 || moved[false] < 10 {
			t.Errorf("killed too early or too late to tell anything: %v", moved)
		}
	})
	for step := range parkings {
		t.Run(step, func(t *testing.T) {
			x := grow(t, small)
			var whole string
			lay := func() { // the trash knows its own
				x.write("t/big.bin", strings.Repeat("b", 101))
				x.write("t/sub/b.txt", "b\n")
				whole = x.looks()
				if step == "bring back" {
					x.remove("t")
				}
			}
			kills(t, step, x, lay, func(n int64, _ bool, _ string) string {
				x.open()
				defer x.Close()
				page, err := x.Trash(ctx, x.call("s"), checkpoint.TrashFilter{})
				must(t, err)
				there := x.looks() == whole
				files, _ := x.trashed()
				switch {
				case there && len(files) == 0 && len(page.Entries) == 0:
				case !there && len(files) == 1 && len(page.Entries) == 1 && page.Entries[0].Parked == files[0]:
					_, err := x.Untrash(ctx, x.call("s"), page.Entries[0].ID, false)
					if err != nil || x.looks() != whole {
						t.Fatalf("call %d: coming back: %v\n%s", n, err, x.looks())
					}
				default:
					t.Fatalf("call %d: in the tree\n%s\nin the trash %v, listed %+v", n, x.looks(), files, page.Entries)
				}
				mu.Lock()
				defer mu.Unlock()
				moved[there]++
				return fmt.Sprint(there)
			})
		})
	}
}
