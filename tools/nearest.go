package tools

import "strings"

// nearest finds the name that a misspelt word most likely means, "" when none
// is close: equal but for case and separators, or at most a third of it away
// by edits.
func nearest(word string, names []string) string {
	fold := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	if len(word) > 64 {
		return ""
	}
	w := fold(word)
	best, at := "", len(w)/3+1
	for _, name := range names {
		n := fold(name)
		if n == w && n != "" {
			return name
		}
		if d := distance(w, n); d < at {
			best, at = name, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
