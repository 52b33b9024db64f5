package checkpoint_test

import (
	"bytes"
	"math/rand"
	"os"
	"path/filepath"
	"testing"
)

// disk is a directory as it would be found after the power came back. Of a file, the writes that were synced are there and any of the
// others may be, whole or up to a sector; of a directory, the entries that were made or removed before it was synced, and any of the
// later ones. This is less than ext4, xfs and btrfs promise together.
type disk struct {
	files map[string]*inode // by name, as the living process sees it
	kept  map[string]*inode // as it is on the disk
	names []rename          // not yet on the disk
	all   []*inode
}

type rename struct {
	path string
	node *inode // nil: removed
	at   int
}

type inode struct {
	dir     bool
	size    int64 // as the living process sees it
	kept    []byte
	pending []event
}

func newDisk() *disk {
	return &disk{files: map[string]*inode{".": {dir: true}}, kept: map[string]*inode{".": {dir: true}}}
}

func (n *inode) apply(e event, torn int) {
	switch e.call {
	case "truncate":
		if int64(len(n.kept)) > e.off {
			n.kept = n.kept[:e.off]
		}
		n.kept = append(n.kept, make([]byte, e.off-int64(len(n.kept)))...)
	case "write":
		data := e.data
		if torn >= 0 {
			data = data[:min(torn, len(data))]
		}
		if end := e.off + int64(len(data)); end > int64(len(n.kept)) {
			n.kept = append(n.kept, make([]byte, end-int64(len(n.kept)))...)
		}
		copy(n.kept[e.off:], data)
	}
}

// step carries on. After a sync of a file that failed the system takes for written what may not be: a later sync does not write it. Names are
// metadata, which file systems with a journal write later or never write anything again.
func (d *disk) step(e event, rng *rand.Rand) {
	n := d.files[e.path]
	switch e.call {
	case "create", "mkdir":
		if n == nil {
			n = &inode{dir: e.call == "mkdir"}
			d.files[e.path] = n
			d.all = append(d.all, n)
			d.names = append(d.names, rename{e.path, n, e.ended})
		}
	case "remove":
		delete(d.files, e.path)
		d.names = append(d.names, rename{e.path, nil, e.ended})
	case "write", "truncate":
		if n == nil {
			return // removed, and written by somebody who has it open still
		}
		if e.off < 0 {
			e.off = n.size
		}
		n.size = max(n.size, e.off+int64(len(e.data)))
		if e.call == "truncate" {
			n.size = e.off
		}
		n.pending = append(n.pending, e)
	case "sync", "failed":
		if n == nil {
			return
		}
		arrives := func() bool { return e.call == "sync" || rng.Intn(2) == 0 }
		if n.dir {
			var later []rename
			for _, r := range d.names {
				if filepath.Dir(r.path) != e.path || r.at >= e.begun {
					later = append(later, r)
					continue
				}
				if arrives() {
					d.name(r)
				} else {
					later = append(later, r)
				}
			}
			d.names = later
			return
		}
		var later []event
		for _, w := range n.pending {
			if w.ended >= e.begun {
				later = append(later, w)
			} else if arrives() {
				n.apply(w, -1)
			}
		}
		n.pending = later
	}
}

func (d *disk) name(r rename) {
	if r.node == nil {
		delete(d.kept, r.path)
	} else {
		d.kept[r.path] = r.node
	}
}

// cut writes what is on the disk to dir, with some of what had not been synced.
func (d *disk) cut(t *testing.T, rng *rand.Rand, dir string) {
	t.Helper()
	c := &disk{kept: map[string]*inode{}}
	of := map[*inode]*inode{}
	dup := func(n *inode) *inode {
		if of[n] == nil {
			of[n] = &inode{dir: n.dir, kept: bytes.Clone(n.kept), pending: n.pending}
		}
		return of[n]
	}
	for p, n := range d.kept {
		c.kept[p] = dup(n)
	}
	luck := rng.Intn(4) // of four: how likely it is that something unsynced is there
	for _, r := range d.names {
		if rng.Intn(4) < luck {
			if r.node != nil {
				r.node = dup(r.node)
			}
			c.name(r)
		}
	}
	for _, n := range c.kept {
		for _, w := range n.pending {
			switch {
			case rng.Intn(4) < luck:
				n.apply(w, -1)
			case w.call == "write" && rng.Intn(4) == 0:
				n.apply(w, rng.Intn(len(w.data)/512+1)*512)
			}
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for p, n := range c.kept {
		if n.dir {
			if err := os.MkdirAll(filepath.Join(dir, p), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for p, n := range c.kept {
		full := filepath.Join(dir, p)
		if _, err := os.Stat(filepath.Dir(full)); n.dir || err != nil {
			continue // its directory is not there: neither is it
		}
		if err := os.WriteFile(full, n.kept, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
