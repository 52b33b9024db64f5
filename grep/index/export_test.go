package index

import "slices"

// Knows says whether the index has read the file of that name in the root of its tree.
func Knows(x *Index, name string) bool {
	x.mu.Lock()
	var t *Tree
	for _, s := range x.slots {
		t = s.tree
	}
	x.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.Root.Files, func(f File) bool { return f.Name == name && f.known })
}

// Wait waits for the builds that are under way.
func Wait(x *Index) { x.wg.Wait() }

// Watches is how many directories are watched.
func Watches(x *Index) int { return len(x.watches) }

// Holds says whether there is an index of the tree.
func Holds(x *Index, root string) bool { return x.ready(Key{Root: root, Fold: -1}) != nil }
