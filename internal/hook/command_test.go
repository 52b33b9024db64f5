//go:build unix

package hook

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"moltisfs/internal/testdir"
)

var must = testdir.Must

// The output of a program is taken if it has one of the forms; any other is its failure.
func TestCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"continue":            {`cat >/dev/null`, "continue"},
		"continue, in words":  {`echo '{"action":"continue"}'`, "continue"},
		"reads nothing":       {`exit 0`, "continue"},
		"modify":              {`echo '{"action":"modify","data":{"a":1}}'`, `modify {"a":1}`},
		"modify with nothing": {`echo '{"action":"modify"}'`, "failed: its action"},
		"block":               {`echo "no secrets" >&2; exit 1`, "block: no secrets"},
		"block, with output":  {`echo '{"action":"continue"}'; exit 1`, "block: no reason was given"},
		"hostile reason":      {`printf '\033[2J\342\200\256evil\377\nsecond\n%5000d' 7 >&2; exit 1`, "block: [2J evil"},
		"other exit":          {`exit 2`, "failed: exit status 2"},
		"killed":              {`kill -9 $$`, "failed: signal: killed"},
		"no JSON":             {`echo continue`, "failed: what it wrote is not one"},
		"two objects":         {`echo '{"action":"continue"}{"action":"continue"}'`, "failed: what it wrote is not one"},
		"unknown field":       {`echo '{"action":"continue","allow":true}'`, "failed: what it wrote is not one"},
		"unknown action":      {`echo '{"action":"block"}'`, "failed: its action \"block\" is none"},
		"not UTF-8":           {`printf '{"action":"continue\377"}'`, "failed: what it wrote is not UTF-8"},
		"endless":             {`yes`, "failed: "},
		"slow":                {`sleep 100`, "failed: it took too long"},
		"slow children":       {`sleep 100 & sleep 100`, "failed: it took too long"},
		"leaves a child":      {`sleep 3 & exit 0`, "failed: "},
		"knows the event":     {`grep -q '"event":"BeforeToolCall","call_id":"c1"' && exit 1`, "block: no reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "check")
			writeScript(t, path, c.script)
			command, err := ParseCommand(path + " one two")
			must(t, err)
			s := Set{Before: []Before{command}, Timeout: 5 * time.Second}
			if strings.HasPrefix(name, "slow") {
				s.Timeout = 300 * time.Millisecond
			}
			in := BeforeToolCall{Info: Info{CallID: "c1"}, Arguments: json.RawMessage(`{}`)}
			args, notes, err := s.RunBefore(t.Context(), in, func(raw json.RawMessage) (json.RawMessage, error) { return raw, nil })
			got := "continue"
			no, _ := err.(*Error)
			switch {
			case no != nil && no.Err != nil:
				got = "failed: " + no.Err.Error()
			case no != nil:
				got = "block: " + no.Reason
			case string(args) != "{}":
				got = "modify " + string(args)
			}
			if !strings.HasPrefix(got, c.want) || (got == "continue") != (len(notes) == 0) {
				t.Errorf("%q, noted %q; want %q", got, notes, c.want)
			}
			if len(got) > maxReason+50 || strings.ContainsFunc(got, unicode.IsControl) {
				t.Errorf("told without bounds: %q", got)
			}
			s.Allow = true
			if _, _, err := s.RunBefore(t.Context(), in, func(raw json.RawMessage) (json.RawMessage, error) { return raw, nil }); (err != nil) != (no != nil && no.Err == nil) {
				t.Errorf("with Allow: %v", err)
			}
		})
	}
}

// writeScript makes a program of a shell script. While it is open for writing nothing else here may fork: a child would hold it open, and
// the kernel runs no program that is open for writing (ETXTBSY).
func writeScript(t *testing.T, path, script string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

func TestParseCommand(t *testing.T) {
	for line, ok := range map[string]bool{"": false, "  ": false, "check": false, "./check": false, "/opt/check -s": true} {
		if _, err := ParseCommand(line); (err == nil) != ok {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// A program that was to be killed is gone with all that it started: its child has the FIFO open for as
// long as it lives.
func TestCommandIsKilledWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, fifo := filepath.Join(dir, "check"), filepath.Join(dir, "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	writeScript(t, path, "sleep 100 >"+fifo+" &\nwait")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- (Command{Path: path}).AfterToolCall(ctx, AfterToolCall{}) }()
	alive, err := os.Open(fifo) // when the child has it
	must(t, err)
	defer alive.Close()
	cancel()
	if err := <-ended; err == nil {
		t.Error("a program that was killed has no error")
	}
	must(t, alive.SetReadDeadline(time.Now().Add(20*time.Second)))
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Error("a child went on:", err)
	}
}
