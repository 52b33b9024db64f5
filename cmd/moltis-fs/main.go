// Command moltis-fs is one guarded filesystem for LLM agents: it serves the tools over MCP, makes
// single calls, and looks after configuration and checkpoints.
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
// [commands] is the one table that help, manual pages and completions derive from.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/js"
	"moltisfs/internal/landlock"
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

// streams are the input, the outputs and the environment of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
}

func main() {
	// the write fails instead; no change ends half-way, and the exit status stays true
	signal.Ignore(syscall.SIGPIPE)
	limitMemory(os.Getenv)
	os.Exit(run(os.Args[1:], streams{os.Stdin, shownOn(os.Stdout), shownErr(os.Stderr), os.Getenv}))
}

// limitMemory has garbage collection work to stay below [config.Memory], unless GOMEMLIMIT says
// something else.
func limitMemory(env func(string) string) {
	if env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(config.Memory)
	}
}

// run carries out the command line args and returns the exit status: 130 where Ctrl-C kept it from
// succeeding, which stops a shell's loop.
func run(args []string, s streams) int {
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
		var spare []byte
		if in.command.serves {
			// It takes no memory, for nothing is written there, and counts as live: a small heap is collected a third as often, a large one as ever.
			// debug.SetGCPercent(400) would say that more plainly. It takes 8 % more processor time for a Read, and a large heap grows to five times
			// the size of what is in it.
			spare = make([]byte, 16<<20)
		} else {
			atWork.begin(in.command.path)
		}
		err = in.joined.leave(in.command.run(ctx, in))
		runtime.KeepAlive(spare)
		atWork.end()
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

// asksJSON says whether the command line, which need not be a right one, asks for the answer in JSON.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
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

// exitOf makes of err the error that ends the program: 3, a broken host, unless it says otherwise.
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

// ending gives the error of a command after it wrote its answer: its outcome, which holds too where
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
		name: "version", short: "print the version",
		options:  options("json"),
		examples: []string{"moltis-fs version", "moltis-fs version --json"},
		run: func(_ context.Context, in *invocation) error {
			b := readBuild()
			made := strings.TrimSpace(fmt.Sprintf("%.12s %s", b.Revision, b.Time))
			return in.answer(b, "%s %s (%s) %s %s/%s\n", program, b.Version, cmp.Or(made, "of no commit"), b.Go, b.OS, b.Arch)
		},
	}
}

