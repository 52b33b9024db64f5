package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
)

func jsCommand() *command {
	return &command{
		name: "js", short: "run a script that works on files",
		below: []*command{{
			name: "run", short: "run one script", args: "FILE | -", min: 1, max: 1,
			long: `Runs the JavaScript of FILE, or of standard input, as an ES module with
top-level await, in a process of its own. What its console says comes on standard output; the
exception that ends it, or the limit that it met, on standard error.

There is no network, no process, no require and no import. There is fs, with a policy chain or with
filesystem = true in [tools.js]: each of its calls passes policy, approval, checkpoint and audit as
every other call does.
  --policies-json '{"filesystem": {"policies": []}}'
is a chain without rules: what the configuration and --root close is closed all the same.

With checkpoints, undo takes back all that a run changed. So does checkpoint rewind
--turn with its turn, which --json tells. Relative paths begin at the root.

The exit status is 0 if the script ran to its end, 1 if it threw or met a limit, 2 for misuse, 3
when the host is broken, and 130 after Ctrl-C.`,
			options: options("json yes approve read-only"+onSuite,
				opt("timeout", "SECONDS", "the longest that a run may take, at most what [tools.js] allows (default: 30)"),
				opt("memory", "MB", "the most memory that it may take, at most what [tools.js] allows (default: 64)"),
				opt("turn", "NAME", "the user's prompt that this run belongs to; it groups checkpoints"),
			),
			examples: []string{
				`moltis-fs js run --policies-json '{"filesystem": {"policies": []}}' rename.js`,
				`moltis-fs js run --yes --timeout 120 - < count-lines.js`,
				`echo 'console.log((await fs.readdir(".")).length)' | moltis-fs js run --json -`,
			},
			run: runScript,
		}},
	}
}

// maxScript is how many bytes a script may have.
const maxScript = 16 << 20

func runScript(ctx context.Context, in *invocation) error {
	code, err := in.readArgument(in.arg(0), maxScript)
	if err == nil && !utf8.Valid(code) {
		err = fmt.Errorf("%s is not UTF-8", in.arg(0))
	}
	if err != nil {
		return misuse("", "reading the script: %v", err)
	}
	args := map[string]any{"code": string(code)}
	for option, name := range map[string]string{"timeout": "timeout_secs", "memory": "heap_memory_max_mb"} {
		if v := in.option(option); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return misuse("write a whole number", "--%s can't be %q", option, v)
			}
			args[name] = n
		}
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	in.values["dialect"] = "jsfs"
	s, err := in.forCalls(ctx)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return closing(s, err)
	}
	a, err := s.Call(ctx, dialect.Call{Principal: in.option("principal"), Session: in.option("session"), Turn: in.option("turn"),
		Tool: "run_js", Args: raw, Client: program + " " + in.command.path})
	if err == nil {
		err = in.showRun(a)
	}
	return closing(s, err)
}

// showRun shows the answer of a run: what the script said, and how it ended.
func (in *invocation) showRun(a dialect.Answer) error {
	line, err := a.JSON(true)
	if err != nil {
		return err
	}
	var said struct{ Output, Error, Hint, Turn string }
	if err := json.Unmarshal(line, &said); err != nil {
		return fmt.Errorf("reading the answer of the run: %w", err)
	}
	if in.given("json") {
		return ending(in.write(append(line, '\n')), refusedIf(said.Error != ""))
	}
	if in.terminal() != nil {
		said.Output = approval.Escape(said.Output, true)
	}
	if err := in.write([]byte(said.Output)); err != nil {
		return err
	}
	if said.Turn != "" && in.terminal() != nil {
		fmt.Fprintf(in.err, "%s undo takes back all that it changed\n", program)
	}
	if said.Error == "" {
		return nil
	}
	if said.Hint != "" { // there is no fs
		said.Hint = "give scripts an fs with --policies-json '{\"filesystem\": {\"policies\": []}}', or with " +
			"filesystem = true in [tools.js]"
	}
	return &exitError{status: exitRefused, what: said.Error, hint: said.Hint}
}
