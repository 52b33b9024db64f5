package edit

import (
	"slices"
	"strings"
)

const whyTorn = "a sign that ends the last line of old_string stands behind it, and new_string goes on below that line"

// torn gives the signs behind a match that end its last line, where New repeats that line and goes on
// below: they would come to end another.
func torn(h *haystack, old, new string, end int) string {
	rest := strings.TrimSpace(string(h.text[end:lineFrom(h.text, end).end]))
	if rest == "" || len(rest) > 4 || strings.Trim(rest, ";,.:)]}>") != "" || goesOn(old, new, rest) < 0 {
		return ""
	}
	return rest
}

// goesOn is the index in New of the last line of Old, with the signs or without, where others follow;
// -1 where they don't.
func goesOn(old, new, signs string) int {
	olds, news := contents(old), contents(new)
	mine := strings.TrimSpace(olds[len(olds)-1])
	if strings.TrimSpace(news[len(news)-1]) == mine {
		return -1
	}
	return slices.IndexFunc(news[:len(news)-1], func(l string) bool {
		return mine != "" && strings.TrimSuffix(strings.TrimSpace(l), signs) == mine
	})
}
