package index

import (
	"time"

	"moltisfs/grep/ignore"
	"moltisfs/grep/index/rulefiles"
	"moltisfs/grep/tree"
)

const (
	maxIndexDepth = 512 // directories below one another; each holds a handle while the tree is listed
	costOfEntry   = 160 // bytes of memory, about, beside the filter
	drainEvery    = 64  // directories between looks at what changed meanwhile, so that the kernel's queue does not overflow
	settledAfter  = 2 * time.Second
)

// build lists a tree and reads its files. Directories are watched before they are listed, and
// listed before their files are read: what changes on the way is reported, and looked at again at
// the first use. The tree that it gives with an error holds watches.
func (x *Index) build(key Key, old *Tree) (*Tree, error) {
	t := &Tree{index: x, key: key, swept: time.Now()}
	x.mu.Lock()
	t.lost = x.lost
	x.mu.Unlock()
	h, err := x.o.Open(key.Root)
	if err != nil {
		return t, errVanished
	}
	defer h.Close()
	root, ok := h.(Located)
	if !ok || root.True() != key.Root {
		return t, errVanished
	}
	t.identity = root.Identity()
	t.rules = new(ignore.Set)
	base := ""
	if !key.NoIgnore {
		r := rulefiles.NewRecord(root)
		t.rules, base, t.Unread = ignore.Load(r, key.Rules())
		t.sum = r.Sum()
	}
	t.Root = &Dir{tree: t, full: base, above: t.rules, rules: t.rules}
	var before *Dir
	if old != nil {
		old.mu.Lock()
		old.retired = true // whoever waits for it goes without: it is ours to read
		before = old.Root
		old.mu.Unlock()
	}
	if err := x.watch(t.Root, root); err != nil {
		return t, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := scanner{t: t}
	if err := s.list(t.Root, root, nil, before); err != nil {
		return t, err
	}
	return t, t.fill(root)
}

// list lists d again. Of the names in changed with true nothing is kept.
func (t *Tree) list(d *Dir, h tree.Dir, changed map[string]bool) error {
	s := scanner{t: t}
	return s.list(d, h, changed, d)
}

// scanner lists directories into a tree. t.mu is held.
type scanner struct {
	t       *Tree
	scratch ignore.Scratch
	listed  int
}

// list lists d, which is open as h and watched, and what is new below it. before is what was known
// of it: d itself or the directory in an older tree.
func (s *scanner) list(d *Dir, h tree.Dir, changed map[string]bool, before *Dir) error {
	if s.listed++; s.listed%drainEvery == 0 {
		if err := s.t.index.drain(); err != nil {
			return err
		}
	}
	if err := s.t.index.ctx.Err(); err != nil {
		return err
	}
	if d.Depth > maxIndexDepth || s.t.bytes.Load() > s.t.index.o.MaxBytes {
		return errTooLarge
	}
	if l, ok := h.(Located); ok {
		d.id, d.stamp = l.Identity(), stampOf(l.Info())
	}
	entries, denied, err := h.List(nil)
	switch {
	case s.t.key.NoIgnore:
	case before != d || d.Err != nil:
		s.enter(d, h, entries)
	case rulefiles.In(entries) != d.found:
		return errRules
	}
	s.t.bytes.Add(-d.cost())
	files, dirs := s.sift(d, entries, changed, before)
	if before == d {
		kept := map[*Dir]bool{}
		for i := range dirs {
			kept[dirs[i].Dir] = true
		}
		for i := range d.Dirs {
			if !kept[d.Dirs[i].Dir] {
				s.t.forget(d.Dirs[i].Dir)
			}
		}
	}
	d.Files, d.Dirs, d.Denied, d.Err = files, dirs, denied, err
	if err != nil {
		s.t.odd = append(s.t.odd, d)
	}
	s.t.bytes.Add(d.cost())
	for i := range dirs {
		if c := dirs[i].Dir; c != nil && c.rules == nil {
			if err := s.descend(d, h, c, dirs[i].Name, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter reads the rules that d brings.
func (s *scanner) enter(d *Dir, h tree.Dir, entries []tree.Entry) {
	s.t.noRepository(d)
	d.rules, d.Unread = d.above, 0
	if d.found = rulefiles.In(entries); !d.found.Any() {
		return
	}
	r := rulefiles.NewRecord(h)
	d.rules, d.Unread = d.rules.Enter(r, d.full, d.found)
	if d.found.HasGit {
		d.sum = r.Sum()
		s.t.repos = append(s.t.repos, d)
	}
}

// sift sorts the entries of d. What is known of them from before is taken over where the name means
// the same object.
func (s *scanner) sift(d *Dir, entries []tree.Entry, changed map[string]bool, before *Dir) (files []File, dirs []Sub) {
	var oldFiles map[string]*File
	var oldDirs map[string]*Dir
	if before != nil {
		oldFiles, oldDirs = map[string]*File{}, map[string]*Dir{}
		for i := range before.Files {
			oldFiles[before.Files[i].Name] = &before.Files[i]
		}
		for i := range before.Dirs {
			oldDirs[before.Dirs[i].Name] = before.Dirs[i].Dir
		}
	}
	idle := d.rules.Idle()
	for i := range entries {
		e := &entries[i]
		isDir := e.Kind == tree.KindDir
		ignored := !idle && d.rules.Ignored(d.full, e.Name, isDir, &s.scratch)
		if !isDir {
			_, reported := changed[e.Name]
			f := File{Name: e.Name, Kind: e.Kind, Ignored: ignored, Verify: reported}
			if o := oldFiles[e.Name]; o != nil && o.Kind == e.Kind && !changed[e.Name] {
				f = *o
				f.Name, f.Ignored = e.Name, ignored
			}
			files = append(files, f)
			continue
		}
		sub := Sub{Name: e.Name, Ignored: ignored, Way: e.Way}
		if !ignored && !rulefiles.IsVCS(e.Name) {
			if o := oldDirs[e.Name]; before == d && o != nil && !changed[e.Name] {
				sub.Dir = o
			} else {
				sub.Dir = &Dir{tree: s.t, Rel: d.Rel + e.Name + "/", full: d.full + e.Name + "/", Depth: d.Depth + 1, Way: e.Way}
			}
		}
		dirs = append(dirs, sub)
	}
	return files, dirs
}

// descend opens the new directory c below d, watches and lists it.
func (s *scanner) descend(d *Dir, h tree.Dir, c *Dir, name string, before *Dir) error {
	c.above, c.rules = d.rules, d.rules
	sub, err := h.OpenDir(name, false)
	if err != nil {
		s.t.failed(c, err)
		return nil
	}
	defer sub.Close()
	if ok, err := s.t.watch(c, sub); !ok {
		return err
	}
	var old *Dir
	if before != nil && before != d {
		for i := range before.Dirs {
			if before.Dirs[i].Name == name {
				old = before.Dirs[i].Dir
			}
		}
	}
	return s.list(c, sub, nil, old)
}
