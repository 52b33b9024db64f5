package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"text/template"

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

// docs/capabilities.md tells what filesystem.yaml says, in the form of testdata/capabilities.md.tmpl. -update writes it.
func TestDocs(t *testing.T) {
	t.Parallel()
	const name = "../../../docs/capabilities.md"
	form := template.New("capabilities.md.tmpl").Funcs(template.FuncMap{
		"anchor": func(name string) string { return strings.ReplaceAll(name, ".", "") },
		"cell":   func(text string) string { return strings.ReplaceAll(text, "|", `\|`) },
		"join":   strings.Join,
		"next":   func(i int) int { return i + 1 },
	})
	var page bytes.Buffer
	must(t, template.Must(form.ParseFiles("testdata/capabilities.md.tmpl")).Execute(&page, known()))
	if *update {
		must(t, os.WriteFile(name, page.Bytes(), 0o644))
	}
	if is, err := os.ReadFile(name); err != nil || !bytes.Equal(is, page.Bytes()) {
		t.Errorf("docs/capabilities.md is not what filesystem.yaml says; -update writes it: %v", err)
	}
}
