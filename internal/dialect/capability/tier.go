package capability

import (
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/policy"
)

// A tier is the text's word for how freely a capability may be called.
type tier string

const (
	autonomous       tier = "autonomous"
	notify           tier = "notify"
	approvalRequired tier = "approval_required"
	blocked          tier = "blocked"
)

// strictness has the tiers from the loosest on, as the engine calls them.
var strictness = []approval.Tier{approval.TierAutonomous, approval.TierNotify, approval.TierAsk,
	approval.TierBlocked}

// engine is the tier as the engine calls it.
func (t tier) engine() approval.Tier {
	if t == approvalRequired {
		return approval.TierAsk
	}
	return approval.Tier(t)
}

// stricter is the stricter of two tiers. One that nobody knows stays: the engine refuses it.
func stricter(a, b approval.Tier) approval.Tier {
	switch {
	case b == "" || a == b:
		return a
	case !b.Known():
		return b
	}
	return strictness[max(slices.Index(strictness, a), slices.Index(strictness, b))]
}

// Warnings are what is taken and may still not be meant: tiers that are looser than the text's.
func Warnings(cfg config.Capability) (out []*config.Problem) {
	tiers, loosened, err := tiersOf(cfg)
	if err != nil {
		return nil
	}
	for _, name := range loosened {
		out = append(out, &config.Problem{Key: "tools.capability." + string(tiers[name]),
			Why: name + " is " + string(known().find(name).Tier) + " in its text, which is stricter"})
	}
	return out
}

// tiersOf are the tiers that a configuration gives, by capability, and which are looser than
// the text's. The error is a *config.Problem.
func tiersOf(cfg config.Capability) (tiers map[string]tier, loosened []string, err error) {
	tiers = map[string]tier{}
	for _, list := range []struct {
		tier  tier
		names []string
	}{{autonomous, cfg.Autonomous}, {notify, cfg.Notify},
		{approvalRequired, cfg.ApprovalRequired}, {blocked, cfg.Blocked}} {
		for _, name := range list.names {
			d := known().find(name)
			key := "tools.capability." + string(list.tier)
			switch {
			case d == nil: // config.Check has refused it
				return nil, nil, &config.Problem{Key: key, Why: name + " is no capability",
					Hint: "name one as docs/capabilities.md does"}
			case !d.Changes && list.tier != blocked && list.tier != autonomous:
				return nil, nil, &config.Problem{Key: key, Why: name + " changes nothing, so nobody is " +
					"told or asked", Hint: "leave it out, or put it under blocked"}
			}
			tiers[name] = list.tier
			if stricter(list.tier.engine(), d.Tier.engine()) != list.tier.engine() {
				loosened = append(loosened, name)
			}
		}
	}
	return tiers, loosened, nil
}

// offer says what may be called, and how freely.
type offer struct {
	tiers map[string]tier // where the configuration differs
	tools policy.Tools
}

// tier is that of the capability, or of the caller where that is stricter.
func (o offer) tier(d *definition, caller approval.Tier) approval.Tier {
	t, ok := o.tiers[d.Name]
	if !ok {
		t = d.Tier
	}
	return stricter(t.engine(), caller)
}

func (o offer) allows(d *definition) bool {
	return o.tools.Allows(d.Name, d.Changes, d.followed(o.tools)...)
}

// definitions are those that are listed.
func (o offer) definitions() (out []dialect.Definition) {
	for i := range known().Capabilities {
		d := known().Capabilities[i]
		if toolOf(d.Name) == nil || !o.allows(&d) || o.tier(&d, "") == approval.TierBlocked {
			continue
		}
		if t, ok := o.tiers[d.Name]; ok {
			d.Tier = t
		}
		out = append(out, d.definition())
	}
	return out
}

// followed are the tools that a capability follows, where a list denies all of them by name: who
// denies Write means what does the same under another name. A list that allows says nothing of it.
func (d *definition) followed(t policy.Tools) []string {
	if slices.ContainsFunc(d.Follows, func(f string) bool { return !t.Denies(f) }) {
		return nil
	}
	return d.Follows
}

// quoted is a pattern that means this very name.
func quoted(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}",
		`\}`, ",", `\,`, "!", `\!`).Replace(name)
}
