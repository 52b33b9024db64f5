package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	runs "moltisfs/internal/run"
	"moltisfs/tools"
)

// exitNotKept is the exit status where the program was not started, or its changes were not made; env(1) has it so.
const exitNotKept = 125

// windowChange is SIGWINCH, for which Windows has no name.
const windowChange = syscall.Signal(28)

func runCommand() *command {
	return &command{
		name: "run", serves: true, run: runProgram, args: "[OPTIONS] -- COMMAND [ARGUMENT…]", max: 1 << 20,
		short: "run a program, and have what it changes as one change (Linux)",
		long: `The program sees the machine read-only, without network, and without what the policy closes in the
workspace. What it changes in the workspace is kept apart. When it has ended all of that is one
change: judged path by path, asked about with the diff, stored, and taken back by one undo. /tmp is
its own. docs/run.md has what is not promised.

If a path is refused, or the answer is no, nothing is changed, and the run is kept: --resume ID asks
again, or with a COMMAND goes on in it first; --drop ID removes it; status lists them.

Where input and output are a terminal, the program has one of its own, with job control. In a shell
there, "moltis-fs run commit" asks about what was changed until then, and a new shell begins where the
old one was.

Exit status: that of the program; 128 and the signal that ended it; 126 or 127, it can't be run, or is
not there; 125, it was not started, or its changes were not made.`,
		options: options("yes approve json"+onSuite,
			opt("diff", "", "ask nothing, change nothing and keep the run: show what it would change"),
			opt("partial", "", "make the changes that are allowed, although others are not"),
			option{name: "resume", value: "ID", doc: "go on with a run that was kept", ids: keptRuns},
			option{name: "drop", value: "ID", doc: "remove a run that was kept", ids: keptRuns},
			opt("network", "", "let it use the network"),
			many("write", "DIR", "let it write below DIR, as a cache: at once, and outside of the history"),
		),
		examples: []string{
			"moltis-fs run --network -- npm install",
			"moltis-fs run --diff -- sed -i s/old/new/ *.go",
			"moltis-fs run --write ~/.cache -- bash",
		},
		below: []*command{{
			name: "commit", short: "from inside of a run: ask about what was changed until now", run: commitRun,
			long:     "For a shell that moltis-fs run has started on a terminal. It ends, the question is asked, and a new shell begins\nin the same directory. Its variables are gone, so it is refused while other programs run in it.",
			examples: []string{"moltis-fs run commit"},
		}},
	}
}

func runProgram(ctx context.Context, in *invocation) error {
	if id := in.option("drop"); id != "" {
		return in.dropRun(id)
	}
	if len(in.args) == 0 && !in.given("resume") || len(in.args) > 0 && in.args[0] == "" {
		return misuse(seeHelp(in.command), "run needs -- COMMAND [ARGUMENT…], or --resume ID")
	}
	// the program gets what the terminal sends; we go on to ask about what it has changed
	came := make(chan os.Signal, 8)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, windowChange)
	defer signal.Stop(came)
	s, err := in.forCalls(ctx)
	if err != nil {
		return err
	}
	wd, err := os.Getwd()
	if err != nil {
		return closing(s, fmt.Errorf("finding the working directory: %w", err))
	}
	p := tools.Running{Diff: in.given("diff"), Partial: in.given("partial"), Signals: came}
	p.Command = tools.Command{Args: in.args, Dir: wd, Resume: in.option("resume"), Network: in.given("network"), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	for _, dir := range in.all("write") {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return closing(s, fmt.Errorf("finding %s: %w", dir, err))
		}
		p.Write = append(p.Write, abs)
	}
	switch {
	case in.given("json"):
		p.Stdout, p.Stderr = nil, nil // they are in the answer
	case in.given("diff"):
		p.Stdout = os.Stderr
	case isTerminal(os.Stdin) && isTerminal(os.Stdout):
		p.Terminal = true
	}
	as := dialect.Call{Principal: in.option("principal"), Session: in.option("session"), Client: program + " run", ByUser: true}
	a, err := tools.Over(s.e).Run(ctx, as, p)
	for err == nil && p.Terminal && ctx.Err() == nil {
		b, _ := a.(*tools.Bash)
		if r, no := a.(*tools.Refusal); no {
			b, _ = r.Fields.(*tools.Bash)
		}
		if b == nil || b.Left == "" {
			break
		}
		if told := in.tellRun(a); told != nil {
			report(in.err, told)
		}
		p.Dir, p.Resume = b.Left, b.Kept
		a, err = tools.Over(s.e).Run(ctx, as, p)
	}
	if err == nil && in.given("json") {
		err = in.runJSON(a)
	} else if err == nil {
		err = in.tellRun(a)
	}
	_, ended := a.(*tools.Bash) // then it is the program's
	if e, ok := errors.AsType[*exitError](err); ok && e.status == exitRefused && !ended {
		e.status = exitNotKept
	}
	return closing(s, err)
}

