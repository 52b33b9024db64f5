package guardfs

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// A walked is the account of a walk along a path such as /a/b/c: a trail has it, with a handle on its end.
type walked struct {
	object Object   // of what was found; with err of what would be there
	err    error    // an errno, or ErrPseudo at a link of a kernel interface
	at     string   // with err: true name of the deepest directory reached; "" when there is not even that
	rest   []string // with err: the components that were left, the one that failed first
	hops   []Hop
	// linked: the missing part was named by a link (link, whose text is target), not by the caller.
	linked       bool
	link, target string // the last that was followed

	links int  // how many were
	own   int  // how many of rest, from the end, the caller spelled
	up    bool // that the directory is there is no news: the walk came up to it, or followed a link in it, or it is the root
}

const maxLinks = 40 // as in the kernel

// begin has a walk go along the components of path, which begins with a slash.
func (w *walked) begin(path string) {
	w.rest = strings.Split(path[1:], "/")
	w.own, w.up = len(w.rest), true
}

// step marks the first component as done.
func (w *walked) step() {
	w.rest = w.rest[1:]
	w.own = min(w.own, len(w.rest))
}

// follow puts target, the text of the link, in the place of the component that named it.
func (w *walked) follow(link, target string) {
	if target == "" {
		w.err = syscall.ENOENT
		return
	}
	w.link, w.target = link, target
	w.hops, w.up = append(w.hops, Hop{Name: link, Left: upNext(w.rest[1:])}), true
	w.step()
	w.rest = append(strings.Split(target, "/"), w.rest...)
}

// missing is the topmost part of path that does not exist.
func (w *walked) missing(path string) string {
	if w.at == "" || len(w.rest) == 0 {
		return path
	}
	return join(w.at, w.rest[0])
}

// Resolve finds the object that path names, following links, and asks the Judge whether it may be accessed.
// The errors are *BadPathError, the Judge's own, ErrPseudo in a *PathError, and the errno in a *PathError. Whatever
// keeps the path from being resolved (missing, not a directory, no permission, a loop of links), the
// Judge is asked first, about an absent object.
func (f *FS) Resolve(path string, a Access) (*Handle, error) {
	if _, _, err := splitVolume(path); err != nil {
		return nil, err
	}
	t := f.walk(path)
	defer t.close()
	if err := f.judge.Judge(t.object, a); err != nil {
		return nil, err
	}
	if t.err == nil {
		t.err = f.refusePseudo(t)
	}
	if t.err != nil {
		return nil, &PathError{Op: a.String(), Path: path, Err: t.err}
	}
	return f.handle(t, a), nil
}

// Entry pins the directory of path and looks at its occupant, if there is one. The Judge is asked for Create
// where nothing does and for Modify otherwise. A symlink there is a *SymlinkError, a missing directory on the way a
// *MissingParentError. A directory or a special file is an occupant like any other; Load refuses it.
func (f *FS) Entry(path string) (*Entry, error) {
	for try := 0; ; try++ {
		p, err := f.EntryLink(path)
		if err != nil || p.object.Info.Kind != KindSymlink {
			if err == nil {
				p.links = false
			}
			return p, err
		}
		target, err := p.readTarget()
		p.Close() //nolint:errcheck // nothing was written through it
		switch {
		case err == nil:
			return nil, &SymlinkError{Path: path, Target: target}
		case !errors.Is(err, syscall.EINVAL) && !errors.Is(err, os.ErrNotExist): // else it is gone, or another thing by now: look again
			return nil, p.failed("read link", err)
		case try >= retries:
			return nil, p.conflict(LinkInTurns)
		}
	}
}

// EntryLink is Entry for the link itself: to load, remove or restore it.
func (f *FS) EntryLink(path string) (*Entry, error) { return f.entryFor(path, Modify) }

// entryFor is EntryLink for the access a.
func (f *FS) entryFor(path string, a Access) (*Entry, error) {
	dir, base, err := splitEntry(path)
	if err != nil {
		return nil, err
	}
	t := f.walkDir(dir)
	defer t.close()
	top := t.object
	p := &Entry{fs: f, dir: &top, base: base, links: true}
	p.object = Object{Spelled: path, True: join(t.object.True, base), Hops: t.object.Hops}
	if t.err != nil {
		if err := f.judge.Judge(p.object, absent(a)); err != nil {
			return nil, err
		}
		if os.IsNotExist(t.err) {
			return nil, &MissingParentError{Path: path, Missing: t.missing(dir), True: p.object.True}
		}
		return nil, &PathError{Op: "open directory of", Path: path, Err: t.err}
	}
	p.pinTo(t)
	if err = p.look(a); err == nil {
		if err = p.refusePseudo(); err != nil {
			err = &PathError{Op: "open directory of", Path: path, Err: err}
		}
	}
	if err != nil {
		p.Close() //nolint:errcheck // nothing was written through it
		return nil, err
	}
	return p, nil
}

