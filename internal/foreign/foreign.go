// Package foreign puts calls that use the argument names of other agents' tools into ours: old_text
// for old_string, target_file for file_path, include for glob, view_range for offset and limit.
//
// It reads the JSON of the arguments and touches nothing else. What it makes of them is certain,
// or it says what is not: then the call must not be carried out, and what was made of it may be
// offered as the next call where Offer says so. Names that begin with "_" are no business of its.
package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"moltisfs/internal/args"
	"moltisfs/internal/nearest"
)

// Tool is what the names of a call are read for.
type Tool struct {
	Name    string
	Changes bool // it changes files: what is left out of a call may have been meant
	Fields  []args.Field
}

// Reading is a call in our names.
type Reading struct {
	Args  json.RawMessage
	Note  string   // what was taken as what, and what was left out; "" when nothing was
	Wrong []string // what is not certain; nil: Args is what the call means
	Hint  string   // what to do about Wrong
	Tool  string   // that Args are for, where that is another one
	Offer bool     // Args hold all that was said
}

// call is one being read.
type call struct {
	Tool
	out  map[string]json.RawMessage
	from map[string]string // the key that each argument came under
	tool string            // another one, that out is for
	lost bool              // something said is not in out
	last *int              // the last line to read
	said
	patterned
}

// said is what there is to tell of a call.
type said struct{ taken, left, wrong, hints []string }

// patterned is what becomes part of the pattern, or of the globs.
type patterned struct {
	literal, word, anyCase bool
	excludes               []string
}

// Read reads raw, which the tool itself does not take. It is nil where raw is no object of
// arguments, and where nothing in it is foreign.
func Read(t Tool, raw json.RawMessage) *Reading {
	keys, values, note := object(t, raw)
	if keys == nil || rulesOf(t.Name) == nil {
		return nil
	}
	c := &call{Tool: t, out: map[string]json.RawMessage{}, from: map[string]string{}}
	if note != "" {
		c.taken = append(c.taken, note)
	}
	for i, key := range keys { // ours first: what is said twice was said by its own name
		if t.has(key) {
			c.put(key, key, values[i])
		}
	}
	for i, key := range keys {
		if f := c.own(key); f == nil {
			c.read(key, values[i])
		} else if f.Name != key {
			c.put(f.Name, key, values[i])
		}
	}
	c.finish()
	if len(c.taken)+len(c.left)+len(c.wrong) == 0 {
		return nil
	}
	raw, err := args.Encode(c.out)
	if err != nil {
		return nil
	}
	return &Reading{Args: raw, Note: c.note(), Wrong: c.wrong, Hint: strings.Join(c.hints, "; "),
		Tool: c.tool, Offer: !c.lost}
}

func (c *call) note() string {
	var parts []string
	if len(c.taken) > 0 {
		parts = append(parts, "taken: "+strings.Join(c.taken, ", "))
	}
	if len(c.left) > 0 {
		parts = append(parts, "left out: "+strings.Join(c.left, ", "))
	}
	return strings.Join(parts, "; ")
}

// wrappers are keys that hold all the arguments.
var wrappers = []string{"input", "arguments", "args", "params", "parameters", "toolinput", "kwargs",
	"toolargs", "body"}

// object takes raw apart, which may be the text of an object, or an object within one.
func object(t Tool, raw json.RawMessage) (keys []string, values []json.RawMessage, note string) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw, note = json.RawMessage(text), "a string of JSON as the arguments"
	}
	for range 3 {
		if keys, values = members(raw); keys == nil {
			return nil, nil, ""
		}
		at := -1
		for i, key := range keys {
			switch {
			case t.has(key):
				return keys, values, note
			case slices.Contains(wrappers, fold(key)):
				if at >= 0 {
					return keys, values, note
				}
				at = i
			case fold(key) == "name" || fold(key) == "tool" || fold(key) == "toolname":
				var name string
				if json.Unmarshal(values[i], &name) != nil || fold(name) != fold(t.Name) {
					return keys, values, note
				}
			case fold(key) != "id" && fold(key) != "type" && !slices.Contains(remarks, fold(key)):
				return keys, values, note
			}
		}
		if at < 0 {
			return keys, values, note
		}
		inner := values[at]
		if json.Unmarshal(inner, &text) == nil {
			inner = json.RawMessage(text)
		}
		if within, _ := members(inner); within == nil {
			return keys, values, note
		}
		raw, note = inner, "what is in "+keys[at]+" as the arguments"
	}
	return keys, values, note
}

// members are those of an object, in order; nil where raw is none, or names one twice.
func members(raw json.RawMessage) (keys []string, values []json.RawMessage) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil
	}
	keys = []string{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, nil
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil || slices.Contains(keys, t.(string)) {
			return nil, nil
		}
		keys, values = append(keys, t.(string)), append(values, v)
	}
	if _, err := dec.Token(); err != nil || dec.More() {
		return nil, nil
	}
	return keys, values
}

// fold is a name without what writers of it differ in. One of a letter is an option, and
// its case counts.
func fold(name string) string {
	bare := strings.TrimLeft(name, "-")
	if len(bare) < 2 {
		return bare
	}
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(bare))
}

func (t *Tool) has(key string) bool {
	return slices.ContainsFunc(t.Fields, func(f args.Field) bool { return f.Name == key })
}

// own is the argument that key names, in whatever case and with whatever between its words.
func (t *Tool) own(key string) *args.Field {
	var found *args.Field
	for i := range t.Fields {
		f := &t.Fields[i]
		if f.Name == key {
			return f
		}
		if fold(f.Name) == fold(key) {
			found = f
		}
	}
	return found
}

// read takes one argument that is not ours by name.
func (c *call) read(key string, v json.RawMessage) {
	folded := fold(key)
	null := string(v) == "null"
	if of := rulesOf(c.Name)[folded]; of != nil && !null {
		of(c, key, v)
		return
	}
	switch {
	case null, slices.Contains(remarks, folded):
		c.drop(key)
	case strings.HasPrefix(key, "_"):
		c.out[key] = v
	default:
		c.unknown(key, v)
	}
}

func (c *call) unknown(key string, v json.RawMessage) {
	c.wrong = append(c.wrong, fmt.Sprintf("there is no argument %.300q", key))
	var names []string
	for _, f := range c.Fields {
		names = append(names, f.Name)
	}
	near := nearest.Of(key, names)
	if _, given := c.out[near]; near == "" || given {
		c.lost = c.lost || c.Changes
		c.hints = append(c.hints, fmt.Sprintf("leave %.300s out", key))
		return
	}
	c.hints = append(c.hints, fmt.Sprintf("use %s for %.300s", near, key))
	c.out[near], c.from[near] = v, key
}

// put takes v, which came as key, for the argument name.
func (c *call) put(name, key string, v json.RawMessage) {
	f := c.own(name)
	if f == nil { // of a version of the tool that has no such argument
		c.unknown(key, v)
		return
	}
	if first, twice := c.from[name]; twice {
		if bytes.Equal(c.out[name], v) || string(v) == "null" {
			c.drop(key)
			return
		}
		c.refuse(fmt.Sprintf("%s is given twice (as %q and %q)", name, first, key),
			"send each argument once")
		c.lost = true
		return
	}
	if key != name {
		c.taken = append(c.taken, key+" as "+name)
	}
	c.from[name], c.out[name] = key, c.value(f, v)
}

// drop leaves out what says nothing to the tool.
func (c *call) drop(key string) { c.left = append(c.left, key) }

func (c *call) refuse(what, hint string) {
	c.wrong, c.hints = append(c.wrong, what), append(c.hints, hint)
}
