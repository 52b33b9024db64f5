package config

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	File   string `json:"file,omitempty"`   // as given to Decode; "" from Check
	Line   int    `json:"line,omitempty"`   // from 1; 0 when the value did not come from a file
	Column int    `json:"column,omitempty"` // likewise, in characters
	Key    string `json:"key,omitempty"`    // "tools.fs.deny_paths[1]"; "" when it is about no key
	Why    string `json:"error"`            // what is wrong
	Hint   string `json:"hint,omitempty"`   // what to write instead; may be ""
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
