package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var update = flag.Bool("update", false, "write what is answered into testdata/calls")

// decides answers each question alike.
type decides approval.Decision

func (d decides) Ask(context.Context, approval.Question) (approval.Answer, error) {
	return approval.Answer{Decision: approval.Decision(d), By: "test"}, nil
}

var (
	aTime  = regexp.MustCompile(`"20\d\d-\d\d-\d\dT[0-9:.]+Z"`)
	anID   = regexp.MustCompile(`"alert_id":"[A-Z0-9]+"`)
	aWatch = regexp.MustCompile(`"watch_id":"w_[A-Z0-9]+"`)
	owned  = regexp.MustCompile(`"owner":"[^"]+"`)
	diffs  = regexp.MustCompile(`"size":\d+,"type":"symlink"`)
)

// The calls of testdata/calls, one file a capability. A file has a tree, perhaps a config.toml and
// links, and calls with their answers. R is the root, and "bob> " before a call says who makes it.
// The first line says who approves, if it is not everybody.
func TestCalls(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/calls/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	used := map[string]bool{} // "capability argument" and "capability Error"
	for _, name := range files {
		raw, err := os.ReadFile(name)
		must(t, err)
		ar := txtar.Parse(raw)
		r := roomOf(t, ar)
		calls := &ar.Files[len(ar.Files)-1]
		var now bytes.Buffer
		for line := range strings.SplitSeq(string(calls.Data), "\n") {
			who, call, ok := strings.Cut(line, "> ")
			if !ok || strings.HasPrefix(line, "{") {
				if strings.HasPrefix(line, "#") || line == "" {
					now.WriteString(line + "\n")
				}
				continue
			}
			tool, args, _ := strings.Cut(call, " ")
			got := r.as(t, dialect.Call{Principal: who, Session: "s", Tool: tool, Args: json.RawMessage(args)})
			text := strings.ReplaceAll(string(mustJSON(got)), r.root, "R")
			text = aTime.ReplaceAllString(text, `"TIME"`)
			text = anID.ReplaceAllString(text, `"alert_id":"ID"`)
			text = aWatch.ReplaceAllString(text, `"watch_id":"ID"`)
			text = owned.ReplaceAllString(text, `"owner":"OWNER"`)
			text = diffs.ReplaceAllString(text, `"size":N,"type":"symlink"`)
			now.WriteString(line + "\n" + text + "\n")
			note(used, dotted(tool), args, got)
		}
		want := bytes.TrimRight(calls.Data, "\n")
		if got := bytes.TrimRight(now.Bytes(), "\n"); *update {
			calls.Data = append(got, '\n')
			must(t, os.WriteFile(name, txtar.Format(ar), 0o644))
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s: answered was\n%s\nwanted was\n%s", name, differing(string(got), string(want)), differing(string(want), string(got)))
		}
	}
	byFault := map[string]bool{"DiskFull": true, "TooManyWatches": true} // TestFullDisk; the engine's
	for _, one := range table {
		d := known().find(one.name)
		for _, p := range d.Inputs {
			if !used[d.Name+" "+p.Name] {
				t.Errorf("no call of %s has %s", d.Name, p.Name)
			}
		}
		for _, e := range d.Errors {
			if !used[d.Name+" "+e.Type] && !byFault[e.Type] && d.Name+e.Type != "filesystem.restorePathOutOfScope" { // TestScope
				t.Errorf("no call of %s is answered with %s", d.Name, e.Type)
			}
		}
	}
}

// note keeps what a call and its answer had.
func note(used map[string]bool, tool, args string, got map[string]any) {
	var in map[string]any
	if json.Unmarshal([]byte(args), &in) == nil {
		for name := range in {
			used[tool+" "+name] = true
		}
	}
	if kind, ok := got["type"].(string); ok {
		used[tool+" "+kind] = true
	}
}

