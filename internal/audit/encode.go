package audit

import (
	"encoding/base64"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// The encoder is written by hand because a record is made for every call. encoding/json takes
// several times as long, and would turn names that are not UTF-8 into other names.

// maxError is the most that a record holds of one text.
const maxError = 4 << 10

// fieldNames are the names of the fields of a Record with what stands before and behind them.
var fieldNames = func() (names []string) {
	t := reflect.TypeFor[Record]()
	for i := range t.NumField() {
		names = append(names, `,"`+t.Field(i).Tag.Get("json")+`":`)
	}
	return names
}()

// appendRecord appends r as a line without its end, which is appendTie's.
func appendRecord(b []byte, r *Record) []byte {
	b = append(appendTime(append(b, `{"time":"`...), r.Time.UTC()), `","phase":`...)
	b = appendString(b, r.Phase)
	v := reflect.ValueOf(r).Elem()
	for i := 2; i < v.NumField(); i++ {
		f := v.Field(i)
		if f.IsZero() {
			continue
		}
		b = append(b, fieldNames[i]...)
		switch f.Kind() {
		case reflect.String:
			b = appendString(b, truncate(f.String()))
		case reflect.Bool:
			b = append(b, "true"...)
		case reflect.Slice:
			b = append(b, '[')
			for k := range f.Len() {
				if k > 0 {
					b = append(b, ',')
				}
				b = appendString(b, truncate(f.Index(k).String()))
			}
			b = append(b, ']')
		default:
			n := f.Int()
			if f.Type() == reflect.TypeFor[time.Duration]() {
				n /= int64(time.Microsecond)
			}
			b = strconv.AppendInt(b, n, 10)
		}
	}
	return b
}

// truncate cuts a text that could be of any length.
func truncate(text string) string {
	if len(text) <= maxError {
		return text
	}
	cut := maxError
	for cut > maxError-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// appendTime writes RFC 3339 with microseconds. A year outside 0 to 9999 has no such form and
// becomes the zero time.
func appendTime(b []byte, t time.Time) []byte {
	if y := t.Year(); y < 0 || y > 9999 {
		t = time.Time{}
	}
	return t.AppendFormat(b, "2006-01-02T15:04:05.000000Z")
}

// appendString writes a JSON string. A string that is not UTF-8 becomes {"bytes":"base64"}: two
// names must not become one. Controls, DEL and C1 included, are escaped, and so are the line
// separators of Unicode: a record is one line for every reader.
func appendString(b []byte, s string) []byte {
	start := len(b)
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			b = append(b, s[done:i]...)
			if c == '"' || c == '\\' {
				b = append(b, '\\', c)
			} else {
				b = appendEscape(b, rune(c))
			}
			i++
			done = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b[:start], `{"bytes":"`...)
			b = base64.StdEncoding.AppendEncode(b, []byte(s))
			return append(b, `"}`...)
		}
		if r < 0xa0 || r == 0x2028 || r == 0x2029 {
			b = append(b, s[done:i]...)
			b = appendEscape(b, r)
			done = i + size
		}
		i += size
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
