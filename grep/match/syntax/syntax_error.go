package syntax

import (
	"fmt"
)

// syntaxError is a parse failure, and the smallest edit that would help: src[at:at+fixLen] → fix.
type syntaxError struct {
	at     int
	why    string
	fixLen int
	fix    string
	hasFix bool
	// understood: what the pattern asks for is clear, but cannot be done. Then its text was not
	// meant literally either.
	understood     bool
	needsMultiline bool // it asks for line breaks, and may have them with Options.Multiline
}

func fail(off int, format string, a ...any) *syntaxError {
	return &syntaxError{at: off, why: fmt.Sprintf(format, a...)}
}

// withFix adds an edit to an error.
func (e *syntaxError) withFix(n int, fix string) *syntaxError {
	e.fixLen, e.fix, e.hasFix = n, fix, true
	return e
}

// refuse is fail for what is understood and cannot be done.
func refuse(off int, format string, a ...any) *syntaxError {
	e := fail(off, format, a...)
	e.understood = true
	return e
}

// lineBreak refuses a line break where lines are searched one by one.
func lineBreak(off int) *syntaxError {
	e := refuse(off, "it asks for a line break, but lines are searched one by one: set multiline")
	e.needsMultiline = true
	return e
}
