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
	// understood says that the pattern is clear, but cannot be run. Then its text was not
	// meant literally either.
	understood     bool
	needsMultiline bool // it asks for line breaks, and may have them with Options.Multiline
}

// fail is an error at offset off of the pattern.
func fail(off int, format string, a ...any) *syntaxError {
	return &syntaxError{at: off, why: fmt.Sprintf(format, a...)}
}

// withFix adds an edit to an error.
func (e *syntaxError) withFix(n int, fix string) *syntaxError {
	e.fixLen, e.fix, e.hasFix = n, fix, true
	return e
}

// refuse is fail for a pattern that is understood and cannot be run.
func refuse(off int, format string, a ...any) *syntaxError {
	e := fail(off, format, a...)
	e.understood = true
	return e
}

// lineBreak refuses a line break where lines are searched one by one.
func lineBreak(off int) *syntaxError {
	e := refuse(off, "it asks for a line break, but lines are searched one by one")
	e.needsMultiline = true
	return e
}
