package ignore

import (
	"errors"
	"io/fs"
	"unsafe"

	"moltisfs/grep/tree"
)

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

// Found holds the entries of interest in a directory, so that nothing is opened that does not exist.
type Found struct {
	Gitignore, Ignore bool      // a regular file of that name
	Git               tree.Kind // of the entry ".git"; KindOther when there is none that counts
}

// Add notes an entry, if its name is of interest. One that is only passed through is none.
func (f *Found) Add(name string, kind tree.Kind) {
	switch name {
	case ".gitignore":
		f.Gitignore = kind == tree.KindFile
	case ".ignore":
		f.Ignore = kind == tree.KindFile
	case ".git":
		f.Git = kind
	}
}

// Any says whether Enter would have something to do.
func (f Found) Any() bool { return f.Gitignore || f.Ignore || f.Git != tree.KindOther }

// IsVCS says whether name is a directory of a version control system. Such a directory holds no files of the project.
func IsVCS(name string) bool {
	switch name {
	case ".git", ".svn", ".hg", ".bzr", ".jj", ".sl":
		return true
	}
	return false
}

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
func (s *Set) Enter(d tree.Dir, dir string, f Found) (in *Set, unread int) {
	if !f.Any() {
		return s, 0
	}
	n := *s
	if f.Git != tree.KindOther {
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
func read(d tree.Dir, name string, up *level, from int, fold bool, unread int) (*level, int) {
	data, err := d.ReadSmall(name, MaxFile)
	switch {
	case missing(err):
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

// missing says that an entry is not there. One that policy hides does not exist for this package.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, tree.ErrDenied)
}