// build describes the build of this program.
type build struct {
	Version  string `json:"version"`            // "(devel)" when it was built from a working tree
	Revision string `json:"revision,omitempty"` // of the source
	Time     string `json:"time,omitempty"`     // of that revision, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the source had changes that are in no revision
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// release is the version of a release, which its build sets; "" for any other build.
var release string

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(release, info.Main.Version, b.Version)
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

// workerCommand reads files whose reader may crash or run away. We start it; it bounds itself.
func workerCommand() *command {
	return &command{
		name: "reader-worker", hidden: true, short: "read one file in a process of its own",
		run: func(_ context.Context, in *invocation) error { return readers.RunWorker(in.in, in.out) },
	}
}

// A command is one row of the table. Parsing, help, man pages and completions derive from it.
type command struct {
	name     string
	short    string                                      // one line, no period
	records  string                                      // what the audit log calls it; "": it is not on record
	long     string                                      // paragraphs
	args     string                                      // the positional arguments as help shows them
	min, max int                                         // how many there may be
	ids      func(context.Context, *invocation) []string // what the arguments may name, for completions; nil: files
	options  []option
	examples []string
	below    []*command // without run one of them is needed: see listing
	hidden   bool
	creates  bool // it makes the data directory and the store where there is none
	serves   bool // it goes on until it is stopped, or has the terminal for a program
	run      func(context.Context, *invocation) error

	path string // with the names above, filled by the table
}

// An option is written --name VALUE or --name=VALUE, a switch --name, anywhere on the line.
type option struct {
	name  string
	value string   // what help calls the value; "" for a switch
	words []string // the only values taken; nil for any
	doc   string
	many  bool                                        // it may be given more than once
	ids   func(context.Context, *invocation) []string // what it may name, for completions
}

// opt is a row of a command's options. words, if any, are the only values taken.
func opt(name, value, doc string, words ...string) option {
	return option{name: name, value: value, words: words, doc: doc}
}

// many is an option that may be given more than once; [invocation.all] has its values.
func many(name, value, doc string) option {
	return option{name: name, value: value, doc: doc + "; may be given more than once", many: true}
}

// shared are the options that several commands take. Each has one name and one meaning everywhere.
var shared = []option{
	opt("json", "", "answer in JSON"),
	opt("config", "FILE", "the configuration (default: $MOLTIS_CONFIG, else "+
		"~/.config/moltis-fs/moltis.toml, else built-in defaults)"),
	opt("data-dir", "DIR", "where the history, the audit log and locks are (default: $MOLTIS_DATA_DIR, else ~/.moltis-fs)"),
	opt("root", "DIR", "the workspace root; nothing outside can be touched, whatever the configuration allows"),
	opt("principal", "NAME", "who calls, or whose history it is (default for calls: local)"),
	{name: "session", value: "NAME", doc: "the session, which has its own reads, checkpoints and trash", ids: sessionsOf},
	opt("sandbox", "NAME", "the sandbox: its name as in answers and records, or one of its sessions"),
	opt("policies-json", "JSON|FILE", "the policy chain, in place of tools.fs.policies: "+
		policiesForm+", or a file with that"),
	opt("dialect", "NAMES", "the sets of tools to offer, separated by commas: "+dialectNames()+" (default: tools)"),
	opt("read-only", "", "offer nothing that changes files, whatever the configuration says"),
	opt("tool-prefix", "PREFIX", "what the names of the tools begin with, for clients that mix them with their own: files_ makes files_Read of Read"),
	opt("approve", "HOW", "who approves changes (default: the client for mcp, the editor for acp, the terminal for "+
		"call, the queue for serve)", "elicitation", "editor", "terminal", "queue", "yes", "never", "yes-exec"),
	opt("yes", "", "do it without asking; for a call it does not cover files that run code later"),
	opt("dry-run", "", "change nothing, and show what would be done"),
	opt("identity", "FILE", "the age identity that decrypts the contents"),
	opt("contains", "TEXT", "only paths that contain this, in any letter case"),
	opt("since", "TIME", "only from this time on"), opt("until", "TIME", "only before this time"),
	opt("limit", "N", "at most N, up to 1000 (default: 20)"), opt("cursor", "ID", "go on after this one"),
}

// The shared options of commands that open the suite, and of those that work on the store itself.
const (
	onSuite = " config policies-json data-dir root principal session"
	onStore = " json config data-dir sandbox"
)

// options are a command's own, and then the shared ones of these names, with blanks between them.
func options(names string, own ...option) []option {
	for name := range strings.FieldsSeq(names) {
		i := slices.IndexFunc(shared, func(o option) bool { return o.name == name })
		own = append(own, shared[i])
	}
	return own
}

// commands is the table, in the order of help.
func commands() []*command {
	all := slices.Concat(daily(), entries(), others())
	for _, c := range all {
		c.path = c.name
		for _, b := range c.below {
			b.path = c.name + " " + b.name
		}
	}
	return all
}

// daily are the words of the day.
func daily() []*command {
	return []*command{
		initCommand(), statusCommand(), logCommand(), diffCommand(), walkCommand("undo", "undo a session's newest change"),
		walkCommand("redo", "undo a session's newest undo"), restoreCommand(), runCommand(), approveCommand("approve"), trashCommand(), auditCommand(),
	}
}

// entries are the ways in which agents call.
func entries() []*command {
	return []*command{mcpCommand(), serveCommand(), consoleCommand(), acpCommand(), callCommand(), jsCommand()}
}

// others look after what the program keeps, and tell of it; the last ones are for the program alone.
func others() []*command {
	return []*command{
		checkpointCommand(), storeCommand(), approvalsCommand(), tokenCommand(), configCommand(), policyCommand(), toolsCommand(),
		doctorCommand(), versionCommand(), manCommand(),
		workerCommand(), jsWorkerCommand(), sandboxWorkerCommand(), relayCommand(),
	}
}

// invocation is a command line that fits its command.
type invocation struct {
	streams
	command  *command
	args     []string
	values   map[string]string // of the options given; "true" for a switch
	sessions *sessionState     // nil: nothing lives longer than a call
	implied  bool              // --root is the working directory, and nobody gave it
	serving  *reloadable       // what a server has; nil: it is none, or not open yet
	remote   *remote           // who sent it to a server as a method; nil: a person at the command line
	joined   *joined
	shipping *checkpoint.Shipper // of the store that is open; nil: it is not copied to a fleet
}

func (in *invocation) option(name string) string { return in.values[name] }
func (in *invocation) given(name string) bool    { _, ok := in.values[name]; return ok }

// all are the values of an option that may be given more than once; none holds a NUL.
func (in *invocation) all(name string) []string {
	if !in.given(name) {
		return nil
	}
	return strings.Split(in.values[name], "\x00")
}

// arg is the i-th positional argument, "" when it was not given.
func (in *invocation) arg(i int) string {
	if i < len(in.args) {
		return in.args[i]
	}
	return ""
}

// parse finds the command and checks the line against it. The invocation is nil when the line
// asked for help or completions, which have been written then.
func parse(args []string, s streams) (in *invocation, err error) {
	args = slices.Clone(args)
	if near := nearestOption(args[0]); near != "" {
		return nil, misuse("did you mean "+near+"?", "there is no option %s, and a command comes first", args[0])
	}
	switch args[0] {
	case "-v", "-V", "--version":
		args[0] = "version"
	}
	root := tree(commands(), s, func(found *invocation) { in = found })
	root.SetArgs(listing(args))
	err = root.Execute()
	return in, err
}

// listing gives the words of a line with the first command of a group where the line names the group and options alone: trash --json is
// trash list --json. A first command that needs arguments is not meant so.
func listing(words []string) []string {
	for _, c := range commands() {
		names := []string{"-h", "--help", "help"}
		for _, b := range c.below {
			names = append(names, b.name)
		}
		if c.name == words[0] && c.run == nil && c.below[0].min == 0 && (len(words) == 1 || strings.HasPrefix(words[1], "-")) &&
			!slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(names, w) }) {
			return slices.Insert(words, 1, c.below[0].name)
		}
	}
	return words
}

