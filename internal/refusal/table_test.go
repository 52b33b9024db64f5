package refusal

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/session"
	"moltisfs/readers"
)

var names = []string{"path", "at", "class", "lift", "chain", "fact"}

// has says whether a text about these facts may have a {name}.
func has(facts reflect.Type, name string) bool {
	for facts != nil && facts.Kind() == reflect.Pointer {
		facts = facts.Elem()
	}
	if facts != nil && facts.Kind() == reflect.Struct {
		if _, ok := facts.FieldByName(name); ok {
			return true
		}
	}
	return slices.Contains(slices.Concat(names, moments, Names), name)
}

// sample has facts of the types that have words beside their fields.
var sample = map[reflect.Type]any{
	reflect.TypeFor[*session.Seen]():            &session.Seen{},
	reflect.TypeFor[*guardfs.FixedError]():      &guardfs.FixedError{Path: "/host/f", Dir: "/host"},
	reflect.TypeFor[*edit.NoMatchError]():       &edit.NoMatchError{},
	reflect.TypeFor[*edit.UnencodableError]():   &edit.UnencodableError{},
	reflect.TypeFor[*edit.EncodingError]():      &edit.EncodingError{Name: "x"},
	reflect.TypeFor[*checkpoint.NothingError](): &checkpoint.NothingError{Lost: &checkpoint.Lost{}},
	reflect.TypeFor[*checkpoint.PartialError](): &checkpoint.PartialError{},
	reflect.TypeFor[readers.Hinter]():           &readers.BadPages{},
	reflect.TypeFor[[]engine.Blocked]():         []engine.Blocked{{Path: "/f", Why: engine.Occupied}},
	reflect.TypeFor[*engine.CountError]():       &engine.CountError{Replacing: &engine.Replacing{}},
	reflect.TypeFor[error]():                    syscall.EIO,
}

// Each cause has a row of its own, each row a cause, and each {name} is a fact of that cause or one of the words that a dialect may give. A hint
// that speaks to a model of the people around it has words for those people too.
func TestEveryCauseHasARow(t *testing.T) {
	people := regexp.MustCompile(`(?i)\b(the )?(user|operator)\b`)
	for _, c := range engine.Causes {
		row, ok := rows[c]
		if !ok || row.Says == "" || row.Hint == "" || row.Type == "" {
			t.Errorf("%s has no row, or one without a sentence, hint or type", c.Name)
		}
		var facts reflect.Type
		if c.Facts != nil {
			facts = reflect.TypeOf(c.Facts).Elem()
		}
		more := derived(sample[facts])
		for _, name := range Names {
			if facts != nil && facts.Kind() == reflect.Struct {
				if _, is := facts.FieldByName(name); is {
					t.Errorf("%s: {%s} is a name and a fact", c.Name, name)
				}
			}
		}
		for _, text := range []string{row.Says, row.Hint, row.Person} {
			for _, m := range hole().FindAllStringSubmatch(text, -1) {
				if _, ok := more[m[1]]; !ok && !has(facts, m[1]) || m[1] == "fact" && facts == nil {
					t.Errorf("%s: %s is no fact of %v", c.Name, m[0], facts)
				}
			}
			if rest := hole().ReplaceAllString(text, "x"); strings.ContainsAny(strings.ReplaceAll(rest, "*.{ts,tsx}", ""), "{}") || strings.Contains(rest, "  ") {
				t.Errorf("%s: %q", c.Name, rest)
			}
		}
		if people.MatchString(strings.ReplaceAll(row.Hint, "user's", "")) && row.Person == "" || people.MatchString(row.Person) {
			t.Errorf("%s: a hint speaks to a person of that person: %q", c.Name, row.Person)
		}
	}
	if len(rows) != len(engine.Causes) {
		t.Errorf("%d rows for %d causes", len(rows), len(engine.Causes))
	}
}

// TestEveryCauseSaysSomething: with any facts of a call each cause has a whole sentence; of a caller with paths of its own no other path is told.
func TestEveryCauseSaysSomething(t *testing.T) {
	for _, c := range engine.Causes {
		var facts any
		if c.Facts != nil {
			typ := reflect.TypeOf(c.Facts).Elem()
			switch s := sample[typ]; {
			case s != nil:
				facts = s
			case typ.Kind() == reflect.Pointer:
				facts = full(typ.Elem()).Addr().Interface()
			case typ.Kind() != reflect.Interface:
				facts = full(typ).Interface()
			}
		}
		for _, v := range []Voice{{}, {Path: "a", Private: true}, {Path: "a", Now: map[string]string{"restore": "yes"}}} {
			for _, facts := range []any{facts, nil} {
				if facts == nil && c.Facts != nil && !v.Private {
					continue
				}
				told := Tell(&engine.Refusal{Code: c.Code, Cause: c, Path: "/host/f", Facts: facts}, v)
				if !v.Private && told.Says == strings.ReplaceAll(c.Name, "_", " ") || told.Says == "" {
					t.Errorf("%s says nothing to %+v", c.Name, v)
				}
				if all := told.Says + told.Hint + told.Person; v.Private && strings.Contains(all, "/host") || strings.Contains(all, "{path") || strings.Contains(all, "%!") {
					t.Errorf("%s: %s", c.Name, all)
				}
			}
		}
	}
}

