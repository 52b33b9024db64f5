package policy

import (
	"slices"
	"strings"
)

// Tools is [tools.policy]: which tools there are, by name. The zero Tools has all of them.
type Tools struct {
	allow, deny []string
	readOnly    bool // none that changes files, whatever the lists say
}

// NewTools takes the lists of a configuration that has been checked: exact names, "prefix*" or "*". Letter case counts. Unknown names are fine: the
// lists may serve a gateway that has more tools. readOnly takes away the tools that change files.
func NewTools(allow, deny []string, readOnly bool) Tools {
	return Tools{slices.Clone(allow), slices.Clone(deny), readOnly}
}

// Unlisted is t without its lists.
func (t Tools) Unlisted() Tools { return Tools{readOnly: t.readOnly} }

// Allows reports whether the tool may be listed and called. changes says that it changes files. A
// tool may follow others, when it does what they do in another way. It is denied once all of those
// are denied, whatever else the lists say, unless the allow list has its very name.
func (t Tools) Allows(name string, changes bool, follows ...string) bool {
	return t.Why(name, changes, follows...) == ""
}

// Why tells why a tool is denied. It gives "" when it is not.
func (t Tools) Why(name string, changes bool, follows ...string) string {
	if changes && t.readOnly {
		return "read_only is set: nothing changes files"
	}
	if by := match(t.deny, name); by != "" {
		if by == name {
			return "denied by tools.policy.deny"
		}
		return "denied by " + by + " in tools.policy.deny"
	}
	if len(t.allow) > 0 && match(t.allow, name) == "" {
		return "not in tools.policy.allow"
	}
	some := slices.ContainsFunc(follows, func(f string) bool { return t.Allows(f, false) })
	if len(follows) == 0 || some || slices.Contains(t.allow, name) {
		return ""
	}
	return "denied with " + strings.Join(follows, ", ")
}

// Denies reports whether the deny list names the tool, whatever allow says.
func (t Tools) Denies(name string) bool { return match(t.deny, name) != "" }

// match gives the first pattern that name matches.
func match(patterns []string, name string) string {
	for _, p := range patterns {
		prefix, wild := strings.CutSuffix(p, "*")
		if p == name || wild && strings.HasPrefix(name, prefix) {
			return p
		}
	}
	return ""
}
