//go:build !linux || rooted

package guardfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// Dir is a directory open for listing and walking. Everything below it is reached through it, one name at a time,
// and never through a link. It may be used from several goroutines at once.
type Dir struct {
	fs      *FS
	root    *os.Root
	name    string // true name
	fi      fs.FileInfo
	info    Info
	verdict DirVerdict
}

func newDir(f *FS, root *os.Root, name string, fi fs.FileInfo, v DirVerdict) *Dir {
	return &Dir{fs: f, root: root, name: name, fi: fi, info: infoOf(root, ".", fi), verdict: v}
}

// Info is the directory as it was when it was opened.
func (d *Dir) Info() Info { return d.info }

// Close gives the directory back.
func (d *Dir) Close() error { return d.root.Close() }

// allow asks the Judge about one named entry; see the Linux twin for the objects with several names.
func (d *Dir) allow(name string, info *Info, a Access) error {
	if d.verdict.All && (info.Kind != KindFile || info.Links <= 1) &&
		d.verdict.allows(name, info.Kind) {
		return nil
	}
	full := join(d.name, name)
	return d.fs.judge.Judge(Object{Spelled: full, True: full, Info: *info}, a)
}

func (d *Dir) look(name string, a Access) (fs.FileInfo, Info, error) {
	if err := checkName(name); err != nil {
		return nil, Info{}, err
	}
	var info Info
	fi, err := d.root.Lstat(name)
	if err == nil {
		info = infoOf(d.root, name, fi)
	}
	if err := d.allow(name, &info, a); err != nil {
		return nil, Info{}, err
	}
	if err != nil {
		return nil, Info{}, d.failed("stat", name, err)
	}
	return fi, info, nil
}

// Shut says that the call may see neither the entry name, of the kind k, nor what is below it. It may be asked after Close.
func (d *Dir) Shut(name string, k Kind) bool {
	return !d.verdict.allows(name, k) && !d.verdict.leads(name, k)
}

// Stat looks at one entry, not following a link.
func (d *Dir) Stat(name string) (Info, error) {
	_, info, err := d.look(name, Look)
	return info, err
}

// Readlink reads the text of the link name below d. Anything else is an error.
func (d *Dir) Readlink(name string) (string, error) {
	if _, _, err := d.look(name, Look); err != nil {
		return "", err
	}
	target, err := d.root.Readlink(name)
	if err != nil {
		return "", d.failed("read link", name, err)
	}
	return target, nil
}

// OpenDir opens the directory name below d. A link is ENOTDIR. A directory on another mount is ErrMount unless
// crossMounts is set, where the system tells devices apart.
func (d *Dir) OpenDir(name string, crossMounts bool) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if !d.verdict.allows(name, KindDir) && !d.verdict.leads(name, KindDir) {
		if err := d.allow(name, &Info{Kind: KindDir}, Look); err != nil {
			return nil, err
		}
		return nil, d.failed("open", name, syscall.EACCES)
	}
	fi, err := d.root.Lstat(name)
	if err == nil && !fi.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, d.failed("open", name, err)
	}
	root, now, err := openSame(d.root, name, fi)
	if err != nil {
		return nil, d.failed("open", name, err)
	}
	v := d.verdict
	if !v.all() {
		v = v.inside(d.fs.judge, name, join(d.name, name))
	}
	sub := newDir(d.fs, root, join(d.name, name), now, v)
	if !crossMounts && sub.info.ID.Dev != d.info.ID.Dev {
		sub.Close() //nolint:errcheck // nothing was written through it
		return nil, d.failed("open", name, ErrMount)
	}
	return sub, nil
}

// OpenFile opens the regular file name below d for reading. A link or any other thing is a *NotRegularError.
func (d *Dir) OpenFile(name string) (*File, error) {
	for try := 0; ; try++ {
		fi, info, err := d.look(name, Read)
		if err != nil {
			return nil, err
		}
		full := join(d.name, name)
		if info.Kind != KindFile {
			return nil, &NotRegularError{Path: full, Kind: info.word()}
		}
		f, err := openFile(d.root, name, full, fi)
		var odd *ConflictError
		if try >= retries || !errors.As(err, &odd) {
			return f, err
		}
	}
}

// Parent opens the directory above d, if the Judge lets it be looked at. At the root it answers io.EOF.
func (d *Dir) Parent() (*Dir, error) {
	up := path.Dir(d.name)
	if up == d.name || len(d.name) == len("C:/") && d.name[1] == ':' {
		return nil, io.EOF
	}
	if len(up) == 2 && up[1] == ':' {
		up += "/"
	}
	h, err := d.fs.Resolve(up, Look)
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	p, err := h.Dir()
	if err != nil {
		return nil, err
	}
	if fi, err := p.root.Lstat(path.Base(d.name)); err != nil || !os.SameFile(fi, d.fi) {
		p.Close() //nolint:errcheck // nothing was written through it
		return nil, &ConflictError{Path: d.name, Why: DirMoved}
	}
	return p, nil
}

func (d *Dir) list(buf []DirEntry, ways bool) (entries []DirEntry, denied int, err error) {
	entries = buf[:0]
	file, err := d.root.Open(".")
	if err != nil {
		return entries, 0, d.failed("list", ".", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written through it
	for {
		some, err := file.ReadDir(1000)
		for _, e := range some {
			entry := DirEntry{Name: e.Name(), Kind: kindOf(e.Type())}
			if !d.verdict.allows(entry.Name, entry.Kind) {
				if d.fs.ours(entry.Name) {
					continue // ours for a moment: no file of the tree
				}
				denied++
				if entry.Way = ways && d.verdict.leads(entry.Name, entry.Kind); !entry.Way {
					continue
				}
			}
			entries = append(entries, entry)
		}
		if err == io.EOF {
			return entries, denied, nil
		}
		if err != nil {
			return entries, denied, d.failed("list", ".", err)
		}
	}
}

// OpenListed is OpenFile for a name that List gave as KindFile.
func (d *Dir) OpenListed(name string) (*File, error) { return d.OpenFile(name) }
