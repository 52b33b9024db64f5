package guardfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var errDenied = errors.New("denied")

// fence is a Judge that allows one tree less some others; deny also counts on the spelled name and on every link.
type fence struct {
	root string
	deny []string
	ids  []Identity
}

func below(p, tree string) bool {
	return p == tree || strings.HasPrefix(p, strings.TrimSuffix(tree, "/")+"/")
}

func (f *fence) denies(p string) bool {
	return slices.ContainsFunc(f.deny, func(tree string) bool { return below(p, tree) })
}

func (f *fence) Judge(o Object, _ Access) error {
	for _, id := range f.ids {
		if id.Dev == o.Info.ID.Dev && id.Ino == o.Info.ID.Ino {
			return errDenied
		}
	}
	if !below(o.True, f.root) || f.denies(o.True) || f.denies(path.Clean(o.Spelled)) || slices.ContainsFunc(o.Also, f.denies) {
		return errDenied
	}
	if slices.ContainsFunc(o.Hops, func(h Hop) bool {
		return f.denies(h.Name) || slices.ContainsFunc(h.Also, f.denies) || h.Left && !below(h.Name, f.root)
	}) {
		return errDenied
	}
	return nil
}

func (f *fence) Dir(canonical string, also ...string) DirVerdict {
	if f.Judge(Object{Spelled: canonical, True: canonical, Also: also}, Look) != nil {
		return DirVerdict{}
	}
	names := append(also, canonical)
	for _, d := range f.deny {
		if slices.ContainsFunc(names, func(n string) bool { return below(d, n) }) {
			return DirVerdict{Entry: func(name string, _ Kind) bool {
				return !slices.ContainsFunc(names, func(n string) bool { return f.denies(join(n, name)) })
			}}
		}
	}
	return DirVerdict{All: true}
}

// everything is a Judge without a rule.
type everything struct{}

func (everything) Judge(Object, Access) error       { return nil }
func (everything) Dir(string, ...string) DirVerdict { return DirVerdict{All: true} }

// lay builds a tree below base. "d/" is a directory, "f" an empty file, "f = text" a file, "l => target" a link,
// "h <= f" a second name, "p |" a fifo. $B stands for base.
func lay(t testing.TB, base string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		line = strings.ReplaceAll(line, "$B", base)
		name, arg, op := line, "", ""
		for _, o := range []string{" => ", " <= ", " = ", " |"} {
			if before, after, ok := strings.Cut(line, o); ok {
				name, arg, op = before, after, o
				break
			}
		}
		full := name
		if !strings.HasPrefix(name, base) {
			full = filepath.Join(base, name)
		}
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		switch {
		case op == " => ":
			must(t, os.Symlink(arg, full))
		case op == " <= ":
			must(t, os.Link(filepath.Join(base, arg), full))
		case op == " |":
			must(t, mkfifo(full))
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(full, 0o755))
		default:
			must(t, os.WriteFile(full, []byte(arg), 0o644))
		}
	}
}

func content(p string) string {
	b, err := os.ReadFile(p)
	if err != nil {
		return "-"
	}
	return string(b)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// base is a fresh directory, by its true name.
func base(t testing.TB) string {
	t.Helper()
	return Canonical(filepath.ToSlash(t.TempDir()))
}

// ramdisk is like base but in memory where there is such a place, for tests that write much.
func ramdisk(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "guardfs")
	if err != nil {
		return base(t)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return Canonical(dir)
}

// roads opens an FS for every way of resolving that there is here.
func roads(t *testing.T, j Judge, f func(t *testing.T, f *FS)) {
	t.Helper()
	for _, walk := range []bool{false, true} {
		fsys, err := New(Options{Judge: j, walk: walk})
		must(t, err)
		t.Run(fsys.Containment(), func(t *testing.T) { f(t, fsys) })
		fsys.Close()
		if fsys.Containment() == "best_effort" {
			return
		}
	}
}

func open(t testing.TB, j Judge) *FS {
	t.Helper()
	f, err := New(Options{Judge: j})
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// read is the whole way from a path to its content.
func read(f *FS, p string) (string, error) {
	h, err := f.Resolve(p, Read)
	if err != nil {
		return "", err
	}
	defer h.Close()
	file, err := h.Open()
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	return string(b), err
}

// write is the whole way from a path to its replacement.
func write(f *FS, p, content string, o options) (*Published, error) {
	place, err := f.Entry(p)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	before, err := place.Load(-1)
	if err != nil {
		return nil, err
	}
	return publish(place, before, content, o)
}

// options is how a test publishes.
type options struct {
	Like *Before
	Meta *Metadata
	Sync bool
	way  string // one of the ways
}

// Ways of publishing: with a hold that is nameless and open, or named and closed.
const (
	opened = ""
	held   = "held"
)

var ways = []string{opened, held}

// everyWay is roads for each way of publishing.
func everyWay(t *testing.T, j Judge, f func(t *testing.T, f *FS, way string)) {
	t.Helper()
	roads(t, j, func(t *testing.T, fsys *FS) {
		for _, way := range ways {
			t.Run("way "+way, func(t *testing.T) { f(t, fsys, way) })
		}
	})
}

const someTag = "0123456789abcdef"

// outcome is an error in one word, for tables.
func outcome(err error) string {
	var bad *BadPathError
	var odd *NotRegularError
	var link *SymlinkError
	var missing *MissingParentError
	var conflict *ConflictError
	var large *TooLargeError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errDenied):
		return "denied"
	case errors.As(err, &bad):
		return "bad"
	case errors.As(err, &odd):
		return odd.Kind
	case errors.As(err, &link):
		return "symlink"
	case errors.As(err, &missing):
		return "no parent"
	case errors.As(err, &conflict):
		return "conflict"
	case errors.As(err, &large):
		return "large"
	case errors.Is(err, ErrPseudo):
		return "pseudo"
	case errors.Is(err, ErrMount):
		return "mount"
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, fs.ErrExist):
		return "exists"
	case errors.Is(err, syscall.ELOOP):
		return "loop"
	case errors.Is(err, syscall.ENOTDIR):
		return "notdir"
	}
	return err.Error()
}

