package audit

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"
)

// The encoder is written by hand because a record is made for every call. encoding/json takes
// several times as long, and would turn names that are not UTF-8 into other names.

const maxError = 4 << 10

// appendRecord appends r as a line without its end, which is link.extend's.
func appendRecord(b []byte, r *Record) []byte {
	b = append(b, `{"time":"`...)
	b = appendTime(b, r.Time.UTC())
	b = append(b, `","phase":`...)
	b = appendString(b, r.Phase)
	b = appendField(b, `,"call":`, r.Call)
	b = appendField(b, `,"dialect":`, r.Dialect)
	b = appendField(b, `,"tool":`, r.Tool)
	b = appendField(b, `,"principal":`, r.Principal)
	b = appendField(b, `,"session":`, r.Session)
	b = appendField(b, `,"turn":`, r.Turn)
	b = appendNumber(b, `,"pid":`, int64(r.PID))
	b = appendField(b, `,"user":`, r.User)
	b = appendField(b, `,"where":`, r.Where)
	b = appendField(b, `,"client":`, truncate(r.Client))
	b = appendField(b, `,"by":`, r.By)
	b = appendList(b, `,"paths":[`, r.Paths)
	b = appendList(b, `,"injected":[`, r.Injected)
	b = appendField(b, `,"pattern":`, truncate(r.Pattern))
	b = appendField(b, `,"window":`, r.Window)
	b = appendField(b, `,"outcome":`, r.Outcome)
	if r.DryRun {
		b = append(b, `,"dry_run":true`...)
	}
	b = appendField(b, `,"decision":`, r.Decision)
	b = appendField(b, `,"rule":`, r.Rule)
	b = appendField(b, `,"approval":`, truncate(r.Approval))
	b = appendField(b, `,"digest":`, r.Digest)
	b = appendField(b, `,"checkpoint":`, r.Checkpoint)
	b = appendField(b, `,"before":`, r.Before)
	b = appendField(b, `,"after":`, r.After)
	b = appendNumber(b, `,"bytes":`, r.Bytes)
	if r.Duration != 0 {
		b = strconv.AppendInt(append(b, `,"duration_us":`...), r.Duration.Microseconds(), 10)
	}
	b = appendList(b, `,"hooks":[`, r.Hooks)
	b = appendField(b, `,"alert":`, r.Alert)
	b = appendField(b, `,"version":`, r.Version)
	b = appendField(b, `,"policy":`, r.Policy)
	return appendField(b, `,"error":`, truncate(r.Error))
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

func appendList(b []byte, key string, values []string) []byte {
	for i, v := range values {
		if i == 0 {
			b = append(b, key...)
		} else {
			b = append(b, ',')
		}
		b = appendString(b, truncate(v))
	}
	if len(values) > 0 {
		b = append(b, ']')
	}
	return b
}

func appendNumber(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), n, 10)
}

func appendField(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(append(b, key...), value)
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
