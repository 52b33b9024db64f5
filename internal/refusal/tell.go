// Package refusal has the words of every refusal: one row a cause, in table.go.
//
// A dialect tells a refusal with Tell and puts the words into its own shape. A new cause takes a line in
// the causes of the engine and a row here. Its facts need no code: {Name} in a text is the field Name of
// the facts, {fact} all of them.
package refusal

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/hook"
	"moltisfs/internal/lazy"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
	"moltisfs/readers"
)

// A Row has the words of one cause. Says, Hint and Person are alternatives between bars. The first counts
// of which every {name} has a value: a fact, a tool or an argument that the caller has, or a moment of the call.
// {name lines} is a number with its noun, {name?} wants a value and {name=x} this one; neither shows it.
//
// So "{Holder?}another call ({Holder}) holds it | another call holds it" says the first where the facts
// have a Holder.
type Row struct {
	Says   string // the fact
	Hint   string // the next move of a model
	Person string // the next move of a person at a terminal; "": as Hint, "-": none

	Type  string        // for the capabilities: the first of these types that one lists, else the first
	Retry bool          // the same call may succeed later
	After int           // in so many seconds; 0: nobody knows
	Errno syscall.Errno // the word of a system for it; 0: a system would not refuse this
}

// Of is the row of a cause.
func Of(c engine.Cause) Row {
	if r, ok := rows[c]; ok {
		return r
	}
	return rows[engine.Unknown]
}

// A Voice is how a caller is spoken to.
type Voice struct {
	Path  string              // {path}, as the caller has it
	Show  func(string) string // writes a path of the facts; nil: edit.ShownPath
	Hint  func(string) string // how tools are named in a hint that the facts bring with them; nil: as they are
	Names func(string) string // how the caller calls a tool or an argument; "", or nil: it has none
	Now   map[string]string   // the moments of the call, by their names
	// Private: the caller has other paths than the engine, and is told of none of the engine's.
	Private bool
	Edits   bool // a call has several edits: the one that failed is numbered
}

// Told is a refusal in words. The hints are sentences, or "".
type Told struct{ Says, Hint, Person string }

// Tell says a refusal to a caller.
func Tell(r *engine.Refusal, v Voice) Told {
	t := teller{r, v, derived(r.Facts)}
	if f, ok := r.Facts.(engine.PartFacts); ok {
		t.more = map[string]string{"Err": Tell(cmp.Or(engine.Reason(f.Err), &engine.Refusal{Cause: engine.Unknown}), v).Says}
	}
	row := Of(r.Cause)
	if err, ok := r.Facts.(error); ok && r.Cause == engine.NotSaved { // the hint is that of why
		if why := engine.Reason(err); why != nil && why.Cause != engine.Unknown {
			row.Hint, row.Person = Of(why.Cause).Hint, Of(why.Cause).Person
		}
	}
	out := Told{Says: t.first(row.Says), Hint: Sentence(t.first(row.Hint))}
	if out.Person = out.Hint; row.Person != "" {
		out.Person = Sentence(t.first(strings.TrimPrefix(row.Person, "-")))
	}
	if out.Says == "" {
		out.Says = strings.ReplaceAll(r.Cause.Name, "_", " ")
	}
	if i := reflect.Indirect(reflect.ValueOf(r.Facts)); v.Edits && i.Kind() == reflect.Struct {
		if f := i.FieldByName("Index"); f.IsValid() && f.Int() >= 0 {
			out.Says = fmt.Sprintf("edit %d: %s", f.Int()+1, out.Says)
		}
	}
	return out
}

type teller struct {
	*engine.Refusal
	v    Voice
	more map[string]string
}

var hole = lazy.Regexp(`\{(\w+)( \w+|\?|=[^}]*)?\}`)

// first is the first of the alternatives that can be said.
func (t teller) first(text string) string {
	for alternative := range strings.SplitSeq(text, " | ") {
		ok := true
		said := hole().ReplaceAllStringFunc(alternative, func(one string) string {
			m := hole().FindStringSubmatch(one)
			value, there := t.value(m[1])
			switch {
			case m[2] == "?":
				ok, value = ok && there && value != "" && value != "0" && value != "0s" && value != "false", ""
			case strings.HasPrefix(m[2], "="):
				ok, value = ok && there && value == m[2][1:], ""
			case m[2] != "":
				value = plural(value, m[2])
			}
			ok = ok && there
			return value
		})
		if ok {
			return said
		}
	}
	return ""
}

