package ignore

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"moltisfs/grep/tree"
)

// Load gives the rules that hold above root, and the path of root from the base. The rules are
// relative to that base: the root of the repository in which root lies, or root itself when it lies
// in none. The caller then enters root like any other directory.
//
// Outside a repository the ignore files of root and below count all the same. Files above root do
// not, because nothing says how far down they were meant to reach.
func Load(root tree.Dir, o Options) (s *Set, base string, unread int) {
	none := &Set{opts: &o}
	none.repo = &repository{fold: o.IgnoreCase != nil && *o.IgnoreCase}
	none.repo.exclude(&o, 0)
	if isRepository(root) {
		return none, "", 0
	}
	var above []tree.Dir // from root's parent upwards
	defer func() {
		for _, d := range above {
			d.Close()
		}
	}()
	for d := root; ; {
		up, err := d.Parent()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, tree.ErrDenied) {
				unread++ // cannot be read: whether root lies in a repository is unknown
			}
			return none, "", unread
		}
		above = append(above, up)
		if isRepository(up) {
			break
		}
		d = up
	}
	top := above[len(above)-1]
	base, ok := within(top.True(), root.True())
	if !ok {
		return none, "", 1 // renamed while we climbed
	}
	base += "/"
	s = none
	at := 0
	for i := len(above) - 1; i >= 0; i-- {
		f := Found{Gitignore: kindOf(above[i], ".gitignore") == tree.KindFile, Ignore: kindOf(above[i], ".ignore") == tree.KindFile}
		if i == len(above)-1 {
			f.Git = kindOf(top, ".git")
		}
		var u int
		s, u = s.Enter(above[i], base[:at], f)
		unread += u
		at += strings.IndexByte(base[at:], '/') + 1
	}
	return s, base, unread
}

// kindOf is the kind of the entry name of d; KindOther where there is none.
func kindOf(d tree.Dir, name string) tree.Kind {
	i, err := d.Stat(name)
	if err != nil {
		return tree.KindOther
	}
	return i.Kind
}

// enter opens a directory. It fails for one that may only be passed through.
func enter(d tree.Dir, name string) (tree.Dir, error) {
	if _, err := d.Stat(name); err != nil {
		return nil, err
	}
	return d.OpenDir(name, true)
}

// isRepository says whether d is the top of a repository. git takes a directory .git for one when it
// holds HEAD, and a file .git when it points somewhere. A link that git would follow counts as one that leads to a repository: its
// rules are then unread.
func isRepository(d tree.Dir) bool {
	switch kindOf(d, ".git") {
	case tree.KindOther:
		return false
	case tree.KindFile:
		return true
	}
	g, err := enter(d, ".git")
	if err != nil {
		return true // it exists, and we may not look inside
	}
	defer g.Close()
	_, err = g.Stat("HEAD")
	return !missing(err)
}

// open reads the rules in a repository's own directory: info/exclude and core.ignorecase. from is the
// length of the path of d from the base. ok is false when the entry is no repository.
func (o *Options) open(d tree.Dir, from int, git tree.Kind) (r *repository, unread int, ok bool) {
	r = &repository{}
	if o.IgnoreCase != nil {
		r.fold = *o.IgnoreCase
	}
	g, err := gitDir(d, git)
	if err != nil {
		r.exclude(o, from)
		return r, 1, true
	}
	defer g.Close()
	if git == tree.KindDir {
		if _, err := g.Stat("HEAD"); missing(err) {
			return nil, 0, false
		}
	}
	readConfig := func(name string) ([]byte, error) { return readAt(d, name) }
	c := configuration{home: o.Home, read: readConfig}
	config, err := g.ReadSmall("config", MaxFile)
	if err != nil && !missing(err) {
		unread++
	}
	c.add(config, filepath.ToSlash(g.True()), 0)
	unread += c.unread
	if v, ok := c.values["ignorecase"]; ok && o.IgnoreCase == nil {
		r.fold = isTrue(v)
	}
	info, err := enter(g, "info")
	switch {
	case err == nil:
		var l *level
		l, unread = read(info, "exclude", nil, from, r.fold, unread)
		info.Close()
		if l != nil {
			r.files = append(r.files, l)
		}
	case !missing(err):
		unread++
	}
	own, set := c.values["excludesfile"]
	if !set {
		r.exclude(o, from)
		return r, unread, true
	}
	if own = expandHome(own, o.Home); own == "" {
		return r, unread, true
	}
	data, err := readAt(d, own)
	switch {
	case err == nil:
		if f := Parse(data, r.fold); !f.Empty() {
			r.files = append(r.files, &level{from: from, file: f})
		}
	case !missing(err):
		unread++
	}
	return r, unread, true
}

