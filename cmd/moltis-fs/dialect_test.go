package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/acp"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/engine"
)

// said is an answer.
type said struct {
	text string
	no   bool
}

func (s said) ForHooks() (json.RawMessage, error)     { return s.JSON(false) }
func (s said) Replaced(json.RawMessage) (said, error) { return s, nil }
func (s said) Kind() string                           { return "said" }
func (s said) Refused() bool                          { return s.no }
func (s said) Text() string                           { return s.text }
func (s said) JSON(bool) ([]byte, error)              { return json.Marshal(map[string]string{"said": s.text}) }
func (s said) Blocks() ([]dialect.Block, error)       { return nil, nil }

// [tools.policy] knows the tools of every dialect, so that a misspelt name is found.
func TestConfigKnowsTheTools(t *testing.T) {
	var names []string
	cfg := config.Default().Tools
	cfg.Run.Enabled = true
	for _, d := range dialects() {
		defs, err := d.definitions(cfg)
		must(t, err)
		for _, def := range defs {
			name := def.Name
			if len(def.Also) > 0 && def.Also[0] != "exec" {
				name = def.Also[0]
			}
			names = append(names, name)
		}
	}
	names = append(append(names, jsfs.Names()[1:]...), acp.Read, acp.Write, acp.Terminal)
	if got := config.ToolNames(); !slices.Equal(got, names) {
		t.Errorf("config knows %v, and there are %v", got, names)
	}
}

// Read-only, no dialect lists or takes what changes files, and the engine refuses an operation that
// says it does, whatever its name and whatever [tools.policy] allows.
func TestReadOnly(t *testing.T) {
	cfg := config.Default()
	cfg.Tools.FS.ReadOnly = true
	cfg.Tools.FS.WorkspaceRoot = t.TempDir()
	cfg.Tools.Policy.Allow = []string{"*", "Write", "filesystem.write", "jettson_files_write"}
	e, err := engine.Open(cfg, engine.Host{DataDir: filepath.Join(t.TempDir(), "data")})
	must(t, err)
	defer e.Close()
	reads, changes := 0, 0 // tools that do no more, and those that are gone
	for _, offered := range dialects() {
		all, err := offered.definitions(config.Default().Tools)
		must(t, err)
		listed, err := offered.definitions(cfg.Tools)
		must(t, err)
		d, err := offered.over(e, cfg, nil)
		must(t, err)
		for _, def := range all {
			same := func(o dialect.Definition) bool { return o.Name == def.Name }
			if i := slices.IndexFunc(listed, same); i >= 0 && listed[i].ReadOnly && !def.ReadOnly {
				continue // it only reads then
			}
			if slices.ContainsFunc(listed, same) != def.ReadOnly || slices.ContainsFunc(d.Definitions(), same) != def.ReadOnly {
				t.Errorf("%s is listed: %t", def.Name, !def.ReadOnly)
			}
			if def.ReadOnly {
				reads++
				continue
			}
			changes++
			_, err := d.Call(t.Context(), dialect.Call{Tool: def.Name, Args: json.RawMessage("{}")})
			if _, unknown := errors.AsType[*dialect.UnknownToolError](err); !unknown {
				t.Errorf("%s: %v", def.Name, err)
			}
		}
	}
	if changes < 12 || reads < 12 {
		t.Errorf("%d tools change files, %d do not", changes, reads)
	}
	ran, refused := false, false
	op := engine.Operation[any, said]{Changes: true,
		Run: func(context.Context, any) (said, error) { ran = true; return said{}, nil },
		Refuse: func(context.Context, *engine.Call, any, *engine.Refusal) (said, string) {
			refused = true
			return said{}, "refused"
		}}
	if _, err := engine.Do(t.Context(), e, &engine.Call{Tool: "Read"}, op); err != nil || ran || !refused {
		t.Errorf("an operation that changes files ran: %t, refused: %t, %v", ran, refused, err)
	}
}