// hosts are fields that have a path of the engine's.
var hosts = []string{"Missing", "Target", "Path", "True", "Holder", "Key"}

// full is a value of a type, with something in each field.
func full(typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Struct:
		for i := range typ.NumField() {
			switch f := typ.Field(i); {
			case slices.Contains(hosts, f.Name) && f.Type.Kind() == reflect.String:
				v.Field(i).SetString("/host/x")
			case f.IsExported():
				v.Field(i).Set(full(f.Type))
			}
		}
	}
	return v
}

// Each reason, and whatever others may do at the same moment, has its words.
func TestEveryReasonHasWords(t *testing.T) {
	for _, name := range engine.Whys {
		if whys[name] == "" {
			t.Errorf("%s has no words", name)
		}
	}
	if len(whys) != len(engine.Whys) {
		t.Errorf("words for %d reasons of %d", len(whys), len(engine.Whys))
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		cause engine.Cause
		facts any
		v     Voice
		want  Told
	}{
		{engine.ReadOnly, "-r--r--r--", Voice{Path: "/f", Now: map[string]string{"skip": ", or {since} it"}, Names: strings.ToUpper}, Told{"/f is read-only (-r--r--r--); nothing was changed",
			"Ask the user to make it writable, or SINCE it.", "Make it writable, or SINCE it."}},
		{engine.NotApproved, "", Voice{}, Told{"the change was not approved; nothing was changed", "Ask the user what should be different before trying again.", ""}},
		{engine.NotApproved, "no {path}", Voice{}, Told{"the change was not approved (no {path}); nothing was changed", "Ask the user what should be different before trying again.", ""}},
		{engine.OldIsNew, &edit.SameError{Index: 1}, Voice{Edits: true}, Told{"edit 2: old_string and new_string are the same; the file is untouched",
			"Leave the edit out, or send the text that should be there instead.", "Leave the edit out, or send the text that should be there instead."}},
		{engine.Absent, nil, Voice{Names: func(name string) string { return "list_" + name }}, Told{"it does not exist", "Check the path with list_Glob.", "Check the path with list_Glob."}},
		{engine.Absent, nil, Voice{}, Told{"it does not exist", "Check the path.", "Check the path."}},
		{engine.ChangedAtOnce, &guardfs.ConflictError{Why: guardfs.LinkInTheWay, Fact: "/x"}, Voice{Path: "a"}, Told{
			"somebody else changed /f at the same moment: a link was put in its way, which leads to /x; nothing was changed by this call", "Read it again and repeat the change.", "Read it again and repeat the change."}},
		{engine.ChangedAtOnce, &guardfs.ConflictError{Why: guardfs.LinkInTheWay, Fact: "/x"}, Voice{Path: "a", Private: true}, Told{
			"somebody else changed a at the same moment; nothing was changed by this call", "Read it again and repeat the change.", "Read it again and repeat the change."}},
	} {
		if got := Tell(&engine.Refusal{Cause: c.cause, Path: "/f", Facts: c.facts}, c.v); got != c.want {
			t.Errorf("%s: %+v", c.cause.Name, got)
		}
	}
	for s, want := range map[string]string{
		"2 of the 3 lines (not 1)": seen(&session.Seen{Lines: 3, Ranges: []session.Range{{First: 2, Last: 3}}}), "only a part of the file": seen(&session.Seen{Lines: -1}),
		"none of the 1 cell as they are now": seen(&session.Seen{Lines: 1, Unit: "cell"}),
	} {
		if s != want {
			t.Errorf("%q, want %q", want, s)
		}
	}
}

// Where something may have been done, no word says that nothing was, whatever the code.
func TestNothingWasDone(t *testing.T) {
	t.Parallel()
	for _, is := range []struct {
		cause engine.Cause
		facts any
	}{{engine.Withheld, nil}, {engine.HalfMade, engine.HalfFacts{}}, {engine.NoAnswer, engine.StuckFacts{Began: true}}} {
		for _, code := range []engine.Code{is.cause.Code, engine.CodePermissionDenied, engine.CodePolicyError, engine.CodeIOError, engine.CodeDeadline} {
			told := Tell(&engine.Refusal{Code: code, Cause: is.cause, Facts: is.facts}, Voice{Private: true, Now: map[string]string{"plain": "yes"}})
			if strings.Contains(told.Says+told.Hint, "nothing was") {
				t.Errorf("%s as %s: %s: %s", is.cause.Name, code, told.Says, told.Hint)
			}
		}
	}
}
