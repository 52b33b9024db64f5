package match

import (
	"fmt"
)

// syntaxError is a parse failure together with the smallest edit that would help: src[off:off+n] → fix.
type syntaxError struct {
	off int
	why string
	n   int
	fix string
	has bool
	// meant: the pattern says what it means, only not what can be done; nobody meant its text.
	meant bool
	lines bool // it asks for line breaks, and may have them with Options.Multiline
}

func (e *syntaxError) Error() string { return e.why }

func fail(off int, format string, a ...any) *syntaxError {
	return &syntaxError{off: off, why: fmt.Sprintf(format, a...)}
}

// or adds an edit to an error.
func (e *syntaxError) or(n int, fix string) *syntaxError {
	e.n, e.fix, e.has = n, fix, true
	return e
}

// refuse is fail for what is understood and can't be done.
func refuse(off int, format string, a ...any) *syntaxError {
	e := fail(off, format, a...)
	e.meant = true
	return e
}

// lineBreak refuses a line break where lines are searched one by one.
func lineBreak(off int) *syntaxError {
	e := refuse(off, "it asks for a line break, but lines are searched one by one: set multiline")
	e.lines = true
	return e
}
