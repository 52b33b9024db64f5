package config

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The TOML library gives values without positions. It also accepts some redefinitions that TOML
// forbids: a.b = 1 and then a = 2 drops the second, and [a.c] can reopen a = {b = 1}. This scanner
// finds what is missing: where each key and value stands, what is defined twice, and how deep
// values are nested. It reports no syntax errors: on anything unexpected it moves on, and the
// library refuses the document.

// entry is one key with a value, or one table header.
type entry struct {
	path     []string
	header   bool  // [a.b]
	array    bool  // [[a.b]]
	at       int   // byte offset of the key or of the header's name
	value    int   // byte offset of the value
	elements []int // byte offsets of the elements, when the value is an array
	inline   bool  // the value is an inline table; its keys follow as entries of their own
}

// redefinition is a definition that TOML does not allow a second time.
type redefinition struct {
	path      []string
	at, first int
}

// maxNesting bounds arrays in arrays, inline tables in inline tables, and the parts of one dotted
// key. The schema needs four at most.
const maxNesting = 64

type scanner struct {
	src       string
	pos       int
	table     []string // of the latest header
	entries   []entry
	root      *scope
	within    *scope // of the latest header
	redefined []redefinition
	tooDeepAt int // offset of a value nested deeper than maxNesting, or -1
}

// scope is one name that has been defined.
type scope struct {
	at       int
	sealed   bool // a value or an inline table: closed for additions
	dotted   bool // made by a dotted key: a header can't reopen it
	header   bool // has had its own [header]
	children map[string]*scope
}

func (s *scope) child(name string) *scope { return s.children[name] }

func (s *scope) add(name string, at int) *scope {
	if s.children == nil {
		s.children = map[string]*scope{}
	}
	c := &scope{at: at}
	s.children[name] = c
	return c
}

func scan(src string) *scanner {
	s := &scanner{src: src, root: &scope{}, tooDeepAt: -1}
	s.within = s.root
	s.pos = len(src) - len(strings.TrimPrefix(src, "\ufeff"))
	for s.pos < len(s.src) && s.tooDeepAt < 0 {
		before := s.pos
		s.blanks(true)
		switch {
		case s.pos == len(s.src):
		case s.src[s.pos] == '[':
			s.header()
		default:
			s.pair(s.table, s.within, 0)
		}
		if s.pos == before {
			s.pos++
		}
	}
	return s
}

// blanks skips spaces, and with lines also line ends and comments.
func (s *scanner) blanks(lines bool) {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t':
			s.pos++
		case lines && (c == '\n' || c == '\r'):
			s.pos++
		case lines && c == '#':
			if i := strings.IndexByte(s.src[s.pos:], '\n'); i >= 0 {
				s.pos += i
			} else {
				s.pos = len(s.src)
			}
		default:
			return
		}
	}
}