// nearestOption gives the option that a misspelt first word means, as --version for --verison; "" for any other word.
func nearestOption(word string) string {
	own := []string{"--version", "--help", "-v", "-V", "-h"}
	if !strings.HasPrefix(word, "-") || slices.Contains(own, word) {
		return ""
	}
	return args.Nearest(word, own[:2])
}

func seeHelp(c *command) string { return "see " + program + " help " + c.path }

// tree is the table as cobra has it. found hears of the line that fits.
func tree(table []*command, s streams, found func(*invocation)) *cobra.Command {
	root := group(&command{name: program, below: table}, s, found)
	root.Short, root.Long = "one guarded filesystem for LLM agents", overview
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), helpText(c)) })
	root.SetFlagErrorFunc(func(cc *cobra.Command, err error) error { return optionError(cc, err) })
	unsorted()
	return root
}

// unsorted has help list the commands in the order of the table. The switch is one for all trees.
var unsorted = sync.OnceFunc(func() { cobra.EnableCommandSorting = false })

// group is a command that needs one of those below it.
func group(c *command, s streams, found func(*invocation)) *cobra.Command {
	cc := &cobra.Command{
		Use: c.name, Short: c.short, SilenceErrors: true, SilenceUsage: true,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		Args:               cobra.ArbitraryArgs,
	}
	var names []string
	for _, b := range c.below {
		if !b.hidden {
			names = append(names, b.name)
		}
		if b.run == nil {
			cc.AddCommand(group(b, s, found))
		} else {
			cc.AddCommand(leaf(b, s, found))
		}
	}
	kind, list := strings.TrimSpace(c.path+" command"), strings.Join(names, ", ")
	cc.RunE = func(_ *cobra.Command, given []string) error {
		switch {
		case len(given) > 0:
			return misuse(cmp.Or(meant(given[0], names), "the "+kind+"s are "+list), "there is no %s %q", kind, given[0])
		case c.path == "":
			return misuse("see "+program+" help", "a command comes first")
		}
		return misuse(seeHelp(c), "%s needs one of %s", c.path, list)
	}
	return cc
}

// meant gives the hint for a word that is no command: the nearest of the names, a command of that name in a group, or a tool.
func meant(word string, names []string) string {
	if near := args.Nearest(word, names); near != "" {
		return "did you mean " + near + "?"
	}
	for _, c := range commands() {
		for _, b := range c.below {
			if b.name == word && !b.hidden {
				return "did you mean " + program + " " + b.path + "?"
			}
		}
	}
	_, err := definition(word, tools.Definitions())
	if err == nil {
		return "did you mean " + program + " call " + word + "?"
	}
	if hint := exitOf(err).hint; strings.HasPrefix(hint, "did you mean") {
		return hint
	}
	return ""
}

