package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Row is one key of the configuration, for a table in a document.
type Row struct {
	Section string // "tools.fs"
	Key     string // "track_reads"
	Type    string // "integer", "list of strings" …, or the allowed words
	Default string // as TOML writes it; "" when there is none
	Doc     string // one sentence
}

// Table is every key, in the order of Example.
func Table() []Row {
	var rows []Row
	d := Default()
	schema().walk(func(f *field) {
		if f.section() {
			return
		}
		r := Row{
			Section: strings.TrimSuffix(f.key, "."+f.name),
			Key:     f.name,
			Type:    f.kind(),
			Default: literal(f.value(&d)),
			Doc:     f.doc,
		}
		if f.enum != nil {
			r.Type = strings.ReplaceAll(quoted(f.enum), ", ", " or ")
		}
		if f.sample != "" {
			r.Default = ""
		}
		rows = append(rows, r)
	})
	return rows
}

// Example is a file with every key, its default and its sentence. A key without a default stands as
// a comment, with a sample value. Decode gives Default for it.
func Example() []byte {
	var b bytes.Buffer
	b.WriteString(`# moltis-fs: every key with its default. All are optional; an unknown one is an error.
# Sizes are bytes; durations are strings such as "90s", "2h" or "7d".
`)
	Default().render(&b, true)
	return b.Bytes()
}

// TOML is the configuration as a file that Decode reads back.
func (c Config) TOML() []byte {
	var b bytes.Buffer
	c.render(&b, false)
	return bytes.TrimLeft(b.Bytes(), "\n")
}

func (c Config) render(b *bytes.Buffer, docs bool) {
	var section func(f *field)
	section = func(f *field) {
		if len(f.keys()) > 0 {
			b.WriteByte('\n')
			if docs {
				comment(b, f.doc)
			}
			fmt.Fprintf(b, "[%s]\n", f.key)
		}
		first := true
		for _, k := range f.children {
			if k.section() {
				continue
			}
			v := k.value(&c)
			unset := k.sample != "" && v.IsZero()
			if docs {
				if !first {
					b.WriteByte('\n')
				}
				comment(b, k.doc)
			}
			first = false
			switch {
			case !unset:
				fmt.Fprintf(b, "%s = %s\n", k.name, literal(v))
			case docs:
				fmt.Fprintf(b, "# %s = %s\n", k.name, k.written())
			}
		}
		for _, k := range f.children {
			if k.section() {
				section(k)
			}
		}
	}
	section(schema())
}

// written is the sample as TOML.
func (f *field) written() string {
	if f.typ.Kind() == reflect.String {
		return quote(f.sample)
	}
	return f.sample
}

// comment wraps text at 100 columns.
func comment(b *bytes.Buffer, text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 100 {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// literal writes a value as TOML does.
func literal(v reflect.Value) string {
	if d, ok := v.Interface().(Duration); ok {
		return quote(d.String())
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Slice:
		var items []string
		for i := range v.Len() {
			items = append(items, quote(v.Index(i).String()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return quote(v.String())
}

// quote writes a TOML string: literal in single quotes where that saves escapes.
func quote(s string) string {
	control := strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0
	})
	if strings.ContainsAny(s, `"\`) && !strings.Contains(s, "'") && !control {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
