package engine

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"moltisfs/internal/approval"
)

const mostOddNames = 5 // that are told; a tree in two scripts may have many

// OddNames are the first of some paths, below root and in ASCII, that read as something else than
// they are: with characters that can't be seen, or letters that look like others.
func OddNames(root string, paths iter.Seq[string]) (out []string) {
	last := ""
	for p := range paths {
		if p == last || ascii(p) {
			continue
		}
		last = p
		name := strings.TrimPrefix(p, strings.TrimSuffix(root, "/")+"/")
		if approval.Escape(name, false) == name && approval.Lookalike(name) == "" {
			continue
		}
		if name = strconv.QuoteToASCII(name); !slices.Contains(out, name) {
			out = append(out, name)
		}
		if len(out) == mostOddNames {
			break
		}
	}
	return out
}

// ascii takes controls for others: ESC is one that can't be seen.
func ascii(p string) bool {
	for i := range len(p) {
		if p[i] < ' ' || p[i] > '~' {
			return false
		}
	}
	return true
}
