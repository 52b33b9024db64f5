package edit

import (
	"strconv"
	"unicode/utf8"
)

// ShownPath writes a path, or another name, into a text for people and models: in one line and with
// nothing in it that a terminal obeys. A name that needs it, or looks quoted, is quoted as in Go.
func ShownPath(name string) string {
	for i, r := range name {
		if !strconv.IsPrint(r) || r == utf8.RuneError || i == 0 && r == '"' {
			return strconv.Quote(name)
		}
	}
	return name
}
