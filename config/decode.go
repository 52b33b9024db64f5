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

// Decode reads one TOML document over Default. name is what problems call the file. The error joins
// one *Problem for each thing that is wrong, in file order; then the Config is that of Default and
// MUST NOT be used. After a syntax error nothing else can be judged, so it comes alone.
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
	src, name  string
	schema     *field
	config     Config
	entries    map[string]entry // by full key
	hasProblem map[string]bool  // keys that have a problem already
	problems   []*Problem
}

func newDecoder(data []byte, name string) *decoder {
	return &decoder{
		src: string(data), name: name, schema: schema(), config: Default(),
		hasProblem: map[string]bool{},
	}
}

func (d *decoder) add(at int, key, why, hint string) {
	line, column := position(d.src, at)
	p := &Problem{File: d.name, Line: line, Column: column, Key: key, Why: why, Hint: hint}
	d.problems = append(d.problems, p)
	d.hasProblem[key] = true
}

func (d *decoder) decode() {
	if len(d.src) > MaxSize {
		p := &Problem{File: d.name, Hint: "at most 1 MiB is read"}
		p.Why = fmt.Sprintf("%d bytes are too many for a configuration file", len(d.src))
		d.problems = append(d.problems, p)
		return
	}
	if i := invalidUTF8(d.src); i >= 0 {
		d.add(i, "", "not valid UTF-8", "save the file as UTF-8")
		return
	}
	// Check the depth before the library sees the text: it needs a gigabyte for a megabyte of
	// brackets or dots.
	s := scan(d.src)
	if s.tooDeepAt >= 0 {
		d.add(s.tooDeepAt, "", "nested deeper than 64", "no key holds more than a list")
		return
	}
	var values map[string]any
	if _, err := toml.Decode(d.src, &values); err != nil {
		d.syntax(err)
		return
	}
	for _, t := range s.redefined {
		line, _ := position(d.src, t.first)
		why := fmt.Sprintf("defined a second time, first on line %d", line)
		d.add(t.at, dotted(t.path), why, "keep one of them")
	}
	clear(d.hasProblem) // the values of both definitions are still judged
	d.entries = map[string]entry{}
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
		if p.Why == "" { // some errors of the library have no message
			p.Why = strings.TrimPrefix(parse.Error(), "toml: ")
		}
	}
	p.Key, p.Why = oneLine(p.Key), oneLine(p.Why)
	if strings.Contains(p.Why, "already been defined") {
		p.Why, p.Hint = "defined a second time", "keep one of them"
	}
	d.problems = append(d.problems, p)
}

// oneLine escapes what would break a line of output. The library quotes the file as it is.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	return strings.Trim(quote(strings.ReplaceAll(s, "'", "`")), `"`)
}

// entry judges one key or header and stores its value.
func (d *decoder) entry(e entry, values map[string]any) {
	for i := range e.path { // an unknown section is reported once
		if d.hasProblem[dotted(e.path[:i+1])] {
			return
		}
	}
	key := dotted(e.path)
	f, rest := d.schema.find(e.path)
	switch {
	case len(rest) > 0 && !f.section():
		d.hasProblem[key] = true
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
			d.entries[key] = e
			d.set(f, v, e)
		}
	}
}

