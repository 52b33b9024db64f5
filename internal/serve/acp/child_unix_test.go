//go:build unix

package acp

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"moltisfs/internal/testdir"
)

// The agent's end is told as it was, whichever way it came, and nothing of the agent stays.
func TestChild(t *testing.T) {
	for _, c := range []struct {
		what, script string
		do           func(*Child)
		out          string
		want         int
		leaves       bool
	}{
		{"it ends", "echo out; echo err >&2; exit 7", func(*Child) {}, "out\n", 7, false},
		{"it is killed", "echo out; kill -9 $$", func(*Child) {}, "out\n", 137, false},
		{"it ends with its input", "cat; exit 3", func(c *Child) { _, _ = io.WriteString(c.In, "said\n"); c.HangUp() }, "said\n", 3, false},
		{"it is told to", "trap 'exit 5' TERM; echo on; while :; do read x; done", func(c *Child) {
			_, _ = io.ReadFull(c, make([]byte, 3))
			c.Signal(syscall.SIGTERM)
		}, "", 5, false},
		{"it will not", "trap '' TERM; echo on; while :; do sleep 1; done", func(c *Child) {
			_, _ = io.ReadFull(c, make([]byte, 3))
			c.HangUp()
		}, "", 137, false},
		{"its child holds its output", "sleep 60 & echo $!; exit 0", func(*Child) {}, "", 0, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			var errs bytes.Buffer
			errOut := io.Writer(&errs)
			if c.leaves {
				errOut = nil
			}
			has := patience{time.Minute, time.Minute, time.Second}
			if c.want == 137 || c.leaves { // all the same how soon
				has = patience{50 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond}
			}
			child, err := start([]string{"sh", "-c", c.script}, errOut, has)
			must(t, err)
			c.do(child)
			out, err := io.ReadAll(child)
			if err != nil || c.out != "" && string(out) != c.out {
				t.Errorf("%q, %v", out, err)
			}
			if got := child.Wait(); got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
			if c.what == "it ends" && errs.String() != "err\n" {
				t.Errorf("standard error: %q", &errs)
			}
			if pid, err := strconv.Atoi(strings.TrimSpace(string(out))); err == nil { // of what it left behind
				testdir.Until(t, "the end of what it started", func() bool {
					state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
					return err != nil || bytes.Contains(state, []byte(") Z"))
				})
			}
		})
	}
	if _, err := Start([]string{"/no/such/agent"}, nil); err == nil {
		t.Error("what is not there was started")
	}
}
