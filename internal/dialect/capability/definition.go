package capability

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/policy"
)

//go:embed filesystem.yaml
var source []byte

// catalog is filesystem.yaml.
type catalog struct {
	Version      string       `yaml:"version"`
	Capabilities []definition `yaml:"capabilities"`
	Common       []failing    `yaml:"common_errors"`
}

// A definition is one capability, as capabilities.describe tells it.
type definition struct {
	Name     string    `yaml:"name" json:"name"`
	Title    string    `yaml:"title" json:"-"`
	Extra    bool      `yaml:"extra" json:"extra,omitempty"` // ours, not of the text
	Version  string    `yaml:"version" json:"version"`
	Purpose  string    `yaml:"purpose" json:"purpose"`
	When     string    `yaml:"when_to_use" json:"when_to_use"`
	Note     string    `yaml:"note" json:"note,omitempty"` // ours
	Inputs   []param   `yaml:"inputs" json:"inputs"`
	Outputs  []param   `yaml:"outputs" json:"outputs"`
	Effects  []effect  `yaml:"side_effects" json:"side_effects"`
	Patterns []pattern `yaml:"common_patterns" json:"common_patterns"`
	Errors   []failing `yaml:"errors" json:"errors"`
	Tier     tier      `yaml:"permission_tier" json:"permission_tier"`
	Tags     []string  `yaml:"tags" json:"tags"`

	Nature `yaml:",inline" json:"-"`
}

// Nature is the kind of a call, for policy and for servers.
type Nature struct {
	Changes     bool `yaml:"changes"`
	Destructive bool `yaml:"destructive"`
	Idempotent  bool `yaml:"idempotent"`
	// Follows are the tools that do the same. A policy that denies them all denies this one too.
	Follows []string `yaml:"follows"`
}

// A param is an input or an output.
type param struct {
	Name        string   `yaml:"name" json:"name"`
	Extra       bool     `yaml:"extra" json:"extra,omitempty"` // ours; of an output: where it is asked for
	Type        string   `yaml:"type" json:"type"`
	Required    bool     `yaml:"required" json:"required,omitempty"`
	Nullable    bool     `yaml:"nullable" json:"nullable,omitempty"`
	Default     any      `yaml:"default" json:"default,omitempty"`
	Enum        []string `yaml:"enum" json:"enum,omitempty"` // of an array: its items
	Minimum     *int64   `yaml:"minimum" json:"minimum,omitempty"`
	Maximum     *int64   `yaml:"maximum" json:"maximum,omitempty"`
	Of          string   `yaml:"of" json:"of,omitempty"` // type of an array's items
	Description string   `yaml:"description" json:"description,omitempty"`
	Items       []param  `yaml:"items" json:"items,omitempty"` // fields of an array's items
}

type effect struct {
	Description string `yaml:"description" json:"description"`
	Reversible  bool   `yaml:"reversible" json:"reversible"`
}

type pattern struct {
	Title string   `yaml:"title" json:"title"`
	Steps []string `yaml:"steps" json:"steps"`
}

// failing is a type of error.
type failing struct {
	Type        string     `yaml:"type" json:"type"`
	Description string     `yaml:"description" json:"description"`
	Recovery    []recovery `yaml:"recovery" json:"recovery"`
}

// A recovery is a next step after an error.
type recovery struct {
	Action      string         `yaml:"action" json:"action"`
	Description string         `yaml:"description" json:"description"`
	Capability  string         `yaml:"capability" json:"capability,omitempty"`
	Inputs      map[string]any `yaml:"inputs" json:"inputs,omitempty"`
}

// known reads filesystem.yaml. A mistake in it panics, and any test finds it.
var known = sync.OnceValue(func() *catalog {
	var c catalog
	d := yaml.NewDecoder(bytes.NewReader(source))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		panic("capability: filesystem.yaml: " + err.Error())
	}
	return &c
})

