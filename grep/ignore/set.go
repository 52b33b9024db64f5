package ignore

import (
	"errors"
	"io/fs"
	"unsafe"
)

// Dir is a directory, with the few methods that this package needs. Every method works on the handle, never on a path
// from the root.
type Dir interface {
	True() string                                     // canonical absolute name
	Stat(name string) (fs.FileMode, error)            // type bits of an entry, links not followed
	ReadSmall(name string, max int64) ([]byte, error) // a regular file; a symbolic link is refused
	OpenDir(name string) (Dir, error)
	Parent() (Dir, error) // io.EOF at the top
	Close() error
}

// Set is the rules that hold in one directory: its own, those of the directories above it up to the
// root of the repository, and those of the repository. It is immutable and shared by everything
// below the directory.
type Set struct {
	git, dot *level // chains of .gitignore and .ignore files, deepest first
	repo     *repository
	opts     *Options
}

// level is one ignore file in force.
type level struct {
	up   *level
	from int // length of the file's directory, slash included, within a path given to Ignored
	file *File
}

type repository struct {
	fold  bool
	files []*level // .git/info/exclude, then Options.Excludes
}

// Options of Load. The zero value reads only files of the tree.
type Options struct {
	Excludes   []byte // content of core.excludesFile, which lies outside the tree
	IgnoreCase *bool  // core.ignorecase; nil: as .git/config says
	Home       string // where "~/" leads in a repository's configuration; "": nowhere
}

// Found holds the names of interest in the listing of a directory, so that nothing is opened that does not exist.
type Found struct {
	Gitignore, Ignore bool        // a regular file of that name
	Git               fs.FileMode // type of the entry ".git", when HasGit
	HasGit            bool
}

// Any says whether Enter would have something to do.
func (f Found) Any() bool { return f.Gitignore || f.Ignore || f.HasGit }

// Scratch is one goroutine's working memory. The zero value is ready.
type Scratch struct{ path []byte }

// Join gives dir+name in memory that the next Join overwrites.
func (s *Scratch) Join(dir, name string) string {
	s.path = append(append(s.path[:0], dir...), name...)
	return unsafe.String(unsafe.SliceData(s.path), len(s.path))
}

// Ignored decides for one entry. dir is the path of its directory from the base that Load gave, ""
// or with a slash at the end. The caller MUST NOT ask about anything below an ignored directory:
// nothing there can be included again.
//
// .ignore files decide first, whatever their depth, the deepest before the others. Then .gitignore
// files in the same way, then .git/info/exclude, then the user's excludes.
func (s *Set) Ignored(dir, name string, isDir bool, w *Scratch) bool {
	for _, chain := range [2]*level{s.dot, s.git} {
		for l := chain; l != nil; l = l.up {
			if d := l.decide(dir, name, isDir, w); d != None {
				return d == Ignore
			}
		}
	}
	if s.repo != nil {
		for _, l := range s.repo.files {
			if d := l.decide(dir, name, isDir, w); d != None {
				return d == Ignore
			}
		}
	}
	return false
}

// Idle says that no rule is in force: Ignored would always be false.
func (s *Set) Idle() bool {
	return s.git == nil && s.dot == nil && (s.repo == nil || len(s.repo.files) == 0)
}

func (l *level) decide(dir, name string, isDir bool, w *Scratch) Decision {
	dir = dir[l.from:]
	if l.file.fold {
		dir, name = Lower(dir), Lower(name)
	}
	return l.file.match(dir, name, isDir, w)
}

// Enter gives the rules that hold in directory d, when s holds in its parent. dir is the path of d
// from the base, "" or with a slash at the end. unread counts the rule files that exist and could
// not be read: their rules do not hold.
func (s *Set) Enter(d Dir, dir string, f Found) (in *Set, unread int) {
	if !f.Any() {
		return s, 0
	}
	n := *s
	if f.HasGit {
		if r, u, ok := n.opts.open(d, len(dir), f.Git); ok {
			n.repo, n.git = r, nil // a nested repository: the outer rules end here
			unread += u
		}
	}
	fold := n.repo != nil && n.repo.fold
	if f.Gitignore {
		n.git, unread = read(d, ".gitignore", n.git, len(dir), fold, unread)
	}
	if f.Ignore {
		n.dot, unread = read(d, ".ignore", n.dot, len(dir), fold, unread)
	}
	return &n, unread
}

// read puts the rules of one file on top of a chain.
func read(d Dir, name string, up *level, from int, fold bool, unread int) (*level, int) {
	data, err := d.ReadSmall(name, MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return up, unread
	case err != nil:
		return up, unread + 1
	}
	f := Parse(data, fold)
	if f.Empty() {
		return up, unread
	}
	return &level{up: up, from: from, file: f}, unread
}
