package ledger

import "slices"

// merge sorts the ranges and joins those that touch or overlap. It drops empty ones.
func merge(in []Range) []Range {
	in = slices.DeleteFunc(slices.Clone(in), func(r Range) bool { return r.Last < r.First })
	slices.SortFunc(in, func(a, b Range) int { return a.First - b.First })
	var out []Range
	for _, r := range in {
		if n := len(out); n > 0 && r.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Cover says that one of the ranges has all from first to last.
func Cover(ranges []Range, first, last int) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.First <= first && last <= r.Last })
}

// Shown counts the lines in the ranges of s: all of them when Whole.
func (s Seen) Shown() int {
	if s.Whole {
		return s.Lines
	}
	n := 0
	for _, r := range s.Ranges {
		n += r.Last - r.First + 1
	}
	return n
}
