package main

import (
	"context"
	"fmt"
	"strings"
)

func helpCommand() *command {
	return &command{
		name: "help", short: "explain a command", args: "[COMMAND]", max: 2,
		examples: []string{"moltis-fs help call", "moltis-fs help config check"},
		run:      writeHelp,
	}
}

func writeHelp(_ context.Context, in *invocation) error {
	if len(in.args) == 0 {
		return in.write([]byte(overview(commands())))
	}
	table := commands()
	for _, c := range table {
		if len(in.args) == 1 && c.name == in.args[0] && c.below != nil {
			return in.write([]byte(groupHelp(c)))
		}
	}
	c, rest, err := find(table, in.args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return misuse(seeHelp(c), "%s has no commands of its own", c.path)
	}
	return in.write([]byte(commandHelp(c)))
}

// exitStatuses and environment are told in help and in the man page.
var (
	exitStatuses = [][2]string{
		{"0", "success"},
		{"1", "a refusal: the answer says which; or problems that config check found"},
		{"2", "misuse: of the command line, the configuration or the data directory"},
		{"3", "the host is broken"},
	}
	environment = [][2]string{
		{"MOLTIS_CONFIG", "the configuration, unless --config is given"},
		{"MOLTIS_DATA_DIR", "the data directory, unless --data-dir is given, absolute; else ~/.moltis-fs"},
	}
)

const aim = "one guarded filesystem for LLM agents"

func overview(table []*command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nusage: %s COMMAND [OPTIONS] [ARGUMENTS]\n\n", program, aim, program)
	rows(&b, commandRows(table))
	b.WriteString("\nenvironment:\n")
	rows(&b, environment)
	b.WriteString("\nexit status:\n")
	rows(&b, exitStatuses)
	fmt.Fprintf(&b, "\nexample:\n  %s\n\n%s help COMMAND explains one, with examples\n", callCommand().examples[0], program)
	return b.String()
}

func commandRows(table []*command) [][2]string {
	var out [][2]string
	for _, c := range table {
		if !c.hidden {
			out = append(out, [2]string{c.name, c.short})
		}
	}
	return out
}

func groupHelp(c *command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n\nusage: %s %s COMMAND [OPTIONS] [ARGUMENTS]\n\n", program, c.path, c.short, program, c.path)
	rows(&b, commandRows(c.below))
	b.WriteString("\nexamples:\n")
	for _, below := range c.below {
		fmt.Fprintf(&b, "  %s\n", below.examples[0])
	}
	return b.String()
}

func commandHelp(c *command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n\nusage: %s\n", program, c.path, c.short, usage(c))
	if c.long != "" {
		fmt.Fprintf(&b, "\n%s\n", c.long)
	}
	if len(c.options) > 0 {
		b.WriteString("\noptions:\n")
		rows(&b, optionRows(c))
	}
	if len(c.examples) > 0 {
		b.WriteString("\nexamples:\n")
		for _, e := range c.examples {
			fmt.Fprintf(&b, "  %s\n", e)
		}
	}
	return b.String()
}

func usage(c *command) string {
	parts := []string{program, c.path}
	if len(c.options) > 0 {
		parts = append(parts, "[OPTIONS]")
	}
	if c.args != "" {
		parts = append(parts, c.args)
	}
	return strings.Join(parts, " ")
}

func optionRows(c *command) [][2]string {
	var out [][2]string
	for _, o := range c.options {
		name := "--" + o.name
		if o.value != "" {
			name += " " + o.value
		}
		doc := o.doc
		if o.words != nil {
			doc = strings.Join(o.words, ", ") + ": " + doc
		}
		out = append(out, [2]string{name, doc})
	}
	return out
}

// rows are two columns.
func rows(b *strings.Builder, table [][2]string) {
	width := 0
	for _, r := range table {
		width = max(width, len(r[0]))
	}
	for _, r := range table {
		fmt.Fprintf(b, "  %-*s  %s\n", width, r[0], r[1])
	}
}