// find is the definition of a capability by its name with a dot; nil when there is none.
func (c *catalog) find(name string) *definition {
	i := slices.IndexFunc(c.Capabilities, func(d definition) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Capabilities[i]
}

// failing gives the entry of a type of error: the capability's own, or the common one.
func (c *catalog) failing(d *definition, kind string) failing {
	var own []failing
	if d != nil {
		own = d.Errors
	}
	for _, f := range slices.Concat(own, c.Common) {
		if f.Type == kind {
			return f
		}
	}
	return failing{Type: kind}
}

// wireName is a name without dots, which many model APIs refuse.
func wireName(name string) string { return strings.Replace(name, ".", "__", 1) }

// dotted takes back wireName.
func dotted(name string) string { return strings.Replace(name, "__", ".", 1) }

// definition gives a capability as models are told of it.
func (d *definition) definition() dialect.Definition {
	entry, err := args.Encode(d)
	if err != nil {
		panic("capability: " + err.Error()) // only by what filesystem.yaml can't hold
	}
	return dialect.Definition{
		Name: wireName(d.Name), Title: d.Title, Description: d.Purpose + " " + d.When,
		ReadOnly: !d.Changes, Destructive: d.Destructive, Idempotent: d.Idempotent || !d.Changes,
		InputSchema: object(d.Inputs, true), OutputSchema: answerSchema(d.Outputs),
		Also: []string{d.Name}, Entry: entry,
	}
}

// object is the JSON Schema (2020-12) of an object with these fields. A closed one is of arguments.
func object(fields []param, closed bool) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	required := []string{}
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", f.Name, f.schema())
		if f.Required || !closed {
			required = append(required, f.Name)
		}
	}
	b.WriteByte('}')
	if len(required) > 0 && closed {
		fmt.Fprintf(&b, `,"required":%s`, mustJSON(required))
	}
	if closed {
		b.WriteString(`,"additionalProperties":false`)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// answerSchema gives the schema of an answer: these fields, or the fields of an error.
func answerSchema(fields []param) json.RawMessage {
	var names []string
	for _, f := range fields {
		if !f.Extra {
			names = append(names, f.Name)
		}
	}
	all := bytes.TrimSuffix(object(fields, false), []byte("}"))
	return fmt.Appendf(nil, `%s,"anyOf":[{"required":%s},{"required":["type","message","recovery"]}]}`,
		all, mustJSON(names))
}

// formats are the JSON Schemas of the types of the text.
var formats = map[string]node{
	"FilesystemPath": {Type: "string"}, "String": {Type: "string"}, "GlobPattern": {Type: "string"},
	"Integer": {Type: "integer"}, "Boolean": {Type: "boolean"}, "Object": {Type: "object"},
	"DateTime": {Type: "string", Format: "date-time"},
	"SHA256":   {Type: "string", Pattern: "^[0-9a-f]{64}$"}, "Array": {Type: "array"},
}

// node is one JSON Schema. The order of its keys is the order in which models read it.
type node struct {
	Type        any             `json:"type"`
	Format      string          `json:"format,omitempty"`
	Pattern     string          `json:"pattern,omitempty"`
	Description string          `json:"description,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	Minimum     *int64          `json:"minimum,omitempty"`
	Maximum     *int64          `json:"maximum,omitempty"`
	Default     any             `json:"default,omitempty"`
	Items       json.RawMessage `json:"items,omitempty"`
}

func (p param) schema() json.RawMessage {
	n, ok := formats[p.Type]
	if !ok {
		panic("capability: filesystem.yaml: no type " + p.Type)
	}
	n.Description, n.Enum, n.Minimum, n.Maximum, n.Default = p.Description, p.Enum, p.Minimum,
		p.Maximum, p.Default
	switch {
	case p.Type != "Array":
	case p.Items != nil:
		n.Items = object(p.Items, false)
	case p.Of != "" || p.Enum != nil:
		item := param{Type: p.Of, Enum: p.Enum}
		if item.Type == "" {
			item.Type = "String"
		}
		n.Items, n.Enum = item.schema(), nil
	}
	if p.Nullable {
		n.Type = []any{n.Type, "null"}
	}
	return mustJSON(n)
}

// mustJSON encodes a value of ours, which can be encoded.
func mustJSON(v any) json.RawMessage {
	b, err := args.Encode(v)
	if err != nil {
		panic("capability: " + err.Error())
	}
	return b
}

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

// Warnings gives the tiers of a configuration that are looser than the text's.
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

// offer holds the capabilities that may be called, and how freely.
type offer struct {
	tiers map[string]tier // where the configuration differs
	tools policy.Tools
}

// tier gives the tier of the capability, or the tier of the caller if it is stricter.
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

// definitions lists the definitions that a client sees.
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

// followed gives the tools that a capability follows if the deny list t names all of them: a policy that denies Write denies
// filesystem.write too. An allow list says nothing of it.
func (d *definition) followed(t policy.Tools) []string {
	if slices.ContainsFunc(d.Follows, func(f string) bool { return !t.Denies(f) }) {
		return nil
	}
	return d.Follows
}
