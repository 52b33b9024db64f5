package tools

import (
	"errors"

	"moltisfs/config"
	"moltisfs/internal/engine"
)

// Check finds what is wrong with a configuration: what config.Check finds, and what takes the tools, or a look at the file system, to
// know. Its errors are *config.Problem, joined where there are several; config.Locate adds where in a file they stand. Open does
// the same.
func Check(cfg config.Config) error {
	if err := checkValues(cfg); err != nil {
		return err
	}
	return engine.Check(cfg.Tools.FS)
}

// checkValues is Check without a look at the file system.
func checkValues(cfg config.Config) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	return errors.Join(someTool(cfg.Tools.Policy))
}

// someTool refuses lists that leave no tool: who starts a server wants to call something.
func someTool(p config.Policy) error {
	if defs, err := DefinitionsUnder(p); err != nil || len(defs) > 0 {
		return err
	}
	key := "tools.policy.deny"
	if defs, _ := DefinitionsUnder(config.Policy{Allow: p.Allow}); len(defs) == 0 {
		key = "tools.policy.allow"
	}
	return &config.Problem{Key: key, Why: "leaves no tool at all", Hint: "name one of them, as \"Read\""}
}

// Warnings are what is right and may still be meant otherwise: those of the configuration itself, and
// what a look at the file system adds of rules that do nothing.
func Warnings(cfg config.Config) []*config.Problem {
	return append(cfg.Warnings(), engine.IdleRules(cfg.Tools.FS)...)
}