// leaf is a command that runs.
func leaf(c *command, s streams, found func(*invocation)) *cobra.Command {
	in := &invocation{streams: s, command: c, values: map[string]string{}, joined: &joined{}}
	cc := &cobra.Command{
		Use: strings.TrimSpace(c.name + " " + c.args), Short: c.short, Long: c.long,
		Example: "  " + strings.Join(c.examples, "\n  "), Hidden: c.hidden,
		SilenceErrors: true, SilenceUsage: true,
		DisableFlagsInUseLine: len(c.options) == 0 || strings.HasPrefix(c.args, "[OPTIONS]"),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) < c.min:
				return misuse(seeHelp(c), "%s needs %s", c.path, c.args)
			case len(args) > c.max && c.max == 0 && c.below != nil:
				return misuse(cmp.Or(meant(args[0], []string{c.below[0].name}), seeHelp(c)), "there is no %s command %q", c.path, args[0])
			case len(args) > c.max && c.max == 0:
				return misuse(seeHelp(c), "%s takes no arguments, and got %q", c.path, args[0])
			case len(args) > c.max:
				return misuse(seeHelp(c), "%s takes %s, and got %q besides", c.path, c.args, args[c.max])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			in.args = args
			found(in)
			return nil
		},
	}
	completes := func(ids func(context.Context, *invocation) []string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ids(context.Background(), in.unrecorded()), cobra.ShellCompDirectiveNoFileComp
		}
	}
	if c.ids != nil {
		cc.ValidArgsFunction = func(cc *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
			if c.name == "call" && len(given) > 0 { // what follows the tool may be a file
				return nil, cobra.ShellCompDirectiveDefault
			}
			return completes(c.ids)(cc, given, begun)
		}
	}
	for _, b := range c.below {
		cc.AddCommand(leaf(b, s, found))
	}
	cc.Flags().SortFlags = false
	for _, o := range c.options {
		doc := o.doc
		if o.words != nil {
			doc += ": " + strings.Join(o.words, ", ")
		}
		f := cc.Flags().VarPF(&optionValue{o, in}, o.name, "", doc)
		switch {
		case o.value == "":
			f.NoOptDefVal = "true"
		case o.words != nil:
			_ = cc.RegisterFlagCompletionFunc(o.name,
				cobra.FixedCompletions(o.words, cobra.ShellCompDirectiveNoFileComp))
		case o.value == "DIR":
			_ = cc.MarkFlagDirname(o.name)
		case o.ids != nil:
			_ = cc.RegisterFlagCompletionFunc(o.name, completes(o.ids))
		case o.value != "FILE":
			_ = cc.RegisterFlagCompletionFunc(o.name, cobra.NoFileCompletions)
		}
	}
	return cc
}

// unrecorded is the invocation for completions: it says nothing, and the audit log has nothing of it.
func (in *invocation) unrecorded() *invocation {
	quiet, c := *in, *in.command
	quiet.err, quiet.command, c.records = io.Discard, &c, ""
	return &quiet
}

// optionValue checks and keeps the value of an option. It is the Value of pflag.
type optionValue struct {
	option
	in *invocation
}

func (v *optionValue) String() string   { return "" }
func (v *optionValue) IsBoolFlag() bool { return v.value == "" }

// Type names the value in help; pflag leaves it out for "bool".
func (v *optionValue) Type() string {
	if v.value == "" {
		return "bool"
	}
	return v.value
}

func (v *optionValue) Set(value string) error {
	switch {
	case v.in.given(v.name) && !v.many:
		return misuse("give it once", "--%s is given twice", v.name)
	case v.value == "" && value != "true":
		return misuse("write --"+v.name, "--%s takes no value", v.name)
	case value == "":
		return misuse(seeHelp(v.in.command), "--%s is empty; it needs %s", v.name, v.value)
	case v.words != nil && !slices.Contains(v.words, value):
		hint := "use one of " + strings.Join(v.words, ", ")
		if near := args.Nearest(value, v.words); near != "" {
			hint = fmt.Sprintf("did you mean %s? Allowed: %s", near, strings.Join(v.words, ", "))
		}
		return misuse(hint, "--%s can't be %q", v.name, value)
	}
	if v.in.given(v.name) {
		value = v.in.values[v.name] + "\x00" + value
	}
	v.in.values[v.name] = value
	return nil
}

