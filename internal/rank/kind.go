package rank

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// kind is what a line does with a name. Its value is its points.
type kind int

const (
	use         kind = 0
	member      kind = 40
	declaration kind = 50
	innerAssign kind = 60
	fileName    kind = 70
	heading     kind = 75
	assignment  kind = 80
	inside      kind = 88
	definition  kind = 100
)

func (k kind) String() string {
	switch k {
	case definition:
		return "definition"
	case inside:
		return "inner definition"
	case assignment:
		return "assignment"
	case heading:
		return "heading"
	case fileName:
		return "file name"
	case innerAssign:
		return "inner assignment"
	case declaration:
		return "declaration"
	case member:
		return "member"
	}
	return "use"
}

func (k kind) defines() bool { return k >= declaration && k != fileName && k != heading }

// kindOf says what the line does with the name text[from:to].
func (p *place) kindOf(text string, from, to int) kind {
	for from < to && !nameAt(text, from) { // a text may begin with what is no name
		from++
	}
	indent := len(text) - len(strings.TrimLeft(text, " \t"))
	width := indent + 3*strings.Count(text[:indent], "\t")
	if p.prose {
		return proseKind(text, width)
	}
	if comment(text[indent:]) {
		return use
	}
	// The text that was asked for may have the keyword in it, as "func ReadAll" has.
	for at := from; at < to; {
		end := at
		for end < len(text) && nameAt(text, end) {
			_, n := utf8.DecodeRuneInString(text[end:])
			end += n
		}
		if end > at {
			if k := lineKind(text[indent:max(at, indent)], text[end:], width); k != use {
				return k
			}
		}
		for at = max(end, at+1); at < to && !nameAt(text, at); {
			at++
		}
	}
	return use
}

// lineKind looks at what stands before and after a name. before is without its indent.
func lineKind(before, after string, indent int) kind {
	top := func(k kind) kind {
		if indent > 0 && k == definition {
			return inside
		}
		return k
	}
	words, rest := leading(strings.TrimLeft(before, "("))
	if k := byKeyword(words, rest, after); k != use {
		return top(k)
	}
	if before == "} " && strings.HasPrefix(strings.TrimSpace(after), ";") {
		return top(definition) // typedef struct { … } name;
	}
	if k := byShape(words, rest, after, indent); k != use {
		return top(k)
	}
	return byPlace(words, rest, after, indent)
}

// leading takes the words off that may stand before a keyword, and gives the keywords after them.
func leading(before string) (words []string, rest string) {
	rest = before
	for {
		trimmed := strings.TrimLeft(rest, " \t")
		i := strings.IndexAny(trimmed, " \t")
		if i < 0 {
			i = len(trimmed)
		}
		w := trimmed[:i]
		if at := strings.IndexByte(w, '('); at > 0 && strings.HasSuffix(w, ")") {
			w = w[:at] // pub(crate)
		}
		plain := strings.TrimRight(w, "*") // function*
		switch lower := strings.ToLower(plain); {
		case w == "":
			return words, trimmed
		case w == "#" && strings.HasPrefix(trimmed, "# define "):
			words, rest = append(words, "#define"), trimmed[len("# define"):]
			continue
		case strings.HasPrefix(w, "@") || strings.HasPrefix(w, "#["): // a decorator
		case lower == "create":
			words = append(words, lower)
		case len(words) > 0 && words[0] == "create" && created[lower]:
			words = append(words, lower)
		case keywords[plain] || modifiers[plain]:
			words = append(words, plain)
		default:
			return words, trimmed
		}
		rest = trimmed[i:]
	}
}

// byKeyword: a keyword stands before the name, and between them only what may.
func byKeyword(words []string, rest, after string) kind {
	if len(words) == 0 {
		return use
	}
	key, typed := false, false
	for _, w := range words {
		key = key || keywords[w]
		typed = typed || constants[w]
	}
	if words[0] == "create" {
		key = len(words) > 1
	}
	if !key && !typed {
		return use
	}
	between := strings.TrimSpace(rest)
	switch {
	case key && between == "":
		return definition
	case key && between[0] == '(' && closes(between) == len(between): // a receiver
		return inside
	case key && strings.ContainsAny(between[:1], "<[") &&
		strings.ContainsAny(between[len(between)-1:], ">]"):
		return definition
	case key && strings.HasSuffix(between, ",") && names(between, ", \t{[("):
		return definition
	case key && names(between, "{[( \t") && strings.Trim(between, "{[( \t") == "":
		return definition // let { name } = …
	case key && strings.TrimRight(between, ".:#·>") != between && names(between, ".:#·->"):
		return inside // an owner: self.x, B::x
	case key && between[len(between)-1] == '"' && len(between) == 1:
		return definition // resource "x"
	case typed && names(between, " \t*&<>,[]:") && ends(after, "=;[,{"):
		return definition
	}
	return use
}

