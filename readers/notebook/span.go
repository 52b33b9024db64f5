package notebook

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Where things are in a JSON text that encoding/json has found valid: the functions here rely on that and check nothing.

// span is a value: its first byte, and the one after its last.
type span struct{ from, to int }

// member is one member of an object.
type member struct {
	key    string
	from   int // of the key's quote
	keyEnd int
	value  span
}

func jsonSkipBlank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// blankBefore is the white space that ends before i.
func blankBefore(b []byte, i int) string {
	from := i
	for from > 0 && (b[from-1] == ' ' || b[from-1] == '\t' || b[from-1] == '\n' || b[from-1] == '\r') {
		from--
	}
	return string(b[from:i])
}

// jsonValue returns where the value that begins at i ends.
func jsonValue(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
		default:
			for i < len(b) && strings.IndexByte(" \t\r\n,:]}", b[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

// jsonObject returns the members of the object that begins at i, and where it ends.
func jsonObject(b []byte, i int) (members []member, end int) {
	for i = jsonSkipBlank(b, i+1); b[i] != '}'; {
		m := member{from: i, keyEnd: jsonValue(b, i)}
		m.key, _ = jsonString(b[i:m.keyEnd])
		m.value.from = jsonSkipBlank(b, jsonSkipBlank(b, m.keyEnd)+1)
		m.value.to = jsonValue(b, m.value.from)
		members = append(members, m)
		if i = jsonSkipBlank(b, m.value.to); b[i] == ',' {
			i = jsonSkipBlank(b, i+1)
		}
	}
	return members, i + 1
}

// jsonArray returns the elements of the array that begins at i; none when it is no array.
func jsonArray(b []byte, i int) (items []span) {
	if b[i] != '[' {
		return nil
	}
	for i = jsonSkipBlank(b, i+1); b[i] != ']'; {
		s := span{i, jsonValue(b, i)}
		items = append(items, s)
		if i = jsonSkipBlank(b, s.to); b[i] == ',' {
			i = jsonSkipBlank(b, i+1)
		}
	}
	return items
}

func jsonString(raw []byte) (s string, err error) {
	err = json.Unmarshal(raw, &s)
	return s, err
}

func atoiOr(b []byte, other int) int {
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return other
	}
	return n
}

// quoteJSON writes a string as Python's json module does, which writes most notebooks: only what must be escaped is, and
// with ascii everything beyond ASCII too.
func quoteJSON(s string, ascii bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < ' ', ascii && r > 0x7e && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case ascii && r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}
