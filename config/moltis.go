package config

import (
	"fmt"
	"slices"
	"strings"
)

// A whole moltis.toml can be given. Its sections about other things are passed by, and Warnings
// tells which. A section that is nearly a name of ours, or holds a key of ours, is an error as ever: a rule in
// a section that nobody reads would hold nobody.

// ofMoltis are sections of Moltis that are near ours by name; and its keys directly below [tools].
var ofMoltis = []string{"hooks", "skills", "tools.exec", "tools.browser", "tools.web", "tools.maps",
	"tools.agent_timeout_secs", "tools.agent_max_iterations", "tools.max_tool_result_bytes",
	"tools.agent_loop_detector_window"}

// foreign says whether the key or section at path, unknown from rest on below f, is Moltis' and none of our
// business. A layer of its tool policy is a problem: it narrows the tools of some callers, and callers can't be
// told apart here.
func (d *decoder) foreign(path []string, f *field, rest []string, section bool) bool {
	if f.key != "" && f.key != "tools" {
		return false
	}
	at := path[:len(path)-len(rest)+1]
	key := dotted(at)
	known, told := slices.Contains(ofMoltis, key), slices.Contains(d.config.foreign, key)
	switch {
	case !known && f.key == "" && !section:
		return false // a key of no section
	case !known && !told && section && strings.HasPrefix(d.nearSection(at), "did you mean"):
		return false
	case !known && d.ours(rest[len(rest)-1]):
		return false
	}
	if len(rest) > 2 && (slices.Contains(rest[1:len(rest)-1], "policy") || slices.Contains(rest[1:len(rest)-1], "tools")) &&
		slices.Contains([]string{"allow", "deny", "profile"}, rest[len(rest)-1]) {
		d.add(path, "a layer of the tool policy for some callers only, which can't be told "+
			"apart here", "give what it denies to [tools.policy], or serve those callers with a "+
			"configuration of their own")
		return true
	}
	if !told {
		d.config.foreign = append(d.config.foreign, key)
	}
	return true
}

// ours says whether name is a key of [tools.fs], whose rules nobody may lose.
func (d *decoder) ours(name string) bool {
	fs, _ := d.schema.find([]string{"tools", "fs"})
	return slices.Contains(fs.keys(), name)
}

// Names are the tools that the policy allows: allow, or else those of the profile.
func (p Policy) Names() []string {
	if len(p.Allow) > 0 {
		return p.Allow
	}
	switch p.Profile {
	case "minimal":
		return []string{"exec"}
	case "coding":
		return []string{"exec", "browser", "memory"}
	}
	return p.Allow
}

// Crossing are warnings of rules that cover less than they do in Moltis, where a star crosses "/". A deny rule covers what is below the last name
// in any case.
func (c Config) Crossing() (out []*Problem) {
	warn := func(key string, rules []string, deny bool) {
		for i, rule := range rules {
			names := strings.Split(rule, "/")
			if last := len(names) - 1; deny && strings.TrimRight(names[last], "*") != names[last] {
				names = names[:last]
			}
			for n, name := range names {
				if strings.Contains(name, "*") && name != "**" && (n == 0 || names[n-1] != "**") {
					out = append(out, &Problem{Key: fmt.Sprintf("%s[%d]", key, i),
						Why:  quote(rule) + ": a * stays within one name here; in Moltis it crosses /",
						Hint: "if it is to cross, write a name ** before it or behind it"})
					break
				}
			}
		}
	}
	warn("tools.fs.allow_paths", c.Tools.FS.AllowPaths, false)
	warn("tools.fs.deny_paths", c.Tools.FS.DenyPaths, true)
	return out
}