// plural is a number with its noun, of which there may be one.
func plural(n, noun string) string {
	if n == "1" {
		noun = strings.TrimSuffix(noun, "s")
	}
	return n + noun
}

// may lists the names that may be "": their alternative counts all the same.
var may = []string{"skip", "by", "off", "editor", "because"}

// secret lists the facts that may name a path of the engine's.
var secret = []string{"at", "one", "first", "Left", "Back", "Held", "Missing", "Target", "Path", "Err", "Holder", "Dir"}

// value is the value of a name, and whether it has one.
func (t teller) value(name string) (string, bool) {
	if t.v.Private && slices.Contains(secret, name) {
		return t.v.Path, name == "at"
	}
	text, known := "", false
	switch name {
	case "path":
		text, known = cmp.Or(t.v.Path, "it"), true
	case "at":
		text, known = cmp.Or(t.show(t.Path), t.v.Path, "it"), true
	case "class":
		text, known = t.Class(), true
	case "lift":
		if text, known = t.Lift(), true; t.v.Private {
			text = "unprotected in [tools.fs]"
		}
	case "chain":
		if known = true; t.Rule() == policy.RuleChain {
			text = "the operator's policies"
		}
	case "fact":
		text, known = t.fact(), true
	}
	if !known {
		text, known = t.more[name]
	}
	if !known {
		text, known = t.field(name)
	}
	if known && t.v.Hint != nil && (name == "hint" || name == "Hint") {
		text = t.v.Hint(text)
	}
	if !known {
		text = t.v.Now[name]
		if name == "skip" {
			text = t.first(text)
		}
		if text == "" && t.v.Names != nil {
			text = t.v.Names(name)
		}
	}
	return text, text != "" || slices.Contains(may, name)
}

func (t teller) show(path string) string {
	if path == "" || t.v.Show == nil {
		return edit.ShownPath(path)
	}
	return t.v.Show(path)
}

// fact gives the facts in their own words.
func (t teller) fact() string {
	switch f := t.Facts.(type) {
	case nil:
		return ""
	case engine.Why:
		if f.Fact != nil && t.v.Private {
			return ""
		}
		return Why(f)
	case *guardfs.ConflictError:
		if t.v.Private {
			return ""
		}
		return meanwhile(f)
	case *hook.Error:
		if f.Err != nil {
			return "the hook " + f.Hook + " could not answer"
		}
		return f.Error()
	case error:
		if t.v.Private {
			return ""
		}
		return numbered().ReplaceAllString(f.Error(), "")
	}
	return fmt.Sprint(t.Facts)
}

// numbered begins the text of an edit's error.
var numbered = lazy.Regexp(`^edit \d+: `)

// field is an exported field of the facts in words; false where they have none of the name.
func (t teller) field(name string) (string, bool) {
	in := reflect.Indirect(reflect.ValueOf(t.Facts))
	if in.Kind() != reflect.Struct || !unicode.IsUpper(rune(name[0])) {
		return "", false
	}
	of, ok := in.Type().FieldByName(name)
	if !ok {
		return "", false
	}
	f, err := in.FieldByIndexErr(of.Index)
	if err != nil {
		return "", true
	}
	switch is := f.Interface().(type) {
	case time.Duration:
		return is.Round(time.Millisecond).String(), true
	case error:
		return is.Error(), true
	case []string:
		return engine.PlanFacts{Held: is}.String(), true
	}
	switch f.Kind() {
	case reflect.Slice:
		return strconv.Itoa(f.Len()), true
	case reflect.String:
		if slices.Contains(secret, name) && f.Len() > 0 {
			return t.show(f.String()), true
		}
		return clip(f.String()), true
	case reflect.Interface, reflect.Pointer:
		if f.IsNil() {
			return "", true
		}
	}
	return fmt.Sprint(f.Interface()), true
}

