package glob

import (
	"strings"
	"unicode"
)

// InAnyCase gives a glob that matches the names that pattern matches, in any letter case: *.go gives *.[gG][oO].
func InAnyCase(pattern string) string {
	var b strings.Builder
	class, escaped := false, false
	for _, r := range pattern {
		lower, upper := unicode.ToLower(r), unicode.ToUpper(r)
		if escaped || class || lower == upper {
			b.WriteRune(r)
		} else {
			b.WriteString("[" + string(lower) + string(upper) + "]")
		}
		class = !escaped && (r == '[' || class && r != ']')
		escaped = !escaped && r == '\\'
	}
	return b.String()
}
