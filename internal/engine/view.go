package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/ignore"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/session"
	encodings "moltisfs/internal/text"
	"moltisfs/readers"
)

// A View is a look of a reading tool at one path.
type View struct {
	Path   string
	Access guardfs.Access // Read for a file's content, Walk for a search
	// Look reads or walks the handle, which is closed when it returns. It says what the session has
	// now seen of it. nil: nothing that counts as having read the file.
	Look func(context.Context, *guardfs.Handle) (*ReadRecord, error)
}

// View is the reading chain. Nothing is changed by it but our own ledger.
func (c *Call) View(ctx context.Context, v View) error {
	c.Trace.Paths = []string{v.Path}
	// Policy judges the canonical path. Its answer is the same whether or not the file exists.
	h, err := c.fs.Resolve(v.Path, v.Access)
	if err != nil {
		return err
	}
	defer h.Close()
	c.Trace.Paths = []string{h.Object().True}
	sight, err := v.Look(ctx, h)
	if err != nil || sight == nil {
		return err
	}
	// A read that can't be remembered is refused: it would count as unread.
	if err := c.rememberEncoding(h.Object(), sight.Hash, sight.Encoding); err != nil {
		return err
	}
	return c.remember(h.Object(), sight)
}

// Tracks says whether reads are remembered, and so whether a Look should hash what it reads.
func (e *Engine) Tracks() bool { return e.ledger != nil }

// A Source is a content that is being read.
type Source struct {
	io.ReaderAt
	Path string // canonical path
	Info guardfs.Info

	Unsaved bool // a client holds it; Info is of the file on the disk, but for the size
	// Beside tells how the text of the call's editor differs from the disk's.
	Beside session.BufferState
	// Given counts the bytes that the answer has of it, for the record. Bytes and Lines count theirs.
	Given int64

	c    *Call
	file *guardfs.File // nil where the content is in memory,
	held []byte        // which is this one
	hash string        // where it is known
	slow bool          // to make it takes more than a second
}

// InMemory is the size up to which a file is taken in one read: cheaper than windows, and what was
// hashed holds the shown bytes.
const InMemory = 1 << 20

// A Look takes what it wants of a content, and says what of it a session has now seen; nil: nothing
// that counts as having read it.
type Look func(context.Context, *Source) (*ReadRecord, error)

// Read opens the content of a file for look.
func (c *Call) Read(ctx context.Context, path string, look Look) error {
	if o, text, held, err := c.overlaid(ctx, path); held || err != nil {
		if c.Trace.Paths = []string{o.True}; err != nil {
			return err
		}
		return c.readHeld(ctx, o, text, look)
	}
	open := func(ctx context.Context, h *guardfs.Handle) (*ReadRecord, error) {
		f, err := h.Open()
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // nothing was written through it
		s := &Source{ReaderAt: f, Path: h.Object().True, Info: f.Info(), c: c, file: f}
		if beside := c.editor().state(s.Path); beside == session.Stale {
			s.Beside = beside
		}
		if s.Info.Size <= InMemory {
			var content bytes.Buffer
			content.Grow(int(s.Info.Size) + bytes.MinRead) // else it is copied as it grows
			if _, err := content.ReadFrom(io.NewSectionReader(f, 0, InMemory+1)); err != nil {
				return nil, err
			}
			s.hold(content.Bytes())
		}
		sight, err := look(ctx, s)
		if err != nil {
			return nil, err
		}
		c.Trace.Bytes = s.Given
		return sight, nil
	}
	return c.View(ctx, View{Path: path, Access: guardfs.Read, Look: open})
}

// readHeld lets look read a text that the client holds. The disk has nothing of it to be kept.
func (c *Call) readHeld(
	ctx context.Context, o guardfs.Object, text []byte, look Look,
) error {
	s := &Source{Path: o.True, Info: o.Info, Unsaved: true, Beside: c.editor().state(o.True), c: c}
	s.hold(text)
	sight, err := look(ctx, s)
	if err != nil {
		return err
	}
	if by := c.editor(); by != nil {
		by.seen.Told(o.True)
	}
	if c.Trace.Bytes = s.Given; sight == nil {
		return nil
	}
	sight.Hash = s.hash
	return c.remember(o, sight)
}

