// Package lazy has values that are made when they are first used, not in each process when it starts.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression, compiled at the first call of what it returns. That panics where the expression is wrong, as
// regexp.MustCompile does.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
