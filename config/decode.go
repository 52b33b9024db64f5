package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"moltisfs/internal/args"
)

// MaxSize is how many bytes a configuration may have.
const MaxSize = 1 << 20

// mostProblems bounds the problems that are looked for: the search for the nearest name of each unknown one takes its time.
const mostProblems = 100

// Decode reads one TOML document over Default. name is what problems call the file. The error joins
// one *Problem for each thing that is wrong, a hundred or a few more at the most, in file order; then the Config is that of Default and
// MUST NOT be used. After a syntax error nothing else can be judged, so it comes alone.
func Decode(data []byte, name string) (Config, error) {
	d := &decoder{src: string(data), name: name, schema: schema(), config: Default(), hasProblem: map[string]bool{}}
	d.decode()
	if len(d.problems) == 0 {
		return d.config, nil
	}
	slices.SortStableFunc(d.problems, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, len(d.problems))
	for i, p := range d.problems {
		errs[i] = p
	}
	return Default(), errors.Join(errs...)
}

type decoder struct {
	src, name  string
	schema     *field
	config     Config
	meta       toml.MetaData
	values     map[string]any
	spots      spots
	set        map[string]bool // keys that have a value
	hasProblem map[string]bool // keys that have a problem
	problems   []*Problem
}

// add notes a problem of the key at a path; entry, if given, is the number of an entry of its list.
func (d *decoder) add(path []string, why, hint string, entry ...int) {
	at, key := d.spots.of(path), dotted(path)
	for _, n := range entry {
		key += "[" + strconv.Itoa(n) + "]"
	}
	d.problems = append(d.problems, &Problem{File: d.name, Line: at.line, Column: at.column, Key: key, Why: why, Hint: hint})
	d.hasProblem[key] = true
}

// addAt notes a problem of the file at a byte offset.
func (d *decoder) addAt(offset int, key, why, hint string) {
	p := &Problem{File: d.name, Key: oneLine(key), Why: oneLine(why), Hint: hint}
	p.Line, p.Column = position(d.src, offset)
	d.problems = append(d.problems, p)
}

func (d *decoder) decode() {
	if len(d.src) > MaxSize {
		d.problems = append(d.problems, &Problem{File: d.name, Hint: "at most 1 MiB is read",
			Why: fmt.Sprintf("%d bytes are too many for a configuration file", len(d.src))})
		return
	}
	if !utf8.ValidString(d.src) {
		valid := strings.ToValidUTF8(d.src, "\x00")
		at := 0
		for at < len(valid) && valid[at] == d.src[at] {
			at++
		}
		d.addAt(at, "", "not valid UTF-8", "save the file as UTF-8")
		return
	}
	var err error
	if d.meta, err = toml.Decode(d.src, &d.values); err != nil {
		d.syntax(err)
		return
	}
	d.spots, d.set = spotsOf(d.src), map[string]bool{}
	for _, path := range d.meta.Keys() {
		if d.key(path); len(d.problems) >= mostProblems {
			return
		}
	}
	fs := &d.config.Tools.FS
	for i := range fs.DenyPaths {
		const key = "tools.fs.deny_paths"
		at := cmp.Or(d.spots[key+"["+strconv.Itoa(i)+"]"], d.spots[key])
		fs.denyAt = append(fs.denyAt, d.name+":"+strconv.Itoa(at.line))
	}
	for _, p := range d.config.problems() {
		base, _, _ := strings.Cut(p.Key, "[")
		if d.hasProblem[base] || d.hasProblem[p.Key] {
			continue
		}
		d.spots.locate(p, d.name)
		d.problems = append(d.problems, p)
	}
}

func (d *decoder) syntax(err error) {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		d.addAt(0, "", err.Error(), "")
		return
	}
	why, hint := cmp.Or(parse.Message, parse.Error()), ""
	if strings.Contains(why, "already been defined") {
		why, hint = "defined a second time", "keep one of them"
	}
	d.addAt(parse.Position.Start, parse.LastKey, strings.TrimPrefix(why, "toml: "), hint)
}

// oneLine escapes what would break a line of output. The library quotes the file as it is.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	return strings.Trim(quote(strings.ReplaceAll(s, "'", "`")), `"`)
}

// key judges the key or header at path, and stores its value.
func (d *decoder) key(path []string) {
	for i := range path { // an unknown section is reported once
		if d.hasProblem[dotted(path[:i+1])] {
			return
		}
	}
	f, rest := d.schema.find(path)
	typ := d.meta.Type(path...)
	switch {
	case len(rest) > 0 && f.section():
		d.unknown(path, f, rest, typ)
	case len(rest) > 0 && d.set[f.key]: // it is within an entry of a list
	case len(rest) > 0:
		d.add(path[:len(path)-len(rest)], "must be "+f.expected()+", not a section", f.form())
	case !f.section():
		d.value(f, path)
	case typ == "ArrayHash":
		d.add(path, "given as a list of sections", "write ["+f.key+"] once")
	case typ != "Hash":
		d.add(path, "a section, not a value", "write its keys below ["+f.key+"]")
	}
}

