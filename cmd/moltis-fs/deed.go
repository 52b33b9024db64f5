package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
)

// deeds are the commands that are on record in the audit log, by the name that they have there:
// those that change our own files, or take contents out of the store.
var deeds = map[string]string{
	"checkpoint pin": "pin", "checkpoint unpin": "unpin", "checkpoint gc": "gc",
	"checkpoint purge": "purge", "checkpoint export": "export", "checkpoint backup": "backup",
	"checkpoint import-moltis": "import", "trash empty": "empty_trash",
	"token create": "token_create", "token revoke": "token_revoke",
}

// recorded runs do, between two records where the command is one of deeds. A dry run is none.
func (in *invocation) recorded(do func() error) error {
	name := deeds[in.command.path]
	if name == "" || in.given("dry-run") {
		return do()
	}
	cfg, from, err := in.loadConfig(in.option("config"))
	if name == "token_revoke" && err != nil { // that must not wait for a configuration
		cfg, err = config.Default(), nil
	}
	if err != nil {
		return unusableConfig(err, from)
	}
	dir, _, err := in.dataDir()
	if err != nil {
		return err
	}
	var given []string
	for _, key := range slices.Sorted(maps.Keys(in.values)) {
		switch key {
		case "config", "data-dir", "json", "identity":
		case "sha256": // a purge is not to leave it behind whole
			given = append(given, fmt.Sprintf("--%s %.12s…", key, in.values[key]))
		default:
			given = append(given, strings.TrimSuffix("--"+key+" "+in.values[key], " true")) // a switch
		}
	}
	d := engine.Deed{Name: name, Principal: in.option("principal"), Session: in.option("session"),
		What: strings.Join(append(given, in.args...), " ")}
	if id, err := checkpoint.ParseID(in.arg(0)); err == nil {
		d.Checkpoint = string(id)
	}
	ran := false
	err = d.Recorded(dir, cfg.Tools.FS.Audit, func() error { ran = true; return do() }, refusalOf)
	switch readOnly := errors.Is(err, syscall.EROFS); {
	case ran || err == nil:
		return err
	case readOnly && name == "export": // it changes nothing there
		fmt.Fprintf(in.err, "%s: warning: this is not on record: %v\n", program, err)
		return do()
	case readOnly:
		return &exitError{exitRefused, err.Error(), worksReadOnly, ""}
	}
	return &exitError{exitBroken, err.Error(), "without its record nothing is done", ""}
}

// refusalOf is the outcome of an error for the record; "" is a broken host.
func refusalOf(err error) string {
	switch e := exitOf(storeError(err)); {
	case e.kind != "":
		return e.kind
	case e.status == exitRefused:
		return "refused"
	case e.status == exitMisuse:
		return "bad_request"
	}
	return ""
}
