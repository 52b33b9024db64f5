package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

func callCommand() *command {
	var names []string
	for _, d := range tools.Definitions() {
		names = append(names, d.Name)
	}
	return &command{
		name:  "call",
		short: "make one call, or with --batch many",
		long: `Calls TOOL with the arguments in JSON, {} unless told; "-" reads them from standard
input. "moltis-fs help TOOL" explains them. Relative paths are taken from the working directory.

On a terminal, and with --text, the answer is text, and a refusal is told on standard error.
Elsewhere, and with --json, it is the payload as one line of JSON. Approvals are asked on the
terminal, or with --approve queue answered from elsewhere, as by moltis-fs approvals; --yes answers
them with yes, but for what runs code later; --yes-exec answers that too.

The exit status is 0 for a success, 1 for a refusal, 2 for an unknown tool and other misuse, 3 when
the host is broken, and 130 after Ctrl-C.

With --batch, standard input holds one call a line:
  {"id": 1, "tool": "Read", "args": {"file_path": "/etc/hostname"}}
"session", "principal" and "turn" may be given too. Each line is answered at once, in order:
  {"id": 1, "result": {"kind": "text", ...}}
A line that can't be carried out is answered by an error, and the next one is read:
  {"id": 1, "error": {"code": "unknown_tool", "message": "...", "hint": "..."}}
with the code bad_line, unknown_tool or host_error. The exit status is that of the worst line.`,
		args: "TOOL [JSON | -]", min: 0, max: 2, values: names,
		options: suiteOptions(
			opt("yes", "", "approve every change of this run, but not of what runs code later"),
			opt("yes-exec", "", "approve that, too"),
			approveOption("terminal"),
			opt("text", "", "answer as text for people; the default on a terminal"),
			opt("json", "", "answer as one line of JSON; the default elsewhere"),
			opt("batch", "", "read calls from standard input, one a line"),
			opt("turn", "NAME", "the user's prompt that this call belongs to; it groups checkpoints"),
			dialectOption(), readOnlyOption(),
		),
		examples: []string{
			`moltis-fs call --root / Read '{"file_path": "/etc/hostname"}'`,
			`moltis-fs call Grep '{"pattern": "TODO"}'`,
			`moltis-fs call --yes Write - < arguments.json`,
			`moltis-fs call --batch --session s1 < calls.jsonl > answers.jsonl`,
		},
		run: runCall,
	}
}

// maxArguments is how many bytes the arguments of a call, or a line of a batch, may have.
const maxArguments = 64 << 20

func runCall(ctx context.Context, in *invocation) error {
	batch := in.given("batch")
	switch {
	case batch && len(in.args) > 0:
		return misuse("the calls come from standard input", "--batch takes no %s", in.command.args)
	case !batch && len(in.args) == 0:
		return misuse(seeHelp(in.command), "call needs a tool")
	case in.given("text") && (in.given("json") || batch):
		return misuse(seeHelp(in.command), "--text goes with neither --json nor --batch")
	}
	args := []byte(in.arg(1))
	switch in.arg(1) {
	case "":
		args = []byte("{}")
	case "-":
		var err error
		if args, err = io.ReadAll(io.LimitReader(in.in, maxArguments+1)); err != nil {
			return fmt.Errorf("reading the arguments: %w", err)
		}
		if len(args) > maxArguments {
			return misuse("send less at once", "the arguments are longer than %d MiB", maxArguments>>20)
		}
	}
	if !batch {
		debug.SetGCPercent(200) // a process of one call: half of the collections, and a few MB more
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	s, err := in.forCalls(ctx)
	if err != nil {
		return err
	}
	base := dialect.Call{Principal: in.option("principal"), Session: in.option("session"),
		Turn: in.option("turn"), Client: program + " call"}
	if batch {
		err = runBatch(ctx, in, s, base)
	} else {
		base.Tool, base.Args = in.arg(0), args
		if here := s.directory(base); takesPaths(base.Tool) && here != "" {
			base.Args = absoluteArgs(args, here,
				searches(base.Tool) && s.cfg.Tools.FS.WorkspaceRoot == "")
		}
		err = callOnce(ctx, in, s, base)
	}
	return closing(s, err)
}

// forCalls opens what the calls of this command line are made on.
func (in *invocation) forCalls(ctx context.Context) (s *stand, err error) {
	if (in.given("yes") || in.given("yes-exec")) && in.given("approve") {
		return nil, misuse(seeHelp(in.command), "--yes and --approve both say who approves")
	}
	approver := in.approver("run it with --yes", "run it in a terminal",
		"run it with --approve queue", "set require_approval = false in [tools.fs]")
	if how := in.option("approve"); how != "" {
		if approver, err = in.approveBy(how); err != nil {
			return nil, err
		}
	}
	if err := in.implyRoot(); err != nil {
		return nil, err
	}
	s, err = in.opens(ctx, approver, nil, func(_ *config.Config, o *tools.Options) { o.Program.Name = in.programName() })
	if err == nil && in.implied {
		in.tellOpen(s.cfg)
	}
	return s, err
}

func callOnce(ctx context.Context, in *invocation, d dialect.Dialect, c dialect.Call) error {
	done := in.working()
	a, err := d.Call(ctx, c)
	done()
	if u, ok := errors.AsType[*dialect.UnknownToolError](err); ok {
		return misuse(unknownToolHint(u, d), "there is no tool %q", u.Tool)
	}
	if err != nil {
		return err
	}
	if in.asText() {
		return in.showAnswer(a)
	}
	line, err := a.JSON(true)
	if err != nil {
		return err
	}
	return ending(in.write(append(line, '\n')), refusedIf(a.Refused()))
}

func unknownToolHint(u *dialect.UnknownToolError, d dialect.Dialect) string {
	if u.Nearest != "" {
		return "did you mean " + u.Nearest + "?"
	}
	var names []string
	for _, def := range d.Definitions() {
		names = append(names, def.Name)
	}
	return "the tools are " + strings.Join(names, ", ")
}
