package args

import "strings"

// Nearest gives the name of names that word most likely means: the one that differs from it in case and separators
// only, else the first of those that fewest edits lead to, at most a third of its length. "" when none is close.
//
//	Nearest("multi-edit", names) // MultiEdit
//	Nearest("Wrote", names)      // Write
func Nearest(word string, names []string) string {
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
		if d := Distance(w, n); d < at {
			best, at = name, d
		}
	}
	return best
}

// Distance is the number of bytes to insert, delete, replace or swap with
// their neighbour to make a into b.
func Distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
