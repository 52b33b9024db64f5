package capability

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
)

// ours are the extras: what the text does not have, and its later version does.
const ours = "filesystem.read next_offset, filesystem.read hidden_chars, filesystem.read hidden_lines, filesystem.list limit, filesystem.list offset, filesystem.list left_out, filesystem.list next_offset, filesystem.list odd_names, " +
	"filesystem.search odd_names, filesystem.search_content total_only, " +
	"filesystem.search_content files_only, filesystem.search_content include_all, filesystem.search_content binary_matches, " +
	"filesystem.search_content files, filesystem.edit"

// Of the capabilities of the text filesystem.yaml says the same as the text, no more and no
// less, apart from what is marked as ours.
func TestTheTextHolds(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/facts.txt")
	must(t, err)
	offered, tables := []string{}, map[string]string{}
	// The text names a capability here that it does not have.
	text := strings.ReplaceAll(string(raw), "Use system.disk_usage to check available space.", "Free some space or tell the operator.")
	for part := range strings.SplitSeq(text, "\n\n") {
		for line := range strings.SplitSeq(part, "\n") {
			if strings.HasPrefix(line, "offered ") {
				offered = append(offered, line)
			}
		}
		if rest, ok := strings.CutPrefix(part, "capability "); ok {
			name, _, _ := strings.Cut(rest, " ")
			tables[name] = strings.TrimSpace(part)
		}
	}
	var got, extras []string
	for i := range known().Capabilities {
		d := &known().Capabilities[i]
		if !strings.HasPrefix(d.Name, "filesystem.") {
			continue
		}
		if d.Extra {
			extras = append(extras, d.Name)
			continue
		}
		for _, p := range slices.Concat(d.Inputs, d.Outputs) {
			if p.Extra {
				extras = append(extras, d.Name+" "+p.Name)
			}
		}
		got = append(got, d.Name+" "+string(d.Tier))
		want, ok := tables[d.Name]
		delete(tables, d.Name)
		if has := factsOf(t, d); ok && has != want {
			t.Errorf("%s: the YAML has\n%s\nand the text\n%s", d.Name, differing(has, want), differing(want, has))
		}
		if !ok && !slices.ContainsFunc(offered, func(line string) bool { return strings.HasSuffix(line, " | "+d.Purpose) }) {
			t.Errorf("%s: the text does not have %q", d.Name, d.Purpose)
		}
	}
	for i, line := range offered {
		if head, _, _ := strings.Cut(strings.TrimPrefix(line, "offered "), " |"); i >= len(got) || head != got[i] {
			t.Errorf("the text offers %s; the YAML has %v", head, got)
		}
	}
	if now := strings.Join(extras, ", "); now != ours {
		t.Errorf("marked as ours is\n%s\nand is to be\n%s", now, ours)
	}
	if len(got) != len(offered) || len(tables) > 0 {
		t.Errorf("the YAML has %d of %d, and not %v", len(got), len(offered), tables)
	}
}

// factsOf is a definition as testdata/facts.txt has it.
func factsOf(t *testing.T, d *definition) string {
	t.Helper()
	var b strings.Builder
	form := template.New("").Funcs(template.FuncMap{"join": strings.Join})
	must(t, template.Must(form.Parse(facts)).Execute(&b, d))
	return b.String()
}

const facts = `capability {{.Name}} {{.Tier}} {{.Version}}
purpose | {{.Purpose}}
when | {{.When}}
{{range .Inputs}}{{if not .Extra}}input {{.Name}} {{.Type}} {{if .Required}}required{{else}}optional{{end}} {{if ne .Default nil}}{{.Default}}{{else}}-{{end}} | {{.Description}}
{{end}}{{end}}{{range .Outputs}}{{if not .Extra}}output {{.Name}} {{.Type}} | {{.Description}}
{{end}}{{end}}{{range .Effects}}effect {{if not .Reversible}}ir{{end}}reversible | {{.Description}}
{{end}}{{range .Patterns}}pattern | {{.Title}} | {{join .Steps ""}}
{{end}}{{range .Errors}}error {{.Type}} | {{.Description}}
{{range .Recovery}}recovery {{.Action}} | {{.Description}}
{{end}}{{end}}tags | {{join .Tags " "}}`

// differing are the lines of a that b has not.
func differing(a, b string) string {
	there := strings.Split(b, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(a, "\n"), func(l string) bool { return slices.Contains(there, l) }), "\n")
}

// A recovery names capabilities that there are, and inputs that they take.
func TestRecoveriesCanBeCalled(t *testing.T) {
	t.Parallel()
	all := slices.Clone(known().Common)
	for _, d := range known().Capabilities {
		all = append(all, d.Errors...)
	}
	named := regexp.MustCompile(`\b(filesystem|agent|alerts|system)\.[a-z_]+`)
	for _, f := range all {
		for _, r := range f.Recovery {
			for _, name := range named.FindAllString(r.Description, -1) {
				if known().find(name) == nil {
					t.Errorf("%s of %s names %s", r.Action, f.Type, name)
				}
			}
			if r.Capability == "" {
				continue
			}
			d := known().find(r.Capability)
			if d == nil {
				t.Errorf("%s of %s names %s", r.Action, f.Type, r.Capability)
				continue
			}
			for name := range r.Inputs {
				if !slices.ContainsFunc(d.Inputs, func(p param) bool { return p.Name == name }) {
					t.Errorf("%s of %s: %s takes no %s", r.Action, f.Type, d.Name, name)
				}
			}
		}
	}
}
