package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

func completionCommand() *command {
	return &command{
		name: "completion", short: "write the completions of a shell", args: "bash|zsh|fish", min: 1, max: 1, values: []string{"bash", "zsh", "fish"},
		examples: []string{"moltis-fs completion bash > ~/.local/share/bash-completion/completions/moltis-fs", "moltis-fs completion fish | source"},
		run: func(_ context.Context, in *invocation) error {
			switch in.arg(0) {
			case "bash":
				return in.write([]byte(bashCompletion(commands())))
			case "zsh":
				return in.write([]byte("#compdef moltis-fs\nautoload -U +X bashcompinit && bashcompinit\n" + bashCompletion(commands())))
			case "fish":
				return in.write([]byte(fishCompletion(commands())))
			}
			return misuse("use one of bash, zsh, fish", "there are no completions for %q", in.arg(0))
		},
	}
}

// bashCompletion is a function for bash, and for zsh by its bashcompinit.
func bashCompletion(table []*command) string {
	var b strings.Builder
	b.WriteString("_moltis_fs() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words\n\tcase $prev in\n")
	for _, o := range allOptions(table) {
		switch {
		case o.words != nil:
			fmt.Fprintf(&b, "\t--%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", o.name, strings.Join(o.words, " "))
		case o.value == "FILE":
			fmt.Fprintf(&b, "\t--%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", o.name)
		case o.value == "DIR":
			fmt.Fprintf(&b, "\t--%s) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n", o.name)
		case o.value != "":
			fmt.Fprintf(&b, "\t--%s) return ;;\n", o.name)
		}
	}
	b.WriteString("\tesac\n\tcase \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n")
	for _, c := range table {
		for _, one := range leaves(c) {
			if one.hidden {
				continue
			}
			pattern := one.path
			if c.below == nil {
				pattern += " *"
			}
			fmt.Fprintf(&b, "\t%s) words='%s' ;;\n", strings.ReplaceAll(pattern, " ", `\ `), strings.Join(append(firstWords(one, table), optionNames(one)...), " "))
		}
	}
	b.WriteString("\tesac\n\tif [ \"$COMP_CWORD\" -eq 1 ]; then words='" + strings.Join(names(table), " ") + "'; fi\n")
	for _, c := range table {
		if c.below != nil {
			fmt.Fprintf(&b, "\tif [ \"$COMP_CWORD\" -eq 2 ] && [ \"${COMP_WORDS[1]}\" = %s ]; then words='%s'; fi\n", c.name, strings.Join(names(c.below), " "))
		}
	}
	b.WriteString("\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n\t[ -n \"$COMPREPLY\" ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\ncomplete -F _moltis_fs moltis-fs\n")
	return b.String()
}

func fishCompletion(table []*command) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "complete -c moltis-fs "+format+"\n", args...) }
	for _, c := range table {
		if c.hidden {
			continue
		}
		line("-f -n __fish_use_subcommand -a %s -d '%s'", c.name, fishText(c.short))
		for _, one := range leaves(c) {
			when := "__fish_seen_subcommand_from " + c.name
			if c.below != nil {
				line("-f -n '%s; and not __fish_seen_subcommand_from %s' -a %s -d '%s'", when, strings.Join(names(c.below), " "), one.name, fishText(one.short))
				when += "; and __fish_seen_subcommand_from " + one.name
			}
			if words := firstWords(one, table); len(words) > 0 {
				line("-f -n '%s' -a '%s'", when, strings.Join(words, " "))
			}
			for _, o := range one.options {
				value := ""
				switch {
				case o.words != nil:
					value = " -x -a '" + strings.Join(o.words, " ") + "'"
				case o.value == "FILE" || o.value == "DIR":
					value = " -r"
				case o.value != "":
					value = " -x"
				}
				line("-n '%s' -l %s%s -d '%s'", when, o.name, value, fishText(o.doc))
			}
		}
	}
	return b.String()
}

func fishText(s string) string { return strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) }

func names(table []*command) []string {
	var out []string
	for _, c := range table {
		if !c.hidden {
			out = append(out, c.name)
		}
	}
	return out
}

// firstWords are what the first argument of c may be: for help, the commands.
func firstWords(c *command, table []*command) []string {
	if c.name == "help" {
		return names(table)
	}
	return slices.Clone(c.values)
}

func optionNames(c *command) []string {
	var out []string
	for _, o := range c.options {
		out = append(out, "--"+o.name)
	}
	return out
}

// allOptions are the options of all commands, each name once: it takes the same kind of value everywhere.
func allOptions(table []*command) []option {
	var out []option
	for _, c := range table {
		for _, one := range leaves(c) {
			for _, o := range one.options {
				if !slices.ContainsFunc(out, func(p option) bool { return p.name == o.name }) {
					out = append(out, o)
				}
			}
		}
	}
	return out
}
