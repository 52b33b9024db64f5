package replace

import (
	"regexp"
	"slices"
	"strconv"

	"moltisfs/grep/match"
)

// Groups gives the texts of the groups of a pattern in each match.
type Groups struct{ re *regexp.Regexp }

// NewGroups reads a pattern, in which case may not count. The error is a *match.PatternError.
func NewGroups(pattern string, fold bool) (*Groups, error) {
	flags := "(?m)"
	if fold {
		flags = "(?mi)"
	}
	re, err := regexp.Compile(flags + pattern)
	if err != nil {
		return nil, &match.PatternError{Pattern: pattern,
			Why: "groups can be told of patterns in Go's syntax only"}
	}
	return &Groups{re}, nil
}

// index is the number of a group by its number or name; false: there is none.
func (g *Groups) index(name string) (int, bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, n >= 0 && n <= g.re.NumSubexp()
	}
	i := g.re.SubexpIndex(name)
	return i, i > 0
}

// of are the groups of each match in text, which begins at this place of what spans speaks of. They
// are told only where the matches are the very same.
func (g *Groups) of(text []byte, at int, spans [][2]int) ([][][]byte, error) {
	if g == nil {
		return nil, nil
	}
	found := g.re.FindAllSubmatchIndex(text, -1)
	if !slices.EqualFunc(found, spans, func(f []int, s [2]int) bool {
		return f[0]+at == s[0] && f[1]+at == s[1]
	}) {
		return nil, errGroups
	}
	out := make([][][]byte, len(found))
	for i, f := range found {
		for g := 0; g < len(f); g += 2 {
			var v []byte
			if f[g] >= 0 {
				v = text[f[g]:f[g+1]]
			}
			out[i] = append(out[i], v)
		}
	}
	return out, nil
}