// optionError says in our words what pflag says of a line.
func optionError(cc *cobra.Command, err error) error {
	path := strings.TrimPrefix(cc.CommandPath(), program+" ")
	hint := fmt.Sprintf("see %s help %s", program, path)
	if path == "run" {
		hint = "write -- before the COMMAND, and options before that"
	}
	switch e := err.(type) {
	case *pflag.InvalidValueError:
		return e.Unwrap() // of optionValue.Set
	case *pflag.ValueRequiredError:
		return misuse(hint, "--%s needs %s", e.GetFlag().Name, e.GetFlag().Value.Type())
	case *pflag.NotExistError:
		var names []string
		cc.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := args.Nearest(e.GetSpecifiedName(), names); near != "" {
			hint = "did you mean --" + near + "?"
		}
		dashes := "--"
		if e.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		return misuse(hint, "%s has no option %s%s", path, dashes, e.GetSpecifiedName())
	}
	return misuse(hint, "%s: %v", path, err)
}

const overview = `"COMMAND --help" explains a command, "help TOOL" a tool, "help options" options.`

// helpText is the help of a command, with the commands below it first. It is code, because a template
// would link package text/template, and with it every exported method of the program: 5 MB.
func helpText(c *cobra.Command) string {
	if !c.HasParent() {
		return rootHelp(c.Short)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", c.CommandPath(), c.Short)
	runs, above := c.Example != "", c.HasAvailableSubCommands()
	if runs || !above {
		fmt.Fprintf(&b, "Usage: %s\n", strings.Replace(c.UseLine(), "[flags]", "[OPTIONS]", 1))
	}
	if above {
		fmt.Fprintf(&b, "Usage: %s COMMAND [OPTIONS] [ARGUMENTS]\n\n", c.CommandPath())
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s  %s\n", c.NamePadding(), below.Name(), below.Short)
			}
		}
	}
	if c.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", wrap(c.Long, width))
	}
	if runs || !above {
		b.WriteString(optionsHelp(c))
	}
	if runs {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	return b.String()
}

// optionsHelp explains the options of the command c that are its own, and names the common ones.
func optionsHelp(c *cobra.Command) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = false
	var common []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(commonOptions, f.Name) {
			common = append(common, "--"+f.Name)
		} else {
			own.AddFlag(f)
		}
	})
	text := "\nOptions:\n" + own.FlagUsagesWrapped(width)
	if len(common) > 0 {
		text += wrap("Also "+strings.Join(common, ", ")+`: see "`+program+` help options"`, width) + "\n"
	}
	return text
}

// commonOptions names the options of [shared] that help explains once, under "help options".
var commonOptions = []string{"json", "config", "policies-json", "data-dir", "root", "principal", "session", "sandbox", "identity", "help"}

// commonHelp explains the common options.
func commonHelp() string {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.SortFlags = false
	for _, o := range shared {
		if slices.Contains(commonOptions, o.name) {
			f := all.VarPF(&optionValue{o, nil}, o.name, "", o.doc)
			if o.value == "" {
				f.NoOptDefVal = "true"
			}
		}
	}
	return "Options that many commands take:\n" + all.FlagUsagesWrapped(width)
}

// rootHelp is the help of the program, for a screen of 24 lines of 80 characters.
func rootHelp(short string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s COMMAND [OPTIONS] [ARGUMENTS]: %s\n\n", program, short)
	for _, part := range [][]*command{daily(), entries()} {
		for _, c := range part {
			fmt.Fprintf(&b, "  %-8s  %s\n", c.name, c.short)
		}
		b.WriteString("\n")
	}
	var more []string
	for _, c := range others() {
		if !c.hidden {
			more = append(more, c.name)
		}
	}
	fmt.Fprintf(&b, "%s\n%s\n", wrap("More: "+strings.Join(append(more, "completion", "help"), ", "), width), wrap(overview, width))
	return b.String()
}