func (s *scanner) next(c byte) bool {
	if s.pos < len(s.src) && s.src[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) header() {
	s.pos++
	array := s.next('[')
	s.blanks(false)
	at := s.pos
	path := s.key()
	s.blanks(false)
	if s.next(']') && array {
		s.next(']')
	}
	if len(path) == 0 {
		return
	}
	s.table = path
	s.entries = append(s.entries, entry{path: path, header: true, array: array, at: at})

	in := s.root
	for i, name := range path {
		c := in.child(name)
		last := i == len(path)-1
		switch {
		case c == nil:
			c = in.add(name, at)
		case c.sealed, last && !array && (c.header || c.dotted):
			s.redefined = append(s.redefined, redefinition{path[:i+1], at, c.at})
			s.within = &scope{} // do not report its keys as well
			return
		case last && array:
			c.children = nil // a further element starts anew
		}
		in = c
	}
	in.header = !array
	in.at = at
	s.within = in
}

// pair reads key = value below the table that prefix names.
func (s *scanner) pair(prefix []string, in *scope, depth int) {
	at := s.pos
	key := s.key()
	s.blanks(false)
	if len(key) == 0 || !s.next('=') {
		s.skipLine()
		return
	}
	s.blanks(false)
	path := append(append(make([]string, 0, len(prefix)+len(key)), prefix...), key...)

	var own *scope
	for i, name := range key {
		c := in.child(name)
		last := i == len(key)-1
		if c != nil && (last || c.sealed || c.header) {
			s.redefined = append(s.redefined, redefinition{path[:len(prefix)+i+1], at, c.at})
			own = &scope{}
			break
		}
		if c == nil {
			c = in.add(name, at)
			c.dotted = !last
		}
		in, own = c, c
	}
	own.sealed = true
	s.entries = append(s.entries, entry{path: path, at: at, value: s.pos})
	e := len(s.entries) - 1
	switch {
	case s.pos < len(s.src) && s.src[s.pos] == '{':
		s.entries[e].inline = true
		s.inline(path, own, depth+1)
	case s.pos < len(s.src) && s.src[s.pos] == '[':
		s.entries[e].elements = s.array(depth + 1)
	default:
		s.scalar()
	}
}

func (s *scanner) inline(path []string, own *scope, depth int) {
	if depth > maxNesting {
		s.tooDeepAt, s.pos = s.pos, len(s.src)
		return
	}
	s.pos++
	for s.pos < len(s.src) && s.tooDeepAt < 0 {
		s.blanks(true)
		if s.next('}') {
			return
		}
		if s.next(',') {
			continue
		}
		before := s.pos
		s.pair(path, own, depth)
		if s.pos == before {
			s.pos++
		}
	}
}

func (s *scanner) array(depth int) (elements []int) {
	if depth > maxNesting {
		s.tooDeepAt, s.pos = s.pos, len(s.src)
		return nil
	}
	s.pos++
	for s.pos < len(s.src) && s.tooDeepAt < 0 {
		s.blanks(true)
		if s.next(']') {
			return elements
		}
		if s.next(',') {
			continue
		}
		if s.pos == len(s.src) {
			break
		}
		elements = append(elements, s.pos)
		before := s.pos
		switch s.src[s.pos] {
		case '[':
			s.array(depth + 1)
		case '{':
			// No key of ours holds tables in arrays. The value is refused for its type, so its keys
			// are not needed.
			keep := len(s.entries)
			s.inline(nil, &scope{}, depth+1)
			s.entries = s.entries[:keep]
		default:
			s.scalar()
		}
		if s.pos == before {
			s.pos++
		}
	}
	return elements
}

// scalar moves past a string, a number, a date or a word.
func (s *scanner) scalar() {
	rest := s.src[s.pos:]
	for _, q := range []string{`"""`, `'''`, `"`, `'`} {
		if !strings.HasPrefix(rest, q) {
			continue
		}
		s.pos += len(q)
		for s.pos < len(s.src) && !strings.HasPrefix(s.src[s.pos:], q) {
			if q[0] == '"' && s.src[s.pos] == '\\' {
				s.pos++
			}
			s.pos++
		}
		s.pos = min(s.pos+len(q), len(s.src))
		if len(q) == 3 { // up to two more quotes belong to the string
			for s.pos < len(s.src) && s.src[s.pos] == q[0] {
				s.pos++
			}
		}
		return
	}
	if i := strings.IndexAny(rest, ",]}#\r\n"); i >= 0 {
		s.pos += i
	} else {
		s.pos = len(s.src)
	}
}

func (s *scanner) skipLine() {
	if i := strings.IndexByte(s.src[s.pos:], '\n'); i >= 0 {
		s.pos += i
	} else {
		s.pos = len(s.src)
	}
}

// key reads a dotted key.
func (s *scanner) key() (path []string) {
	for {
		s.blanks(false)
		start := s.pos
		switch {
		case s.pos < len(s.src) && (s.src[s.pos] == '"' || s.src[s.pos] == '\''):
			q := s.src[s.pos]
			s.scalar()
			raw := s.src[start:s.pos]
			if len(raw) >= 2 {
				raw = raw[1 : len(raw)-1]
			}
			if q == '"' {
				raw = unescape(raw)
			}
			path = append(path, raw)
		default:
			if i := strings.IndexAny(s.src[s.pos:], " \t\r\n.=]#\"'[,{}"); i >= 0 {
				s.pos += i
			} else {
				s.pos = len(s.src)
			}
			if s.pos == start {
				return path
			}
			path = append(path, s.src[start:s.pos])
		}
		s.blanks(false)
		if !s.next('.') {
			return path
		}
		if len(path) == maxNesting {
			s.tooDeepAt, s.pos = start, len(s.src)
			return nil
		}
	}
}

// unescape resolves the escapes of a quoted key. The library has checked them.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		digits := 0
		switch s[i] {
		case 'b':
			b.WriteByte('\b')
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'f':
			b.WriteByte('\f')
		case 'r':
			b.WriteByte('\r')
		case 'e':
			b.WriteByte(0x1b)
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		default:
			b.WriteByte(s[i])
		}
		if digits > 0 && i+digits < len(s) {
			var r rune
			if _, err := fmt.Sscanf(s[i+1:i+1+digits], "%x", &r); err == nil {
				b.WriteRune(r)
			}
			i += digits
		}
	}
	return b.String()
}

// position turns a byte offset into a line and a column, both from 1.
func position(src string, at int) (line, column int) {
	at = min(max(at, 0), len(src))
	start := strings.LastIndexByte(src[:at], '\n') + 1
	return strings.Count(src[:at], "\n") + 1, utf8.RuneCountInString(src[start:at]) + 1
}