// hold makes content what is read.
func (s *Source) hold(content []byte) {
	s.ReaderAt, s.file, s.Info.Size = bytes.NewReader(content), nil, int64(len(content))
	s.held = content
	if s.hash = ""; s.c.Tracks() {
		s.hash = HashOf(content)
		s.c.Keep(s.Path, s.hash, content)
	}
}

// Hash gives the hash of the whole content, as long as it was when it was opened. Of a file that others
// write into meanwhile it may be that of a mixture.
func (s *Source) Hash(ctx context.Context) (_ string, err error) {
	if s.hash == "" && s.file == nil {
		s.hash = HashOf(s.held)
	} else if s.hash == "" {
		s.hash, err = s.c.sums.of(ctx, s.file, s.c.now)
	}
	return s.hash, err
}

// QuickHash is Hash where that takes less than a second; else "".
func (s *Source) QuickHash(ctx context.Context) (string, error) {
	const second, most = time.Second, 1 << 30 // more can't be read in it
	if s.slow {
		return "", nil
	}
	wait := second
	if s.Info.Size > most {
		wait = 0 // unless it is known
	}
	quick, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	hash, err := s.Hash(quick)
	if err != nil && quick.Err() != nil && ctx.Err() == nil {
		s.slow = true
		return "", nil
	}
	return hash, err
}

// Bytes are n bytes from off on, or with n below zero all of them, and what a session has seen by
// that. Past the end there are none. More than most is a *guardfs.TooLargeError. They are not to be
// changed: others may have them too.
func (s *Source) Bytes(ctx context.Context, off, n, most int64) ([]byte, *ReadRecord, error) {
	if off < 0 {
		return nil, nil, Refuse(BadWindow, s.Path, off)
	}
	if left := max(s.Info.Size-off, 0); n < 0 || n > left {
		n = left
	}
	if n > most {
		return nil, nil, &guardfs.TooLargeError{Path: s.Path, Size: n, Max: most}
	}
	var part []byte
	if s.file == nil {
		part = s.held[min(off, s.Info.Size):][:n:n]
	} else {
		part = make([]byte, n)
		got, err := s.ReadAt(part, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, err
		}
		part = part[:got]
	}
	s.Given += int64(len(part))
	sight := &ReadRecord{Unit: "byte", Lines: -1, Whole: int64(len(part)) == s.Info.Size}
	if sight.Whole { // what was shown is what counts
		s.held, s.file = part, nil
	}
	if s.c.Tracks() {
		var err error
		if sight.Hash, err = s.QuickHash(ctx); err != nil { // without one the file is known by size and times
			return nil, nil, err
		}
	}
	return part, sight, nil
}