// readAt reads a file that a repository's configuration names, absolute or relative to d, by
// handles from d. When policy or a link bars the way to it, it counts as missing.
func readAt(d tree.Dir, name string) ([]byte, error) {
	dir, base := path.Split(filepath.ToSlash(name))
	at := d
	if dir = path.Clean(dir); dir != "." && dir != filepath.ToSlash(d.True()) {
		up, err := walkTo(d, dir)
		if err != nil {
			return nil, fs.ErrNotExist
		}
		defer up.Close()
		at = up
	}
	return at.ReadSmall(base, MaxFile)
}

// exclude adds the user's own rules, which are asked last.
func (r *repository) exclude(o *Options, from int) {
	if f := Parse(o.Excludes, r.fold); !f.Empty() {
		r.files = append(r.files, &level{from: from, file: f})
	}
}

// gitDir opens the directory that holds info/exclude. That is .git itself. For a worktree or a
// submodule it is the one that the .git file points at, by way of commondir.
func gitDir(d tree.Dir, git tree.Kind) (g tree.Dir, err error) {
	if git == tree.KindLink {
		return nil, fs.ErrInvalid
	}
	if git == tree.KindDir {
		return enter(d, ".git")
	}
	data, err := d.ReadSmall(".git", 64<<10)
	if err != nil {
		return nil, err
	}
	to, ok := bytes.CutPrefix(data, []byte("gitdir:"))
	if !ok {
		return nil, fs.ErrInvalid
	}
	if g, err = walkTo(d, string(bytes.TrimSpace(to))); err != nil {
		return nil, err
	}
	data, err = g.ReadSmall("commondir", 64<<10)
	if missing(err) {
		return g, nil // a submodule
	}
	defer g.Close()
	if err != nil {
		return nil, err
	}
	return walkTo(g, string(bytes.TrimSpace(data)))
}

// walkTo goes from d to target, absolute or relative to d, by handles only: up to the directory
// that both share, and down again. d stays open.
func walkTo(d tree.Dir, target string) (tree.Dir, error) {
	target = filepath.ToSlash(target)
	if !path.IsAbs(target) && filepath.VolumeName(target) == "" {
		target = path.Join(filepath.ToSlash(d.True()), target)
	}
	target = path.Clean(target)
	cur, owned := d, false
	leave := func(to tree.Dir) {
		if owned {
			cur.Close()
		}
		cur, owned = to, true
	}
	rest, ok := within(cur.True(), target)
	for !ok {
		up, err := cur.Parent()
		if err != nil {
			if owned {
				cur.Close()
			}
			return nil, err
		}
		leave(up)
		rest, ok = within(cur.True(), target)
	}
	if !owned && rest == "" {
		return nil, fs.ErrInvalid // it points at its own directory
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		down, err := enter(cur, name)
		if err != nil {
			if owned {
				cur.Close()
			}
			return nil, err
		}
		leave(down)
	}
	return cur, nil
}

// within gives the path of target from dir, when it lies there.
func within(dir, target string) (string, bool) {
	dir, target = filepath.ToSlash(dir), filepath.ToSlash(target)
	if dir == target {
		return "", true
	}
	return strings.CutPrefix(target, strings.TrimSuffix(dir, "/")+"/")
}