// snapshot is everything below dir in one comparable string.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s %v", rel, fi.Mode())
		switch {
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(p)
			fmt.Fprintf(&out, " %q %v", b, err)
		case fi.Mode()&fs.ModeSymlink != 0:
			l, err := os.Readlink(p)
			fmt.Fprintf(&out, " -> %s %v", l, err)
		}
		out.WriteByte('\n')
		return nil
	}))
	return out.String()
}

// litter is every name of ours that is left below dir.
func litter(t testing.TB, dir string) (names []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), tempPrefix) {
			names = append(names, p)
		}
		return err
	}))
	return names
}

// makeParents makes what is missing above path, as a change does: listed first, then made one after the other.
func makeParents(f *FS, path string) (made []string, err error) {
	dirs, _, err := f.Missing(path)
	for _, d := range dirs {
		var p *Entry
		if p, err = f.EntryLink(d); err != nil {
			return made, err
		}
		if err = p.Mkdir(0o777); err == nil {
			made = append(made, d)
			err = p.SyncNames()
		}
		p.Close()
		if err != nil {
			return made, err
		}
	}
	return made, err
}

// publish puts content there, if what is there is before.
func publish(place *Entry, before *Before, content string, o options) (*Published, error) {
	if o.Like == nil {
		o.Like = before
	}
	ctx := context.Background()
	h, made, err := place.Stage(ctx, TempName(someTag, 3), NewObject{Kind: KindFile, Content: []byte(content), Like: o.Like, Meta: o.Meta,
		Sync: o.Sync, Open: o.way == opened})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if o.Sync {
		err = h.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, h.Drop(made.Precondition()))
	}
	pub, err := place.Publish(ctx, h, Found(before), made.Precondition())
	if err != nil {
		return nil, errors.Join(err, undo(place, h, made.Info.ID, content))
	}
	pub.Dropped = made.Dropped
	h.Drop(pub.Displaced) //nolint:errcheck // it is on record
	if o.Sync {
		place.SyncNames() //nolint:errcheck // it is published
	}
	return pub, nil
}

// remove takes away what is there, if it is before.
func remove(place *Entry, before *Before) error {
	ctx := context.Background()
	h, _, err := place.Stage(ctx, TempName(someTag, 4), NewObject{})
	if err != nil {
		return err
	}
	defer h.Close()
	pub, err := place.Publish(ctx, h, Found(before), Precondition{})
	if err != nil {
		return errors.Join(err, undo(place, h, Identity{}, ""))
	}
	if err := h.Drop(pub.Displaced); err != nil {
		_, berr := place.Publish(ctx, h, Precondition{}, pub.Displaced)
		return errors.Join(err, berr)
	}
	return nil
}

// undo takes a failed Publish back, by the objects that stand at both names, as an engine does with its record of them.
// own and content are those of the new file.
func undo(place, h *Entry, own Identity, content string) error {
	for range 16 {
		out, err := place.Temp(h.Base())
		if err != nil {
			return err
		}
		defer out.Close()
		there := out.Object().Info
		at, err := place.fs.EntryLink(place.Object().Spelled)
		if err != nil {
			return errors.Join(err, out.Drop(Precondition{ID: own}))
		}
		defer at.Close()
		now, err := at.Load(-1)
		if err != nil {
			now = &Before{Exists: true, Info: at.Object().Info}
		}
		held, err := out.Load(-1)
		ours := func(b *Before) bool { return b.Info.ID == own && b.Hash == hashOf([]byte(content)) }
		switch {
		case err == nil && ours(held):
			return out.Drop(Precondition{ID: own})
		case there.Kind == KindAbsent:
			return nil
		case there.ID != own && (!now.Exists || ours(now)):
			if _, err = at.Publish(context.Background(), out, Found(now), Precondition{ID: there.ID}); outcome(err) != "ok" && outcome(err) != "conflict" {
				return err
			}
		default:
			left, err := out.Preserve()
			return errors.Join(err, errors.New("kept as "+left))
		}
	}
	return errors.New("changed again and again")
}
