package tally

import (
	"fmt"
	"testing"
	"time"
)

func TestRows(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	files := []File{
		{"/r/a.go", 5, now}, {"/r/d/b.GO", 7, now.Add(-2 * time.Hour)}, {"/r/d/c.txt", 100, now.Add(-400 * 24 * time.Hour)},
		{"/r/Makefile", 1, now.Add(time.Hour)}, {"/r/.bashrc", 2, now.Add(-3 * 24 * time.Hour)}, {"/r/.x.go", 1, time.Time{}},
		{"/r/x.", 1, now}, {"/r/x.tar.gz", 3, now},
	}
	for _, c := range []struct {
		by, sort string
		most     int
		want     string
		cut      bool
	}{
		{Extension, "count", 10, "[{.go 3 13} {<none> 3 4} {.gz 1 3} {.txt 1 100}]", false},
		{Extension, "total_size", 2, "[{.txt 1 100} {.go 3 13} {<other> 4 7}]", true},
		{Extension, "key", 10, "[{.go 3 13} {.gz 1 3} {.txt 1 100} {<none> 3 4}]", false},
		{Dir, "key", 10, "[{/r 6 13} {/r/d 2 107}]", false},
		{Age, "count", 10, "[{last_hour 4 10} {older 2 101} {last_day 1 7} {last_week 1 2}]", false},
		{"none", "count", 1, "[{<all> 8 120}]", false},
	} {
		s := Tally{By: c.by, Now: now}
		for _, f := range files {
			s.Add(f)
		}
		rows, cut := s.Rows(c.sort, c.most)
		if got := fmt.Sprint(rows); got != c.want || cut != c.cut {
			t.Errorf("%s by %s, %d at most: %s, %v", c.by, c.sort, c.most, got, cut)
		}
	}
	if rows, cut := new(Tally).Rows("count", 1); len(rows) > 0 || cut {
		t.Errorf("of nothing: %v, %v", rows, cut)
	}
}

// A content counts once. Only what may be like another is looked into.
func TestAddUnlike(t *testing.T) {
	t.Parallel()
	var asked []string
	var s Tally
	n := s.AddUnlike([]File{{"c", 2, time.Time{}}, {"a", 2, time.Time{}}, {"b", 2, time.Time{}}, {"alone", 3, time.Time{}},
		{"x1", 9, time.Time{}}, {"x2", 9, time.Time{}}}, func(path string) string {
		asked = append(asked, path)
		return map[string]string{"a": "h", "b": "i", "c": "h"}[path]
	})
	rows, _ := s.Rows("key", 1)
	if got := fmt.Sprint(n, rows, asked); got != "1 [{<all> 5 25}] [a b c x1 x2]" {
		t.Error(got)
	}
}
