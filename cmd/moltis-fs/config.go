package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"moltisfs/config"
	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/policy/rego"
	"moltisfs/tools"
)

func configCommand() *command {
	return &command{
		name:  "config",
		short: "check the configuration, show it, or write an example",
		below: []*command{
			{
				name: "check", args: "[FILE]", max: 1, options: options("config json"),
				short: "say what is wrong with a configuration, all of it",
				long: `Each problem is one line on standard output, with file, line, column, key
and what to write instead. The exit status is 1 when there are problems. Without problems, what
may be a mistake is a warning on standard error: a name in tools.policy that is no tool of ours, a
rule about a path that is not there, a workspace_root without allow_paths.`,
				examples: []string{"moltis-fs config check moltis.toml",
					"moltis-fs config check --json moltis.toml"},
				run: checkConfig,
			},
			{
				name: "show", args: "[FILE]", max: 1, options: options("config"),
				short:    "write the configuration with every key, as it is in force",
				examples: []string{"moltis-fs config show", "moltis-fs config show moltis.toml"},
				run:      showConfig,
			},
			{
				name: "example", args: "[FILE]", max: 1,
				short:    "write a configuration with every key, its default and its meaning",
				long:     "It goes to standard output, or into FILE, which must not exist yet.",
				examples: []string{"moltis-fs config example", "moltis-fs config example moltis.toml"},
				run:      exampleConfig,
			},
		},
	}
}

// configFile is the file that a config command is about: its argument, or else --config.
func (in *invocation) configFile() (string, error) {
	if in.arg(0) != "" && in.given("config") {
		return "", misuse("leave out --config", "the file is named twice, %s and --config %s",
			in.arg(0), in.option("config"))
	}
	if in.arg(0) == "-" {
		return standardInput, nil
	}
	return cmp.Or(in.arg(0), in.option("config")), nil
}

func checkConfig(_ context.Context, in *invocation) error {
	file, err := in.configFile()
	if err != nil {
		return err
	}
	cfg, from, err := in.loadConfig(file)
	if e, ok := errors.AsType[*exitError](err); ok {
		return e // there is nothing to check
	}
	var warnings []*config.Problem
	if err == nil {
		if err = tools.Check(cfg); err == nil {
			_, err = capability.DefinitionsUnder(cfg.Tools)
		}
		if err == nil {
			err = checkPolicies(cfg.Tools.FS)
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
	file, err := in.configFile()
	if err != nil {
		return err
	}
	cfg, from, err := in.loadConfig(file)
	if err != nil {
		return unusableConfig(err, from)
	}
	return in.write(cfg.TOML())
}

func exampleConfig(_ context.Context, in *invocation) error {
	if in.arg(0) == "" || in.arg(0) == "-" {
		return in.write(config.Example())
	}
	f, err := os.OpenFile(in.arg(0), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return misuse("name a new file", "%s exists already", in.arg(0))
	}
	if err != nil {
		return misuse("", "writing the example: %v", err)
	}
	_, err = f.Write(config.Example())
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing the example: %w", err)
	}
	return nil
}

// checkPolicies says what is wrong with the policies of a configuration.
func checkPolicies(cfg config.FS) error {
	if _, err := rego.Open(cfg.PoliciesMode, cfg.Policies); err != nil {
		return &config.Problem{Key: "tools.fs.policies", Why: err.Error()}
	}
	return nil
}