// roomOf makes what a file of calls wants.
func roomOf(t *testing.T, ar *txtar.Archive) room {
	t.Helper()
	var toml []byte
	for _, f := range ar.Files {
		if f.Name == "config.toml" {
			toml = f.Data
		}
	}
	r := open(t, func(cfg *config.Config, h *engine.Host) {
		if toml != nil {
			root := cfg.Tools.FS.WorkspaceRoot
			now, err := config.Decode(bytes.ReplaceAll(toml, []byte(`"R`), []byte(`"`+root)), "config.toml")
			must(t, err)
			now.Tools.FS.AllowPaths, now.Tools.FS.WorkspaceRoot = cfg.Tools.FS.AllowPaths, root
			*cfg = now
		}
		switch first, _, _ := strings.Cut(string(ar.Comment), "\n"); first {
		case "nobody":
		case "denied":
			h.Approver = decides(approval.Denied)
		default:
			h.Approver = decides(approval.Approved)
		}
	})
	for _, f := range ar.Files {
		switch name, ok := strings.CutPrefix(f.Name, "tree/"); {
		case ok && strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(filepath.Join(r.root, name), 0o755))
		case ok:
			r.write(t, name, strings.TrimSuffix(string(f.Data), "\n"))
		case f.Name == "links":
			for line := range strings.Lines(string(f.Data)) {
				from, to, _ := strings.Cut(strings.TrimSpace(line), " -> ")
				must(t, os.Symlink(to, filepath.Join(r.root, from)))
			}
		case f.Name == "hex":
			for line := range strings.Lines(string(f.Data)) {
				name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
				var content string
				must(t, json.Unmarshal([]byte(text), &content))
				b := []byte{}
				for _, c := range content { // Latin-1: a character a byte
					b = append(b, byte(c))
				}
				r.write(t, name, string(b))
			}
		}
	}
	return r
}

// A full disk refuses what changes, and leaves all as it was.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full := false
	r := open(t, func(_ *config.Config, h *engine.Host) {
		h.Fault = func(op string) *guardfs.Fault {
			if full && op == "write" {
				return &guardfs.Fault{Err: syscall.ENOSPC}
			}
			return nil
		}
	})
	p := r.write(t, "a", "one")
	full = true
	for tool, args := range map[string]string{
		"filesystem.write": `{"path":"R/a","content":"two"}`, "filesystem.append": `{"path":"R/a","content":"two"}`,
		"filesystem.copy": `{"source":"R/a","destination":"R/b"}`,
	} {
		if got := r.call(t, tool, args); got["type"] != "DiskFull" {
			t.Errorf("%s: %v", tool, got)
		}
	}
	if now, err := os.ReadFile(p); err != nil || string(now) != "one" {
		t.Errorf("%q, %v", now, err)
	}
	if _, err := os.Stat(r.root + "/b"); !errors.Is(err, os.ErrNotExist) {
		t.Error("a copy is there")
	}
}

// docs/capabilities.md is what filesystem.yaml says. -update writes it.
func TestDocs(t *testing.T) {
	t.Parallel()
	const name = "../../../docs/capabilities.md"
	page := render()
	if *update {
		must(t, os.WriteFile(name, page, 0o644))
	}
	if is, err := os.ReadFile(name); err != nil || !bytes.Equal(is, page) {
		t.Errorf("docs/capabilities.md is not what filesystem.yaml says; -update writes it: %v", err)
	}
}

const intro = `# Capabilities

The dialect ` + "`capability`" + `: ` + "`moltis-fs mcp --dialect capability`" + `. Rendered from
` + "`internal/dialect/capability/filesystem.yaml`" + `; do not edit.

` + "```sh" + `
moltis-fs mcp --root /path/to/project --dialect capability
moltis-fs call --root . --dialect capability filesystem.stat '{"path": "'$PWD'/README.md"}'
moltis-fs call --root . --dialect capability --yes filesystem.append '{"path": "'$PWD'/a.log", "content": "one line\n"}'
` + "```" + `

Over MCP a dot in a name is two underscores: ` + "`filesystem__read`" + `. The name with the dot works too.

A success is ` + "`{\"success\":true,\"data\":…}`" + `, an error ` + "`{\"success\":false,\"error\":…}`" + ` with
` + "`type`, `message`, `description`, `recovery`, `retryable`, `retry_after` (seconds) and `context`" + `.
A recovery has the capability to call and its inputs, where they can be told. Where it repeats the
call, they go with what was sent.

Tiers: autonomous runs as ` + "`[tools.fs]`" + ` has it; notify is a warning in the operator's log for each
change; approval_required asks before each change, also where ` + "`require_approval`" + ` is off; blocked is
not listed and refused. ` + "`[tools.capability]`" + ` of the configuration moves a capability to another tier.
One that is looser than here is taken with a warning at start. A caller's own tier only tightens.

` + "`[tools.policy]`" + ` takes the names with the dot. Who denies Write denies filesystem.write and
filesystem.copy too. Without Write, Edit and MultiEdit no capability that changes files is left.

`

