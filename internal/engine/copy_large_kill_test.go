//go:build linux

package engine_test

import (
	"context"
	"fmt"
	"moltisfs/internal/engine"
	"os"
	"strings"
	"sync"
	"testing"
)

// copyings are copies of what the store can't hold, and what takes one back.
var copyings = map[string]func(e *engine.Engine, ws string) error{
	"copy large": func(e *engine.Engine, ws string) error { return copyLarge(ctx, e, maker(), ws) },
	"copy large over": func(e *engine.Engine, ws string) error {
		_, err := e.Copy(ctx, maker(), engine.CopyArgs{From: ws + "/large", To: ws + "/small", Overwrite: true})
		return err
	},
	"copy large back": func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	},
}

func copyLarge(ctx context.Context, e *engine.Engine, c *engine.Call, ws string) error {
	_, err := e.Copy(ctx, c, engine.CopyArgs{From: ws + "/large", To: ws + "/d/new", Rules: engine.Rules{Parents: true}})
	return err
}

// A process is killed before every system call of a large copy: after the next start it is there as a
// whole, or not at all, and what was there before is too.
func TestKilledCopying(t *testing.T) {
	var mu sync.Mutex
	there := map[bool]int{}
	t.Cleanup(func() {
		if there[true] == 0 || there[false] == 0 {
			t.Errorf("killed too early or too late to tell anything: %v", there)
		}
	})
	for step := range copyings {
		t.Run(step, func(t *testing.T) {
			x := grow(t, tight)
			lay := func() { // the trash knows its own
				x.write("large", large)
				x.write("small", "small\n")
				if step == "copy large back" {
					x.needsTrash()
					must(t, copyings["copy large"](x.Engine, x.ws))
				}
			}
			kills(t, step, x, lay, func(n int64, _ bool, _ string) string {
				x.open()
				defer x.Close()
				made := false
				switch small, err := os.ReadFile(x.ws + "/small"); {
				case err != nil || string(small) != "small\n" && string(small) != large:
					t.Fatalf("call %d: small is %d bytes: %v", n, len(small), err)
				default:
					made = string(small) == large
				}
				if b, err := os.ReadFile(x.ws + "/d/new"); err == nil {
					if made = true; string(b) != large {
						t.Fatalf("call %d: a copy of %d bytes", n, len(b))
					}
				}
				x.has("large", large)
				if left := x.halfWay(); left != nil || strings.Contains(x.looks(), "/.moltis-") {
					t.Fatalf("call %d: left: %v\n%.500s", n, left, x.looks())
				}
				mu.Lock()
				defer mu.Unlock()
				there[made]++
				return fmt.Sprint(made)
			})
		})
	}
}
