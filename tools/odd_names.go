package tools

import "strings"

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