// Lines are n lines from first on, counted from 1, or with n below zero all of them, each with its
// end, and what a session has seen by that. A line ends with "\n"; a final one makes no extra line.
// Past the end there are none. More than most bytes are a *guardfs.TooLargeError.
func (s *Source) Lines(ctx context.Context, first, n int, most int64) ([]byte, *ReadRecord, error) {
	if first < 1 {
		return nil, nil, Refuse(BadWindow, s.Path, int64(first))
	}
	sum, size := sha256.New(), s.Info.Size
	lines := bufio.NewReaderSize(io.TeeReader(io.NewSectionReader(s, 0, size), sum), 64<<10)
	part, line, shown, begun := []byte{}, 1, 0, false
	defer func() { s.Given += int64(len(part)) }()
	for {
		piece, err := lines.ReadSlice('\n')
		switch wanted := line >= first && (n < 0 || line-first < n); {
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
			return nil, nil, err
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case wanted && len(piece) > 0:
			part, shown = append(part, piece...), line
		case line >= first && !wanted && !s.c.Tracks(): // nobody asks for the rest
			return part, nil, nil
		}
		if int64(len(part)) > most {
			return nil, nil, &guardfs.TooLargeError{Path: s.Path, Size: int64(len(part)), Max: most}
		}
		if begun = begun || len(piece) > 0; err == nil {
			line, begun = line+1, false
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if !begun {
		line--
	}
	s.hash = hex.EncodeToString(sum.Sum(nil))
	sight := &ReadRecord{Unit: "line", Lines: line, Whole: int64(len(part)) == size, Hash: s.hash}
	if shown > 0 {
		sight.Ranges = []session.Range{{First: first, Last: shown}}
	}
	return part, sight, nil
}

// An Entry describes a path without reading it.
type Entry struct {
	Path string // canonical path
	guardfs.Info
	Target string // text of a symbolic link that was not followed

	Unsaved bool // Size is that of a text that a client holds
}

// Stat looks at a path: at where it leads with follow, else at a link there itself.
func (c *Call) Stat(
	ctx context.Context, path string, follow bool,
) (out Entry, err error) {
	c.Trace.Paths = []string{path}
	var o guardfs.Object
	if follow {
		var h *guardfs.Handle
		if h, err = c.fs.Resolve(path, guardfs.Look); err == nil {
			o = h.Object()
			h.Close() //nolint:errcheck // nothing was written through it
		}
	} else {
		o, out.Target, err = c.fs.Lstat(path)
	}
	if o.Info.Kind != guardfs.KindSymlink {
		is, _, held, oerr := c.overlaid(ctx, path)
		if out.Unsaved = held; held || oerr != nil {
			o, err = is, oerr
		}
	}
	if c.Trace.Missing = err != nil; err != nil {
		return Entry{}, err
	}
	c.Trace.Paths[0], out.Path, out.Info = o.True, o.True, o.Info
	return out, nil
}

// Listing holds the entries of a directory.
type Listing struct {
	Path    string  // canonical path
	Entries []Entry // by name
	Denied  int     // entries that policy keeps from being named
}

// maxList bounds the entries of one listing.
const maxList = 200_000

// List looks at the entries of a directory. Links among them are not followed.
func (c *Call) List(ctx context.Context, path string) (*Listing, error) {
	out := &Listing{}
	look := func(ctx context.Context, h *guardfs.Handle) (*ReadRecord, error) {
		d, err := c.openDir(ctx, h)
		if err != nil {
			return nil, err
		}
		defer d.Close() //nolint:errcheck // nothing was written through it
		out.Path = d.True()
		entries, denied, err := list(ctx, d)
		out.Denied, out.Entries = denied, make([]Entry, 0, len(entries))
		for i := range entries {
			if !entries[i].unnamed {
				out.Entries = append(out.Entries, entries[i].Entry)
			}
		}
		return nil, err
	}
	if err := c.View(ctx, View{Path: path, Access: guardfs.Walk, Look: look}); err != nil {
		return nil, err
	}
	return out, nil
}

// listed is one entry of a directory. way: policy hides it but not everything below it, so it may
// be entered. unnamed: it must not be told either.
type listed struct {
	Entry
	way, unnamed bool
}

// list looks at the entries of d, by name. It leaves out names that have gone meanwhile. An entry that can't be
// looked at has only its kind.
func list(ctx context.Context, d *guardfs.Dir) (out []listed, denied int, err error) {
	names, denied, err := d.ListWays(nil)
	if err != nil {
		return nil, 0, err
	}
	if len(names) > maxList {
		return nil, 0, Refuse(TooManyEntries, d.True(), maxList)
	}
	out = make([]listed, 0, len(names))
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		full := joined(d.True(), n.Name)
		info, err := d.Stat(n.Name)
		r := Reason(err)
		switch {
		case err == nil && n.Way: // it may be named, because a rule has its name
			denied--
			fallthrough
		case err == nil:
			out = append(out, listed{Entry{Path: full, Info: info}, n.Way, false})
		case n.Way:
			out = append(out, listed{Entry{Path: full, Info: guardfs.Info{Kind: n.Kind}}, true, true})
		case r != nil && r.Code == CodeNotFound:
		case r != nil && r.Code == CodePathDenied:
			denied++
		case errors.Is(err, fs.ErrPermission): // of the directory only the names may be read
			out = append(out, listed{Entry: Entry{Path: full, Info: guardfs.Info{Kind: n.Kind}}})
		default:
			return nil, 0, err
		}
	}
	slices.SortFunc(out, func(a, b listed) int { return cmp.Compare(a.Path, b.Path) })
	return out, denied, nil
}

// openDir opens a directory to list or to search it. Of one that only may lead to something allowed
// it is told that it is there if it does.
func (c *Call) openDir(ctx context.Context, h *guardfs.Handle) (*guardfs.Dir, error) {
	d, err := h.Dir()
	if err != nil {
		return nil, err
	}
	denied := c.judge.Judge(h.Object(), guardfs.Look)
	if denied != nil && !grep.Any(ctx, grep.Walk{Dir: grep.Guarded(d)}) {
		d.Close() //nolint:errcheck // nothing was written through it
		return nil, denied
	}
	return d, nil
}

// TreeArgs say which entries below a directory are listed.
type TreeArgs struct {
	Path   string
	Depth  int  // how far below Path an entry may lie; 1 is in it, 0 as deep as can be
	Hidden bool // also names that begin with a dot
	// All lists also what ignore rules hide, and the directories of version control systems. Else
	// the rules hold as for a search: if the configuration respects them.
	All bool
}

// maxTreeDepth is the most: so many directories are open at once.
const maxTreeDepth = 200

// ListTree hands over what is below a directory: each directory before what is in it, and the
// entries of one by name. Links are entries, and never followed; other mounts are not entered. Entries
// that are not shown are counted, but for hidden names. An error of use ends it, and is the answer;
// fs.SkipAll is none.
func (c *Call) ListTree(
	ctx context.Context, a TreeArgs, use func(Entry) error,
) (skipped grep.Skipped, err error) {
	w := &treeWalk{TreeArgs: a, use: use, rules: !a.All && c.cfg.RespectGitignore}
	if w.Depth <= 0 || w.Depth > maxTreeDepth {
		w.Depth = maxTreeDepth
	}
	look := func(ctx context.Context, h *guardfs.Handle) (*ReadRecord, error) {
		d, err := c.openDir(ctx, h)
		if err != nil {
			return nil, err
		}
		defer d.Close() //nolint:errcheck // nothing was written through it
		set, base := new(ignore.Set), ""
		if w.rules {
			how := ignore.Options{Excludes: c.gitExcludes(), Home: c.search.home}
			set, base, w.skipped.Rules = ignore.Load(grep.Guarded(d), how)
		}
		entries, denied, err := list(ctx, d)
		if err != nil {
			return nil, err
		}
		w.skipped.Denied = denied
		return nil, w.dir(ctx, d, entries, base, set, w.Depth)
	}
	err = c.View(ctx, View{Path: a.Path, Access: guardfs.Walk, Look: look})
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return w.skipped, err
}

// treeWalk is one listing of a tree on its way.
type treeWalk struct {
	TreeArgs
	use     func(Entry) error
	rules   bool
	scratch ignore.Scratch
	skipped grep.Skipped
}

// dir hands over the entries of d and what is below. at is its path from the base of the ignore
// rules, "" or with a trailing slash; deep is how far below d an entry may lie.
func (w *treeWalk) dir(
	ctx context.Context, d *guardfs.Dir, in []listed, at string, set *ignore.Set, deep int,
) error {
	if f := ruleFiles(in); w.rules && f.Any() {
		var unread int
		set, unread = set.Enter(grep.Guarded(d), at, f)
		w.skipped.Rules += unread
	}
	for i := range in {
		l := &in[i]
		name, isDir := path.Base(l.Path), l.Kind == guardfs.KindDir
		switch {
		case !w.Hidden && strings.HasPrefix(name, "."):
			continue
		case w.rules && isDir && ignore.IsVCS(name):
			w.skipped.VCS++
			continue
		case !set.Idle() && set.Ignored(at, name, isDir, &w.scratch):
			if !l.unnamed {
				w.skipped.Ignored++
			}
			continue
		}
		if !l.unnamed {
			if err := w.use(l.Entry); err != nil {
				return err
			}
		}
		if !isDir {
			continue
		}
		if err := w.enter(ctx, d, l, at+name+"/", set, deep); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ruleFiles looks for the entries that carry ignore rules.
func ruleFiles(in []listed) (f ignore.Found) {
	kinds := map[guardfs.Kind]grep.Kind{
		guardfs.KindFile: grep.KindFile, guardfs.KindDir: grep.KindDir,
		guardfs.KindSymlink: grep.KindLink,
	}
	for i := range in {
		if !in[i].unnamed {
			f.Add(path.Base(in[i].Path), kinds[in[i].Kind])
		}
	}
	return f
}

// enter goes down into one directory. Of one that policy hides nothing is counted: it was itself.
func (w *treeWalk) enter(
	ctx context.Context, d *guardfs.Dir, l *listed, at string, set *ignore.Set, deep int,
) error {
	if deep <= 1 {
		if !l.unnamed {
			w.skipped.Deep++
		}
		return nil
	}
	sub, err := d.OpenDir(path.Base(l.Path), false)
	var in []listed
	denied := 0
	if err == nil {
		defer sub.Close() //nolint:errcheck // nothing was written through it
		in, denied, err = list(ctx, sub)
	}
	r := Reason(err)
	switch {
	case err == nil:
		if !l.way {
			w.skipped.Denied += denied
		}
		return w.dir(ctx, sub, in, at, set, deep-1)
	case ctx.Err() != nil, TooManyEntries.In(err):
		return err
	case l.unnamed, r != nil && (r.Code == CodeNotFound):
	case errors.Is(err, guardfs.ErrMount):
		w.skipped.Mounts++
	case r != nil && r.Code == CodePathDenied:
		w.skipped.Denied++
	default:
		w.skipped.Unreadable++
	}
	return nil
}

// searching holds the parts that all searches share.
type searching struct {
	excludes string   // path of the user's core.excludesFile
	code     []string // where the user's git configuration may find code
	home     string   // where "~/" leads in a repository's configuration
}

// of takes what there is of the user's.
func (s *searching) of(user ignore.User) {
	s.excludes, s.home, s.code = user.ExcludesPath(), user.Home, user.CodePlaces()
}

// gitExcludes reads the user's own ignore rules. They lie outside the tree, and the user chose
// them, not the model. So no policy is asked, and nothing of them is told.
func (e *Engine) gitExcludes() []byte {
	if e.search.excludes == "" {
		return nil
	}
	free, err := e.free, error(nil)
	if e.place.Calls != nil { // they are the user's of this machine
		if free, err = guardfs.New(guardfs.Options{Judge: policy.AllowAll{}}); err != nil {
			return nil
		}
		defer free.Close() //nolint:errcheck // nothing was written through it
	}
	b, err := readWhole(free, e.search.excludes, ignore.MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.logger.Warn("the user's git excludes do not hold", "err", err)
	}
	return b
}

// Walk opens the root of a search, a directory or a single file, under the
// search deadline. The deadline is not an error: the search ends with what it
// has and says so.
func (c *Call) Walk(ctx context.Context, root string,
	use func(context.Context, grep.Walk) error) error {
	if o, text, held, err := c.overlaid(ctx, root); held || err != nil {
		if c.Trace.Paths = []string{o.True}; err != nil {
			return err
		}
		return use(ctx, grep.Walk{File: heldFile{bytes.NewReader(text), o.Info}, Name: o.True})
	}
	return c.View(ctx, View{
		Path: root, Access: guardfs.Walk,
		Look: func(ctx context.Context, h *guardfs.Handle) (*ReadRecord, error) {
			if wait := time.Duration(c.cfg.SearchDeadline); wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
			}
			w := grep.Walk{NoIgnore: !c.cfg.RespectGitignore}
			if c.cfg.SearchDocuments && c.readers != nil {
				w.Documents = searched{c}
			}
			if c.Progress != nil {
				w.Come = &c.Progress.Files
			}
			if in, ok := c.place.Calls.(searcher); ok && c.fs == c.tree { // which knows no scope and no chain
				w.Elsewhere = in.Elsewhere(c.rulesTold(), c.judge)
			}
			if !w.NoIgnore {
				w.Excludes, w.Home = c.gitExcludes(), c.search.home
			}
			if h.Object().Info.Kind == guardfs.KindDir {
				d, err := c.openDir(ctx, h)
				if err != nil {
					return nil, err
				}
				defer d.Close()
				w.Dir, w.Spelled = grep.Guarded(d), path.Clean(root)
				if w.Encodings, err = c.encodings(w.Dir.True()); err != nil {
					return nil, err
				}
			} else {
				f, err := h.Open()
				if err != nil {
					return nil, err
				}
				defer f.Close()
				w.File, w.Name = grep.GuardedFile(f), h.Object().True
				if w.Elsewhere != nil && w.Documents != nil && isDocument(f) {
					w.Elsewhere = nil // its text is made here, as for Read
				}
				if w.Encodings, err = c.encodings(w.Name); err != nil {
					return nil, err
				}
			}
			return nil, use(ctx, w)
		},
	})
}

func isDocument(f *guardfs.File) bool {
	head := make([]byte, 16<<10)
	n, _ := f.ReadAt(head, 0) // an error comes again
	return readers.IsDocument(head[:n], f, f.Info().Size, encodings.Sniff(head[:n]) == encodings.Binary)
}

// encodings maps the files at and below root that the session has read by a named encoding to that encoding. The key is the path from root, "" for
// root itself: given /w as root, /w/a.txt is "a.txt".
func (c *Call) encodings(root string) (map[string]string, error) {
	log, err := c.encodingsOf(false)
	if log == nil || err != nil {
		return nil, err
	}
	named, err := log.Encodings(c.key())
	if len(named) == 0 || err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, encoding := range named {
		if name == root {
			out[""] = encoding
		} else if root == "/" || below(name, root) {
			out[strings.TrimPrefix(name[len(root):], "/")] = encoding
		}
	}
	return out, nil
}

// rulesTold are the operator's rules for another process.
func (e *Engine) rulesTold() policy.Rules {
	return policy.Rules{Allow: e.cfg.AllowPaths, Deny: e.cfg.DenyPaths, Only: e.root, Work: e.cfg.WorkspaceRoot,
		Holds: holds(e.cfg), Lifted: e.cfg.Unprotected}
}

// A searcher has searches run where the files are, under rules that judge asks once more of what they find.
type searcher interface {
	Elsewhere(rules policy.Rules, judge guardfs.Judge) grep.Elsewhere
}

// Search looks for q in the content of a file, or of what lies below a directory; with all also in what ignore rules hide.
func (c *Call) Search(ctx context.Context, root string, q grep.Query, all bool) (r *grep.Result, err error) {
	err = c.Walk(ctx, root, func(ctx context.Context, w grep.Walk) (err error) {
		w.NoIgnore = w.NoIgnore || all
		r, err = grep.Search(ctx, w, q)
		return err
	})
	return r, err
}

// Files finds files below a directory by name, the newest first.
func (c *Call) Files(
	ctx context.Context, root string, q grep.GlobQuery,
) (r *grep.FilesResult, err error) {
	err = c.Walk(ctx, root, func(ctx context.Context, w grep.Walk) (err error) {
		if w.Dir == nil {
			return &guardfs.PathError{Op: "search", Path: w.Name, Err: syscall.ENOTDIR}
		}
		r, err = grep.Files(ctx, w, q)
		return err
	})
	return r, err
}

// Nearby is the deepest directory on the way to a path that exists and that
// the session may list, and what it may see there.
type Nearby struct {
	Dir   string   // canonical; "" when the session may list none
	Depth int      // how many components of the path are missing above its last one
	Names []string // sorted
}

// maxNearby bounds how many names are looked at for a hint.
const maxNearby = 10_000

// Near finds the surroundings of a path that names nothing. It goes through
// the same doors as a listing, so that a hint tells nothing that Glob would
// not.
func (c *Call) Near(p string) Nearby {
	dir := path.Dir(path.Clean(p))
	for depth := 0; ; depth++ {
		if n, ok := c.list(dir); ok {
			n.Depth = depth
			return n
		}
		if dir == "/" || dir == "." {
			return Nearby{}
		}
		dir = path.Dir(dir)
	}
}

func (c *Call) list(dir string) (Nearby, bool) {
	h, err := c.fs.Resolve(dir, guardfs.Walk)
	if err != nil {
		return Nearby{}, false
	}
	defer h.Close()
	d, err := h.Dir()
	if err != nil {
		return Nearby{}, false
	}
	defer d.Close()
	entries, _, err := d.List(nil)
	if err != nil {
		return Nearby{}, false
	}
	if len(entries) == 0 && c.judge.Judge(h.Object(), guardfs.Look) != nil {
		// It may lead to something allowed, and shows nothing that is. So nobody is told that it exists.
		return Nearby{}, false
	}
	n := Nearby{Dir: d.True()}
	for _, entry := range entries[:min(len(entries), maxNearby)] {
		name := entry.Name
		if entry.Kind == guardfs.KindDir {
			name += "/"
		}
		n.Names = append(n.Names, name)
	}
	slices.Sort(n.Names)
	return n, true
}

// There looks at what p leads to, if that is a file that the session may read or a directory that it
// may list.
func (c *Call) There(p string) (o guardfs.Object, ok bool) {
	if n, ok := c.list(p); ok {
		return guardfs.Object{Spelled: p, True: n.Dir, Info: guardfs.Info{Kind: guardfs.KindDir}}, true
	}
	h, err := c.fs.Resolve(p, guardfs.Read)
	if err != nil {
		return o, false
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	return h.Object(), h.Object().Info.Kind == guardfs.KindFile
}

// Real is the canonical name of a regular file or directory that the session
// may read, or of one that it may make.
func (c *Call) Real(p string) (string, error) {
	h, err := c.fs.Resolve(p, guardfs.Read)
	if errors.Is(err, fs.ErrNotExist) {
		place, perr := c.fs.Entry(p)
		if perr != nil {
			return "", err
		}
		defer place.Close()
		return place.Object().True, nil
	}
	if err != nil {
		return "", err
	}
	defer h.Close()
	return h.Object().True, nil
}

// Bounds of Holding: a hint is not worth more.
const (
	maxHeld      = 64      // files, those that were read last
	maxHeldBytes = 1 << 20 // of one file
)

// Holding gives the files that the session has read, and that are as it read them, in which each of
// the texts stands exactly once. The file of the call is none of them. Until ctx ends.
func (c *Call) Holding(ctx context.Context, not string, texts []string) (out []string) {
	if c.ledger == nil {
		return nil
	}
	seen, err := c.ledger.Latest(c.key(), maxHeld)
	if err != nil {
		return nil
	}
	for _, s := range seen {
		if ctx.Err() != nil {
			return nil // there may be another
		}
		if s.Path == not || s.Hash == "" {
			continue
		}
		content := c.Content(s.Path)
		if sum := sha256.Sum256(content); content == nil || hex.EncodeToString(sum[:]) != s.Hash {
			continue
		}
		plain, _, err := edit.Decode(content, "")
		if err == nil && !slices.ContainsFunc(texts, func(t string) bool {
			return bytes.Count(plain, []byte(t)) != 1
		}) {
			out = append(out, s.Path)
		}
	}
	return out
}

// SawAll says that the session was shown all of a file when it last read it. An edit of a file that
// has changed since is refused before anybody asks this.
func (c *Call) SawAll(path string) bool {
	if c.ledger == nil {
		return false
	}
	seen, _ := c.ledger.Latest(c.key(), maxHeld)
	return slices.ContainsFunc(seen, func(s session.Seen) bool { return s.Path == path && s.Whole })
}

// Content is the content of a file that the session may read and that is not large; else nil.
func (c *Call) Content(path string) []byte {
	content, err := readWhole(c.fs, path, maxHeldBytes)
	if err != nil {
		return nil
	}
	return content
}