// value stores the value of f. The library refuses most second definitions, and drops others in silence.
func (d *decoder) value(f *field, path []string) {
	v, kept := lookup(d.values, path)
	if !kept {
		d.add(path, "defined a second time", "keep one of them")
		return
	}
	d.set[f.key] = true
	wrong := func(hint string) { d.add(path, "must be "+f.expected()+", not "+describe(v), hint) }
	to := f.value(&d.config)
	switch v := v.(type) {
	case bool:
		if f.typ.Kind() == reflect.Bool {
			to.SetBool(v)
			return
		}
	case int64:
		if f.typ != durationType && to.CanInt() && !to.OverflowInt(v) {
			if v == 0 && f.sample != "" {
				d.add(path, "must be more than 0", "leave the key out to have none")
			}
			to.SetInt(v)
			return
		}
	case string:
		switch {
		case f.typ == durationType:
			var dur Duration
			if err := dur.UnmarshalText([]byte(v)); err == errTooLong {
				wrong(fmt.Sprintf(`the longest is "%dd"`, maxDays))
			} else if err != nil {
				wrong(`units are "ms", "s", "m", "h", "d", "w"`)
			}
			to.SetInt(int64(dur))
			return
		case f.typ.Kind() == reflect.String:
			if v == "" && f.sample != "" {
				d.add(path, "is empty", "leave the key out to have none")
			}
			to.SetString(v)
			return
		case f.typ.Kind() == reflect.Slice:
			wrong("write " + f.name + " = [" + quote(v) + "]")
			return
		}
	case []any:
		if f.typ.Kind() == reflect.Slice {
			out := make([]string, len(v)) // "" keeps the numbering; check ignores it
			for i, item := range v {
				var is bool
				if out[i], is = item.(string); !is {
					d.add(path, "must be a string, not "+describe(item), "put it in quotes", i)
				}
			}
			to.Set(reflect.ValueOf(out))
			return
		}
	}
	if f.typ.Kind() == reflect.Bool {
		switch strings.ToLower(fmt.Sprint(v)) { // what was meant
		case "true", "yes", "on", "1":
			wrong("write " + f.name + " = true")
			return
		case "false", "no", "off", "0":
			wrong("write " + f.name + " = false")
			return
		}
	}
	wrong(f.form())
}

func lookup(values map[string]any, path []string) (v any, ok bool) {
	v = values
	for _, name := range path {
		m, _ := v.(map[string]any)
		if v, ok = m[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// unknown suggests the nearest key or section. It looks first in the section where the operator
// wrote it.
func (d *decoder) unknown(path []string, f *field, rest []string, typ string) {
	section := typ == "Hash" || typ == "ArrayHash" || len(rest) > 1
	if d.foreign(path, f, rest, section) {
		return
	}
	at := path[:len(path)-len(rest)+1]
	if section {
		d.add(at, "unknown section", d.nearSection(path))
		return
	}
	var all []string
	home := map[string]string{} // the first section that has a key of this name
	d.schema.walk(func(s *field) {
		for _, k := range s.keys() {
			all = append(all, k)
			home[k] = cmp.Or(home[k], s.key)
		}
	})
	name, hint := rest[0], ""
	switch near := cmp.Or(args.Nearest(name, f.keys()), args.Nearest(name, all)); {
	case slices.Contains(f.keys(), near):
		hint = "did you mean " + strconv.Quote(near) + "?"
	case near == name:
		hint = "it belongs under [" + home[near] + "]"
	case near != "":
		hint = "did you mean " + strconv.Quote(near) + " under [" + home[near] + "]?"
	case len(f.keys()) > 0:
		hint = "known here: " + strings.Join(f.keys(), ", ")
	default:
		hint = "known sections: " + strings.Join(d.sections(), ", ")
	}
	d.add(at, "unknown key", hint)
}

func (d *decoder) sections() (names []string) {
	d.schema.walk(func(f *field) {
		if f.section() && len(f.keys()) > 0 {
			names = append(names, "["+f.key+"]")
		}
	})
	return names
}

// nearSection is a hint for the unknown section at path: the one of nearly the same name.
func (d *decoder) nearSection(path []string) string {
	var names []string
	home := map[string]string{}
	d.schema.walk(func(f *field) {
		if f.section() {
			names = append(names, f.name)
			home[f.name] = f.key
		}
	})
	if near := args.Nearest(path[len(path)-1], names); near != "" {
		return "did you mean [" + home[near] + "]?"
	}
	return "known sections: " + strings.Join(d.sections(), ", ")
}

// form shows how to write the key, as a hint.
func (f *field) form() string {
	d := Default()
	v := f.value(&d)
	switch {
	case v.Kind() == reflect.Bool:
		return "write " + f.name + " = true, or " + f.name + " = false"
	case f.sample != "" && v.IsZero():
		return "write " + f.name + " = " + f.written()
	}
	return "write " + f.name + " = " + literal(v)
}

func (f *field) expected() string {
	switch f.kind() {
	case "one of":
		return "one of " + quoted(f.enum)
	case "integer":
		return "a whole number without a unit"
	case "true or false":
		return f.kind()
	}
	return "a " + f.kind()
}

// describe names a TOML value by its type, and a short one by its content.
func describe(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) > 40 {
			return "a long string"
		}
		return "the string " + strconv.Quote(v)
	case bool, int64, float64:
		return fmt.Sprint(v)
	case time.Time:
		return "a date"
	case []any, []map[string]any:
		return "a list"
	}
	return "a section"
}

// Locate adds to problems where in data, the document called name, their keys stand. data is what
// the Config was decoded from.
func Locate(data []byte, name string, problems ...*Problem) {
	s := spotsOf(string(data))
	for _, p := range problems {
		s.locate(p, name)
	}
}

// dotted joins a path as TOML writes it.
func dotted(path []string) string { return toml.Key(path).String() }