// helpCommand explains a command or a tool.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND | TOOL | options]", Short: "explain a command, or a tool such as Read",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil {
				return misuse("", "%v", err)
			}
			if len(rest) == 1 && !c.HasParent() && rest[0] == "options" {
				_, err := io.WriteString(root.OutOrStdout(), commonHelp())
				return err
			}
			if len(rest) == 1 && !c.HasParent() {
				if d, err := definition(rest[0], tools.Definitions()); err == nil {
					_, err := io.WriteString(root.OutOrStdout(), toolHelp(d))
					return err
				}
			}
			if len(rest) > 0 && c.HasAvailableSubCommands() {
				return c.RunE(c, rest) // says which is near
			}
			if len(rest) > 0 {
				return misuse("", "%s has no commands of its own",
					strings.TrimPrefix(c.CommandPath(), program+" "))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

func manCommand() *command {
	return &command{
		name: "man", short: "print the manual page of a command", args: "[COMMAND]", max: 2,
		options: []option{opt("into", "DIR", "write every page into this directory")},
		examples: []string{"moltis-fs man | man -l -", "moltis-fs man checkpoint rewind > moltis-fs-checkpoint-rewind.1",
			"moltis-fs man --into /usr/local/share/man/man1"},
		run: writeMan,
	}
}

func writeMan(_ context.Context, in *invocation) error {
	root := tree(commands(), streams{out: io.Discard, err: io.Discard}, func(*invocation) {})
	if dir := in.option("into"); dir != "" {
		return manTree(root, dir)
	}
	c, rest, err := root.Find(in.args)
	if err != nil || len(rest) > 0 {
		return misuse(fmt.Sprintf("see %s help", program), "there is no command %q", strings.Join(in.args, " "))
	}
	return in.write(manPage(c))
}

// manTree writes the pages of the command c and of those below it into a directory.
func manTree(c *cobra.Command, dir string) error {
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			if err := manTree(below, dir); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"), manPage(c), 0o644); err != nil {
		return misuse("name a directory that exists", "writing the manual pages: %v", err)
	}
	return nil
}

// manPage gives the manual page of the command c, in the man macros of troff. It has the text of its help.
func manPage(c *cobra.Command) []byte {
	c.InitDefaultHelpFlag()
	build, when := readBuild(), time.Now()
	if t, err := time.Parse(time.RFC3339, build.Time); err == nil {
		when = t
	}
	dashed := strings.ReplaceAll(c.CommandPath(), " ", "-")
	var see []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			see = append(see, dashed+"-"+below.Name()+"(1)")
		}
	}
	if c.HasParent() {
		see = append(see, strings.ReplaceAll(c.Parent().CommandPath(), " ", "-")+"(1)")
	}
	escape := strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")
	return fmt.Appendf(nil, ".TH %q \"1\" %q %q\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf%s\n.fi\n.SH SEE ALSO\n%s\n", strings.ToUpper(dashed), when.Format("Jan 2006"),
		program+" "+build.Version, escape.Replace(dashed), escape.Replace(c.Short), escape.Replace("\n"+helpText(c)), escape.Replace(strings.Join(see, ", ")))
}

// when reads an option that is a time or an age.
func (in *invocation) when(name string) (time.Time, error) {
	s := in.option(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := tools.ParseTime(s, time.Now())
	if err != nil {
		return t, misuse("write a time as it is listed, like 2026-11-21T10:00:00+01:00, in local time "+
			"2026-11-21 10:00 or 2026-11-21, or an age like 2h, 7d or 2w",
			"--%s is %.200q, %v", name, s, err)
	}
	return t, nil
}

// number reads an option that is a number from 1 to most.
func (in *invocation) number(name string, fallback, most int) (int, error) {
	s := in.option(name)
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, misuse(fmt.Sprintf("write a number from 1 to %d", most), "--%s can't be %q", name, s)
	}
	return n, nil
}

// count says how many of the options are given.
func (in *invocation) count(names ...string) (n int) {
	for _, name := range names {
		if in.given(name) {
			n++
		}
	}
	return n
}

// timesTaken explains the forms of a TIME.
const timesTaken = `

A TIME is one as listed, with its zone. Without a zone, or a day alone, it is local. It may
also be an age like 2h, 7d or 2w.`

// jsWorkerCommand runs one script. We start it; it bounds itself, and the kernel keeps it from
// every file and every connection where it can.
func jsWorkerCommand() *command {
	return &command{
		name: "js-worker", hidden: true, short: "run one script in a process of its own",
		run: func(_ context.Context, in *invocation) error {
			if landlock.ABI() > 0 {
				if err := landlock.Restrict(nil, nil); err != nil {
					return err
				}
			}
			return js.Work(in.in, in.out)
		},
	}
}

// fingerprint tells builds apart.
func (b build) fingerprint() string {
	return fmt.Sprintf("%s %s %v %s/%s", b.Version, b.Revision, b.Modified, b.OS, b.Arch)
}