// tellRun tells a person what became of a run, and gives the exit status of the program.
func (in *invocation) tellRun(p tools.Payload) error {
	r, no := p.(*tools.Refusal)
	if no {
		r = in.forOperator(r).(*tools.Refusal)
		e := &exitError{status: exitRefused, what: r.Message, hint: aside(r.Hint)}
		if b, ok := r.Fields.(*tools.Bash); ok && b.Told() != "" {
			return &withLines{e, b.Told()}
		}
		return e
	}
	b, ok := p.(*tools.Bash)
	if !ok {
		return in.showPayload(p, "") // of a hook
	}
	if b.Diff != "" {
		if err := in.write([]byte(b.Diff)); err != nil {
			return err
		}
	}
	for line := range strings.Lines(b.Told()) {
		fmt.Fprintf(in.err, "%s: %s\n", program, approval.Escape(strings.TrimRight(line, "\n"), false))
	}
	return &exitError{status: statusOf(b)}
}

// runJSON gives the answer of a run as one JSON object.
func (in *invocation) runJSON(p tools.Payload) error {
	line, err := tools.Encode(p)
	if err != nil {
		return err
	}
	outcome := error(refused)
	if b, ok := p.(*tools.Bash); ok {
		outcome = &exitError{status: statusOf(b)}
	}
	return ending(in.write(append(line, '\n')), outcome)
}

func statusOf(b *tools.Bash) int {
	if b.ExitCode == nil {
		return exitOK
	}
	return *b.ExitCode
}

// dropRun removes a run that was kept.
func (in *invocation) dropRun(id string) error {
	if len(in.args) > 0 {
		return misuse(seeHelp(in.command), "--drop takes no COMMAND")
	}
	dir, err := in.hostData()
	if err != nil {
		return err
	}
	r, err := runs.Open(dir, id)
	if err == nil {
		err = r.Drop()
	}
	if e, ok := errors.AsType[*runs.Error](err); ok {
		return &exitError{status: exitNotKept, what: e.Error(), hint: e.Do}
	}
	return err
}

// commitRun has the run that it is in end and begin anew: it writes where it is, and ends the shell.
func commitRun(context.Context, *invocation) error {
	left := os.Getenv(engine.CommitVariable)
	if left == "" {
		return &exitError{status: exitRefused, what: "this is not in a shell that " + program + " run has started on a terminal",
			hint: "use it in " + program + " run -- bash, without arguments"}
	}
	processes, err := filepath.Glob("/proc/[1-9]*")
	if err == nil && len(processes) > 3 { // process 1, the shell, and this
		return &exitError{status: exitRefused, what: "other programs run in this shell, and would end with it", hint: "end them first; jobs lists them"}
	}
	wd, err := os.Getwd()
	if err == nil {
		err = os.WriteFile(left, []byte(wd), 0o600)
	}
	if err != nil {
		return err
	}
	shell, err := os.FindProcess(os.Getppid())
	return errors.Join(err, shell.Signal(syscall.SIGHUP))
}

// whyNoRun says why programs can't be run over root, and what to change; "" where they can. It tries, and leaves nothing behind.
func whyNoRun(root, data string) (string, error) {
	if root == "" {
		return "no workspace is named: set workspace_root in [tools.fs], or give --root", nil
	}
	for dir := data; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			if data, err = os.MkdirTemp(dir, "probe-"); err != nil {
				return "the data directory can't be written: " + err.Error(), nil
			}
			break
		} else if dir == filepath.Dir(dir) {
			return "", err
		}
	}
	err := runs.Probe(runs.Options{Root: guardfs.Canonical(root), Data: data})
	if e, ok := errors.AsType[*runs.Error](err); ok {
		return strings.TrimSuffix(e.Error()+"; "+e.Do, "; "), os.RemoveAll(data)
	}
	return "", errors.Join(err, os.RemoveAll(data))
}
