package config

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A spot is where a key or a header stands, from 1. The zero value is no place.
type spot struct{ line, column int }

// spots are the places of keys and headers, by their names with nothing but dots between the parts.
// The library has no places of keys, so they are looked for line by line: a key that does not begin
// a line, as in an inline table, has the place of the section around it. Entry 2 of a list k of strings is k[2].
type spots map[string]spot

// bare takes blanks and quotes out of a name, as they may be written in a key.
var bare = strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "")

func spotsOf(src string) spots {
	s, section := spots{}, ""
	list, entries := "", 0 // that goes on from the line before
	for n, line := range strings.Split(strings.TrimPrefix(src, "\ufeff"), "\n") {
		if list != "" {
			entries, list = s.entries(list, entries, line, n+1)
			continue
		}
		text := strings.TrimLeft(line, "[ \t")
		at := spot{n + 1, utf8.RuneCountInString(line) - utf8.RuneCountInString(text) + 1}
		name, value, is := strings.Cut(text, "=")
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "[") {
			var rest string
			name, rest, is = strings.Cut(text, "]")
			if rest = strings.TrimLeft(rest, "] \t\r"); !is || rest != "" && rest[0] != '#' { // it begins no section
				continue
			}
			section = bare.Replace(name) + "."
			name, value = "", ""
		}
		if !is {
			continue
		}
		name = strings.TrimSuffix(section+bare.Replace(name), ".")
		if value, isList := strings.CutPrefix(strings.TrimLeft(value, " \t"), "["); isList {
			entries, list = s.entries(name, 0, value, n+1)
		}
		for ; name != ""; name = name[:max(strings.LastIndexByte(name, '.'), 0)] {
			if _, has := s[name]; !has {
				s[name] = at
			}
		}
	}
	return s
}

// entries notes the line of each string of a list that a line goes on with. It gives their number so far, and the list again where
// that does not end here.
func (s spots) entries(list string, n int, line string, number int) (int, string) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case '#':
			return n, list
		case ']':
			return n, ""
		case '"', '\'':
			s[list+"["+strconv.Itoa(n)+"]"] = spot{line: number}
			n++
			for i++; i < len(line) && line[i] != c; i++ {
				if c == '"' && line[i] == '\\' {
					i++
				}
			}
		}
	}
	return n, list
}

// of is the place of a key, or of the nearest section around it that has one.
func (s spots) of(path []string) spot {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if at, ok := s[bare.Replace(strings.Join(path, "."))]; ok {
			return at
		}
	}
	return spot{}
}

// locate fills in where the key of p stands, in the file called name.
func (s spots) locate(p *Problem, name string) {
	base, _, _ := strings.Cut(p.Key, "[")
	at := s[base]
	p.File, p.Line, p.Column = name, at.line, at.column
}

// position turns a byte offset into a line and a column, both from 1.
func position(src string, at int) (line, column int) {
	at = min(max(at, 0), len(src))
	start := strings.LastIndexByte(src[:at], '\n') + 1
	return strings.Count(src[:at], "\n") + 1, utf8.RuneCountInString(src[start:at]) + 1
}
