package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/confine"
)

func confineServerOption() option {
	return opt("confine", "", "have the kernel hold this server, too, and what it starts, to its own "+
		"files and the roots (Linux); hooks get no TCP and no other files")
}

// hookFiles are the programs of hooks and what they are given by an absolute name, as a script.
func hookFiles(h config.Hooks) (files []string) {
	for _, line := range slices.Concat(h.BeforeToolCall, h.AfterToolCall, h.ToolResultPersist) {
		for _, word := range strings.Fields(line) {
			if filepath.IsAbs(word) {
				files = append(files, word)
			}
		}
	}
	return files
}

// confineServer holds this process to what it works on. The policy is narrower; this is for the day
// that it is got round.
func (in *invocation) confineServer(cfg config.Config) error {
	h := held{Plan: &confine.Plan{Rules: confine.System()}}
	roots := opened(cfg.Tools.FS.AllowPaths)
	root, err := in.root()
	if root != "" {
		roots = []string{root}
	}
	dir, _, derr := in.dataDir()
	self, serr := ownProgram()
	if err := errors.Join(err, derr, serr); err != nil {
		return err
	}
	if len(roots) == 0 || slices.Contains(roots, "/") {
		return misuse("give --root, or allow_paths in the configuration",
			"everything is open: there is nothing to confine to")
	}
	right := confine.Write
	if cfg.Tools.FS.ReadOnly {
		right = confine.Read
	}
	open := func(right confine.Right, dir bool, paths ...string) {
		for _, path := range paths {
			h.Rules = append(h.Rules, confine.Rule{Path: path, Right: right, Dir: dir})
		}
	}
	open(right, true, roots...)
	open(confine.Write, true, dir)
	open(confine.Read, false, self)
	if from := in.findConfig(in.option("config")); from != "" {
		if from, err = filepath.Abs(from); err != nil {
			return err
		}
		open(confine.Read, false, from)
	}
	for _, name := range in.gitUser(&cfg).Files {
		open(confine.Read, false, name)
		open(confine.Read, true, filepath.Join(filepath.Dir(name), "git"))
	}
	open(confine.Read, false, hookFiles(cfg.Tools.FS.Hooks)...)
	for _, name := range append(cfg.Tools.FS.PolicyFiles(), in.policiesFile()) {
		if info, err := os.Stat(name); err == nil { // for a reload
			open(confine.Read, info.IsDir(), name)
		}
	}
	if err := h.tell(in); err != nil {
		return err
	}
	if err := confine.Restrict(h.Rules, false, policyPorts(cfg.Tools.FS)); err != nil {
		return &exitError{exitUnconfined, err.Error(), "", ""}
	}
	return nil
}
