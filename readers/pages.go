package readers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"moltisfs/readers/unreadable"
)

// parsePages reads a list like "1-3,7" into page numbers in the order of the document, each once,
// however it was written: so what follows the last of them has not been shown. With a total it is
// fitted to the document: a range may end beyond it, but must not begin there. An empty list means
// the first pages.
func parsePages(list string, total int) ([]int, error) {
	if strings.TrimSpace(list) == "" {
		return span(1, min(total, MaxPages)), nil
	}
	bad := func(why string) ([]int, error) {
		return nil, &BadPages{Pages: unreadable.Clip(list, 60), Why: why, Total: total}
	}
	var pages []int
	seen := map[int]bool{}
	if len(list) > 400 {
		return bad("the list is too long")
	}
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := pageNumber(from)
		b := a
		if err == nil && isRange {
			b, err = pageNumber(to)
		}
		switch {
		case err != nil:
			return bad(fmt.Sprintf("%q is not a page or a range", strings.TrimSpace(part)))
		case a < 1 || b < 1:
			return bad("pages count from 1")
		case a > b:
			return bad(fmt.Sprintf("%q runs backwards", strings.TrimSpace(part)))
		case total > 0 && a > total:
			return bad(fmt.Sprintf("page %d is beyond the end", a))
		}
		if total > 0 {
			b = min(b, total)
		} else {
			b = a // how far it really goes is known later
			pages = pages[:0]
		}
		for n := a; n <= b; n++ {
			if seen[n] {
				continue
			}
			seen[n] = true
			if pages = append(pages, n); len(pages) > MaxPages {
				return bad(fmt.Sprintf("it asks for more than %d pages", MaxPages))
			}
		}
	}
	slices.Sort(pages)
	return pages, nil
}

// lastPage is the highest number in a list that parsePages took; 0 in an empty one.
func lastPage(list string) int {
	last := 0
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '-' }) {
		if n, err := pageNumber(s); err == nil {
			last = max(last, n)
		}
	}
	return last
}

func pageNumber(s string) (int, error) {
	s = strings.TrimSpace(s)
	if s == "" || strings.TrimLeft(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}

func span(from, to int) []int {
	var s []int
	for ; from <= to; from++ {
		s = append(s, from)
	}
	return s
}

// pageList writes pages as parsePages reads them.
func pageList(pages []int) string {
	var b []byte
	for i := 0; i < len(pages); {
		j := i
		for j+1 < len(pages) && pages[j+1] == pages[j]+1 {
			j++
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(pages[i]), 10)
		if j > i {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(pages[j]), 10)
		}
		i = j + 1
	}
	return string(b)
}
