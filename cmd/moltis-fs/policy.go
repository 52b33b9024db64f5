package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/nearest"
	"moltisfs/internal/policy"
	"moltisfs/internal/policy/rego"
)

// operations are those that a policy is asked about.
func operations() (out []string) {
	for _, name := range jsfs.Names()[1:] {
		out = append(out, strings.TrimPrefix(name, "fs."))
	}
	return out
}

const inputForm = `{"operation": "readFile", "path": "/ws/a", "resolved_path": "/ws/a"}`

func policyCommand() *command {
	const input = `INPUT is JSON as a policy sees it as input, a file with that, or - for standard
input: ` + inputForm + `.
docs/policies.md has the fields.`
	jsonOption := opt("json", "", "answer with one JSON object")
	return &command{
		name: "policy", payload: true,
		short: "try Rego policies, and see which rule decides",
		below: []*command{
			{
				name: "test", args: "FILE INPUT", min: 2, max: 2, run: testPolicy,
				short: "say what one policy decides, and by which rule",
				long: `FILE is a .rego file, a directory of them, or the URL of an OPA server. ` + input + `
The answer has the decision, the file and line of the rules that held and of those that did not, the
version of Rego and the time that it took. The exit status is 0 where it allows and 1 where it does
not or fails; 2 where the policy can't be loaded.`,
				options: []option{jsonOption, opt("rule", "RULE", "what to evaluate; unless told "+
					"data.mcp.filesystem.allow, and at a server the path mcp/filesystem")},
				examples: []string{`moltis-fs policy test fs.rego '{"operation": "rm", "path": "/ws/a"}'`,
					"moltis-fs policy test policies/ input.json --rule data.team.allow --json"},
			},
			{
				name: "explain", args: "INPUT", min: 1, max: 1, run: explainPolicies,
				short: "say what the whole chain of the configuration decides, policy by policy",
				long: input + `
Each policy that is asked is told as in policy test, in order, until one decides. The guard of paths
runs after the chain in any case and is not asked here. The exit status is 0 where the chain allows,
and 1 where it does not.`,
				options: []option{configOption(), policiesOption(), jsonOption},
				examples: []string{"moltis-fs policy explain --config moltis.toml input.json",
					"moltis-fs policy explain --policies-json policies.json input.json --json"},
			},
		},
	}
}

func testPolicy(ctx context.Context, in *invocation) error {
	at := in.arg(0)
	if !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") &&
		!strings.HasPrefix(at, "file:") {
		name, err := absolute(at)
		if err != nil {
			return err
		}
		at = (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Clean(name))}).String()
	}
	chain, err := rego.Open("all", []string{at + " " + in.option("rule")})
	if err != nil {
		return misuse("", "%v", err)
	}
	return in.explain(ctx, chain, in.arg(1))
}

func explainPolicies(ctx context.Context, in *invocation) error {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return unusableConfig(err, from)
	}
	fs := cfg.Tools.FS
	if !fs.HasPolicies() {
		return misuse("set tools.fs.policies, or give --policies-json",
			"there are no policies: everything is allowed that the rest of the configuration allows")
	}
	chain, err := rego.Open(fs.PoliciesMode, fs.Policies)
	if err != nil {
		return misuse("", "%v", err)
	}
	return in.explain(ctx, chain, in.arg(0))
}

// explain answers with what a chain says of an input.
func (in *invocation) explain(ctx context.Context, chain *rego.Chain, input string) error {
	asked, err := in.policyInput(input)
	if err != nil {
		return err
	}
	allowed, why := chain.Explain(ctx, asked)
	outcome := refusedIf(!allowed)
	if in.given("json") {
		return ending(writeJSON(in, struct {
			Allowed  bool            `json:"allowed"`
			Policies []rego.Decision `json:"policies"`
		}{allowed, list(why)}), outcome)
	}
	var b strings.Builder
	fmt.Fprintln(&b, decided(allowed, false))
	for _, d := range why {
		fmt.Fprintf(&b, "%s: %s", d.Policy, decided(d.Allowed, d.Failed))
		if len(d.Rego) > 0 {
			fmt.Fprintf(&b, " (Rego %s)", strings.Join(d.Rego, ", "))
		}
		fmt.Fprintf(&b, " in %.1f µs\n", d.Micros)
		if d.Why != "" {
			fmt.Fprintf(&b, "  %s\n", d.Why)
		}
		for _, r := range d.Matched {
			fmt.Fprintf(&b, "  %s:%d: %s held\n", r.File, r.Line, r.Name)
		}
		for _, r := range d.Unmet {
			fmt.Fprintf(&b, "  %s:%d: %s did not hold", r.File, r.Line, r.Name)
			if r.Ended != "" {
				fmt.Fprintf(&b, ": line %d: %s", r.At, r.Ended)
			}
			b.WriteByte('\n')
		}
	}
	return ending(in.write([]byte(approval.Escape(b.String(), true))), outcome)
}

func decided(allowed, failed bool) string {
	switch {
	case failed:
		return "failed, which denies"
	case allowed:
		return "allowed"
	}
	return "denied"
}

// policyInput is the input that an argument has: JSON, a file, or "-".
func (in *invocation) policyInput(text string) (asked policy.Input, err error) {
	const most = 1 << 20
	data := []byte(text)
	switch {
	case text == "-":
		data, err = io.ReadAll(io.LimitReader(in.in, most))
	case !strings.HasPrefix(strings.TrimSpace(text), "{"):
		data, err = readAtMost(text, most)
	}
	if err != nil {
		return asked, misuse("give JSON, a file with it, or -", "reading the input: %v", err)
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&asked); err != nil {
		return asked, misuse("it looks like "+inputForm, "the input is not that of a policy: %v",
			plainly("input", err))
	}
	if all := operations(); !slices.Contains(all, asked.Operation) {
		hint := "there are " + strings.Join(all, ", ")
		if near := nearest.Of(asked.Operation, all); near != "" {
			hint = "did you mean " + near + "?"
		}
		return asked, misuse(hint, "there is no operation %q", asked.Operation)
	}
	return asked, nil
}
