package foreign

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"moltisfs/internal/args"
	"moltisfs/internal/nearest"
)

// value makes v fit its argument where only its form is wrong. A form that leaves no doubt is
// taken; another value than the one that was sent is offered and not taken.
func (c *call) value(f *args.Field, v json.RawMessage) json.RawMessage {
	switch f.Kind {
	case reflect.String:
		return c.text(f, v)
	case reflect.Bool:
		return c.yesOrNo(f, v)
	case reflect.Int, reflect.Int64:
		return c.number(f, v)
	case reflect.Slice:
		if v[0] == '{' && f.Objects {
			c.taken = append(c.taken, f.Name+" as an array of one")
			return json.RawMessage("[" + string(v) + "]")
		}
		if v[0] == '"' && f.Name == "paths" {
			c.taken = append(c.taken, f.Name+" as an array of one")
			return json.RawMessage("[" + string(v) + "]")
		}
	}
	return v
}

// paths and lists are arguments that others take an array of.
func isPath(name string) bool { return name == "path" || strings.HasSuffix(name, "_path") }
func isList(f string, tool string) bool {
	return f == "glob" || f == "pattern" && tool == "Glob"
}

func (c *call) text(f *args.Field, v json.RawMessage) json.RawMessage {
	var s string
	if string(v) != "null" && json.Unmarshal(v, &s) == nil {
		if near := word(s, f.Enum); near != "" && s != near {
			c.refuse(fmt.Sprintf("%s is %q; it takes %s", f.Name, s, strings.Join(f.Enum, ", ")),
				"use "+near)
			return quoted(near)
		}
		return v
	}
	var list []string
	if string(v) != "null" && json.Unmarshal(v, &list) == nil {
		switch {
		case isList(f.Name, c.Name) && len(list) > 0:
			c.taken = append(c.taken, "the list "+f.Name+" as one string")
			return quoted(strings.Join(list, ","))
		case len(list) == 1 && (isPath(f.Name) || f.Enum != nil || f.Name == "pattern"):
			c.taken = append(c.taken, "the list "+f.Name+" as what is in it")
			return quoted(list[0])
		case len(list) > 1 && isPath(f.Name):
			c.refuse(fmt.Sprintf("%s is a list of %d", f.Name, len(list)), "make one call for each")
			c.lost = true
			return v
		}
	}
	if n := strings.TrimSpace(string(v)); f.Name == "cell_id" || f.Name == "pattern" && !c.Changes {
		if _, err := strconv.ParseFloat(n, 64); err == nil {
			c.taken = append(c.taken, "the number "+f.Name+" as a string")
			return quoted(n)
		}
	}
	if string(v) == "null" && f.Required {
		hint := "send a value for " + f.Name
		if f.Name == "new_string" {
			hint = `send "" for new_string to delete the text`
		}
		c.refuse(f.Name+" is null", hint)
		c.lost = true
	}
	return v
}

// word is the one of enum that s most likely means, "" when there is none.
func word(s string, enum []string) string {
	if s == "" || slices.Contains(enum, s) {
		return s
	}
	folded := fold(strings.TrimSpace(s))
	for _, e := range enum {
		if f := fold(e); strings.HasPrefix(f, folded) || strings.HasPrefix(folded, f) {
			return e
		}
	}
	if near := otherWords[folded]; slices.Contains(enum, near) {
		return near
	}
	return nearest.Of(s, enum)
}

// otherWords are words of others for our choices.
var otherWords = map[string]string{
	"lines": "content", "matches": "content", "text": "content", "paths": "files_with_matches",
	"l": "files_with_matches", "filenames": "files_with_matches", "c": "count",
	"update": "replace", "edit": "replace", "add": "insert", "append": "insert", "remove": "delete",
	"md": "markdown", "python": "code",
}

