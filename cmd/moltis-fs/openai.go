package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"moltisfs/internal/dialect"
)

// openAITool is a function as the Responses API and the Agents SDK have it.
type openAITool struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// openAITools are the definitions as OpenAI's strict mode wants them: every argument is required,
// and one that may be left out takes null. With flat they are for the Responses API, else for Chat
// Completions. What strict mode can't say, as an object with any members, is not strict.
func openAITools(defs []dialect.Definition, flat bool) (any, error) {
	out := []any{}
	for _, d := range defs {
		t := openAITool{Name: d.Name, Description: d.Description, Parameters: d.InputSchema}
		s, err := membersIn(d.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", d.Name, err)
		}
		switch err := s.strict(); {
		case err == nil:
			t.Parameters, t.Strict = s.encoded(), true
		case !errors.Is(err, errOpen):
			return nil, fmt.Errorf("the schema of %s: %w", d.Name, err)
		}
		if flat {
			t.Type = "function"
			out = append(out, t)
		} else {
			out = append(out, map[string]any{"type": "function", "function": t})
		}
	}
	return out, nil
}

// members is a JSON object in its order, which models see.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

func membersIn(raw json.RawMessage) (out members, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err = dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: fmt.Sprint(name)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (s members) encoded() json.RawMessage {
	var b bytes.Buffer
	for i, m := range s {
		b.WriteByte("{,"[min(i, 1)])
		name, _ := json.Marshal(m.name) // a string never fails
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	if len(s) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (s members) of(name string) json.RawMessage {
	for _, m := range s {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (s *members) set(name string, v any) {
	raw, _ := json.Marshal(v) // strings, lists of them, and what was JSON before
	for i := range *s {
		if (*s)[i].name == name {
			(*s)[i].value = raw
			return
		}
	}
	*s = append(*s, member{name, raw})
}

var errOpen = errors.New("an object that is open")

// strict makes a schema strict, with all below it.
func (s *members) strict() error {
	if items := s.of("items"); items != nil {
		in, err := membersIn(items)
		if err == nil {
			err = in.strict()
		}
		if err != nil {
			return err
		}
		s.set("items", in.encoded())
	}
	s.withoutDefault()
	if string(s.of("type")) != `"object"` {
		if s.of("type") == nil && s.of("enum") == nil {
			return errOpen
		}
		return nil
	}
	if string(s.of("additionalProperties")) != "false" || s.of("properties") == nil {
		return errOpen
	}
	properties, err := membersIn(s.of("properties"))
	if err != nil {
		return err
	}
	var required, all []string
	if raw := s.of("required"); raw != nil {
		if err := json.Unmarshal(raw, &required); err != nil {
			return err
		}
	}
	for i, p := range properties {
		in, err := membersIn(p.value)
		if err == nil {
			err = in.strict()
		}
		if err != nil {
			return err
		}
		if !slices.Contains(required, p.name) {
			in.orNull()
		}
		properties[i].value, all = in.encoded(), append(all, p.name)
	}
	s.set("properties", properties.encoded())
	s.set("required", append([]string{}, all...))
	return nil
}

// withoutDefault tells a default in words: strict mode has no such keyword.
func (s *members) withoutDefault() {
	fallback := s.of("default")
	if fallback == nil {
		return
	}
	*s = slices.DeleteFunc(*s, func(m member) bool { return m.name == "default" })
	doc := ""
	_ = json.Unmarshal(s.of("description"), &doc) // "" where there is none
	if doc != "" {
		doc += "; "
	}
	s.set("description", doc+"default "+string(bytes.Trim(fallback, `"`)))
}

// orNull lets null say that an argument is left out.
func (s *members) orNull() {
	var one string
	if json.Unmarshal(s.of("type"), &one) == nil && one != "" {
		s.set("type", []string{one, "null"})
	}
	var enum []any
	if json.Unmarshal(s.of("enum"), &enum) == nil && enum != nil {
		s.set("enum", append(enum, nil))
	}
}
