package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"unicode/utf8"

	"moltisfs/internal/approval"
	"moltisfs/internal/confine"
	"moltisfs/internal/dialect"
	"moltisfs/internal/js"
)

func jsCommand() *command {
	return &command{
		name: "js", short: "run scripts that work on files", payload: true,
		below: []*command{jsRunCommand()},
	}
}

func jsRunCommand() *command {
	return &command{
		name: "run", short: "run one script", args: "FILE | -", min: 1, max: 1,
		long: `Runs the JavaScript of FILE, or of standard input, as an ES module with
top-level await, in a process of its own. What its console says comes on standard output; the
exception that ends it, or the limit that it met, on standard error.

There is no network, no process, no require and no import. There is fs, with a policy chain or with
filesystem = true in [tools.js]: each of its calls passes policy, approval, checkpoint and audit as
every other call does.
  --policies-json '{"filesystem": {"policies": []}}'
is a chain without rules: what the configuration and --root close is closed all the same.

With checkpoints, checkpoint undo takes back all that a run changed. So does checkpoint rewind
--turn with its turn, which --json tells. Relative paths begin at the root.

The exit status is 0 if the script ran to its end, 1 if it threw or met a limit, 2 for misuse, 3
when the host is broken, and 130 after Ctrl-C.`,
		options: options("json yes approve read-only"+onSuite,
			opt("timeout", "SECONDS", "how long a run may take; 30 unless told, and at most what [tools.js] says"),
			opt("memory", "MB", "how much memory it may take; 64 unless told, and at most what [tools.js] says"),
			opt("turn", "NAME", "the user's prompt that this run belongs to; it groups checkpoints"),
		),
		examples: []string{
			`moltis-fs js run --policies-json '{"filesystem": {"policies": []}}' rename.js`,
			`moltis-fs js run --yes --timeout 120 - < count-lines.js`,
			`echo 'console.log((await fs.readdir(".")).length)' | moltis-fs js run --json -`,
		},
		run: runScript,
	}
}

// maxScript is how many bytes a script may have.
const maxScript = 16 << 20

func runScript(ctx context.Context, in *invocation) error {
	code, err := in.script(in.arg(0))
	if err != nil {
		return err
	}
	return in.running(ctx, func(ctx context.Context, d dialect.Dialect, c dialect.Call) error {
		return in.runJS(ctx, d, c, code)
	})
}

// script is the text of a script that the command line names.
func (in *invocation) script(name string) (string, error) {
	from, what := in.in, "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", misuse("", "reading the script: %v", err)
		}
		defer f.Close() //nolint:errcheck // it was read
		from, what = f, name
	}
	b, err := io.ReadAll(io.LimitReader(from, maxScript+1))
	if err != nil {
		return "", misuse("", "reading the script from %s: %v", what, err)
	}
	if len(b) > maxScript {
		return "", misuse("", "the script is longer than %d MiB", maxScript>>20)
	}
	if !utf8.Valid(b) {
		return "", misuse("", "the script in %s is not UTF-8", what)
	}
	return string(b), nil
}

// running opens what scripts run on.
func (in *invocation) running(ctx context.Context,
	run func(context.Context, dialect.Dialect, dialect.Call) error) error {
	for _, name := range []string{"timeout", "memory"} {
		if v := in.option(name); v != "" {
			if n, err := strconv.Atoi(v); err != nil || n < 1 {
				return misuse("write a whole number", "--%s can't be %q", name, v)
			}
		}
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	in.values["dialect"] = "jsfs"
	s, err := in.forCalls(ctx)
	if err != nil {
		return err
	}
	return closing(s, run(ctx, s, dialect.Call{Principal: in.option("principal"),
		Session: in.option("session"), Turn: in.option("turn"), Tool: "run_js",
		Client: program + " " + in.command.path}))
}

// runJS runs one script and shows what came of it.
func (in *invocation) runJS(ctx context.Context, d dialect.Dialect, c dialect.Call, code string) error {
	args := map[string]any{"code": code}
	for option, name := range map[string]string{"timeout": "timeout_secs", "memory": "heap_memory_max_mb"} {
		if n, err := strconv.Atoi(in.option(option)); err == nil {
			args[name] = n
		}
	}
	var err error
	if c.Args, err = json.Marshal(args); err != nil {
		return err
	}
	a, err := d.Call(ctx, c)
	if err != nil {
		return err
	}
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
		fmt.Fprintf(in.err, "%s checkpoint undo takes back all that it changed\n", program)
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

// jsWorkerCommand runs one script. We start it; it bounds itself, and the kernel keeps it from
// every file and every connection where it can.
func jsWorkerCommand() *command {
	return &command{
		name: "js-worker", hidden: true, short: "run one script in a process of its own",
		run: func(_ context.Context, in *invocation) error {
			if confine.ABI() > 0 {
				if err := confine.Restrict(nil, false, nil); err != nil {
					return err
				}
			}
			return js.Work(in.in, in.out)
		},
	}
}

// jsProgram is the command that runs it.
func jsProgram() (js.Program, error) {
	self, err := ownProgram()
	return js.Program{self, jsWorkerCommand().name}, err
}
