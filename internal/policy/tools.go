package policy

import (
	"errors"
	"slices"
	"strings"
)

// Tools is [tools.policy]: which tools there are, by name. The zero Tools has all of them.
type Tools struct {
	allow, deny []string
}

// NewTools takes names, exact or "prefix*" or "*", with letter case. Names of tools that are not ours are fine: the lists may
// serve a gateway with more. The error joins one *RuleError for each entry that can't be used.
func NewTools(allow, deny []string) (Tools, error) {
	var errs []error
	for _, list := range [][]string{allow, deny} {
		for _, name := range list {
			switch star := strings.IndexByte(name, '*'); {
			case name == "":
				errs = append(errs, &RuleError{Rule: name, Why: "it is empty; leave it out"})
			case strings.ContainsAny(name, " \t\r\n"):
				errs = append(errs, &RuleError{Rule: name, Offset: strings.IndexAny(name, " \t\r\n"), Why: "a tool's name holds no blank"})
			case star >= 0 && star < len(name)-1:
				errs = append(errs, &RuleError{Rule: name, Offset: star, Why: "a star can only stand at the end"})
			}
		}
	}
	if len(errs) > 0 {
		return Tools{}, errors.Join(errs...)
	}
	return Tools{allow: append([]string{}, allow...), deny: append([]string{}, deny...)}, nil
}

// Allows reports whether the tool may be listed and called. A tool that follows others does what they do by another road: it goes
// with the last of them, whatever else the lists say, unless the allow list has its very name.
func (t Tools) Allows(name string, follows ...string) bool { return t.Why(name, follows...) == "" }

// Why tells why a tool is denied, "" when it is not.
func (t Tools) Why(name string, follows ...string) string {
	if by := match(t.deny, name); by != "" {
		if by == name {
			return "denied by tools.policy.deny"
		}
		return "denied by " + by + " in tools.policy.deny"
	}
	if len(t.allow) > 0 && match(t.allow, name) == "" {
		return "not in tools.policy.allow"
	}
	if len(follows) == 0 || slices.Contains(t.allow, name) || slices.ContainsFunc(follows, func(f string) bool { return t.Allows(f) }) {
		return ""
	}
	return "denied with " + strings.Join(follows, ", ")
}

// match is the first pattern that holds for name.
func match(patterns []string, name string) string {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); p == name || ok && strings.HasPrefix(name, prefix) {
			return p
		}
	}
	return ""
}
