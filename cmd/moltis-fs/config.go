package main

import (
	"context"
	"errors"

	"moltisfs/config"
	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/policy/rego"
	"moltisfs/tools"
)

func configCommand() *command {
	return &command{
		name:  "config",
		short: "show the configuration, check one, or print an example",
		below: []*command{
			{
				name: "show", args: "[FILE]", max: 1,
				short:    "print the configuration that is in force, with every key",
				examples: []string{"moltis-fs config show", "moltis-fs config show moltis.toml"},
				run:      showConfig,
			},
			{
				name: "check", args: "[FILE]", max: 1, options: options("json"),
				short: "list every error in a configuration",
				long: `Each problem is one line on standard output, with file, line, column, key
and what to write instead. The exit status is 1 when there are problems. Without problems, what
may be a mistake is a warning on standard error: a name in tools.policy that is no tool of ours, a
rule about a path that is not there, a workspace_root without allow_paths.`,
				examples: []string{"moltis-fs config check moltis.toml",
					"moltis-fs config check --json moltis.toml"},
				run: checkConfig,
			},
			{
				name: "example", short: "print a configuration with every key, its default and its meaning",
				examples: []string{"moltis-fs config example > moltis.toml"},
				run:      func(_ context.Context, in *invocation) error { return in.write(config.Example()) },
			},
		},
	}
}

// configFile is the file that a config command is about; "": the one that holds.
func (in *invocation) configFile() string {
	if in.arg(0) == "-" {
		return standardInput
	}
	return in.arg(0)
}

func checkConfig(_ context.Context, in *invocation) error {
	cfg, from, err := in.loadConfig(in.configFile())
	if e, ok := errors.AsType[*exitError](err); ok {
		return e // there is nothing to check
	}
	var warnings []*config.Problem
	if err == nil {
		if err = tools.Check(cfg); err == nil {
			_, err = capability.DefinitionsUnder(cfg.Tools)
		}
		if err == nil {
			_, err = rego.Open(cfg.Tools.FS.PoliciesMode, cfg.Tools.FS.Policies)
			if err != nil {
				err = &config.Problem{Key: "tools.fs.policies", Why: err.Error()}
			}
		}
		locate(from, problemsOf(err))
	}
	if err == nil { // first what is wrong
		warnings = locate(from, append(tools.Warnings(cfg), capability.Warnings(cfg.Tools.Capability)...))
	}
	found := problemsOf(err)
	text := from + " is valid"
	switch {
	case err != nil && len(found) == 0:
		found = []*config.Problem{{Why: err.Error()}}
		fallthrough
	case err != nil:
		text = err.Error()
	case from == "":
		text = "the defaults are in force, and valid"
	}
	if !in.given("json") {
		in.warn(warnings)
	}
	return ending(in.answer(struct {
		OK       bool              `json:"ok"`
		File     string            `json:"file,omitempty"`
		Problems []*config.Problem `json:"problems"`
		Warnings []*config.Problem `json:"warnings"`
	}{err == nil, from, list(found), list(warnings)}, "%s\n", text), refusedIf(err != nil))
}

func showConfig(_ context.Context, in *invocation) error {
	cfg, from, err := in.loadConfig(in.configFile())
	if err != nil {
		return unusableConfig(err, from)
	}
	return in.write(cfg.TOML())
}
