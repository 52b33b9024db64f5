package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/nearest"
	"moltisfs/internal/policy"
	"moltisfs/internal/policy/rego"
)

const policiesForm = `{"filesystem": {"mode": "all", "policies": [{"url": "file:///etc/fs.rego"}]}}`

func policiesOption() option {
	return opt("policies-json", "JSON|FILE", "the policy chain, in the place of tools.fs.policies: "+
		policiesForm+", or a file with that")
}

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
