// Package tally counts files by groups: by extension, directory, or how old they are. It is pure, and
// safe for concurrent use.
package tally

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// What files are grouped by. Everything else makes one group, All.
const (
	Extension = "extension"
	Dir       = "dir"
	Age       = "mtime-bucket"
)

// The keys that are no extension, directory or age.
const (
	None  = "<none>"  // without an extension
	Other = "<other>" // all groups beyond the most
	All   = "<all>"
)

// ages are the groups of Age, the youngest first.
var ages = []struct {
	key string
	age time.Duration
}{
	{"last_hour", time.Hour}, {"last_day", 24 * time.Hour}, {"last_week", 7 * 24 * time.Hour},
	{"last_month", 30 * 24 * time.Hour}, {"last_year", 365 * 24 * time.Hour}, {"older", 1<<63 - 1},
}

// A File is one that counts.
type File struct {
	Path    string
	Size    int64
	ModTime time.Time
}

// A Row is one group.
type Row struct {
	Key   string
	Count int
	Size  int64 // of all its files
}

// A Tally adds files up. By and Now are set before the first.
type Tally struct {
	By  string
	Now time.Time

	mu   sync.Mutex
	rows map[string]*Row
}

// Add counts a file.
func (t *Tally) Add(f File) { t.AddKey(t.key(f), f.Size) }

// AddKey counts something that has this key.
func (t *Tally) AddKey(key string, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[string]*Row{}
	}
	row := t.rows[key]
	if row == nil {
		row = &Row{Key: key}
		t.rows[key] = row
	}
	row.Count++
	row.Size += size
}

// AddUnlike counts each content once, as the first file by path that has it, and says how many files
// were left out. sum tells the hash of a content, or "" for one that is like no other; it is asked
// only where sizes are the same.
func (t *Tally) AddUnlike(files []File, sum func(path string) string) (leftOut int) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	sizes, seen := map[int64]int{}, map[string]bool{}
	for _, f := range files {
		sizes[f.Size]++
	}
	for _, f := range files {
		hash := ""
		if sizes[f.Size] > 1 {
			hash = sum(f.Path)
		}
		if hash != "" && seen[hash] {
			leftOut++
			continue
		}
		seen[hash] = true
		t.Add(f)
	}
	return leftOut
}

func (t *Tally) key(f File) string {
	switch t.By {
	case Extension:
		name := strings.TrimLeft(path.Base(f.Path), ".") // of a hidden file too
		if ext := path.Ext(name); len(ext) > 1 {
			return strings.ToLower(ext)
		}
		return None
	case Dir:
		return path.Dir(f.Path)
	case Age:
		i := slices.IndexFunc(ages, func(a struct {
			key string
			age time.Duration
		}) bool {
			return t.Now.Sub(f.ModTime) <= a.age
		})
		return ages[max(i, 0)].key
	}
	return All
}

// Rows are the groups: the largest first by "count" or "total_size", or in order by "key". Of more
// than so many the rest is one row, Other, at the end, and truncated is true.
func (t *Tally) Rows(sortBy string, most int) (rows []Row, truncated bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows = make([]Row, 0, len(t.rows))
	for _, r := range t.rows {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		by := 0
		switch sortBy {
		case "count":
			by = cmp.Compare(b.Count, a.Count)
		case "total_size":
			by = cmp.Compare(b.Size, a.Size)
		}
		return cmp.Or(by, strings.Compare(a.Key, b.Key))
	})
	if len(rows) <= most {
		return rows, false
	}
	rest := Row{Key: Other}
	for _, r := range rows[most:] {
		rest.Count += r.Count
		rest.Size += r.Size
	}
	return append(rows[:most:most], rest), true
}