func (c *call) yesOrNo(f *args.Field, v json.RawMessage) json.RawMessage {
	is := strings.ToLower(strings.Trim(string(v), "\" \t\n"))
	switch is {
	case "true", "false":
		if plain := strings.Trim(string(v), "\" \t\n"); plain != is {
			c.taken = append(c.taken, f.Name+" "+plain+" as "+is)
		}
		return json.RawMessage(is)
	case "yes", "on", "1", "y", "no", "off", "0", "n":
		yes := slices.Contains([]string{"yes", "y", "on", "1"}, is)
		c.refuse(fmt.Sprintf("%s is %s, not true or false", f.Name, v), fmt.Sprintf("send %s as %v",
			f.Name, yes))
		return boolean(yes)
	}
	if n, err := strconv.Atoi(is); f.Name == "tail" && err == nil && n > 0 { // of server-filesystem
		if limit, given := c.out["limit"]; !given || string(limit) == is {
			c.out["limit"], c.from["limit"] = json.RawMessage(is), "tail"
			c.taken = append(c.taken, "tail "+is+" as the last "+is+" lines")
			return boolean(true)
		}
	}
	return v
}

// number offers the nearest value that is taken for one that is not.
func (c *call) number(f *args.Field, v json.RawMessage) json.RawMessage {
	text := strings.Trim(string(v), "\" \t\n")
	n, err := strconv.ParseFloat(text, 64)
	all := f.Fallback != "" && (err == nil && n <= 0 || err != nil && slices.Contains([]string{"all", "max",
		"unlimited", "none", "inf", "infinity"}, strings.ToLower(text)))
	switch {
	case f.Min != nil && all:
		hint := "leave " + f.Name + " out"
		if *f.Min == 0 {
			hint = "send 0 for all"
		}
		c.refuse(fmt.Sprintf("%s is %s; the least is %d", f.Name, text, *f.Min), hint)
		if *f.Min == 0 {
			return json.RawMessage("0")
		}
		return json.RawMessage("null")
	case err != nil:
		digits, unit, _ := strings.Cut(text, " ")
		if _, err := strconv.Atoi(digits); err == nil && strings.TrimSuffix(unit, "s") == "line" {
			c.refuse(fmt.Sprintf("%s is %s, not a number", f.Name, text), "send "+digits)
			return json.RawMessage(digits)
		}
		return v
	case f.Max != nil && n > float64(*f.Max):
		c.refuse(fmt.Sprintf("%s is %s; the most is %d", f.Name, text, *f.Max), fmt.Sprintf("use %d",
			*f.Max))
		return json.RawMessage(strconv.FormatInt(*f.Max, 10))
	case f.Min != nil && n < float64(*f.Min):
		c.refuse(fmt.Sprintf("%s is %s; the least is %d", f.Name, text, *f.Min),
			fmt.Sprintf("use %d or more, or leave %s out", *f.Min, f.Name))
		return json.RawMessage("null")
	case n == 0 && f.Name == "offset" && c.Name == "Read":
		c.refuse("offset is 0; lines are counted from 1",
			"use offset 1 for the first line, or a negative one to count from the end")
		return json.RawMessage("1")
	}
	return v
}

func quoted(s string) json.RawMessage {
	raw, err := args.Encode(s)
	if err != nil { // a string never fails
		return json.RawMessage(`""`)
	}
	return raw
}

func boolean(b bool) json.RawMessage { return json.RawMessage(strconv.FormatBool(b)) }

func integer(n int) json.RawMessage { return json.RawMessage(strconv.Itoa(n)) }

// asInt reads 5 and "5".
func asInt(v json.RawMessage) (int, bool) {
	n, err := strconv.Atoi(strings.Trim(string(v), "\" \t\n"))
	return n, err == nil
}

func asBool(v json.RawMessage) (yes, ok bool) {
	switch strings.ToLower(strings.Trim(string(v), "\" \t\n")) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// asList reads a string, a string of a list, and a list of strings.
func asList(v json.RawMessage) []string {
	var s string
	var list []string
	if json.Unmarshal(v, &s) == nil {
		if json.Unmarshal([]byte(s), &list) == nil {
			return list
		}
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
	}
	if json.Unmarshal(v, &list) != nil {
		return nil
	}
	return list
}
