package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"moltisfs/config"
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
	return &command{
		name: "policy", short: "try Rego policies, and see which rule decides",
		below: []*command{{
			name: "test", args: "[FILE] INPUT", min: 1, max: 2, run: testPolicy,
			short: "say what a policy, or the chain of the configuration, decides, and by which rule",
			long: `FILE is a .rego file, a directory of them, or the URL of an OPA server. Without it each policy of the
configuration is asked, in order, until one decides. INPUT is JSON as a policy sees it as input, a
file with that, or - for standard input: ` + inputForm + `.
docs/policies.md has the fields.

The answer has the decision, the file and line of the rules that held and of those that did not, the
version of Rego and the time that it took. The guard of paths runs after the chain in any case and is
not asked here. The exit status is 0 where it allows and 1 where it does not or fails; 2 where the
policy can't be loaded.`,
			options: options("json config policies-json", opt("rule", "RULE", "what to evaluate of FILE; unless told "+
				"data.mcp.filesystem.allow, and at a server the path mcp/filesystem")),
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

const policiesForm = `{"filesystem": {"mode": "all", "policies": [{"url": "file:///etc/fs.rego"}]}}`

// overridePolicies puts what --policies-json says in the place of what the configuration does.
func (in *invocation) overridePolicies(cfg *config.Config) error {
	if !in.given("policies-json") {
		return nil
	}
	text, file := in.option("policies-json"), in.policiesFile()
	if file != "" {
		data, err := readAtMost(file, config.MaxSize)
		if err != nil {
			return misuse("give JSON, or a file with it", "reading the policies: %v", err)
		}
		text = string(data)
	}
	mode, policies, err := policiesOf(text)
	if err != nil {
		return misuse("it looks like "+policiesForm, "--policies-json: %v", err)
	}
	fs := &cfg.Tools.FS
	if mode == "" { // what holds is what the configuration says
		fmt.Fprintf(in.err, "%s: warning: --policies-json has no entry \"filesystem\"\n", program)
		return nil
	}
	fs.PoliciesMode, fs.Policies = mode, policies
	return nil
}

// policiesFile is the file that --policies-json names, "" where it is the text itself.
func (in *invocation) policiesFile() string {
	if text := in.option("policies-json"); !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return text
	}
	return ""
}

// policiesOf are the policies of a text, as the configuration has them; mode is "" where it has none.
// Entries beside "filesystem" are about what this program does not do.
func policiesOf(text string) (mode string, policies []string, err error) {
	const entry = "filesystem"
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return "", nil, err
	}
	for name := range all {
		if name != entry && nearest.Of(name, []string{entry}) != "" {
			return "", nil, fmt.Errorf("there is no entry %q; did you mean %s?", name, entry)
		}
	}
	if all[entry] == nil {
		return "", nil, nil
	}
	var fs struct {
		Mode     string `json:"mode"`
		Policies []struct {
			URL        string `json:"url"`
			PolicyPath string `json:"policy_path"`
			Rule       string `json:"rule"`
		} `json:"policies"`
	}
	strict := json.NewDecoder(bytes.NewReader(all[entry]))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&fs); err != nil {
		return "", nil, plainly(entry, err)
	}
	if mode = cmp.Or(fs.Mode, "all"); mode != "all" && mode != "any" {
		return "", nil, fmt.Errorf("the mode %q is neither \"all\" nor \"any\"", fs.Mode)
	}
	if fs.Policies == nil {
		return "", nil, errors.New("filesystem needs policies; [] allows everything")
	}
	for i, p := range fs.Policies {
		beside := p.PolicyPath // each kind has its own, and the other's does not count
		if u, err := url.Parse(p.URL); err == nil && u.Scheme == "file" {
			beside = p.Rule
		}
		if p.URL == "" || strings.ContainsAny(beside, " \t\n") {
			return "", nil, fmt.Errorf("filesystem.policies[%d] needs a url, and a rule without blanks", i)
		}
		policies = append(policies, strings.TrimSpace(strings.ReplaceAll(p.URL, " ", "%20")+" "+beside))
	}
	return mode, policies, nil
}

// plainly is an error of JSON without the names of our types.
func plainly(of string, err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at := strings.TrimSuffix(of+"."+wrong.Field, ".")
		return fmt.Errorf("what is at %q can't be of type %s", at, wrong.Value)
	}
	return err
}

// loadPolicies makes the chain. It is what the engine is handed.
func loadPolicies(mode string, policies []string) (policy.Chain, error) {
	chain, err := rego.Open(mode, policies)
	if err != nil {
		return nil, err
	}
	return chain, nil
}

// checkPolicies says what is wrong with the policies of a configuration.
func checkPolicies(cfg config.FS) error {
	if _, err := rego.Open(cfg.PoliciesMode, cfg.Policies); err != nil {
		return &config.Problem{Key: "tools.fs.policies", Why: err.Error()}
	}
	return nil
}

// policyPorts are the ports of policy servers.
func policyPorts(cfg config.FS) (ports []uint16) {
	for _, p := range cfg.Policies {
		where, _, _ := strings.Cut(p, " ")
		u, err := url.Parse(where)
		if err != nil || u.Host == "" {
			continue
		}
		usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
		if n, err := strconv.ParseUint(cmp.Or(u.Port(), usual), 10, 16); err == nil {
			ports = append(ports, uint16(n))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// maxKeyFile is the most that a file of keys may hold.
const maxKeyFile = 1 << 20

func readAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: more than %d bytes", file, most)
	}
	return data, err
}
