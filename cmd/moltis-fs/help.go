package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

const overview = `One guarded filesystem for LLM agents.

Environment:
  MOLTIS_CONFIG    the configuration, unless --config is given
  MOLTIS_DATA_DIR  the data directory, absolute, unless --data-dir is given; else ~/.moltis-fs
  NO_COLOR         no colour on a terminal
  PAGER            what long answers are shown with there; else less -R

Exit status:
  0  success
  1  a refusal: the answer says which; or problems that config check found
  2  misuse: of the command line, the configuration or the data directory
  3  the host is broken
  130  Ctrl-C ended it`

// writeHelp is the help of a command, in cobra's form. It is code, because a template would link
// package text/template, and with it every exported method of the program: 5 MB.
func writeHelp(c *cobra.Command, _ []string) {
	width := streams{out: c.OutOrStdout()}.width()
	var b strings.Builder
	title := c.CommandPath()
	if c.Short != "" {
		title += ": " + c.Short
	}
	b.WriteString(wrap(title, width))
	b.WriteString("\n\nUsage:\n")
	if runs := c.Example != ""; runs || !c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s\n", strings.Replace(c.UseLine(), "[flags]", "[OPTIONS]", 1))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND [OPTIONS] [ARGUMENTS]\n", c.CommandPath())
	}
	if c.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", wrap(c.Long, width))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				indent := c.NamePadding() + 4
				short := wrap(below.Short, width-indent)
				fmt.Fprintf(&b, "  %-*s  %s\n", c.NamePadding(), below.Name(),
					strings.ReplaceAll(short, "\n", "\n"+strings.Repeat(" ", indent)))
			}
		}
		fmt.Fprintf(&b, "\n%s COMMAND --help explains one, with examples\n", c.CommandPath())
	}
	if c.HasAvailableLocalFlags() && (c.Example != "" || !c.HasAvailableSubCommands()) {
		fmt.Fprintf(&b, "\nOptions:\n%s", c.LocalFlags().FlagUsagesWrapped(width))
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	fmt.Fprint(c.OutOrStdout(), b.String())
}

// helpCommand explains a command; what is not there is misuse.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND | TOOL]", Short: "explain a command, or a tool such as Read",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil {
				return misuse("", "%v", err)
			}
			if len(rest) == 1 && !c.HasParent() {
				if d, ok := isTool(rest[0]); ok {
					_, err := io.WriteString(root.OutOrStdout(),
						toolHelp(d, streams{out: root.OutOrStdout()}.width()))
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
		name: "man", short: "write the manual page of a command", args: "[COMMAND]", max: 2,
		examples: []string{"moltis-fs man > moltis-fs.1", "moltis-fs man checkpoint restore | man -l -"},
		run:      writeMan,
	}
}

func writeMan(_ context.Context, in *invocation) error {
	root := tree(commands(), streams{out: io.Discard, err: io.Discard}, func(*invocation) {})
	c, rest, err := root.Find(in.args)
	if err != nil || len(rest) > 0 {
		return misuse(fmt.Sprintf("see %s help", program), "there is no command %q",
			strings.Join(in.args, " "))
	}
	// Indented lines are examples; Markdown wants four columns and a blank line for them.
	c.Long = strings.ReplaceAll(c.Long, "\n  ", "\n\n    ")
	c.DisableAutoGenTag = true
	build := readBuild()
	header := &doc.GenManHeader{Section: "1", Source: build.Version}
	if when, err := time.Parse(time.RFC3339, build.Time); err == nil {
		header.Date = &when
	}
	return doc.GenMan(c, header, in.out)
}
