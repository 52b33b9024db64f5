// Command moltis-fs is one guarded filesystem for LLM agents: it serves the tools over MCP, makes
// single calls and batches of them, and looks after configuration and checkpoints.
//
// The manners, for every subcommand:
//
//   - Standard output is for answers and nothing else. For programs a call answers one JSON object a
//     line, a refusal too. People get text, and refusals on standard error.
//   - Everything else goes to standard error as "moltis-fs: what is so", and "hint: the next move"
//     where there is one. No capitals at the start, no periods at the end.
//   - The exit status is 0 for a success, 1 for a refusal (the answer says which), 2 for misuse and
//     3 when the host is broken, 130 after Ctrl-C. If the reader of the answer goes away, the status says it alone.
//   - A misspelt command, option or tool is told its nearest neighbour.
//   - Of the environment, it reads MOLTIS_CONFIG, MOLTIS_DATA_DIR, XDG_CONFIG_HOME and the home
//     directory, and where it writes to a terminal NO_COLOR and TERM.
//   - SIGINT and SIGTERM let the call under way end, unchanged or complete. A second one kills.
//
// [commands] is the one table that help and completions derive from.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/tty"
	"moltisfs/readers"
	"moltisfs/tools"
)

const program = "moltis-fs"

// The exit statuses.
const (
	exitOK      = 0
	exitRefused = 1 // the answer is a refusal, or a configuration that was checked has problems
	exitMisuse  = 2 // the command line, the configuration or the data directory can't be used
	exitBroken  = 3 // the host is broken
	exitCtrlC   = 130
)

// streams is what a subcommand has of the world besides the files it is told to open.
type streams struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
}

func main() {
	// the write fails instead; no change ends half-way, and the exit status stays true
	signal.Ignore(syscall.SIGPIPE)
	limitMemory(os.Getenv)
	os.Exit(run(os.Args[1:], streams{os.Stdin, shownOn(os.Stdout), os.Stderr, os.Getenv}))
}

// limitMemory has garbage collection work to stay below [config.Memory], unless GOMEMLIMIT says
// something else.
func limitMemory(env func(string) string) {
	if env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(config.Memory)
	}
}

// run carries out one command line and returns the exit status. What Ctrl-C kept from succeeding
// ends with the status that stops a shell's loop.
func run(args []string, s streams) int {
	if tty.LeadsNowhere(os.Stdout) {
		fmt.Fprintf(s.err, "%s: standard output is closed; the answer is lost\n"+
			"hint: the status is that of the call; with >/dev/null nobody is told\n", program)
	}
	var interrupted atomic.Bool
	status := runLine(context.WithValue(context.Background(), ctrlC{}, &interrupted), args, s)
	if status != exitOK && interrupted.Load() {
		return exitCtrlC
	}
	return status
}

// ctrlC is the key under which a context has the *atomic.Bool that Ctrl-C sets.
type ctrlC struct{}

func runLine(ctx context.Context, args []string, s streams) int {
	if len(args) == 0 {
		root := tree(commands(), s, func(*invocation) {})
		root.SetOut(s.err)
		_ = root.Help()
		return exitMisuse
	}
	in, err := parse(args, s)
	if err == nil && in == nil {
		return exitOK // help or completions were written
	}
	if err == nil {
		err = in.command.run(ctx, in)
	} else {
		in = &invocation{streams: s}
	}
	if readerWentAway(err) { // from a success: see ending
		return exitOK // whoever has seen enough, as head has, wants to hear no more
	}
	if err != nil && asksJSON(args) {
		return reportJSON(in, err)
	}
	return report(s.err, err)
}

// asksJSON says whether the command line, which need not be a right one, asks for the answer in
// JSON of a command whose answers are payloads.
func asksJSON(args []string) bool {
	i := slices.IndexFunc(commands(), func(c *command) bool { return c.name == args[0] })
	if i < 0 || !commands()[i].payload {
		return false
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "-json")
}

// exitError ends the program with a status; what and hint, where given, are shown first.
type exitError struct {
	status     int
	what, hint string
	kind       string // of the refusal in JSON; "" is that of the status
}

func (e *exitError) Error() string { return e.what }

// withLines has lines that follow on what is so, for people.
type withLines struct {
	*exitError
	lines string
}

