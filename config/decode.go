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

	"moltisfs/internal/nearest"
)

// MaxSize is how many bytes a configuration may have.
const MaxSize = 1 << 20

// Decode reads one TOML document over Default. name is what problems call the file. The error joins one *Problem for
// each thing that is wrong, in file order; then the Config is that of Default and MUST NOT be used. After a syntax
// error nothing else can be told, so it comes alone.
func Decode(data []byte, name string) (Config, error) {
	d := newDecoder(data, name)
	d.decode()
	if len(d.problems) == 0 {
		return d.config, nil
	}
	slices.SortStableFunc(d.problems, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	errs := make([]error, len(d.problems))
	for i, p := range d.problems {
		errs[i] = p
	}
	return Default(), errors.Join(errs...)
}

type decoder struct {
	src, name string
	schema    *field
	config    Config
	places    map[string]entry // by full key
	bad       map[string]bool  // keys that have a problem already
	problems  []*Problem
}

func newDecoder(data []byte, name string) *decoder {
	return &decoder{src: string(data), name: name, schema: schema(), config: Default(), bad: map[string]bool{}}
}

func (d *decoder) add(at int, key, why, hint string) {
	line, column := position(d.src, at)
	d.problems = append(d.problems, &Problem{File: d.name, Line: line, Column: column, Key: key, Why: why, Hint: hint})
	d.bad[key] = true
}

func (d *decoder) decode() {
	if len(d.src) > MaxSize {
		d.problems = append(d.problems, &Problem{File: d.name,
			Why: fmt.Sprintf("%d bytes is no configuration file", len(d.src)), Hint: "at most 1 MiB is read"})
		return
	}
	if i := invalidUTF8(d.src); i >= 0 {
		d.add(i, "", "not valid UTF-8", "save the file as UTF-8")
		return
	}
	// The library needs a gigabyte for a megabyte of brackets or dots, so depth is looked at before it is called.
	s := scan(d.src)
	if s.deep >= 0 {
		d.add(s.deep, "", "nested deeper than 64", "no key holds more than a list")
		return
	}
	var values map[string]any
	if _, err := toml.Decode(d.src, &values); err != nil {
		d.syntax(err)
		return
	}
	for _, t := range s.again {
		line, _ := position(d.src, t.first)
		d.add(t.at, dotted(t.path), fmt.Sprintf("defined a second time, first on line %d", line), "keep one of them")
	}
	clear(d.bad) // what stands in either definition is judged all the same
	d.places = map[string]entry{}
	for _, e := range s.entries {
		d.entry(e, values)
	}
	d.check()
}

func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return -1
}

func (d *decoder) syntax(err error) {
	p := &Problem{File: d.name, Why: strings.TrimPrefix(err.Error(), "toml: ")}
	var parse toml.ParseError
	if errors.As(err, &parse) {
		p.Line, p.Column = position(d.src, parse.Position.Start)
		p.Why, p.Key = parse.Message, parse.LastKey
		if p.Why == "" { // some of the library's errors carry their text inside only
			p.Why = strings.TrimPrefix(parse.Error(), "toml: ")
		}
	}
	p.Key, p.Why = oneLine(p.Key), oneLine(p.Why)
	if strings.Contains(p.Why, "already been defined") {
		p.Why, p.Hint = "defined a second time", "keep one of them"
	}
	d.problems = append(d.problems, p)
}

// oneLine escapes what would break a line of output; the library quotes what stands in the file as it is.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	return strings.Trim(quote(strings.ReplaceAll(s, "'", "`")), `"`)
}

// entry judges one key or header, and takes over its value.
func (d *decoder) entry(e entry, values map[string]any) {
	for i := range e.path { // one problem for an unknown section is enough
		if d.bad[dotted(e.path[:i+1])] {
			return
		}
	}
	key := dotted(e.path)
	f, rest := d.schema.find(e.path)
	switch {
	case len(rest) > 0 && !f.section():
		d.bad[key] = true
		d.add(e.at, f.key, "a value, not a section", f.form())
	case len(rest) > 0:
		d.unknown(e, f, rest)
	case e.array:
		d.add(e.at, key, "given as a list of sections", "write ["+key+"] once")
	case e.header && !f.section():
		d.add(e.at, key, "a value, not a section", f.form())
	case e.header:
	case f.section() && !e.inline:
		d.add(e.value, key, "a section, not a value", "write its keys below ["+key+"]")
	case f.section():
	default:
		if v, ok := lookup(values, e.path); ok {
			d.places[key] = e
			d.set(f, v, e)
		}
	}
}

