package grep

import (
	"time"

	"moltisfs/grep/ignore"
)

const (
	maxIndexDepth = 512 // directories below one another; each holds a handle while the tree is listed
	costOfEntry   = 160 // bytes of memory, about, beside the filter
	drainEvery    = 64  // directories between looks at what changed meanwhile, so that the kernel's queue does not overflow
	settledAfter  = 2 * time.Second
)

// build lists a tree and reads its files. Directories are watched before they are listed, and listed before their files are
// read: what changes on the way is reported, and looked at again at the first use. The tree that it gives with an error
// holds watches.
func (x *Index) build(key treeKey, old *indexTree) (*indexTree, error) {
	t := &indexTree{index: x, key: key, swept: time.Now()}
	x.mu.Lock()
	t.lost = x.lost
	x.mu.Unlock()
	h, err := x.o.Open(key.root)
	if err != nil {
		return t, errVanished
	}
	defer h.Close()
	root, ok := h.(Located)
	if !ok || root.True() != key.root {
		return t, errVanished
	}
	t.identity = root.Identity()
	t.rules = new(ignore.Set)
	base := ""
	if !key.noIgnore {
		w := key.walk(root)
		r := record(root)
		t.rules, base, t.unread = ignore.Load(r, w.rules())
		t.sum = r.result()
	}
	t.root = &indexDir{tree: t, full: base, above: t.rules, rules: t.rules}
	var before *indexDir
	if old != nil {
		old.mu.Lock()
		old.retired = true // whoever waits for it goes without: it is ours to read
		before = old.root
		old.mu.Unlock()
	}
	if err := x.watch(t.root, root); err != nil {
		return t, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := scanner{t: t}
	if err := s.list(t.root, root, nil, before); err != nil {
		return t, err
	}
	return t, t.fill(root)
}

// rules are the options that a walk has for the loader of rules.
func (w *Walk) rules() ignore.Options {
	return ignore.Options{Excludes: w.Excludes, IgnoreCase: w.IgnoreCase, Home: w.Home}
}

// list lists d again. Of the names in changed with true nothing is kept.
func (t *indexTree) list(d *indexDir, h Dir, changed map[string]bool) error {
	s := scanner{t: t}
	return s.list(d, h, changed, d)
}

// scanner lists directories into a tree. t.mu is held.
type scanner struct {
	t       *indexTree
	scratch ignore.Scratch
	listed  int
}

// list lists d, which is open as h and watched, and what is new below it. before is what was known of it: d itself or the
// directory in an older tree.
func (s *scanner) list(d *indexDir, h Dir, changed map[string]bool, before *indexDir) error {
	if s.listed++; s.listed%drainEvery == 0 {
		if err := s.t.index.drain(); err != nil {
			return err
		}
	}
	if err := s.t.index.ctx.Err(); err != nil {
		return err
	}
	if d.depth > maxIndexDepth || s.t.bytes.Load() > s.t.index.o.MaxBytes {
		return errTooLarge
	}
	if l, ok := h.(Located); ok {
		d.id, d.stamp = l.Identity(), stampOf(l.Info())
	}
	entries, denied, err := h.List(nil)
	switch {
	case s.t.key.noIgnore:
	case before != d || d.err != nil:
		s.enter(d, h, entries)
	case ruleFiles(entries) != d.found:
		return errRules
	}
	s.t.bytes.Add(-d.cost())
	files, dirs := s.sift(d, entries, changed, before)
	if before == d {
		kept := map[*indexDir]bool{}
		for i := range dirs {
			kept[dirs[i].dir] = true
		}
		for i := range d.dirs {
			if !kept[d.dirs[i].dir] {
				s.t.forget(d.dirs[i].dir)
			}
		}
	}
	d.files, d.dirs, d.denied, d.err = files, dirs, denied, err
	if err != nil {
		s.t.odd = append(s.t.odd, d)
	}
	s.t.bytes.Add(d.cost())
	for i := range dirs {
		if c := dirs[i].dir; c != nil && c.rules == nil {
			if err := s.descend(d, h, c, dirs[i].name, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter reads the rules that d brings.
func (s *scanner) enter(d *indexDir, h Dir, entries []Entry) {
	s.t.noRepository(d)
	d.rules, d.unread = d.above, 0
	if d.found = ruleFiles(entries); !d.found.Any() {
		return
	}
	r := record(h)
	d.rules, d.unread = d.rules.Enter(r, d.full, d.found)
	if d.found.HasGit {
		d.sum = r.result()
		s.t.repos = append(s.t.repos, d)
	}
}

// sift sorts the entries of d. What is known of them from before is taken over where the name means the same object.
func (s *scanner) sift(d *indexDir, entries []Entry, changed map[string]bool, before *indexDir) (files []indexFile, dirs []indexSub) {
	var oldFiles map[string]*indexFile
	var oldDirs map[string]*indexDir
	if before != nil {
		oldFiles, oldDirs = map[string]*indexFile{}, map[string]*indexDir{}
		for i := range before.files {
			oldFiles[before.files[i].name] = &before.files[i]
		}
		for i := range before.dirs {
			oldDirs[before.dirs[i].name] = before.dirs[i].dir
		}
	}
	idle := d.rules.Idle()
	for i := range entries {
		e := &entries[i]
		isDir := e.Kind == KindDir
		ignored := !idle && d.rules.Ignored(d.full, e.Name, isDir, &s.scratch)
		if !isDir {
			_, reported := changed[e.Name]
			f := indexFile{name: e.Name, kind: e.Kind, ignored: ignored, verify: reported}
			if o := oldFiles[e.Name]; o != nil && o.kind == e.Kind && !changed[e.Name] {
				f = *o
				f.name, f.ignored = e.Name, ignored
			}
			files = append(files, f)
			continue
		}
		sub := indexSub{name: e.Name, ignored: ignored, way: e.Way}
		if !ignored && !isVCS(e.Name) {
			if o := oldDirs[e.Name]; before == d && o != nil && !changed[e.Name] {
				sub.dir = o
			} else {
				sub.dir = &indexDir{tree: s.t, rel: d.rel + e.Name + "/", full: d.full + e.Name + "/", depth: d.depth + 1, way: e.Way}
			}
		}
		dirs = append(dirs, sub)
	}
	return files, dirs
}

// descend opens the new directory c below d, watches and lists it.
func (s *scanner) descend(d *indexDir, h Dir, c *indexDir, name string, before *indexDir) error {
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
	var old *indexDir
	if before != nil && before != d {
		for i := range before.dirs {
			if before.dirs[i].name == name {
				old = before.dirs[i].dir
			}
		}
	}
	return s.list(c, sub, nil, old)
}