// walkDir is walk, and an error where path names no directory.
func (f *FS) walkDir(path string) *trail {
	t := f.walk(path)
	if t.err == nil && t.object.Info.Kind != KindDir {
		t.err = syscall.ENOTDIR
	}
	return t
}

// Missing lists the directories above path that do not exist, by their true names, topmost first, and gives the true name that path has once
// they are made; with nothing missing that is "". It changes nothing. The Judge is asked for Create of each of them and of path itself. A
// part that a dangling link names can't be made: *SymlinkError.
func (f *FS) Missing(path string) (dirs []string, name string, err error) {
	dir, base, err := splitEntry(path)
	if err != nil {
		return nil, "", err
	}
	t := f.walkDir(dir)
	defer t.close()
	name = join(t.object.True, base)
	if err := f.judge.Judge(Object{Spelled: path, True: name, Hops: t.object.Hops}, Create); err != nil {
		return nil, "", err
	}
	switch {
	case t.err == nil:
		return nil, "", nil
	case !os.IsNotExist(t.err) || t.at == "":
		return nil, "", &PathError{Op: "make directory of", Path: path, Err: t.err}
	case t.linked:
		return nil, "", &SymlinkError{Path: t.link, Target: t.target}
	}
	at := t.at
	for _, c := range t.rest {
		switch c {
		case "", ".":
			continue
		case "..":
			return nil, "", &BadPathError{Path: path, Why: "goes up from a directory that does not exist"}
		}
		at = join(at, c)
		if err := f.judge.Judge(Object{Spelled: at, True: at, Hops: t.object.Hops}, Create); err != nil {
			return nil, "", err
		}
		dirs = append(dirs, at)
	}
	return dirs, name, nil
}

// NearestEntry opens the entry at the nearest directory above path that is there: path itself, or the topmost directory that has to be
// made for it. name is the true name that path will have.
func (f *FS) NearestEntry(path string) (at *Entry, name string, err error) {
	at, err = f.EntryLink(path)
	if err == nil {
		return at, at.object.True, nil
	}
	if _, missing := errors.AsType[*MissingParentError](err); !missing {
		return nil, "", err
	}
	dirs, name, merr := f.Missing(path)
	switch {
	case merr != nil:
		return nil, "", merr
	case dirs == nil: // it has just been made
		return nil, "", err
	}
	at, err = f.EntryLink(dirs[0])
	return at, name, err
}

// Lstat looks at the object that path names, a link in the last component for itself, and asks the Judge for
// Look. target is the text of a link. The errors are those of Resolve.
func (f *FS) Lstat(path string) (o Object, target string, err error) {
	for range retries {
		p, err := f.entryFor(path, Look)
		_, bad := errors.AsType[*BadPathError](err) // "/", or what ends in ".."
		_, gone := errors.AsType[*MissingParentError](err)
		if err != nil && !bad && !gone {
			return Object{}, "", err
		}
		if err == nil {
			o = p.object
			if o.Info.Kind == KindSymlink {
				target, err = p.readTarget()
			}
			p.Close() //nolint:errcheck // nothing was written through it
			if o.Info.Kind == KindSymlink && err == nil {
				return o, target, nil
			}
		}
		h, err := f.Resolve(path, Look)
		if err != nil {
			return Object{}, "", err
		}
		h.Close() //nolint:errcheck // nothing was written through it
		if bad || h.object.True == o.True {
			return h.object, "", nil
		} // else a link took its place, or gave it up
	}
	return Object{}, "", &ConflictError{Path: path, Why: LinkInTurns}
}

// Canonical is the true name of path, as far as it exists, followed by the rest: the form in which rules are to be
// compared with Object.True. It judges nothing and never fails; a path that cannot be resolved is cleaned as text.
func Canonical(path string) string { return describe(path).True }

// Canonical is the function of that name for many paths.
func (f *FS) Canonical(path string) string { return f.describe(path).True }

