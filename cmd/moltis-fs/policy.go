package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect/jsfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/policy/rego"
)

// operations lists the operations that a policy is asked about.
func operations() (out []string) {
	for _, name := range jsfs.Names()[1:] {
		out = append(out, strings.TrimPrefix(name, "fs."))
	}
	return out
}

const inputForm = `{"operation": "readFile", "path": "/ws/a", "resolved_path": "/ws/a"}`

func policyCommand() *command {
	return &command{
		name: "policy", short: "test Rego policies",
		below: []*command{{
			name: "test", args: "[FILE] INPUT", min: 1, max: 2, run: testPolicy,
			short: "show what a policy, or the chain of the configuration, decides",
			long: `FILE is a .rego file, a directory of them, or the URL of an OPA server. Without it each policy of the
configuration is asked, in order, until one decides. INPUT is JSON as a policy sees it as input, a
file with that, or - for standard input: ` + inputForm + `.
docs/policy.md has the fields.

The answer has the decision, and that of each policy that was asked. The guard of paths runs after the
chain in any case and is not asked here. The exit status is 0 where it allows and 1 where it does not or fails; 2 where the
policy can't be loaded.`,
			options: options("json config policies-json", opt("rule", "RULE", "what to evaluate of FILE (default: "+
				"data.mcp.filesystem.allow, and at a server the path mcp/filesystem)")),
			examples: []string{`moltis-fs policy test fs.rego '{"operation": "rm", "path": "/ws/a"}'`,
				"moltis-fs policy test policies/ input.json --rule data.team.allow --json",
				"moltis-fs policy test --config moltis.toml input.json"},
		}},
	}
}

func testPolicy(ctx context.Context, in *invocation) error {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return unusableConfig(err, from)
	}
	mode, policies, input := cfg.Tools.FS.PoliciesMode, cfg.Tools.FS.Policies, in.arg(0)
	switch one := len(in.args) == 2; {
	case one && in.count("config", "policies-json") > 0:
		return misuse("leave FILE out to ask the configuration's policies", "it is FILE that is asked, or a configuration")
	case !one && in.given("rule"):
		return misuse("the rules of a configuration stand there", "--rule is about FILE")
	case one:
		at := in.arg(0)
		if !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") && !strings.HasPrefix(at, "file:") {
			name, err := absolute(at)
			if err != nil {
				return err
			}
			at = (&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Clean(name))}).String()
		}
		mode, policies, input = "all", []string{at + " " + in.option("rule")}, in.arg(1)
	case !cfg.Tools.FS.HasPolicies():
		return misuse("name FILE, set tools.fs.policies, or give --policies-json",
			"there are no policies: everything is allowed that the rest of the configuration allows")
	}
	chain, err := rego.Open(mode, policies)
	if err != nil {
		return misuse("", "%v", err)
	}
	return in.explain(ctx, chain, input)
}

// explain answers with what a chain says of an input.
func (in *invocation) explain(ctx context.Context, chain *rego.Chain, input string) error {
	asked, err := in.policyInput(input)
	if err != nil {
		return err
	}
	allowed, why := chain.Explain(ctx, asked)
	outcome := refusedIf(!allowed)
	var b strings.Builder
	fmt.Fprintln(&b, decided(allowed, false))
	for _, d := range why {
		fmt.Fprintf(&b, "%s: %s\n", d.Policy, decided(d.Allowed, d.Failed))
		if d.Why != "" {
			fmt.Fprintf(&b, "  %s\n", d.Why)
		}
	}
	return ending(in.answer(struct {
		Allowed  bool            `json:"allowed"`
		Policies []rego.Decision `json:"policies"`
	}{allowed, list(why)}, "%s", approval.Escape(b.String(), true)), outcome)
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
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		data, err = in.readArgument(text, most)
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
		if near := args.Nearest(asked.Operation, all); near != "" {
			hint = "did you mean " + near + "?"
		}
		return asked, misuse(hint, "there is no operation %q", asked.Operation)
	}
	return asked, nil
}
