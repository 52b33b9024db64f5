package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"moltisfs/internal/approval"
	"moltisfs/tools"
)

func approveAll(onWhoseWord string) tools.Approver    { return approval.YesToCode(onWhoseWord) }
func approveNothing(instead ...string) tools.Approver { return approval.Nobody(instead) }

// yesBut approves what does not run code later, and has the other asked about that.
type yesBut struct {
	yes   tools.Approver
	other *terminal
}

func (y yesBut) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if len(q.Code) > 0 {
		return y.other.Ask(ctx, q)
	}
	return y.yes.Ask(ctx, q)
}

// approver says yes with --yes. Else the terminal asks; instead is what helps where there is none.
// A call that an agent may have written takes --yes-exec for what runs code.
func (in *invocation) approver(instead ...string) tools.Approver {
	switch {
	case in.given("yes-exec"):
		return approveAll("--yes-exec")
	case in.given("yes") && slices.Contains([]string{"call", "js run", "js repl"}, in.command.path):
		return yesBut{approval.Yes("--yes"), &terminal{streams: in.streams, instead: instead}}
	case in.given("yes"):
		return approveAll("--yes")
	}
	if in.given("batch") {
		return approval.Remember(&terminal{streams: in.streams, grants: true, instead: instead})
	}
	return &terminal{streams: in.streams, instead: instead}
}

// approveOption is that of every command that carries out the calls of agents.
func approveOption(unless string) option {
	return opt("approve", "HOW", "who approves changes; "+unless+" unless told",
		"elicitation", "editor", "terminal", "queue", "yes", "never", "yes-exec")
}

// approveBy is who approves as --approve says. Who can ask by elicitation does not come here.
func (in *invocation) approveBy(how string) (tools.Approver, error) {
	switch how {
	case "queue":
		q, err := in.queue()
		return q, err
	case "yes":
		return approval.Yes("--approve yes"), nil
	case "yes-exec":
		return approveAll("--approve yes-exec"), nil
	case "never":
		return approveNothing("have the operator start " + in.command.path +
			" with another --approve, such as queue"), nil
	case "terminal":
		return approval.Remember(&terminal{streams: in.streams, grants: true, instead: []string{
			"have the operator start " + in.command.path + " from a terminal",
			"with --approve queue or --approve yes"}}), nil
	}
	return nil, misuse("use terminal, queue, yes, yes-exec or never", "%s can't ask by %s",
		in.command.path, how)
}

// terminal asks on the controlling terminal, wherever standard input and output lead. It is opened
// for the first question; calls that ask nothing need none. Without one, instead says what would
// help.
type terminal struct {
	streams
	grants  bool // more questions may come: a yes can be for them too
	instead []string
	once    sync.Once
	ask     tools.Approver
}

func (t *terminal) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	t.once.Do(func() {
		t.ask = approval.Nobody(t.instead)
		if r, w, err := controlling(); err == nil {
			t.ask = approval.Screen{In: r, Out: w, Ink: t.ink(w), Grants: t.grants,
				Page: func(text string) error { return t.page(w, text) }}.Approver()
		}
	})
	defer t.asideBar()()
	return t.ask.Ask(ctx, q)
}

// controlling opens the controlling terminal.
func controlling() (r, w *os.File, err error) {
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	if r, err = os.OpenFile(in, os.O_RDONLY, 0); err != nil {
		return nil, nil, err
	}
	if w, err = os.OpenFile(out, os.O_WRONLY, 0); err != nil {
		_ = r.Close() // nothing was read
		return nil, nil, err
	}
	return r, w, nil
}

// hasTerminal says whether there is a terminal to ask on.
func hasTerminal() bool {
	r, w, err := controlling()
	if err == nil {
		_, _ = r.Close(), w.Close() // nothing was read or written
	}
	return err == nil
}

// confirmed asks a question on the controlling terminal. Where there is none, and after Ctrl-C, the
// answer is no.
func (in *invocation) confirmed(ctx context.Context, question string) bool {
	r, w, err := controlling()
	if err != nil {
		return false
	}
	defer r.Close()
	defer w.Close()
	if _, err := io.WriteString(w, in.ink(w).Strong(question)+" [y/N] "); err != nil {
		return false
	}
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n')
		typed <- line
	}()
	select {
	case line := <-typed:
		if !strings.HasSuffix(line, "\n") {
			_, _ = io.WriteString(w, "\n") // Ctrl-D; if it fails, the answer stands
		}
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes"
	case <-ctx.Done():
		_, _ = io.WriteString(w, "\n") // if it fails, the answer stands
		return false
	}
}

// isTerminal says whether a person may be at the other end of f.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a service has it as standard input, under that name
	return err != nil || !os.SameFile(info, null)
}
