package args

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"moltisfs/internal/lazy"
)

// Names are the names that other agents' tools have for the arguments of a tool.
type Names struct {
	Tool    string // its own name
	Changes bool   // it changes files: an argument that is left out may have been meant
	Aliases []Alias
}

// An Alias is a row of the table of names: theirs, ours, and how the value is turned. The rows of a
// name are tried in order; the first that takes the value counts, and a row whose argument is not
// there is passed over.
//
//	{Theirs: "startline firstline", Ours: "offset"}
//	{Theirs: "viewrange", Ours: "offset", Turn: LineRange}                [10, 20]: offset 10, limit 11
//	{Theirs: "filesonly l", Ours: "output_mode=files_with_matches"}       for true
//	{Theirs: "overwrite", Says: "true", Hint: "Write replaces the file"}  left out for true, refused else
type Alias struct {
	Theirs string // names as fold writes them, blanks between
	Ours   string // the argument, or a value of it that a switch stands for; "" leaves it out
	Turn   Turn   // nil: the value as it is
	Says   string // without Ours: the values that change nothing for the tool; * for all
	Hint   string // about other values
	Quiet  bool   // not worth a note
}

// A Turn takes m for the argument of the row in its way; false: it can't.
type Turn func(c *call, row *Alias, m member) bool

// remarks are names of arguments about the call, for people.
var remarks = strings.Fields("description explanation instruction instructions reason reasoning " +
	"thought thoughts thinking rationale justification purpose title summary intent comment note " +
	"toolcallid requestid callid requiresapproval")

// fold is a name without case and separators: file_path, filePath and FILE-PATH are one. A name of a letter is an option,
// and its case counts.
func fold(name string) string {
	bare := strings.TrimLeft(name, "-")
	if len(bare) < 2 {
		return bare
	}
	return strings.ToLower(separators.Replace(bare))
}

var separators = strings.NewReplacer("_", "", "-", "", " ", "", ".", "")

// name finds the argument of a member that does not have its name.
func (c *call) name(m member) {
	folded, null := fold(m.key), string(m.value) == "null"
	switch {
	case strings.HasPrefix(m.key, "_") && c.at == "":
		return // of the gateway that sends the call: see Injected
	case !c.spec.lenient():
	case c.ours(m):
		return
	case null:
		c.left = append(c.left, m.key)
		return
	case c.turned(m):
		return
	case slices.Contains(remarks, folded):
		c.left = append(c.left, m.key)
		return
	}
	c.unknown(m)
}

// ours takes m where its key is the name of an argument in another spelling.
func (c *call) ours(m member) bool {
	for i := range c.fields {
		if f := &c.fields[i]; fold(f.name) == fold(m.key) {
			c.put(f.name, m, true)
			return true
		}
	}
	return false
}

// turned takes m by the rows of its name.
func (c *call) turned(m member) bool {
	hint, own := "", c.field(m.key) != nil
	for _, row := range c.spec.rows()[fold(m.key)] {
		ours, value, is := strings.Cut(row.Ours, "=")
		switch yes, ok := asBool(m.value); {
		case own && row.Turn == nil:
		case ours == "":
			if row.Says == "*" || slices.Contains(strings.Fields(row.Says), fold(strings.Trim(string(m.value), `" `))) {
				c.left = append(c.left, m.key)
				return true
			}
			hint = row.Hint
		case c.field(ours) == nil, is && !ok:
		case is && !yes:
			c.left = append(c.left, m.key)
			return true
		case is:
			c.put(ours, member{m.key, quoted(value)}, false)
			return true
		case row.Turn == nil:
			c.put(ours, m, row.Quiet)
			return true
		case row.Turn(c, &row, m):
			return true
		}
	}
	if hint != "" {
		c.refuse(hint, "there is no argument %.300q", c.at+m.key)
		c.lost = true
	}
	return hint != ""
}

// put takes m for the argument of that name.
func (c *call) put(name string, m member, quiet bool) {
	if first, twice := c.given[name]; twice {
		if c.spec.lenient() && first.key != m.key && (bytes.Equal(first.value, m.value) || string(m.value) == "null") {
			c.left = append(c.left, m.key)
			return
		}
		c.refuse("send each argument once", "%s%s is given twice (as %.300q and %.300q)", c.at, name, first.key, m.key)
		c.lost = true
		return
	}
	if !quiet {
		c.took("%s as %s", m.key, name)
	}
	c.given[name] = m
}

func (c *call) unknown(m member) {
	var names []string
	for _, f := range c.fields {
		names = append(names, f.name)
	}
	near := Nearest(m.key, names)
	_, given := c.given[near]
	hint := "the arguments are: " + strings.Join(names, ", ")
	switch {
	case len(c.given) == 0 && c.wraps(m.value):
		hint = "send what is in " + m.key + " as the arguments themselves"
		c.wrapped, c.lost = true, true
	case near != "" && !given:
		hint = "use " + c.at + near + " for " + m.key
		c.given[near] = m
	case c.spec.lenient():
		hint = "leave " + m.key + " out"
		c.lost = c.lost || c.spec.names.Changes
	}
	c.refuse(hint, "there is no argument %.300q", c.at+m.key)
}