// unknown names the nearest key or section, looking first where the operator was.
func (d *decoder) unknown(e entry, f *field, rest []string) {
	path := e.path[:len(e.path)-len(rest)+1]
	key := dotted(path)
	if e.header || e.inline || len(rest) > 1 {
		d.add(e.at, key, "unknown section", d.nearSection(key, e.path))
		return
	}
	if key == "tools.fs.pdf_engine" {
		d.add(e.at, key, "this key was removed: PDFium reads every PDF", "leave it out")
		return
	}
	name := rest[0]
	hint := ""
	if near := nearest.Of(name, f.keys()); near != "" {
		hint = "did you mean " + strconv.Quote(near) + "?"
	} else {
		var all []string
		home := map[string]string{}
		d.schema.walk(func(s *field) {
			for _, k := range s.keys() {
				all = append(all, k)
				home[k] = cmp.Or(home[k], s.key)
			}
		})
		switch near := nearest.Of(name, all); {
		case near == name:
			hint = "it belongs under [" + home[near] + "]"
		case near != "":
			hint = "did you mean " + strconv.Quote(near) + " under [" + home[near] + "]?"
		case len(f.keys()) > 0:
			hint = "known here: " + strings.Join(f.keys(), ", ")
		default:
			hint = "known sections: " + strings.Join(d.sections(), ", ")
		}
	}
	d.add(e.at, key, "unknown key", hint)
}

func (d *decoder) sections() (names []string) {
	d.schema.walk(func(f *field) {
		if f.section() && len(f.keys()) > 0 {
			names = append(names, "["+f.key+"]")
		}
	})
	return names
}

func (d *decoder) nearSection(key string, path []string) string {
	var full, last []string
	home := map[string]string{}
	d.schema.walk(func(f *field) {
		if f.section() {
			full, last = append(full, f.key), append(last, f.name)
			home[f.name] = f.key
		}
	})
	near := nearest.Of(dotted(path), full)
	near = cmp.Or(near, nearest.Of(key, full))
	near = cmp.Or(near, home[nearest.Of(path[len(path)-1], last)])
	if near != "" {
		return "did you mean [" + near + "]?"
	}
	return "known sections: " + strings.Join(d.sections(), ", ")
}

func lookup(values map[string]any, path []string) (any, bool) {
	var v any = values
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// form is an example of the key, as hint.
func (f *field) form() string {
	d := Default()
	v := f.value(&d)
	if f.sample != "" && v.IsZero() {
		return "write " + f.name + " = " + f.written()
	}
	return "write " + f.name + " = " + literal(v)
}

// set stores v, or says what it should have been.
func (d *decoder) set(f *field, v any, e entry) {
	wrong := func(hint string) {
		d.add(e.value, f.key, "must be "+f.wants()+", not "+describe(v), hint)
	}
	to := f.value(&d.config)
	switch {
	case f.typ == durationType:
		s, ok := v.(string)
		if !ok {
			hint := `write it as a string with its unit, such as "120s"`
			if n, isInt := v.(int64); isInt && n >= 0 {
				hint = fmt.Sprintf(`write "%ds" for seconds`, n)
			}
			wrong(hint)
			return
		}
		var dur Duration
		switch err := dur.UnmarshalText([]byte(s)); {
		case err == errTooLong:
			wrong(fmt.Sprintf(`the longest is "%dd"`, mostDays))
			return
		case err != nil:
			wrong(`units are "ms", "s", "m", "h", "d", "w"`)
			return
		}
		to.SetInt(int64(dur))
	case f.typ.Kind() == reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			hint := f.form()
			if s, isString := v.(string); isString && (s == "true" || s == "false") {
				hint = "write " + s + " without quotes"
			}
			wrong(hint)
			return
		}
		to.SetBool(b)
	case f.typ.Kind() == reflect.Int || f.typ.Kind() == reflect.Int64:
		n, ok := v.(int64)
		if !ok || to.OverflowInt(n) {
			wrong(f.number(v))
			return
		}
		if n == 0 && f.sample != "" {
			d.add(e.value, f.key, "must be more than 0", "leave the key out to have none")
			return
		}
		to.SetInt(n)
	case f.typ.Kind() == reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			hint := f.form()
			if s, isString := v.(string); isString {
				hint = "write " + f.name + " = [" + quote(s) + "]"
			}
			wrong(hint)
			return
		}
		out := make([]string, 0, len(list))
		for i, item := range list {
			s, ok := item.(string)
			if !ok {
				at := e.value
				if i < len(e.elements) {
					at = e.elements[i]
				}
				d.add(at, fmt.Sprintf("%s[%d]", f.key, i), "must be a string, not "+describe(item), "put it in quotes")
			}
			out = append(out, s) // "" keeps the numbering; check leaves it alone
		}
		to.Set(reflect.ValueOf(out))
	default:
		s, ok := v.(string)
		if !ok {
			wrong(f.form())
			return
		}
		if s == "" && f.sample != "" {
			d.add(e.value, f.key, "is empty", "leave the key out to have none")
			return
		}
		to.SetString(s)
	}
}