// render makes the page.
func render() []byte {
	var b bytes.Buffer
	b.WriteString(intro + "| capability | tier | purpose |\n|---|---|---|\n")
	for _, d := range known().Capabilities {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", d.Name, strings.ReplaceAll(d.Name, ".", ""), d.Tier, cell(d.Purpose))
	}
	for i := range known().Capabilities {
		section(&b, &known().Capabilities[i])
	}
	b.WriteString("\n## Errors of any capability\n\nThe names are ours, in the manner of the text.\n\n")
	failings(&b, known().Common)
	return b.Bytes()
}

func section(b *bytes.Buffer, d *definition) {
	fmt.Fprintf(b, "\n## %s\n\nTier: %s. Version %s. Tags: %s.", d.Name, d.Tier, d.Version, strings.Join(d.Tags, ", "))
	if d.Extra {
		b.WriteString(" An extra of ours.")
	}
	fmt.Fprintf(b, "\n\n%s\n\n%s\n", d.Purpose, d.When)
	if d.Note != "" {
		fmt.Fprintf(b, "\nHere: %s\n", d.Note)
	}
	if len(d.Inputs) > 0 {
		b.WriteString("\n| input | type | required | default | |\n|---|---|---|---|---|\n")
	}
	for _, p := range d.Inputs {
		need, otherwise := "no", ""
		if p.Required {
			need = "yes"
		}
		if p.Default != nil {
			otherwise = fmt.Sprint("`", p.Default, "`")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", p.Name, p.Type, need, otherwise, toldOf(p))
		if p.Type == "Object" {
			for _, i := range p.Items {
				otherwise := ""
				if i.Default != nil {
					otherwise = fmt.Sprint("`", i.Default, "`")
				}
				fmt.Fprintf(b, "| `%s.%s` | %s | no | %s | %s |\n", p.Name, i.Name, i.Type, otherwise, cell(i.Description))
			}
		}
	}
	b.WriteString("\n| output | type | |\n|---|---|---|\n")
	for _, p := range d.Outputs {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", p.Name, p.Type, toldOf(p))
		for _, i := range p.Items {
			fmt.Fprintf(b, "| `%s[].%s` | %s | %s |\n", p.Name, i.Name, i.Type, cell(i.Description))
		}
	}
	for i, e := range d.Effects {
		if i == 0 {
			b.WriteString("\nSide effects:\n\n")
		}
		fmt.Fprintf(b, "- %s (%s)\n", e.Description, map[bool]string{true: "reversible", false: "not reversible"}[e.Reversible])
	}
	for _, p := range d.Patterns {
		fmt.Fprintf(b, "\n%s:\n\n", p.Title)
		for i, s := range p.Steps {
			fmt.Fprintf(b, "%d. %s\n", i+1, s)
		}
	}
	if len(d.Errors) > 0 {
		b.WriteString("\n")
		failings(b, d.Errors)
	}
}

func failings(b *bytes.Buffer, list []failing) {
	b.WriteString("| error | recovery |\n|---|---|\n")
	for _, f := range list {
		var ways []string
		for _, r := range f.Recovery {
			ways = append(ways, "`"+r.Action+"`: "+r.Description)
		}
		fmt.Fprintf(b, "| `%s`: %s | %s |\n", f.Type, cell(f.Description), cell(strings.Join(ways, " ")))
	}
}

// toldOf is what a parameter is, in a table.
func toldOf(p param) string {
	if p.Extra {
		return cell(p.Description) + " An extra of ours."
	}
	return cell(p.Description)
}

// cell is text within a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