// wraps says that value is an object, or the text of one, that has arguments as its keys: the whole call stands in it.
func (c *call) wraps(value json.RawMessage) bool {
	var text string
	if json.Unmarshal(value, &text) == nil {
		value = json.RawMessage(strings.TrimSpace(text))
	}
	if !bytes.HasPrefix(value, []byte{'{'}) {
		return false
	}
	inner, _ := members(value)
	return slices.ContainsFunc(inner, func(m member) bool { return c.field(m.key) != nil })
}

// Offered offers the value as the argument, and does not take it.
func Offered(c *call, row *Alias, m member) bool {
	if _, given := c.given[row.Ours]; given {
		return false
	}
	c.refuse("use "+row.Ours+" for "+m.key, "there is no argument %q", m.key)
	c.given[row.Ours] = m
	return true
}

// Opposite takes a switch that is the opposite of ours.
func Opposite(c *call, row *Alias, m member) bool {
	yes, is := asBool(m.value)
	if is {
		c.put(row.Ours, member{m.key, strconv.AppendBool(nil, !yes)}, false)
	}
	return is
}

// LastLine is the last line to read, where limit counts them.
func LastLine(c *call, _ *Alias, m member) bool {
	n, err := integer(m.value)
	if err != nil || c.last != nil {
		return false
	}
	c.last = new(int(n))
	c.took("%s as the end of limit", m.key)
	return true
}

var twoNumbers = lazy.Regexp(`^\[?\s*[Ll]?(-?\d+)"?\s*(?:,|-|:|to|\.\.)\s*"?[Ll]?(-?\d+)\s*"?\]?$`)

// LineRange is [10, 20], "10-20" or [10, -1].
func LineRange(c *call, _ *Alias, m member) bool {
	text := strings.Trim(string(m.value), "\" \t\n")
	n := twoNumbers().FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if n == nil {
		return false
	}
	first, err1 := strconv.Atoi(n[1])
	last, err2 := strconv.Atoi(n[2])
	if err1 != nil || err2 != nil || c.last != nil {
		return false
	}
	c.put("offset", member{m.key, integral(int64(max(first, 1)))}, false)
	c.last = &last
	return true
}

// endOfLines makes a limit of the last line.
func (c *call) endOfLines() {
	if c.last == nil {
		return
	}
	first := int64(1)
	if n, err := integer(c.given["offset"].value); err == nil {
		first = max(n, 1)
	}
	length := int64(*c.last) - first + 1
	limit, given := c.given["limit"]
	n, err := integer(limit.value)
	switch {
	case *c.last < 0: // to the end
	case length < 1:
		c.refuse("send offset and limit", "the last line, %d, comes before the first, %d", *c.last, first)
		c.lost = true
	case given && (err != nil || n != length):
		c.refuse("send offset and limit", "limit and the last line do not agree")
	case !given:
		c.given["limit"] = member{"the last line", integral(length)}
	}
}

// SeveralEdits is a list of edits that was sent to Edit.
func SeveralEdits(c *call, _ *Alias, m member) bool {
	items, ok := listOf(m.value)
	if m.value[0] == '{' {
		items, ok = []json.RawMessage{m.value}, true
	}
	_, old := c.given["old_string"]
	_, new := c.given["new_string"]
	switch {
	case !ok || len(items) == 0:
		return false
	case old || new:
		c.refuse("send several edits with MultiEdit", "there is no argument %q", m.key)
		c.lost = true
	case len(items) > 1:
		c.given["edits"], c.tool = m, "MultiEdit"
		c.refuse("use MultiEdit for several", "Edit makes one edit")
	default:
		one, err := members(items[0])
		if err != nil {
			return false
		}
		c.took("the one of %s as the edit", m.key)
		for _, m := range one {
			if f := c.field(m.key); f != nil {
				c.put(f.name, m, true)
			} else {
				c.name(m)
			}
		}
	}
	return true
}

// OneEdit is a part of an edit in the place of a list of them: it is for Edit.
func OneEdit(c *call, row *Alias, m member) bool {
	if _, given := c.given[row.Ours]; given {
		return false
	}
	if c.given[m.key] = m; c.tool == "" {
		c.refuse("use Edit for one", "MultiEdit takes a list of edits")
	}
	c.tool = "Edit"
	return true
}

func asBool(v json.RawMessage) (yes, ok bool) {
	s := strings.ToLower(strings.Trim(string(v), "\" \t\n"))
	return s == "true", s == "true" || s == "false"
}