func (f *field) wants() string {
	switch f.kind() {
	case "one of":
		return "one of " + quoted(f.enum)
	case "integer":
		return "a whole number"
	case "true or false":
		return f.kind()
	}
	return "a " + f.kind()
}

// number helps with the ways in which sizes are commonly written.
func (f *field) number(v any) string {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return fmt.Sprintf("write %d", int64(v))
		}
	case string:
		t := strings.ToUpper(strings.ReplaceAll(strings.TrimSpace(v), " ", ""))
		digits := strings.TrimRight(t, "KMGIB")
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			break
		}
		small, big := int64(1), int64(1)
		switch unit := t[len(digits):]; {
		case strings.HasPrefix(unit, "K"):
			small, big = 1000, 1<<10
		case strings.HasPrefix(unit, "M"):
			small, big = 1000_000, 1<<20
		case strings.HasPrefix(unit, "G"):
			small, big = 1000_000_000, 1<<30
		}
		if small == big {
			return fmt.Sprintf("write %d without quotes", n)
		}
		return fmt.Sprintf("sizes are bytes without a unit: %d or %d", n*small, n*big)
	}
	return f.form()
}

// describe names a TOML value by type and, where it is short, by content.
func describe(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) > 40 {
			return "a long string"
		}
		return "the string " + strconv.Quote(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time:
		return "a date"
	case []any, []map[string]any:
		return "a list"
	}
	return "a section"
}

// check adds the semantic problems, at the values they are about.
func (d *decoder) check() {
	for _, p := range d.config.problems() {
		base, _ := split(p.Key)
		if d.bad[base] || d.bad[p.Key] || p.needs != "" && d.bad[p.needs] {
			continue
		}
		d.locate(&p.Problem)
		d.problems = append(d.problems, &p.Problem)
	}
}

// Locate says where in data, the document called name, the values stand that problems of the Config which Decode made of it are about.
func Locate(data []byte, name string, problems ...*Problem) {
	d := newDecoder(data, name)
	d.decode()
	for _, p := range problems {
		d.locate(p)
	}
}

// locate fills in where the value of p.Key stands.
func (d *decoder) locate(p *Problem) {
	base, index := split(p.Key)
	p.File = d.name
	if e, ok := d.places[base]; ok {
		at := e.value
		if index >= 0 && index < len(e.elements) {
			at = e.elements[index]
		}
		p.Line, p.Column = position(d.src, at)
		p.Column += d.within(at, p.glob)
	}
}

// split parts the key of a problem: tools.fs.deny_paths[1] is the entry 1 of tools.fs.deny_paths. The index is -1 when there is none.
func split(key string) (base string, index int) {
	base, rest, ok := strings.Cut(key, "[")
	if !ok {
		return base, -1
	}
	index, _ = strconv.Atoi(strings.TrimSuffix(rest, "]"))
	return base, index
}

// within is how many characters the n-th byte of a string's value stands behind its opening quote, counted from the quote.
// Strings with escapes or line ends give 0, as n 0 does: the string as a whole is place enough.
func (d *decoder) within(open, n int) int {
	at := n - 1
	if at < 0 || open >= len(d.src) {
		return 0
	}
	rest := d.src[open:]
	q := rest[:1]
	if (q != `"` && q != "'") || strings.HasPrefix(rest, strings.Repeat(q, 3)) {
		return 0
	}
	body := rest[1:]
	if len(body) < at || strings.ContainsAny(body[:at], "\\\n") {
		return 0
	}
	return 1 + utf8.RuneCountInString(body[:at])
}

// dotted joins a path as TOML writes it.
func dotted(path []string) string {
	var b strings.Builder
	for i, name := range path {
		if i > 0 {
			b.WriteByte('.')
		}
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			name = quote(name)
		}
		b.WriteString(name)
	}
	return b.String()
}
