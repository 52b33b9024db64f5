package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"moltisfs/grep"
	"moltisfs/internal/guardfs"
)

// An Entry describes a path without reading it.
type Entry struct {
	Path string // canonical path
	guardfs.Info
	Target string // text of a symbolic link that was not followed

	Unsaved bool // Size is that of a text that a client holds
}

// Stat looks at a path: at where it leads with follow, else at a link there itself.
func (e *Engine) Stat(
	ctx context.Context, c *Call, path string, follow bool,
) (out Entry, err error) {
	if e, err = e.begun(c); err != nil {
		return Entry{}, err
	}
	c.Trace.Paths = []string{path}
	var o guardfs.Object
	if follow {
		var h *guardfs.Handle
		if h, err = e.fs.Resolve(path, guardfs.Look); err == nil {
			o = h.Object()
			h.Close() //nolint:errcheck // nothing was written through it
		}
	} else {
		o, out.Target, err = e.fs.Lstat(path)
	}
	if o.Info.Kind != guardfs.KindSymlink {
		is, _, held, oerr := e.overlaid(ctx, c, path)
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
func (e *Engine) List(ctx context.Context, c *Call, path string) (*Listing, error) {
	e, err := e.begun(c)
	if err != nil {
		return nil, err
	}
	out := &Listing{}
	look := func(ctx context.Context, h *guardfs.Handle) (*Sight, error) {
		d, err := e.openDir(ctx, h)
		if err != nil {
			return nil, err
		}
		defer d.Close() //nolint:errcheck // nothing was written through it
		out.Path = d.True()
		entries, denied, err := list(ctx, d)
		out.Denied = denied
		for i := range entries {
			if !entries[i].unnamed {
				out.Entries = append(out.Entries, entries[i].Entry)
			}
		}
		return nil, err
	}
	if err := e.View(ctx, c, View{Path: path, Access: guardfs.Walk, Look: look}); err != nil {
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

// list looks at the entries of d, by name. It leaves out what has gone meanwhile. What can't be
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

// joined is name below the directory dir.
func joined(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}

// openDir opens a directory to list or to search it. Of one that only may lead to something allowed
// it is told that it is there if it does.
func (e *Engine) openDir(ctx context.Context, h *guardfs.Handle) (*guardfs.Dir, error) {
	d, err := h.Dir()
	if err != nil {
		return nil, err
	}
	denied := e.judge.Judge(h.Object(), guardfs.Look)
	if denied != nil && !grep.Any(ctx, grep.Walk{Dir: grep.Guarded(d)}) {
		d.Close() //nolint:errcheck // nothing was written through it
		return nil, denied
	}
	return d, nil
}
