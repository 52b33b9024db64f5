package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/dialect/jettson"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

// offered is one dialect that --dialect can name.
type offered struct {
	name        string
	definitions func(config.Tools) ([]dialect.Definition, error)
	over        func(*engine.Engine, config.Config, *lasting) (dialect.Dialect, error)
}

// dialects are all that there are; the first is offered unless another is named.
func dialects() []offered {
	return []offered{
		{"tools", tools.DefinitionsUnder,
			func(e *engine.Engine, _ config.Config, _ *lasting) (dialect.Dialect, error) {
				return tools.Over(e).Dialect(), nil
			}},
		{"capability", capability.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, k *lasting) (dialect.Dialect, error) {
				d, err := capability.Over(e, cfg.Tools.Capability)
				if err == nil && k != nil {
					d = d.With(&k.Kept)
				}
				return d, err
			}},
		{"jettson", jettson.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, k *lasting) (dialect.Dialect, error) {
				d, err := jettson.Over(e, cfg.Tools.Jettson)
				if err == nil && k != nil {
					d = d.With(k.homes)
				}
				return d, err
			}},
		{"jsfs", jsfs.DefinitionsUnder,
			func(e *engine.Engine, cfg config.Config, _ *lasting) (dialect.Dialect, error) {
				worker, err := jsProgram()
				return jsfs.Over(e, jsfs.Options{Config: cfg.Tools.JS, Worker: worker}), err
			}},
	}
}

// readOnlyOption and dialectOption are those of every command that offers tools.
func readOnlyOption() option {
	return opt("read-only", "", "offer no tool that changes files, whatever the configuration says")
}

func dialectOption() option {
	return opt("dialect", "NAMES", "what is offered: some of "+dialectNames()+", with commas "+
		"between them; "+dialects()[0].name+" unless told")
}

// dialects are those that the command line names.
func (in *invocation) dialects() (out []offered, err error) {
	all := dialects()
	given := in.option("dialect")
	if given == "" {
		return all[:1], nil
	}
	for name := range strings.SplitSeq(given, ",") {
		i := slices.IndexFunc(all, func(d offered) bool { return d.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, misuse("the dialects are "+dialectNames(), "there is no dialect %q", name)
		}
		if !slices.ContainsFunc(out, func(d offered) bool { return d.name == all[i].name }) {
			out = append(out, all[i])
		}
	}
	return out, nil
}

func dialectNames() string {
	var names []string
	for _, d := range dialects() {
		names = append(names, d.name)
	}
	return strings.Join(names, ", ")
}

// definitionsOf are the tools of the dialects that the command line names, under a configuration
// but without an engine.
func (in *invocation) definitionsOf(cfg config.Config) ([]dialect.Definition, error) {
	chosen, err := in.dialects()
	if err != nil {
		return nil, err
	}
	var all []dialect.Definition
	for _, d := range chosen {
		defs, err := d.definitions(cfg.Tools)
		if err != nil {
			return nil, err
		}
		all = append(all, defs...)
	}
	return all, nil
}

// over stands the dialects that the command line names on an engine, as one.
func (in *invocation) over(e *engine.Engine, cfg config.Config) (dialect.Dialect, error) {
	chosen, err := in.dialects()
	if err != nil {
		return nil, err
	}
	var ds []dialect.Dialect
	for _, one := range chosen {
		d, err := one.over(e, cfg, in.lasting)
		if errors.Is(err, jettson.ErrNoWorkspace) {
			return nil, misuse("name one with --root", "%v", err)
		}
		if err != nil {
			return nil, fmt.Errorf("opening the dialect %s: %w", one.name, err)
		}
		ds = append(ds, d)
	}
	return dialect.Join(ds...), nil
}
