package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/internal/policy/rego"
)

// --policies-json takes what the page "Filesystem access" says, with its defaults, and nothing else.
func TestPoliciesOfThePage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../internal/dialect/jsfs/testdata/facts.txt")
	must(t, err)
	rule := filepath.Join(t.TempDir(), "p.rego")
	must(t, os.WriteFile(rule, []byte("package a\nb := true\n"), 0o600))
	file := (&url.URL{Scheme: "file", Path: filepath.ToSlash(rule)}).String()
	policy, entry, usual, modes := map[string]any{}, map[string]any{}, map[string]string{}, []string{}
	for line := range strings.Lines(string(raw)) {
		switch f := strings.Fields(line); f[0] {
		case "mode":
			modes = append(modes, f[1])
		case "config":
			name, below := strings.CutPrefix(f[1], "policies.")
			if below {
				policy[name] = "a.b"
			} else if name != "policies" {
				entry[name] = "any"
			}
			if len(f) > 2 {
				usual[name] = f[2]
			}
		}
	}
	policy["url"], entry["policies"] = file, []any{policy}
	takes := func(change func()) (string, []string, error) {
		change()
		text, err := json.Marshal(map[string]any{"filesystem": entry, "fetch": "of another program"})
		must(t, err)
		return policiesOf(string(text))
	}
	if mode, all, err := takes(func() {}); err != nil || mode != "any" || !slices.Equal(all, []string{file + " a.b"}) || len(usual) != 3 || len(entry) != 2 {
		t.Errorf("%s %q %v", mode, all, err)
	}
	for _, m := range append(modes, "", "some") {
		if mode, _, err := takes(func() { entry["mode"] = m }); (err == nil) != (m != "some") || m == "" && mode != usual["mode"] {
			t.Errorf("mode %q: %q, %v", m, mode, err)
		}
	}
	delete(entry, "mode")
	for at, want := range map[string]string{file: usual["rule"], "http://127.0.0.1:1": "/v1/data/" + usual["policy_path"]} {
		mode, all, err := takes(func() { entry["policies"] = []any{map[string]any{"url": at}} })
		if err != nil || mode != usual["mode"] {
			t.Fatal(mode, err)
		}
		chain, err := rego.Open(mode, all)
		asked, no := new(invocation).policyInput(inputForm)
		if err != nil || no != nil {
			t.Fatal(err, no)
		}
		if _, why := chain.Explain(t.Context(), asked); !strings.Contains(why[0].Policy, want) {
			t.Errorf("%s: %+v, want %s", at, why, want)
		}
	}
	_, all, err := policiesOf(`{"filesystem": {"policies": [{"url": "FILE:///a.rego", "rule": "data.a", "policy_path": "b"}]}}`)
	if err != nil || !slices.Equal(all, []string{"FILE:///a.rego data.a"}) {
		t.Errorf("%q %v", all, err)
	}
	if _, _, err = policiesOf(`{"filesystem": {"policies": ["file:///a.rego"]}}`); err == nil ||
		err.Error() != `what is at "filesystem.policies" can't be of type string` {
		t.Error(err)
	}
	for _, none := range []string{`null`, `{}`, `{"mode": "any"}`, `{"policies": null}`, `{"policies": [], "policy": 1}`} {
		if mode, _, err := policiesOf(`{"filesystem": ` + none + `}`); err == nil {
			t.Errorf("%s is taken for %q", none, mode)
		}
	}
}