// describe is the object that path names, judged by nobody. It never fails; a path that cannot be resolved is cleaned as text.
func (f *FS) describe(path string) Object {
	if _, _, err := splitVolume(path); err != nil {
		return Object{True: lexical(path)}
	}
	t := f.walk(path)
	t.close()
	return t.object
}

// lexical is the name of last resort, when the system gives none.
func lexical(path string) string { return filepath.ToSlash(filepath.Clean(path)) }

// Names are the names by which path leads where it does now: path itself, for each link on the way the name of the link,
// followed by what is left of the way behind it, and the true name. A link that a ".." leaves again has none.
func Names(path string) []string {
	o := describe(path)
	names := []string{path}
	way := append(o.Hops, Hop{Name: o.True})
	for i, hop := range o.Hops {
		to := Canonical(hop.Name)
		for _, next := range way[i+1:] {
			if rest, ok := strings.CutPrefix(next.Name, to); ok && !hop.Left && (rest == "" || rest[0] == '/') {
				names = append(names, hop.Name+rest)
				break
			}
		}
	}
	return append(names, o.True)
}

const maxComponent = 255 // bytes

// checkPath refuses a path that cannot be the name of anything, by its looks alone. p is a path with slashes.
func checkPath(p string) error {
	why := ""
	switch {
	case p == "":
		why = "empty"
	case p[0] != '/':
		why = "not absolute"
	case len(p) > MaxPath:
		why = "longer than 4095 bytes"
	case strings.IndexByte(p, 0) >= 0:
		why = "holds a NUL byte"
	case !utf8.ValidString(p):
		why = "not valid UTF-8"
	}
	if why == "" && len(p) > maxComponent {
		for rest := p; rest != ""; {
			var part string
			part, rest, _ = strings.Cut(rest, "/")
			if len(part) > maxComponent {
				why = "a component is longer than 255 bytes"
				break
			}
		}
	}
	if why != "" {
		return &BadPathError{Path: p, Why: why}
	}
	return nil
}

// splitEntry cuts a path that is to be changed into its directory and the one name below it.
func splitEntry(p string) (dir, base string, err error) {
	volume, p, err := splitVolume(p)
	if err != nil {
		return "", "", err
	}
	i := strings.LastIndexByte(p, '/')
	dir, base = p[:i], p[i+1:]
	if dir == "" {
		dir = "/"
	}
	dir = volume + dir
	switch base {
	case "":
		return "", "", &BadPathError{Path: p, Why: "ends in a slash"}
	case ".", "..":
		return "", "", &BadPathError{Path: p, Why: "ends in " + base}
	}
	return dir, base, nil
}

// climb goes on by name alone where nothing can be looked at any more: from the true name at along
// rest. Each directory that it goes up from is added to hops, but for at itself if up is set: that it is there is
// no news.
func climb(at string, up bool, rest []string, hops []Hop) (string, []Hop) {
	for _, c := range rest {
		switch c {
		case "", ".":
		case "..":
			if !up && at != "/" {
				hops = append(hops, Hop{Name: at, Left: true})
			}
			at, up = path.Dir(at), true
		default:
			at, up = join(at, c), false
		}
	}
	return at, hops
}

// upNext says whether the next step along rest goes up.
func upNext(rest []string) bool {
	for _, c := range rest {
		if c != "" && c != "." {
			return c == ".."
		}
	}
	return false
}

// checkName refuses a text that is not one component of a path. Names from a directory may hold any other bytes.
func checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..", strings.IndexByte(name, '/') >= 0, strings.IndexByte(name, 0) >= 0:
		return &BadPathError{Path: name, Why: "not the name of a directory entry"}
	case len(name) > maxComponent:
		return &BadPathError{Path: name, Why: "longer than 255 bytes"}
	}
	return nil
}

// join puts name below the true name dir.
func join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// foldBase maps all spellings that a case-folding or normalising file system takes for one name to one string, so
// that they share a lock. It may map different names to one string as well, which costs waiting and nothing
// else: beyond ASCII every letter is dropped, together with the letter that a combining mark sits on.
func foldBase(base string) string {
	out := make([]byte, 0, len(base))
	for _, r := range base {
		switch {
		case unicode.Is(unicode.Mn, r):
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		case r >= utf8.RuneSelf:
		case r >= 'A' && r <= 'Z':
			out = append(out, byte(r-'A'+'a'))
		default:
			out = append(out, byte(r))
		}
	}
	return strings.TrimRight(string(out), ". ")
}
