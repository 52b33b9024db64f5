package tools

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"moltisfs/approval"
)

const maxOddNames = 5 // that are told; a tree in two scripts may have many

// oddNames are the first of some paths, below root and in ASCII, that read as something else than
// they are: with characters that can't be seen, or letters that look like others.
func oddNames(root string, paths iter.Seq[string]) (out []string) {
	last := ""
	for p := range paths {
		if p == last || ascii(p) {
			continue
		}
		last = p
		name := relative(root, p)
		if approval.Escape(name, false) == name && approval.Lookalike(name) == "" {
			continue
		}
		if name = strconv.QuoteToASCII(name); !slices.Contains(out, name) {
			out = append(out, name)
		}
		if len(out) == maxOddNames {
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

func oddText(names []string) string {
	if names == nil {
		return ""
	}
	return "\n[names that are not what they seem: " + strings.Join(names, ", ") + "]"
}

// listed are the paths of an answer, as often as it has them.
func (g *Grep) listed(use func(string) bool) {
	for _, p := range g.Files {
		if !use(p) {
			return
		}
	}
	for i := range g.Counts {
		if !use(g.Counts[i].Path) {
			return
		}
	}
	for i := range g.Matches {
		if !use(g.Matches[i].Path) {
			return
		}
	}
}