// clip bounds a text that a caller sent: nobody looks for its end in an error.
func clip(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// derived gives the words that facts of some types have beside their fields.
func derived(facts any) map[string]string {
	is := func(yes bool) string { return map[bool]string{true: "yes"}[yes] }
	until := func(l *checkpoint.Lost) string { return l.Until.UTC().Format(time.RFC3339Nano) }
	switch f := facts.(type) {
	case *guardfs.FixedError:
		return map[string]string{"closed": is(f.Dir != "")}
	case *session.Seen:
		return map[string]string{"seen": seen(f), "nothing": is(len(f.Ranges) == 0 && f.Unit == ""),
			"derived": is(f.Lossy && f.Lines >= 0 && f.FirstUnseen() > f.Lines)}
	case *edit.NoMatchError:
		words := noMatches[f.Cause]
		return map[string]string{"because": words.because, "repair": cmp.Or(words.repair, "new_string is made to fit it")}
	case *edit.UnencodableError:
		why := f.Encoding + " can't hold"
		if f.Refuted || f.Rival != "" {
			why = f.Why()
		}
		return map[string]string{"why": why,
			"char": fmt.Sprintf("%q (U+%04X, line %d column %d)", f.Char, f.Char, f.Line, f.Column)}
	case *edit.EncodingError:
		known := slices.Contains(readers.Encodings(), strings.ToLower(f.Name))
		return map[string]string{"known": is(known), "looks": is(f.Is && f.Name != "iso-2022-jp")}
	case *checkpoint.NothingError:
		if f.Lost != nil {
			return map[string]string{"until": until(f.Lost)}
		}
	case *checkpoint.PartialError:
		return map[string]string{"until": until(&f.Lost)}
	case readers.Hinter:
		return map[string]string{"hint": f.Hint()}
	case []engine.Blocked:
		out := map[string]string{"count": strconv.Itoa(len(f)), "stays": is(slices.ContainsFunc(f, func(b engine.Blocked) bool {
			return slices.Contains([]string{engine.OtherKind.Name, engine.KindForDir.Name, engine.WasDirOf.Name}, b.Why.Name)
		}))}
		if len(f) > 0 {
			out["first"] = edit.ShownPath(f[0].Path)
		}
		if len(f) == 1 {
			out["one"] = out["first"]
		}
		return out
	}
	return nil
}

// seen says how much of a file was seen: "2 of the 3 lines (not 1)".
func seen(s *session.Seen) string {
	all := plural(strconv.Itoa(s.Lines), " "+cmp.Or(s.Unit, "line")+"s")
	switch {
	case s.Lines < 0:
		return "only a part of the file"
	case len(s.Ranges) == 0:
		return "none of the " + all + " as they are now"
	}
	var missing []string
	next := 1
	for _, r := range append(slices.Clone(s.Ranges), session.Range{First: s.Lines + 1, Last: s.Lines + 1}) {
		switch last := r.First - 1; {
		case last < next:
		case len(missing) == 5:
			missing = append(missing[:4], missing[4]+" and more")
			return fmt.Sprintf("%d of the %s (not %s)", s.Shown(), all, strings.Join(missing, ", "))
		case last == next:
			missing = append(missing, strconv.Itoa(next))
		default:
			missing = append(missing, fmt.Sprintf("%d to %d", next, last))
		}
		next = max(next, r.Last+1)
	}
	return fmt.Sprintf("%d of the %s (not %s)", s.Shown(), all, strings.Join(missing, ", "))
}

// Why says a reason for a path that was left alone.
func Why(w engine.Why) string {
	switch fact := w.Fact.(type) {
	case nil:
		return whys[w.Name]
	case engine.Why:
		return fmt.Sprintf(whys[w.Name], Why(fact))
	case string: // it may be a path
		return fmt.Sprintf(whys[w.Name], edit.ShownPath(fact))
	default:
		return fmt.Sprintf(whys[w.Name], fact)
	}
}

// meanwhile puts the act of somebody else into words, with its remains.
func meanwhile(e *guardfs.ConflictError) string {
	text := meanwhiles[e.Why]
	if kind, is := e.Why.Kind(); is {
		text = "it is now a " + kind
	}
	if e.Fact != "" {
		text += edit.ShownPath(e.Fact)
	}
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	if e.Left != "" {
		text += "; what could not be put back is kept as " + edit.ShownPath(e.Left)
	}
	return text
}

// Sentence gives a hint its capital and its full stop.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	if first, _, _ := strings.Cut(s, " "); !strings.ContainsAny(first, "_-.") { // else it is a name
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".?!") {
		s += "."
	}
	return s
}

// Clause is a hint as it follows a colon: no capital at its start, unless a name has it, and no full stop.
func Clause(s string) string {
	s = strings.TrimSuffix(s, ".")
	first, _, _ := strings.Cut(s, " ")
	if s == "" || strings.ContainsFunc(first[1:], unicode.IsUpper) || slices.Contains(capital, first) {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// capital are names that begin a hint as they are.
var capital = []string{"Edit", "Glob", "Grep", "Moltis", "Write"}
