package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// HasPolicies says that a policy chain is asked.
func (fs FS) HasPolicies() bool { return len(fs.Policies) > 0 || fs.PoliciesMode != "" }

// PolicyFiles are the local files and directories of the policies.
func (fs FS) PolicyFiles() (out []string) {
	for _, p := range fs.Policies {
		if u, err := url.Parse(policyURL(p)); err == nil && u.Scheme == "file" {
			out = append(out, filepath.FromSlash(u.Path))
		}
	}
	return out
}

// policyURL is a policy without the rule or path behind it.
func policyURL(policy string) string {
	u, _, _ := strings.Cut(strings.TrimSpace(policy), " ")
	return u
}

func checkPolicies(key string, policies []string, add adder) {
	for i, p := range policies {
		key := fmt.Sprintf("%s[%d]", key, i)
		u, err := url.Parse(policyURL(p))
		switch {
		case err != nil:
			add(key, quote(p)+" is not a URL", "write file:///FILE.rego, or the URL of an OPA server")
		case len(strings.Fields(p)) > 2:
			add(key, quote(p)+" is more than a URL and a rule", "write a blank in a path as %20")
		case u.Scheme == "file" && (u.Host != "" || !strings.HasPrefix(u.Path, "/")):
			add(key, quote(p)+" is not the URL of a local file",
				"write file:///, and the path from the root on")
		case u.Scheme == "file":
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			add(key, quote(p)+" is neither a local file nor a server",
				"begin it with file:///, http:// or https://")
		}
	}
}
