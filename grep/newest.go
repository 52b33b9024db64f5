package grep

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// comparePaths orders paths by component: everything in a directory comes together.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	switch {
	case i == n:
		return cmp.Compare(len(a), len(b))
	case a[i] == '/':
		return -1
	case b[i] == '/':
		return 1
	}
	return cmp.Compare(a[i], b[i])
}

// newest keeps the newest files of many: limit of them, or all when limit is 0. Its order is total,
// so the result does not depend on which worker found a file first. Paths are relative to the root.
type newest struct {
	limit  int
	files  []FileHit // up to twice the limit
	oldest time.Time // of the first limit files when there last were too many
}

// before says whether a comes before b in a result.
func before(a, b FileHit) int {
	return cmp.Or(b.ModTime.Compare(a.ModTime), comparePaths(a.Path, b.Path))
}

// add takes the file rel+name. It builds the path only when the file may stay.
func (n *newest) add(h FileHit, rel, name string) {
	if h.ModTime.Before(n.oldest) {
		return
	}
	h.Path = rel + name
	n.files = append(n.files, h)
	if n.limit > 0 && len(n.files) >= 2*n.limit {
		slices.SortFunc(n.files, before)
		n.files = n.files[:n.limit]
		n.oldest = n.files[n.limit-1].ModTime
	}
}

// page sorts and cuts: it skips offset files, gives at most limit (0: all), and puts the root in
// front.
func (n *newest) page(root string, offset, limit int) []FileHit {
	slices.SortFunc(n.files, before)
	out := n.files[min(max(offset, 0), len(n.files)):]
	if limit > 0 {
		out = out[:min(limit, len(out))]
	}
	for i := range out {
		out[i].Path = joinRoot(root, out[i].Path)
	}
	return slices.Clip(out)
}

// window is how many entries must be kept to serve a page; 0 means all.
func window(offset, limit int) int {
	if limit <= 0 {
		return 0
	}
	return min(max(offset, 0), 1<<30) + min(limit, 1<<30)
}

// joinRoot makes the path that the caller sees.
func joinRoot(root, rel string) string {
	switch {
	case root == "":
		return rel
	case strings.HasSuffix(root, "/"):
		return root + rel
	}
	return root + "/" + rel
}
