package foreign

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"moltisfs/internal/args"
)

// lastLine is the other end of what is read.
func lastLine(c *call, key string, v json.RawMessage) {
	n, ok := asInt(v)
	if !ok || c.last != nil {
		c.unknown(key, v)
		return
	}
	c.last = &n
	c.taken = append(c.taken, key+" as the end of limit")
}

var twoNumbers = regexp.MustCompile(`^\[?\s*[Ll]?(-?\d+)"?\s*(?:,|-|:|to|\.\.)\s*"?[Ll]?(-?\d+)\s*"?\]?$`)

// lineRange is [10, 20], "10-20" or [10, -1].
func lineRange(c *call, key string, v json.RawMessage) {
	text := strings.Trim(string(v), "\" \t\n")
	m := twoNumbers.FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if m == nil {
		if _, ok := asInt(v); ok && fold(key) == "lines" {
			c.put("limit", key, v)
			return
		}
		c.unknown(key, v)
		return
	}
	first, err1 := strconv.Atoi(m[1])
	last, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil || c.last != nil {
		c.unknown(key, v)
		return
	}
	c.put("offset", key, integer(max(first, 1)))
	c.last = &last
}

// endOfLines makes a limit of the last line.
func (c *call) endOfLines() {
	if c.last == nil {
		return
	}
	first := 1
	if n, ok := asInt(c.out["offset"]); ok {
		first = max(n, 1)
	}
	switch {
	case *c.last < 0: // to the end
	case *c.last < first:
		c.refuse(fmt.Sprintf("the last line, %d, comes before the first, %d", *c.last, first),
			"send offset and limit")
		c.lost = true
	default:
		if limit, given := c.out["limit"]; !given {
			c.out["limit"], c.from["limit"] = integer(*c.last-first+1), "the last line"
		} else if n, ok := asInt(limit); !ok || n != *c.last-first+1 {
			c.refuse("limit and the last line do not agree", "send offset and limit")
		}
	}
}

// severalEdits is a list of edits that was sent to Edit.
func severalEdits(c *call, key string, v json.RawMessage) {
	items, ok := list(v)
	if !ok || len(items) == 0 || c.has("edits") {
		c.unknown(key, v)
		return
	}
	for _, other := range []string{"old_string", "new_string"} {
		if _, given := c.out[other]; given {
			c.refuse(fmt.Sprintf("there is no argument %q", key), "send several edits with MultiEdit")
			c.lost = true
			return
		}
	}
	if len(items) > 1 {
		c.out["edits"], c.tool = v, "MultiEdit"
		c.refuse("Edit makes one edit", "use MultiEdit for several")
		return
	}
	keys, values := members(items[0])
	if keys == nil {
		c.unknown(key, v)
		return
	}
	c.taken = append(c.taken, "the one of "+key+" as the edit")
	for i, k := range keys {
		if f := c.own(k); f != nil {
			c.put(f.Name, k, values[i])
		} else {
			c.read(k, values[i])
		}
	}
}

// oneEdit is an edit beside or in place of a list of them.
func oneEdit(c *call, key string, v json.RawMessage) {
	name := "new_string"
	if f := fold(key); f == "oldstring" || strings.Contains(" "+oldNames+" ", " "+f+" ") {
		name = "old_string"
	} else if f == "replaceall" {
		name = "replace_all"
	}
	if _, given := c.out["edits"]; given || c.out[name] != nil {
		c.unknown(key, v)
		return
	}
	c.out[name], c.tool = v, "Edit"
	if c.wrong == nil {
		c.refuse("MultiEdit takes a list of edits", "use Edit for one")
	}
}

// items puts what is in a list of edits into our names.
func (c *call) items() {
	raw, given := c.out["edits"]
	if !given {
		return
	}
	items, ok := list(raw)
	if !ok {
		return
	}
	fields := c.itemFields()
	for i, item := range items {
		keys, values := members(item)
		if keys == nil {
			return
		}
		one := &call{Tool: Tool{"Edit", true, fields}, out: map[string]json.RawMessage{},
			from: map[string]string{}}
		for k, key := range keys {
			switch f := one.own(key); {
			case f != nil:
				one.put(f.Name, key, values[k])
			case strings.Contains(" "+fileNames+" filepath ", " "+fold(key)+" ") && c.sameFile(values[k]):
			default:
				one.read(key, values[k])
			}
		}
		for _, w := range one.wrong {
			c.wrong = append(c.wrong, fmt.Sprintf("edits[%d]: %s", i, w))
		}
		c.hints, c.lost = append(c.hints, one.hints...), c.lost || one.lost
		if i == 0 {
			c.taken, c.left = append(c.taken, one.taken...), append(c.left, one.left...)
		}
		if items[i], _ = args.Encode(one.out); items[i] == nil {
			return
		}
	}
	if whole, err := args.Encode(items); err == nil && len(c.taken)+len(c.left)+len(c.wrong) > 0 {
		c.out["edits"] = whole
	}
}

