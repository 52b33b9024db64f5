package main

import (
	"strings"

	"moltisfs/internal/refusal"
	"moltisfs/tools"
)

// forOperator is an answer with the hint for a person. A next call of a tool is none of it.
func (in *invocation) forOperator(p tools.Payload) tools.Payload {
	r, ok := p.(*tools.Refusal)
	if !ok {
		return p
	}
	names := func(name string) string { return optionNames[name] }
	if in.command.name == "call" {
		names = nil // the arguments are those of the tool
	}
	own := *r
	own.Next, own.Hint = nil, r.ForPerson(names, map[string]string{
		"config": in.findConfig(in.option("config")), "editor": in.besideEditor()})
	return &own
}

// optionNames maps the tools and arguments that hints name to the commands and options of the command line.
var optionNames = map[string]string{"checkpoints_list": program + " checkpoint list", "label": "--label", "on_conflict": "--on-conflict",
	"paths": "the PATHs", "since": "--since"}

// aside is a hint as it follows "hint: ".
func aside(hint string) string {
	if word, _, _ := strings.Cut(hint, " "); takesPaths(word) {
		return strings.TrimSuffix(hint, ".")
	}
	return refusal.Clause(hint)
}
