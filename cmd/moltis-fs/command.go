package main

import (
	"context"
	"slices"
	"strings"

	"moltisfs/internal/nearest"
)

// A command is one row of the table: all that parsing, help, the man page and the completions know of it.
type command struct {
	name     string
	short    string   // one line, no period
	long     string   // paragraphs
	args     string   // the positional arguments as help shows them
	min, max int      // how many there may be
	values   []string // what the first of them may be, for completions
	options  []option
	examples []string
	below    []*command // then there is no run
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
}

// commands is the table, in the order of help.
func commands() []*command {
	all := []*command{mcpCommand(), callCommand(), toolsCommand(), checkpointCommand(), trashCommand(), configCommand(), versionCommand(), helpCommand(), manCommand(), completionCommand(), workerCommand()}
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
}

func (in *invocation) option(name string) string { return in.values[name] }
func (in *invocation) given(name string) bool    { _, ok := in.values[name]; return ok }

// arg is the i-th positional argument, "" when it was not given.
func (in *invocation) arg(i int) string {
	if i < len(in.args) {
		return in.args[i]
	}
	return ""
}

// parse finds the command and checks the line against it.
func parse(args []string, s streams) (*invocation, error) {
	switch args[0] {
	case "-h", "-help", "--help":
		args = []string{"help"}
	case "-V", "-version", "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	c, rest, err := find(commands(), args)
	if err != nil {
		return nil, err
	}
	in := &invocation{streams: s, command: c, values: map[string]string{}}
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch {
		case word == "--":
			in.args = append(in.args, rest...)
			rest = nil
		case word == "-h" || word == "-help" || word == "--help":
			return &invocation{streams: s, command: helpCommand(), args: strings.Fields(c.path), values: map[string]string{}}, nil
		case len(word) > 1 && word[0] == '-':
			if rest, err = in.take(word, rest); err != nil {
				return nil, err
			}
		default:
			in.args = append(in.args, word)
		}
	}
	switch {
	case len(in.args) < c.min:
		return nil, misuse(seeHelp(c), "%s needs %s", c.path, c.args)
	case len(in.args) > c.max && c.max == 0:
		return nil, misuse(seeHelp(c), "%s takes no arguments, and got %q", c.path, in.args[0])
	case len(in.args) > c.max:
		return nil, misuse(seeHelp(c), "%s takes %s, and got %q besides", c.path, c.args, in.args[c.max])
	}
	return in, nil
}

func seeHelp(c *command) string { return "see " + program + " help " + c.path }

// find goes down the table as far as the words lead.
func find(table []*command, words []string) (*command, []string, error) {
	var above *command
	for {
		var names []string
		for _, c := range table {
			if !c.hidden {
				names = append(names, c.name)
			}
		}
		list := strings.Join(names, ", ")
		if len(words) == 0 {
			return nil, nil, misuse(seeHelp(above), "%s needs one of %s", above.path, list)
		}
		if above != nil && (words[0] == "-h" || words[0] == "-help" || words[0] == "--help") {
			return helpCommand(), strings.Fields(above.path), nil
		}
		if strings.HasPrefix(words[0], "-") {
			if above == nil {
				return nil, nil, misuse("the commands are "+list, "a command comes before %s", words[0])
			}
			return nil, nil, misuse(seeHelp(above), "%s needs one of %s before %s", above.path, list, words[0])
		}
		i := slices.IndexFunc(table, func(c *command) bool { return c.name == words[0] })
		if i < 0 {
			kind, hint := "command", "the commands are "+list
			if above != nil {
				kind, hint = above.name+" command", "the "+above.name+" commands are "+list
			}
			if near := nearest.Of(words[0], names); near != "" {
				hint = "did you mean " + near + "?"
			}
			return nil, nil, misuse(hint, "there is no %s %q", kind, words[0])
		}
		above, words = table[i], words[1:]
		if above.below == nil {
			return above, words, nil
		}
		table = above.below
	}
}

// take reads one option, and its value from rest where it has one.
func (in *invocation) take(word string, rest []string) ([]string, error) {
	written, value, inline := strings.Cut(word, "=")
	name := strings.TrimPrefix(strings.TrimPrefix(written, "-"), "-")
	i := slices.IndexFunc(in.command.options, func(o option) bool { return o.name == name })
	if i < 0 {
		var names []string
		for _, o := range in.command.options {
			names = append(names, o.name)
		}
		hint := seeHelp(in.command)
		if near := nearest.Of(name, names); near != "" {
			hint = "did you mean --" + near + "?"
		}
		return nil, misuse(hint, "%s has no option %s", in.command.path, written)
	}
	o := in.command.options[i]
	switch {
	case in.given(name):
		return nil, misuse("give it once", "--%s is given twice", name)
	case o.value == "" && inline:
		return nil, misuse("write --"+name, "--%s takes no value", name)
	case o.value == "":
		value = "true"
	case !inline && len(rest) == 0:
		return nil, misuse(seeHelp(in.command), "--%s needs %s", name, o.value)
	case !inline:
		value, rest = rest[0], rest[1:]
	}
	if o.words != nil && !slices.Contains(o.words, value) {
		hint := "use one of " + strings.Join(o.words, ", ")
		if near := nearest.Of(value, o.words); near != "" {
			hint = "did you mean " + near + "? Allowed: " + strings.Join(o.words, ", ")
		}
		return nil, misuse(hint, "--%s can't be %q", name, value)
	}
	if o.value != "" && value == "" {
		return nil, misuse(seeHelp(in.command), "--%s is empty; it needs %s", name, o.value)
	}
	in.values[name] = value
	return rest, nil
}
