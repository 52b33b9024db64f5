package capability

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/capabilities.md is what filesystem.yaml says. -update writes it.
func TestDocs(t *testing.T) {
	t.Parallel()
	const name = "../../../docs/capabilities.md"
	page := render()
	if *update {
		if err := os.WriteFile(name, page, 0o644); err != nil {
			t.Fatal(err)
		}
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