// byShape: the head of a function in the languages that have no keyword for it.
func byShape(words []string, rest, after string, indent int) kind {
	params := strings.TrimLeft(after, " \t")
	if strings.HasPrefix(params, "<") {
		if i := strings.IndexByte(params, '>'); i > 0 {
			params = params[i+1:]
		}
	}
	if !strings.HasPrefix(params, "(") || !names(rest, " \t*&<>,[]:.?~") {
		return use
	}
	first := strings.FieldsFunc(rest, func(r rune) bool { return !partOfName(r) })
	for _, w := range first {
		if statements[w] {
			return use
		}
	}
	if strings.ContainsAny(rest, ".") || strings.HasSuffix(strings.TrimSpace(rest), ",") {
		return use // x.name(…) is a call
	}
	line := strings.TrimRight(params, " \t\r")
	typed := len(first) > 0 || len(words) > 0
	owner := strings.HasSuffix(rest, "::")
	end := closes(line)
	switch {
	case strings.HasSuffix(line, "{") && (end > 0 || typed):
		if strings.Contains(rest, ":") && !owner {
			return use
		}
		if owner {
			return inside
		}
		return definition
	case !typed && end > 0 && shallow(indent) && signature(line[end:]):
		return declaration
	case !typed:
		return use
	case strings.HasSuffix(line, ";") && end > 0 && indent == 0:
		return declaration
	case strings.HasSuffix(line, ";") && end > 0 && len(words) > 0 && modifiers[words[0]]:
		return declaration
	case indent == 0 && end == len(line),
		indent == 0 && end == 0 && (strings.HasSuffix(line, ",") || line == "("):
		return definition
	}
	return use
}

// byPlace: the name begins the line.
func byPlace(words []string, rest, after string, indent int) kind {
	quoted := false
	switch b := strings.TrimSpace(rest); {
	case b == `"` || b == `'`:
		quoted = true
		if !strings.HasPrefix(after, b) {
			return use
		}
		after = after[1:]
	case b == "[" && indent == 0 && strings.HasPrefix(after, "]"):
		return heading
	case b == "$" || b == "-" && len(words) == 0:
	case b != "":
		return typedField(words, b, after, indent)
	}
	a := strings.TrimLeft(after, " \t")
	if types[firstWord(a)] && a != after && shallow(indent) {
		return inside // in a group
	}
	has := func(mark string) bool { return strings.HasPrefix(a, mark) }
	assigned := has("=") && !has("==") && !has("=>") || has(":") && !has("::") ||
		has("?=") || has(":: ")
	switch {
	case assigned && indent == 0 && !strings.HasPrefix(after, "."):
		return assignment
	case assigned && a[0] == '=' && shallow(indent):
		return innerAssign
	case assigned && (shallow(indent) || quoted):
		return member
	case indent == 0 || !shallow(indent) || quoted:
		return use
	case a == "" || a == "," || strings.HasPrefix(a, ", ") || strings.HasPrefix(a, "//"):
		return member // an enumerator
	case a != after && !statements[firstWord(a)] &&
		(nameAt(a, 0) || strings.ContainsAny(a[:1], "*[&")):
		return member // a field and its type
	}
	return use
}

// typedField: a type stands before the name, and its end or value after it: "int size;".
func typedField(words []string, before, after string, indent int) kind {
	if !names(before, " \t*&<>,[]?.:") || !ends(after, "=;{") || !nameAt(before, 0) ||
		strings.HasSuffix(strings.TrimSpace(before), ".") {
		return use
	}
	if slices.ContainsFunc(words, func(w string) bool { return keywords[w] && !constants[w] }) ||
		slices.ContainsFunc(strings.Fields(before), func(w string) bool { return statements[w] }) {
		return use
	}
	switch marked := len(words) > 0 && modifiers[words[0]]; {
	case marked || shallow(indent):
		return member
	case indent > 0:
		return use
	case ends(after, "="):
		return assignment
	}
	return declaration
}

// signature says whether what follows the arguments is a result, so that they were parameters.
func signature(after string) bool {
	after = strings.TrimSpace(after)
	return after != "" && (nameAt(after, 0) || strings.ContainsAny(after[:1], "(*[") ||
		strings.HasPrefix(after, ":") && len(after) > 1 || strings.HasPrefix(after, "->"))
}

func firstWord(s string) string {
	return s[:len(s)-len(strings.TrimLeftFunc(s, partOfName))]
}

// shallow: one level in.
func shallow(indent int) bool { return indent > 0 && indent <= 4 }

func ends(after, marks string) bool {
	after = strings.TrimLeft(after, " \t")
	return after != "" && strings.ContainsAny(after[:1], marks) && !strings.HasPrefix(after, "==")
}
