package tools

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

// OpenFaulty is Open with system calls on the tree that come to what fault says.
func OpenFaulty(cfg config.Config, o Options, fault func(op string) *guardfs.Fault) (*Suite, error) {
	o.fault = fault
	return Open(cfg, o)
}

// OpenAt is Open where system calls on the tree are made elsewhere. end is called when the suite has been closed.
func OpenAt(cfg config.Config, o Options, calls guardfs.Calls, end func() error) (*Suite, error) {
	o.at.Calls, o.at.End = calls, end
	return Open(cfg, o)
}

// WithPatience has what a call may have meant looked for as long as that. It is set before tests run.
func WithPatience(d time.Duration) { patience = d }

// TakenBy counts the tools whose arguments these are.
func TakenBy(args any) (n int) {
	for i := range table {
		if table[i].is(args) {
			n++
		}
	}
	return n
}

// Understand gives the arguments that a tool would run with, or, where it refuses, those it offers
// and for which tool.
func Understand(name, raw string) (args, note, refused, offered string) {
	in, note, err := row(name).decode([]byte(raw))
	if err == nil {
		out, _ := plainJSON(in)
		return string(out), note, "", ""
	}
	e := err.(*badArgument)
	if e.Call != nil {
		tool := row(cmp.Or(e.Tool, name))
		in, _, err := tool.decode(e.Call)
		if call, _ := plainJSON(in); err == nil {
			offered = e.Tool + string(call)
		}
	}
	return "", "", e.What + "; " + e.Hint, offered
}

// A PathTool has a tool work on a path: Args are what it is sent.
type PathTool struct {
	Name, Class string // Class is "read", "change", "cell", "walk" or "record"
	Args        func(path string, there bool) map[string]any
}

// pathArgs gives, for each tool, arguments that have it work on a path. there says that a file with the text "a" is there.
var pathArgs = map[string]func(path string, there bool) any{
	"Read":  func(path string, _ bool) any { return ReadArgs{FilePath: path} },
	"Write": func(path string, _ bool) any { return WriteArgs{FilePath: path, Content: "b\n"} },
	"Edit": func(path string, there bool) any {
		return EditArgs{FilePath: path, OldString: map[bool]string{true: "a"}[there], NewString: "b"}
	},
	"MultiEdit": func(path string, there bool) any {
		return MultiEditArgs{FilePath: path, Edits: []OneEdit{{OldString: map[bool]string{true: "a"}[there], NewString: "b"}}}
	},
	"NotebookEdit": func(path string, _ bool) any {
		return NotebookEditArgs{NotebookPath: path, EditMode: new("delete"), CellID: new("x")}
	},
	"Glob":               func(path string, _ bool) any { return GlobArgs{Pattern: "**", Path: &path} },
	"Grep":               func(path string, _ bool) any { return GrepArgs{Pattern: "a", Path: &path} },
	"checkpoints_list":   func(path string, _ bool) any { return CheckpointsListArgs{Path: &path} },
	"checkpoint_diff":    func(path string, _ bool) any { return CheckpointDiffArgs{Since: new("1h"), Paths: []string{path}} },
	"checkpoint_restore": func(path string, _ bool) any { return CheckpointRestoreArgs{Since: new("1h"), Paths: []string{path}} },
}

// PathTools are all tools. Those of class "record" look a path up in the store; the others open it.
func PathTools() (out []PathTool) {
	for i := range table {
		t := &table[i]
		class := "change"
		if pathArgs[t.Name] == nil {
			continue // it takes no path
		}
		switch {
		case strings.HasPrefix(t.Name, "checkpoint"):
			class = "record"
		case !t.Changes && t.OwnTime:
			class = "walk"
		case !t.Changes:
			class = "read"
		case strings.HasPrefix(t.Name, "Notebook"):
			class = "cell"
		}
		out = append(out, PathTool{t.Name, class, func(path string, there bool) (args map[string]any) {
			raw, err := plainJSON(pathArgs[t.Name](path, there))
			if err == nil {
				err = json.Unmarshal(raw, &args)
			}
			if err != nil {
				panic(err)
			}
			return args
		}})
	}
	return out
}
