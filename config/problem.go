package config

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	File         string // as given to Decode; "" from Check
	Line, Column int    // 1-based, column in characters; 0 when the value did not come from a file
	Key          string // "tools.fs.deny_paths[1]"; "" when it is about no key
	Why          string // what is wrong
	Hint         string // what to write instead; may be ""

	globOffset int // byte, from 1, of the string at Line and Column that Why is about, or 0
}

// Error is one line: FILE:LINE:COLUMN: KEY: WHY; HINT.
func (p *Problem) Error() string {
	var b strings.Builder
	switch {
	case p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	case p.File != "":
		b.WriteString(p.File + ": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Why)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}
