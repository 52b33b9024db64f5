package guardfs

import "strings"

// Canonical is the true name of path, as far as it exists, followed by the rest: the form in which rules are to be
// compared with Object.True. It judges nothing and never fails; what cannot be resolved is cleaned as text.
func Canonical(path string) string { return describe(path).True }

// Names are the names by which path leads where it does now: path itself, for each link on the way the name of the link,
// followed by what is left of the way behind it, and the true name. A link that a ".." leaves again has none.
func Names(path string) []string {
	o := describe(path)
	names := []string{path}
	way := append(o.Hops, Hop{Name: o.True})
	for i, hop := range o.Hops {
		to := Canonical(hop.Name)
		for _, next := range way[i+1:] {
			if rest, ok := strings.CutPrefix(next.Name, to); ok && !hop.Left && (rest == "" || rest[0] == '/') {
				names = append(names, hop.Name+rest)
				break
			}
		}
	}
	return append(names, o.True)
}
