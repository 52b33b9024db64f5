package capability

import (
	"fmt"
	"testing"
	"time"

	"moltisfs/grep"
)

// Files are counted in groups, and a content only once if it is asked. Only what may be like another is looked into.
func TestGroups(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var files []grep.FileHit
	for _, f := range []struct {
		path string
		size int64
		time time.Time
	}{
		{"/r/a.go", 5, now}, {"/r/d/b.GO", 7, now.Add(-2 * time.Hour)}, {"/r/d/c.txt", 100, now.Add(-400 * 24 * time.Hour)},
		{"/r/Makefile", 1, now.Add(time.Hour)}, {"/r/.bashrc", 2, now.Add(-3 * 24 * time.Hour)}, {"/r/.x.go", 1, time.Time{}},
		{"/r/x.", 1, now}, {"/r/x.tar.gz", 3, now},
	} {
		files = append(files, grep.FileHit{Path: f.path, Size: f.size, ModTime: f.time})
	}
	for _, c := range []struct {
		by, sort string
		most     int
		want     string
		cut      bool
	}{
		{"extension", "count", 10, "[{.go 3 13} {<none> 3 4} {.gz 1 3} {.txt 1 100}]", false},
		{"extension", "total_size", 2, "[{.txt 1 100} {.go 3 13} {<other> 4 7}]", true},
		{"extension", "key", 10, "[{.go 3 13} {.gz 1 3} {.txt 1 100} {<none> 3 4}]", false},
		{"dir", "key", 10, "[{/r 6 13} {/r/d 2 107}]", false},
		{"mtime-bucket", "count", 10, "[{last_hour 4 10} {older 2 101} {last_day 1 7} {last_week 1 2}]", false},
		{"none", "count", 1, "[{<all> 8 120}]", false},
	} {
		counts := map[string]tally{}
		for _, f := range files {
			key := keyBy(c.by, f, now)
			counts[key] = tally{key, counts[key].n + 1, counts[key].size + f.Size}
		}
		rows, cut := rowsOf(counts, c.sort, c.most)
		if got := fmt.Sprint(rows); got != c.want || cut != c.cut {
			t.Errorf("%s by %s, %d at most: %s, %v", c.by, c.sort, c.most, got, cut)
		}
	}
	var asked, left []string
	for _, f := range unlike([]grep.FileHit{{Path: "c", Size: 2}, {Path: "a", Size: 2}, {Path: "b", Size: 2}, {Path: "alone", Size: 3},
		{Path: "x1", Size: 9}, {Path: "x2", Size: 9}}, func(name string) string {
		asked = append(asked, name)
		return map[string]string{"a": "h", "b": "i", "c": "h"}[name]
	}) {
		left = append(left, f.Path)
	}
	if got := fmt.Sprint(left, asked); got != "[a alone b x1 x2] [a b c x1 x2]" {
		t.Error(got)
	}
}