// unknown suggests the nearest key or section. It looks first in the section where the operator
// wrote it.
func (d *decoder) unknown(e entry, f *field, rest []string) {
	path := e.path[:len(e.path)-len(rest)+1]
	key := dotted(path)
	if d.foreign(e, f, rest) {
		return
	}
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

// form shows how to write the key, as a hint.
func (f *field) form() string {
	d := Default()
	v := f.value(&d)
	if v.Kind() == reflect.Bool {
		return "write " + f.name + " = true, or " + f.name + " = false"
	}
	if f.sample != "" && v.IsZero() {
		return "write " + f.name + " = " + f.written()
	}
	return "write " + f.name + " = " + literal(v)
}

// set stores v, or says what the value should be.
func (d *decoder) set(f *field, v any, e entry) {
	wrong := func(hint string) {
		d.add(e.value, f.key, "must be "+f.expected()+", not "+describe(v), hint)
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
			wrong(fmt.Sprintf(`the longest is "%dd"`, maxDays))
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
			switch s := strings.ToLower(strings.TrimSpace(fmt.Sprint(v))); s {
			case "true", "false":
				hint = "write " + s + " without quotes"
			case "yes", "y", "on", "1", "enable", "enabled":
				hint = "write " + f.name + " = true"
			case "no", "n", "off", "0", "disable", "disabled":
				hint = "write " + f.name + " = false"
			}
			wrong(hint)
			return
		}
		to.SetBool(b)
	case f.typ.Kind() == reflect.Int || f.typ.Kind() == reflect.Int64:
		n, ok := v.(int64)
		if !ok || to.OverflowInt(n) {
			wrong(f.numberHint(v))
			return
		}
		if n == 0 && f.sample != "" {
			d.add(e.value, f.key, "must be more than 0", "leave the key out to have none")
			return
		}
		to.SetInt(n)
	case f.typ.Kind() == reflect.Slice:
		d.setList(f, v, e, wrong)
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

func (d *decoder) setList(f *field, v any, e entry, wrong func(hint string)) {
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
			why := "must be a string, not " + describe(item)
			d.add(at, fmt.Sprintf("%s[%d]", f.key, i), why, "put it in quotes")
		}
		out = append(out, s) // "" keeps the numbering; check ignores it
	}
	f.value(&d.config).Set(reflect.ValueOf(out))
}

func (f *field) expected() string {
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

// numberHint helps with the common ways to write sizes, such as "64 MiB".
func (f *field) numberHint(v any) string {
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

// describe names a TOML value by its type, and a short one by its content.
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

// check adds what is wrong with the values, at the places where they stand.
func (d *decoder) check() {
	for _, p := range d.config.problems() {
		base, _ := splitKey(p.Key)
		if d.hasProblem[base] || d.hasProblem[p.Key] || d.hasProblem[p.dependsOn] && p.dependsOn != "" {
			continue
		}
		d.locate(&p.Problem)
		d.problems = append(d.problems, &p.Problem)
	}
}

// Locate adds to problems where in data, the document called name, their values stand. data is what
// the Config was decoded from.
func Locate(data []byte, name string, problems ...*Problem) {
	d := newDecoder(data, name)
	d.decode()
	for _, p := range problems {
		d.locate(p)
	}
}

// locate fills in where the value of p.Key stands.
func (d *decoder) locate(p *Problem) {
	base, index := splitKey(p.Key)
	p.File = d.name
	if e, ok := d.entries[base]; ok {
		at := e.value
		if index >= 0 && index < len(e.elements) {
			at = e.elements[index]
		}
		p.Line, p.Column = position(d.src, at)
		p.Column += d.columnOfByte(at, p.globOffset)
	}
}

// splitKey takes the key of a problem apart: tools.fs.deny_paths[1] is entry 1 of
// tools.fs.deny_paths. Without an index it gives -1.
func splitKey(key string) (base string, index int) {
	base, rest, ok := strings.Cut(key, "[")
	if !ok {
		return base, -1
	}
	index, _ = strconv.Atoi(strings.TrimSuffix(rest, "]"))
	return base, index
}

// columnOfByte is how many characters after its opening quote the n-th byte of a string value
// stands. It gives 0, the string as a whole, for strings with escapes or line ends, and for n 0.
func (d *decoder) columnOfByte(open, n int) int {
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
		bare := func(r rune) bool {
			lower := r | 0x20
			return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= lower && lower <= 'z'
		}
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !bare(r) }) {
			name = quote(name)
		}
		b.WriteString(name)
	}
	return b.String()
}