func (c *call) itemFields() []args.Field {
	for _, f := range c.Fields {
		if f.Name == "edits" {
			return f.Items
		}
	}
	return []args.Field{{Name: "old_string", Kind: reflect.String, Required: true},
		{Name: "new_string", Kind: reflect.String, Required: true},
		{Name: "replace_all", Kind: reflect.Bool}}
}

// sameFile says whether an edit of a list names the file of the call, which it may name alone.
func (c *call) sameFile(v json.RawMessage) bool {
	if c.out["file_path"] == nil {
		c.put("file_path", "the file_path of the edits", v)
	}
	return string(c.out["file_path"]) == string(v)
}

// list is an array, or the text of one.
func list(v json.RawMessage) (items []json.RawMessage, ok bool) {
	var text string
	if json.Unmarshal(v, &text) == nil {
		v = json.RawMessage(text)
	}
	if strings.HasPrefix(string(v), "{") {
		return []json.RawMessage{v}, true
	}
	return items, json.Unmarshal(v, &items) == nil
}

// cellNumber is a number where an id is wanted; from where it counts is not said.
func cellNumber(c *call, key string, v json.RawMessage) {
	c.refuse(fmt.Sprintf("there is no argument %q", key), "send the cell_id that Read shows")
	c.lost = true
}

func exclude(c *call, key string, v json.RawMessage) {
	globs := asList(v)
	var text string
	if json.Unmarshal(v, &text) == nil && strings.Contains(text, "{") {
		globs = []string{text}
	}
	if globs == nil {
		c.unknown(key, v)
		return
	}
	for _, g := range globs {
		if g = strings.TrimPrefix(strings.TrimSpace(g), "!"); g != "" {
			c.excludes = append(c.excludes, "!"+g)
		}
	}
	c.taken = append(c.taken, key+" as ! globs")
}

// filesOrGlob is a pattern of names, or one path.
func filesOrGlob(c *call, key string, v json.RawMessage) {
	for _, f := range asList(v) {
		if strings.ContainsAny(f, "*?{[") {
			c.put("glob", key, v)
			return
		}
	}
	c.put("path", key, v)
}

// extension is .py, or py, or several.
func extension(c *call, key string, v json.RawMessage) {
	var globs []string
	for _, e := range asList(v) {
		if e = strings.TrimLeft(strings.TrimSpace(e), "*."); e != "" {
			globs = append(globs, "*."+e)
		}
	}
	if globs == nil {
		c.unknown(key, v)
		return
	}
	c.put("glob", key, quoted(strings.Join(globs, ",")))
}

// finish does what needs all the arguments.
func (c *call) finish() {
	c.endOfLines()
	if c.tool != "Edit" {
		c.items()
	}
	to := "glob"
	if c.Name == "Glob" {
		to = "pattern"
	}
	if text, ok := c.textOf(to); len(c.excludes) > 0 && (ok || c.out[to] == nil) {
		globs := c.excludes
		if text != "" {
			globs = append([]string{text}, globs...)
		}
		c.out[to] = quoted(strings.Join(globs, ","))
	}
	if c.Name == "Glob" && c.out["pattern"] == nil {
		c.refuse("pattern is missing", "send one; * lists every file")
		c.out["pattern"] = quoted("*")
	}
	pattern, ok := c.textOf("pattern")
	if !ok {
		return
	}
	if c.literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	if c.word {
		pattern = `\b(?:` + pattern + `)\b`
	}
	if c.anyCase {
		pattern = AnyCase(pattern)
	}
	if c.literal || c.word || c.anyCase {
		c.out["pattern"] = quoted(pattern)
	}
}

func (c *call) textOf(name string) (s string, ok bool) {
	return s, c.out[name] != nil && json.Unmarshal(c.out[name], &s) == nil
}

// AnyCase is a glob that matches names in any letter case.
func AnyCase(glob string) string {
	var b strings.Builder
	class := false
	escaped := false
	for _, r := range glob {
		lower, upper := unicode.ToLower(r), unicode.ToUpper(r)
		switch {
		case escaped, class, lower == upper:
			b.WriteRune(r)
		default:
			b.WriteString("[" + string(lower) + string(upper) + "]")
		}
		class = !escaped && (r == '[' || class && r != ']')
		escaped = !escaped && r == '\\'
	}
	return b.String()
}
