package main

import (
	"bytes"
	"cmp"
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
	"moltisfs/internal/engine"
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
		name: "policy", short: "explain what closes a path, test Rego policies",
		below: []*command{{
			name: "explain", args: "PATH...", min: 1, max: maxPaths, run: explainPaths,
			short: "show which rule closes a path",
			long: `It says of each PATH whether it may be read and changed, and else by which rule of the configuration it
is closed: a pattern of deny_paths, allow_paths, --root, or a class of protected names. Rego policies, which are
asked besides, are tried by policy test. The exit status is 1 if one of the paths can't be read.`,
			options:  options("json config root"),
			examples: []string{"moltis-fs policy explain .env src/main.go", "moltis-fs policy explain --root ~/project /etc/passwd --json"},
		}, {
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

// explainPaths says of each path what closes it.
func explainPaths(_ context.Context, in *invocation) error {
	if err := in.implyRoot(); err != nil {
		return err
	}
	s, err := in.settings()
	if err != nil {
		return err
	}
	type row struct {
		Path   string `json:"path"`
		Read   bool   `json:"read"`
		Change bool   `json:"change"`
		Rule   string `json:"rule,omitempty"` // what closes it
	}
	var rows []row
	var b strings.Builder
	closed := false
	for _, arg := range in.args {
		path, err := filepath.Abs(arg)
		if err != nil {
			return fmt.Errorf("finding the path: %w", err)
		}
		r := row{Path: path}
		reads, err := engine.RuleOf(s.at.Tools.FS, s.root, path, false)
		if err == nil {
			r.Rule, err = engine.RuleOf(s.at.Tools.FS, s.root, path, true)
		}
		if err != nil {
			return misuse("", "%v", err)
		}
		r.Read, r.Change = reads == "", r.Rule == "" && !s.at.Tools.FS.ReadOnly
		r.Rule = cmp.Or(reads, r.Rule)
		closed = closed || !r.Read
		switch {
		case r.Change:
			fmt.Fprintf(&b, "%s: open\n", visible(path))
		case r.Read && r.Rule == "":
			fmt.Fprintf(&b, "%s: open for reading; read_only is true\n", visible(path))
		case r.Read:
			fmt.Fprintf(&b, "%s: open for reading, closed to changes by %s\n", visible(path), closedBy(r.Rule))
		default:
			fmt.Fprintf(&b, "%s: closed by %s\n", visible(path), closedBy(r.Rule))
		}
		rows = append(rows, r)
	}
	return ending(in.answer(struct {
		Paths []row `json:"paths"`
	}{rows}, "%s", b.String()), refusedIf(closed))
}

// closedBy says for people what a rule is that closes a path.
func closedBy(rule string) string {
	switch rule {
	case "secret":
		return `the class "secret" (protect_secret, unprotected)`
	case "hard":
		return "moltis-fs: the path belongs to it"
	case "allow_paths":
		return "allow_paths or --root, which do not open it"
	}
	return visible(rule)
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