func (e *withLines) Unwrap() error { return e.exitError }

func misuse(hint, format string, args ...any) error {
	return &exitError{status: exitMisuse, what: fmt.Sprintf(format, args...), hint: hint}
}

// refused ends with status 1 after the answer has been given.
var refused = &exitError{status: exitRefused}

func refusedIf(yes bool) error {
	if yes {
		return refused
	}
	return nil
}

// reportJSON gives what went wrong in the form of the tools' refusals, as the answer.
func reportJSON(in *invocation, err error) int {
	e := exitOf(err)
	if e.what == "" {
		return e.status // the answer was given
	}
	kind := e.kind
	switch {
	case kind != "":
	case e.status == exitBroken:
		kind = "host_error"
	default:
		kind = tools.KindBadRequest
	}
	if werr := writeJSON(in, struct {
		Kind  string `json:"kind"`
		Error string `json:"error"`
		Hint  string `json:"hint,omitempty"`
	}{kind, e.what, e.hint}); werr != nil && !readerWentAway(werr) {
		return report(in.err, werr)
	}
	return e.status
}

// exitOf is err as it ends the program.
func exitOf(err error) *exitError {
	e, ok := errors.AsType[*exitError](err)
	if !ok {
		e = &exitError{status: exitBroken, what: err.Error()}
		if h, ok := errors.AsType[interface {
			error
			Hint() string
		}](err); ok {
			e.hint = h.Hint()
		}
	}
	return e
}

// report says on standard error what went wrong.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	e := exitOf(err)
	if e.what != "" {
		for line := range strings.SplitSeq(e.what, "\n") {
			fmt.Fprintf(w, "%s: %s\n", program, approval.Escape(line, false))
		}
	}
	if with, ok := errors.AsType[*withLines](err); ok {
		fmt.Fprintln(w, approval.Escape(strings.TrimRight(with.lines, "\n"), true))
	}
	if e.hint != "" {
		fmt.Fprintf(w, "hint: %s\n", approval.Escape(e.hint, false))
	}
	return e.status
}

// readerWentAway says that err is that of writing an answer to somebody who had seen enough.
func readerWentAway(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Path == os.Stdout.Name() && errors.Is(e, syscall.EPIPE)
}

// ending is how a command ends whose answer was written: with its outcome, which holds too where
// the reader of the answer went away. An answer that could not be written otherwise is the host's
// fault.
func ending(written, outcome error) error {
	if written == nil || outcome != nil && readerWentAway(written) {
		return outcome
	}
	return written
}

// closing closes what a command worked on. An error of that counts where there was no other.
func closing(c io.Closer, err error) error {
	cerr := c.Close()
	if cerr == nil || err != nil && err != refused && !readerWentAway(err) {
		return err
	}
	return fmt.Errorf("closing: %w", cerr)
}

// untilSignal is a context that ends with the first SIGINT or SIGTERM. The next one kills.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	came := make(chan os.Signal, 1)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case sig := <-came:
			if b, ok := ctx.Value(ctrlC{}).(*atomic.Bool); ok && sig == os.Interrupt {
				b.Store(true)
			}
			signal.Stop(came)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(came); cancel() }
}

func versionCommand() *command {
	return &command{
		name: "version", short: "say which version this is",
		options:  options("json"),
		examples: []string{"moltis-fs version", "moltis-fs version --json"},
		run:      writeVersion,
	}
}

// build is what the program knows of how it was made.
type build struct {
	Version  string `json:"version"`            // "(devel)" when it was built from a working tree
	Revision string `json:"revision,omitempty"` // of the source
	Time     string `json:"time,omitempty"`     // of that revision, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the source had changes that are in no revision
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func writeVersion(_ context.Context, in *invocation) error {
	b := readBuild()
	return in.answer(b, "%s %s %s %s/%s\n", program, b.Version, b.Go, b.OS, b.Arch)
}

// workerCommand reads files whose reader may crash or run away. We start it; it bounds itself.
func workerCommand() *command {
	return &command{
		name: "reader-worker", hidden: true, short: "read one file in a process of its own",
		run: func(_ context.Context, in *invocation) error { return readers.RunWorker(in.in, in.out) },
	}
}
