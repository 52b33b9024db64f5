package config

import "strings"

// nearest is the candidate that most resembles word; "" when none does. Letter case and - for _ cost nothing.
func nearest(word string, candidates []string) string {
	if len(word) > 64 { // nobody mistypes that much, and the table below is quadratic
		return ""
	}
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	w := plain(word)
	best, least := "", max(1, min(3, len(w)/3))+1
	for _, c := range candidates {
		if d := distance(w, plain(c), least); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours from a to b.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	var older, old, row []int
	old = make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row = make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old = old, row
	}
	return old[len(b)]
}
