package main

import (
	"slices"
	"testing"
)

// --policies-json takes the object of the page "Filesystem access", with its defaults, and nothing else.
func TestPoliciesOfThePage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entry, mode string
		policies    []string // nil: it is refused
	}{
		{`{"policies": []}`, "all", []string{}},
		{`{"mode": "any", "policies": [{"url": "file:///a.rego"}]}`, "any", []string{"file:///a.rego"}},
		{`{"mode": "", "policies": [{"url": "file:///a b.rego", "rule": "data.a.b"}]}`, "all", []string{"file:///a%20b.rego data.a.b"}},
		{`{"mode": "all", "policies": [{"url": "http://127.0.0.1:1"}, {"url": "http://127.0.0.1:2", "policy_path": "a/b"}]}`, "all", []string{"http://127.0.0.1:1", "http://127.0.0.1:2 a/b"}},
		{`{"policies": [{"url": "FILE:///a.rego", "rule": "data.a", "policy_path": "b"}]}`, "all", []string{"FILE:///a.rego data.a"}},
		{entry: `{"mode": "some", "policies": []}`}, {entry: `null`}, {entry: `{}`}, {entry: `{"mode": "any"}`}, {entry: `{"policies": null}`},
		{entry: `{"policies": [], "policy": 1}`}, {entry: `{"policies": [{"rule": "data.a"}]}`}, {entry: `{"policies": [{"url": "file:///a.rego", "rule": "a b"}]}`},
	} {
		mode, policies, err := policiesOf(`{"filesystem": ` + c.entry + `, "fetch": "of another program"}`)
		if c.entry == "null" {
			err = nil // there is no entry
		}
		if taken := c.policies != nil; mode != c.mode || !slices.Equal(policies, c.policies) || taken != (err == nil && mode != "") {
			t.Errorf("%s: %q %q, %v", c.entry, mode, policies, err)
		}
	}
	if _, _, err := policiesOf(`{"filesystem": {"policies": ["file:///a.rego"]}}`); err == nil || err.Error() != `what is at "filesystem.policies" can't be of type string` {
		t.Error(err)
	}
}
