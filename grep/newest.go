package grep

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
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
	limit int
	files []FileHit // when full, a heap with the oldest on top
}

// before says whether a comes before b in a result.
func before(a, b *FileHit) int {
	if c := b.ModTime.Compare(a.ModTime); c != 0 {
		return c
	}
	return comparePaths(a.Path, b.Path)
}

func (n *newest) Len() int           { return len(n.files) }
func (n *newest) Less(i, j int) bool { return before(&n.files[i], &n.files[j]) > 0 }
func (n *newest) Swap(i, j int)      { n.files[i], n.files[j] = n.files[j], n.files[i] }
func (n *newest) Push(x any)         { n.files = append(n.files, x.(FileHit)) }
func (n *newest) Pop() any           { panic("grep: newest never shrinks") }

// add takes the file rel+name. It builds the path only when the file stays.
func (n *newest) add(h FileHit, rel, name string) {
	full := n.limit > 0 && len(n.files) == n.limit
	if full && h.ModTime.Before(n.files[0].ModTime) {
		return
	}
	h.Path = rel + name
	n.put(h)
}

func (n *newest) put(h FileHit) {
	switch {
	case n.limit == 0 || len(n.files) < n.limit:
		n.files = append(n.files, h)
		if len(n.files) == n.limit {
			heap.Init(n)
		}
	case before(&h, &n.files[0]) < 0:
		n.files[0] = h
		heap.Fix(n, 0)
	}
}

// merge takes over the files that another worker kept.
func (n *newest) merge(o *newest) {
	for _, h := range o.files {
		n.put(h)
	}
	o.files = nil
}

// page sorts and cuts: it skips offset files, gives at most limit (0: all), and puts the root in
// front.
func (n *newest) page(root string, offset, limit int) []FileHit {
	slices.SortFunc(n.files, func(a, b FileHit) int { return before(&a, &b) })
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
