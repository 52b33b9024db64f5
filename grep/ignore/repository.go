package ignore

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// Load gives the rules that hold above root, and the path of root from the base that the rules are relative to: the
// root of the repository that root lies in, or root itself when it lies in none. The caller then enters root like any other directory.
//
// Outside a repository the ignore files of root and below count all the same; those above root do not, because
// nothing says how far up they were meant to reach.
func Load(root Dir, o Options) (s *Set, base string, unread int) {
	none := &Set{opts: &o}
	none.repo = &repository{fold: o.IgnoreCase != nil && *o.IgnoreCase}
	none.repo.exclude(&o, 0)
	if isRepository(root) {
		return none, "", 0
	}
	var above []Dir // from root's parent upwards
	defer func() {
		for _, d := range above {
			d.Close()
		}
	}()
	for d := root; ; {
		up, err := d.Parent()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				unread++ // not to be looked at: whether root lies in a repository stays unknown
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
		f := Found{Gitignore: isFile(above[i], ".gitignore"), Ignore: isFile(above[i], ".ignore")}
		if i == len(above)-1 {
			f.Git, f.HasGit = gitEntry(top)
		}
		var u int
		s, u = s.Enter(above[i], base[:at], f)
		unread += u
		at += strings.IndexByte(base[at:], '/') + 1
	}
	return s, base, unread
}

func isFile(d Dir, name string) bool {
	m, err := d.Stat(name)
	return err == nil && m.IsRegular()
}

func gitEntry(d Dir) (fs.FileMode, bool) {
	m, err := d.Stat(".git")
	return m, err == nil && (m.IsDir() || m.IsRegular())
}

// isRepository: git takes a directory for one when it holds HEAD, and a file when it points somewhere.
func isRepository(d Dir) bool {
	m, ok := gitEntry(d)
	if !ok || m.IsRegular() {
		return ok
	}
	g, err := d.OpenDir(".git")
	if err != nil {
		return true // there, and not for us to look into
	}
	defer g.Close()
	_, err = g.Stat("HEAD")
	return !errors.Is(err, fs.ErrNotExist)
}

// open reads what a repository's own directory says: info/exclude and core.ignorecase. from is the length of
// the path of d from the base. ok is false when the entry is no repository.
func (o *Options) open(d Dir, from int, git fs.FileMode) (r *repository, unread int, ok bool) {
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
	if git.IsDir() {
		if _, err := g.Stat("HEAD"); errors.Is(err, fs.ErrNotExist) {
			return nil, 0, false
		}
	}
	config, err := g.ReadSmall("config", MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		unread++
	}
	if v, ok := setting(config, "ignorecase"); ok && o.IgnoreCase == nil {
		r.fold = isTrue(v)
	}
	info, err := g.OpenDir("info")
	switch {
	case err == nil:
		var l *level
		l, unread = read(info, "exclude", nil, from, r.fold, unread)
		info.Close()
		if l != nil {
			r.files = append(r.files, l)
		}
	case !errors.Is(err, fs.ErrNotExist):
		unread++
	}
	own, set := setting(config, "excludesfile")
	if !set {
		r.exclude(o, from)
		return r, unread, true
	}
	l, u := excludes(d, own, from, r.fold)
	if l != nil {
		r.files = append(r.files, l)
	}
	return r, unread + u, true
}

// excludes reads the core.excludesFile that a repository itself names, by handles from the repository: what policy hides is
// not there. A path that begins at somebody's home is left alone.
func excludes(d Dir, name string, from int, fold bool) (*level, int) {
	if name == "" || strings.HasPrefix(name, "~") || strings.HasPrefix(name, "%(") {
		return nil, 0
	}
	dir, base := path.Split(filepath.ToSlash(name))
	at := d
	if dir = path.Clean(dir); dir != "." && dir != filepath.ToSlash(d.True()) {
		up, err := walkTo(d, dir)
		if err != nil {
			return nil, 0
		}
		defer up.Close()
		at = up
	}
	return read(at, base, nil, from, fold, 0)
}

// exclude adds the user's own rules, which have the last word.
func (r *repository) exclude(o *Options, from int) {
	if f := Parse(o.Excludes, r.fold); !f.Empty() {
		r.files = append(r.files, &level{from: from, file: f})
	}
}

// gitDir opens the directory that holds info/exclude: .git itself, or for a worktree or a submodule the one its
// .git file points at, by way of commondir.
func gitDir(d Dir, git fs.FileMode) (Dir, error) {
	if git.IsDir() {
		return d.OpenDir(".git")
	}
	data, err := d.ReadSmall(".git", 64<<10)
	if err != nil {
		return nil, err
	}
	to, ok := bytes.CutPrefix(data, []byte("gitdir:"))
	if !ok {
		return nil, fs.ErrInvalid
	}
	g, err := walkTo(d, string(bytes.TrimSpace(to)))
	if err != nil {
		return nil, err
	}
	data, err = g.ReadSmall("commondir", 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil // a submodule
	}
	defer g.Close()
	if err != nil {
		return nil, err
	}
	return walkTo(g, string(bytes.TrimSpace(data)))
}

// walkTo goes from d to target, absolute or relative to d, by handles only, up to the directory both share and
// down again. d stays open.
func walkTo(d Dir, target string) (Dir, error) {
	target = filepath.ToSlash(target)
	if !path.IsAbs(target) && filepath.VolumeName(target) == "" {
		target = path.Join(filepath.ToSlash(d.True()), target)
	}
	target = path.Clean(target)
	cur, owned := d, false
	leave := func(to Dir) {
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
		return nil, fs.ErrInvalid // points at the directory it stands in
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		down, err := cur.OpenDir(name)
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
