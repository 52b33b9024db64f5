package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"moltisfs/internal/nearest"
	"moltisfs/tools"
)

// A command is one row of the table. Parsing, help, man pages and completions derive from it.
type command struct {
	name     string
	short    string   // one line, no period
	long     string   // paragraphs
	args     string   // the positional arguments as help shows them
	min, max int      // how many there may be
	values   []string // what the first of them may be, for completions
	options  []option
	examples []string
	below    []*command // without run one of them is needed
	hidden   bool
	payload  bool // with --json, what goes wrong is an answer in JSON too
	run      func(context.Context, *invocation) error

	path string // with the names above, filled by the table
}

// An option is written --name VALUE or --name=VALUE, a switch --name. It may stand anywhere.
type option struct {
	name  string
	value string   // what help calls the value; "" for a switch
	words []string // the only values taken; nil for any
	doc   string
	many  bool // it may be given more than once
}

// opt is a row of a command's options. words, if any, are the only values taken.
func opt(name, value, doc string, words ...string) option {
	return option{name: name, value: value, words: words, doc: doc}
}

// many is an option that may be given more than once; [invocation.all] has its values.
func many(name, value, doc string) option {
	return option{name: name, value: value, doc: doc + "; may be given more than once", many: true}
}

// commands is the table, in the order of help.
func commands() []*command {
	all := []*command{
		mcpCommand(), acpCommand(), callCommand(), jsCommand(), serveCommand(), toolsCommand(), approvalsCommand(), tokenCommand(),
		checkpointCommand(), trashCommand(), auditCommand(), confineCommand(), configCommand(), policyCommand(),
		doctorCommand(), sandboxCommand(),
		versionCommand(), manCommand(), workerCommand(), jsWorkerCommand(), sandboxWorkerCommand(), confinedCommand(), lentCommand(),
	}
	for _, c := range all {
		c.path = c.name
		for _, b := range c.below {
			b.path = c.name + " " + b.name
			b.payload = c.payload
		}
	}
	return all
}

// invocation is a command line that fits its command.
type invocation struct {
	streams
	command *command
	args    []string
	values  map[string]string // of the options given; "true" for a switch
	told    bool              // of an earlier data directory
	lasting *lasting          // nil: nothing lives longer than a call
	implied bool              // --root is the working directory, and nobody gave it
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

// singleDash is an option with one dash, as package flag takes it.
var singleDash = regexp.MustCompile(`^-[a-z][a-z-]+(=|$)`)

// parse finds the command and checks the line against it. The invocation is nil when the line
// asked for help or completions, which have been written then.
func parse(args []string, s streams) (in *invocation, err error) {
	args = slices.Clone(args)
	switch args[0] {
	case "-V", "-version", "--version":
		args[0] = "version"
	}
	for i, a := range args {
		if a == "--" {
			break
		}
		switch {
		case singleDash.MatchString(a):
			args[i] = "-" + a
		case a == "-f" && args[0] == "audit":
			args[i] = "--follow"
		}
	}
	root := tree(commands(), s, func(found *invocation) { in = found })
	root.SetArgs(args)
	err = root.Execute()
	return in, err
}

func seeHelp(c *command) string { return "see " + program + " help " + c.path }

// tree is the table as cobra has it. found hears of the line that fits.
func tree(table []*command, s streams, found func(*invocation)) *cobra.Command {
	root := group(&command{name: program, below: table}, s, found)
	root.Long = overview
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpFunc(writeHelp)
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
	kind := strings.TrimSpace(c.path + " command")
	cc.RunE = func(_ *cobra.Command, args []string) error {
		list := strings.Join(names, ", ")
		hint := "the " + kind + "s are " + list
		switch {
		case len(args) == 0 && c.path != "":
			return misuse(seeHelp(c), "%s needs one of %s", c.path, list)
		case len(args) == 0:
			return misuse(hint, "a command comes first")
		}
		near := nearest.Of(args[0], names)
		if _, err := definition(args[0], tools.Definitions()); near == "" && c.path == "" {
			if e := exitOf(err); strings.HasPrefix(e.hint, "did you mean") {
				hint = e.hint
			}
		}
		if near != "" {
			hint = "did you mean " + near + "?"
		}
		return misuse(hint, "there is no %s %q", kind, args[0])
	}
	return cc
}

// leaf is a command that runs.
func leaf(c *command, s streams, found func(*invocation)) *cobra.Command {
	in := &invocation{streams: s, command: c, values: map[string]string{}}
	cc := &cobra.Command{
		Use: strings.TrimSpace(c.name + " " + c.args), Short: c.short, Long: c.long,
		Example: "  " + strings.Join(c.examples, "\n  "), Hidden: c.hidden, ValidArgs: c.values,
		SilenceErrors: true, SilenceUsage: true,
		DisableFlagsInUseLine: len(c.options) == 0 || strings.HasPrefix(c.args, "[OPTIONS]"),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) < c.min:
				return misuse(seeHelp(c), "%s needs %s", c.path, c.args)
			case len(args) > c.max && c.max == 0 && c.below != nil:
				return misuse(seeHelp(c), "there is no %s command %q", c.path, args[0])
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
	for _, b := range c.below {
		cc.AddCommand(leaf(b, s, found))
	}
	cc.Flags().SortFlags = false
	for _, o := range c.options {
		f := cc.Flags().VarPF(&optionValue{o, in}, o.name, "", o.doc)
		switch {
		case o.value == "":
			f.NoOptDefVal = "true"
		case o.words != nil:
			_ = cc.RegisterFlagCompletionFunc(o.name,
				cobra.FixedCompletions(o.words, cobra.ShellCompDirectiveNoFileComp))
		case o.value == "DIR":
			_ = cc.MarkFlagDirname(o.name)
		case o.value != "FILE":
			_ = cc.RegisterFlagCompletionFunc(o.name, cobra.NoFileCompletions)
		}
	}
	return cc
}

// optionValue checks and keeps the value of an option. It is the Value of pflag.
type optionValue struct {
	option
	in *invocation
}

func (v *optionValue) String() string   { return "" }
func (v *optionValue) IsBoolFlag() bool { return v.value == "" }

// Type is what help calls the value; pflag leaves it out for "bool".
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
		if near := nearest.Of(value, v.words); near != "" {
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
	switch e := err.(type) {
	case *pflag.InvalidValueError:
		return e.Unwrap() // of optionValue.Set
	case *pflag.ValueRequiredError:
		return misuse(hint, "--%s needs %s", e.GetFlag().Name, e.GetFlag().Value.Type())
	case *pflag.NotExistError:
		var names []string
		cc.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := nearest.Of(e.GetSpecifiedName(), names); near != "" {
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
