package main

import (
	"context"
	"os"
	"runtime"
	"sync"

	"moltisfs/internal/approval"
	"moltisfs/tools"
)

func approveAll(onWhoseWord string) tools.Approver    { return approval.Yes(onWhoseWord) }
func approveNothing(instead ...string) tools.Approver { return approval.Nobody(instead) }

// terminal asks on the controlling terminal, wherever standard input and output lead. It is opened for the first question, so
// that calls that ask nothing need none; where there is none, instead says what would help.
type terminal struct {
	instead []string
	once    sync.Once
	ask     tools.Approver
}

func (t *terminal) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	t.once.Do(func() {
		in, out := "/dev/tty", "/dev/tty"
		if runtime.GOOS == "windows" {
			in, out = "CONIN$", "CONOUT$"
		}
		r, err := os.OpenFile(in, os.O_RDONLY, 0)
		if err == nil {
			var w *os.File
			if w, err = os.OpenFile(out, os.O_WRONLY, 0); err == nil {
				t.ask = approval.Terminal(r, w)
				return
			}
			_ = r.Close() // nothing was read
		}
		t.ask = approval.Nobody(t.instead)
	})
	return t.ask.Ask(ctx, q)
}

// isTerminal says whether a person may be at the other end of f.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}
