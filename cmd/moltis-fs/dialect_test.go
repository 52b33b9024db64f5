package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/acp"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/serve/mcp"
)

// toy is a whole dialect: one tool, its arguments, its words, over the engine that keeps the promises.
type toy struct{ *engine.Engine }

type catArgs struct {
	Name string `json:"name" doc:"absolute"`
}

var catSpec = args.Of[catArgs](&args.Names{Aliases: []args.Alias{{Theirs: "path", Ours: "name", Quiet: true}}})

func (toy) Definitions() []dialect.Definition {
	return []dialect.Definition{{
		Name: "cat", Description: "What is in it.", ReadOnly: true,
		InputSchema: catSpec.Schema(), OutputSchema: json.RawMessage(`{"type":"object"}`),
	}}
}

func (d toy) Call(ctx context.Context, in dialect.Call) (answer dialect.Answer, err error) {
	c := &engine.Call{Principal: in.Principal, Session: in.Session, Dialect: "toy", Tool: in.Tool, Tier: in.Tier}
	if in.Tool != "cat" {
		return nil, d.Unknown(ctx, c, in, nil, &dialect.UnknownToolError{Tool: in.Tool, Nearest: "cat"})
	}
	return engine.Do(ctx, d.Engine, c, engine.Operation[*catArgs, said]{
		Args: in.Args,
		Decode: func(raw json.RawMessage) (*catArgs, error) {
			v, err := catSpec.Decode(raw)
			a, _ := v.(*catArgs)
			return a, err
		},
		Run: func(ctx context.Context, a *catArgs) (answer said, err error) {
			err = c.View(ctx, engine.View{Path: a.Name, Access: guardfs.Read,
				Look: func(_ context.Context, h *guardfs.Handle) (*engine.ReadRecord, error) {
					f, err := h.Open()
					if err != nil {
						return nil, err
					}
					defer f.Close()
					text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<10))
					answer = said{in.Session + " sees " + string(text), false}
					return nil, err
				}})
			return answer, err
		},
		Refuse: says[*catArgs],
	})
}

// says is a refusal by the name of its cause.
func says[In any](_ context.Context, _ *engine.Call, _ In, no *engine.Refusal) (said, string) {
	return said{"no: " + no.Cause.Name, true}, string(no.Code)
}

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

// Every server of calls takes any dialect, and policy and record hold under each: the command
// line and MCP know nothing of tools.
func TestAnyDialectIsServed(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, text := range map[string]string{"open": "day", "closed": "night"} {
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	cfg, data := config.Default(), filepath.Join(t.TempDir(), "data")
	cfg.Tools.FS.DenyPaths = []string{root + "/closed"}
	e, err := engine.Open(cfg, engine.Host{DataDir: data})
	must(t, err)
	defer e.Close()
	d := toy{e}
	named := func(name string) json.RawMessage { return json.RawMessage(`{"path":"` + root + "/" + name + `"}`) }
	var out bytes.Buffer
	in := &invocation{streams: streams{out: &out}}
	call := dialect.Call{Session: "s", Tool: "cat", Args: named("open")}
	if err := callOnce(t.Context(), in, d, call); err != nil {
		t.Error(err)
	}
	if x := exitOf(callOnce(t.Context(), in, d, dialect.Call{Tool: "cat", Args: named("closed")})); x.status != exitRefused {
		t.Errorf("a refusal ends with %d", x.status)
	}
	if x := exitOf(callOnce(t.Context(), in, d, dialect.Call{Tool: "cut"})); x.status != exitMisuse || x.hint != "did you mean cat?" {
		t.Errorf("an unknown tool ends with %d, %s", x.status, x.hint)
	}
	messages := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cat","arguments":` + string(named("open")) + `}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"cut"}}
`)
	if err := mcp.Serve(t.Context(), d, messages, &out, mcp.Options{Session: "m"}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`{"said":"s sees day"}`, `{"said":"no: denied"}`, `"text":"m sees day"`, `"structuredContent":{"said":"m sees day"}`, `there is no tool \"cut\"; did you mean cat?`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	record := recordsOf(t, data)
	if n := strings.Count(record, "\n"); n != 5 || !strings.Contains(record, `"rule":"deny_paths `) {
		t.Errorf("%d records:\n%s", n, record)
	}
}

// [tools.policy] knows the tools of every dialect, so that a misspelt name is found.
func TestConfigKnowsTheTools(t *testing.T) {
	var names []string
	for _, d := range dialects() {
		defs, err := d.definitions(config.Default().Tools)
		must(t, err)
		for _, def := range defs {
			names = append(names, append([]string{def.Name}, def.Also...)[len(def.Also)])
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
