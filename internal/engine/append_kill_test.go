//go:build linux

package engine_test

import (
	"fmt"
	"moltisfs/internal/engine"
	"os"
	"strings"
	"sync"
	"testing"
)

// mine is a tail that takes more than one page.
var mine = strings.Repeat("mine, a line\n", 700)

// appendings are appends in place, and what takes them back.
var appendings = map[string]func(e *engine.Engine, ws string) error{
	"append": func(e *engine.Engine, ws string) error {
		_, err := e.Append(ctx, maker(), ws+"/large", []byte(mine), engine.Rules{})
		return err
	},
	"cut the tail": func(e *engine.Engine, _ string) error {
		_, err := e.Undo(ctx, maker(), engine.RestoreOptions{})
		return err
	},
	"append again": func(e *engine.Engine, _ string) error {
		_, err := e.Redo(ctx, maker(), engine.RestoreOptions{})
		return err
	},
}

// A process is killed before every system call of an append: after the next start all of the tail is
// there, or nothing of it.
func TestKilledAppending(t *testing.T) {
	var mu sync.Mutex
	there := map[bool]int{}
	t.Cleanup(func() {
		if there[true] == 0 || there[false] == 0 {
			t.Errorf("killed too early or too late to tell anything: %v", there)
		}
	})
	for step := range appendings {
		t.Run(step, func(t *testing.T) {
			x := grow(t, tight)
			lay := func() { // a copy of it would be another file
				x.write("large", large)
				if step != "append" {
					must(t, appendings["append"](x.Engine, x.ws))
				}
				if step == "append again" {
					must(t, appendings["cut the tail"](x.Engine, x.ws))
				}
			}
			kills(t, step, x, lay, func(n int64, _ bool, _ string) string {
				x.open()
				defer x.Close()
				b, err := os.ReadFile(x.ws + "/large")
				must(t, err)
				made := string(b) == large+mine
				if !made && string(b) != large || x.halfWay() != nil {
					t.Fatalf("call %d: %d bytes; open: %v", n, len(b), x.halfWay())
				}
				mu.Lock()
				defer mu.Unlock()
				there[made]++
				return fmt.Sprint(made)
			})
		})
	}
}
