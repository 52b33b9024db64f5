//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

var powerCuts = flag.Int("cuts", 100, "disks of TestPowerCut; 10000 in a soak")

// power makes the calls of an engine and records the disks on which a power cut could leave the tree: its names as they were at any moment
// since a directory was synced last, and of each file what was synced of it. What loses its last name goes to the pool, so that a disk is
// made of the very same objects.
type power struct {
	guardfs.Calls
	x      *tree
	bad    string // the syncs that do not count
	mu     sync.Mutex
	on     bool
	floor  int // the first moment whose names are possible
	synced map[uint64]contentOf
	at     []moments
}

// A contentOf is what was synced of a file.
type contentOf struct {
	text string
	time time.Time
}

// A moments is what there was before one call.
type moments struct {
	names  map[string]os.FileInfo
	floor  int
	synced map[uint64]contentOf
	store  string // a copy of the store
}

func numberOf(i os.FileInfo) uint64 { return i.Sys().(*syscall.Stat_t).Ino }

func (p *power) pool(i os.FileInfo) string { return fmt.Sprint(p.x.dir(), "/pool/", numberOf(i)) }

// names are all names of the tree and of the trash.
func (p *power) names() map[string]os.FileInfo {
	out := map[string]os.FileInfo{}
	trash, _ := filepath.Glob(p.x.data + "/.moltis-trash-*/files")
	for _, root := range append(trash, p.x.ws) {
		must(p.x.t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err == nil && name != root {
				out[name], err = os.Lstat(name)
			}
			return err
		}))
	}
	return out
}

// look records the moment.
func (p *power) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		return
	}
	store := fmt.Sprint(p.x.dir(), "/store/", len(p.at))
	p.copyStore(p.x.data, store)
	p.at = append(p.at, moments{p.names(), p.floor, maps.Clone(p.synced), store})
}

// copyStore copies what is in the data directory but the things in the trash.
func (p *power) copyStore(from, to string) {
	must(p.x.t, os.MkdirAll(to, 0o700))
	must(p.x.t, filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		rest := strings.TrimPrefix(name, from)
		switch {
		case err != nil || rest == "" || strings.HasSuffix(rest, "-shm"):
			return err
		case d.IsDir() && strings.HasSuffix(rest, "/files"):
			return cmp.Or(os.MkdirAll(to+rest, 0o700), fs.SkipDir)
		case d.IsDir():
			return os.MkdirAll(to+rest, 0o700)
		}
		b, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			return nil // a file of SQLite
		}
		return errors.Join(err, os.WriteFile(to+rest, b, 0o600))
	}))
}

func (p *power) Fsync(fd int) error {
	p.look()
	err := p.Calls.Fsync(fd)
	name := fmt.Sprint("/proc/self/fd/", fd)
	i, serr := os.Stat(name)
	must(p.x.t, serr)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
	case i.IsDir() && p.bad != "nodirsync":
		p.floor = len(p.at)
	case !i.IsDir() && p.bad != "nosync":
		b, err := os.ReadFile(name)
		must(p.x.t, err)
		p.synced[numberOf(i)] = contentOf{string(b), i.ModTime()}
	}
	return err
}

func (p *power) Linkat(a int, from string, b int, to string) error {
	p.look()
	return p.Calls.Linkat(a, from, b, to)
}

func (p *power) Mkdirat(dir int, name string, mode uint32) error {
	p.look()
	return p.Calls.Mkdirat(dir, name, mode)
}

func (p *power) Symlinkat(target string, dir int, name string) error {
	p.look()
	return p.Calls.Symlinkat(target, dir, name)
}

func (p *power) Renameat2(a int, from string, b int, to string, flags uint) error {
	p.look()
	if flags == 0 {
		if i, err := os.Lstat(fmt.Sprintf("/proc/self/fd/%d/%s", b, to)); err == nil {
			os.Link(fmt.Sprintf("/proc/self/fd/%d/%s", b, to), p.pool(i)) //nolint:errcheck // it is there already
		}
	}
	return p.Calls.Renameat2(a, from, b, to, flags)
}

func (p *power) Unlinkat(dir int, name string, flags int) error {
	p.look()
	at := fmt.Sprintf("/proc/self/fd/%d/%s", dir, name)
	i, err := os.Lstat(at)
	in, _ := os.ReadDir(at)
	if err != nil || len(in) > 0 || i.IsDir() != (flags&unix.AT_REMOVEDIR != 0) {
		return p.Calls.Unlinkat(dir, name, flags)
	}
	return p.take(at, i)
}

// take takes a name away, and keeps the object.
func (p *power) take(name string, i os.FileInfo) error {
	if _, err := os.Lstat(p.pool(i)); err == nil {
		return os.Remove(name)
	}
	return os.Rename(name, p.pool(i))
}

// disk makes one: the names of one moment, the contents of another, the store of a third.
func (p *power) disk(names, synced, store *moments) {
	t := p.x.t
	t.Helper()
	there := p.names()
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(there))) {
		must(t, p.take(name, there[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(names.names)) {
		i := names.names[name]
		if i.IsDir() {
			must(t, os.Rename(p.pool(i), name))
			continue
		}
		if must(t, os.Link(p.pool(i), name)); i.Mode().IsRegular() {
			c := synced.synced[numberOf(i)]
			must(t, errors.Join(os.WriteFile(name, []byte(c.text), 0), os.Chtimes(name, c.time, c.time)))
		}
	}
	entries, err := os.ReadDir(p.x.data)
	must(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".moltis-trash") {
			continue
		}
		must(t, os.RemoveAll(p.x.data+"/"+e.Name()))
	}
	p.copyStore(store.store, p.x.data)
}

// cutPower plays power cuts in one change, and says what the first start after one of them leaves broken.
func cutPower(x *tree, k *power, r *rand.Rand, p *plot, cuts int) (fell string) {
	t := x.t
	must(t, errors.Join(os.MkdirAll(x.dir()+"/pool", 0o700), os.MkdirAll(x.dir()+"/store", 0o700)))
	x.lay(p.was)
	was := x.contents()
	for name, i := range k.names() {
		if b, err := os.ReadFile(name); err == nil && i.Mode().IsRegular() {
			k.synced[numberOf(i)] = contentOf{string(b), i.ModTime()}
		}
	}
	k.on = true
	must(t, p.run(x, nil))
	k.look()
	k.on = false
	after := x.contents()
	must(t, x.Close())
	last := len(k.at) - 1
	for range cuts {
		n := r.IntN(last + 2) // the last moment more often than any other
		n = min(n, last)
		names := k.at[n].floor + r.IntN(n-k.at[n].floor+1)
		store := n
		if k.bad == "unsaved" {
			store = r.IntN(n + 1)
		}
		k.disk(&k.at[names], &k.at[n], &k.at[store])
		x.open()
		all := x.contents()
		left := x.halfWay()
		back, made := all.differs(was, ""), all.differs(after, "")
		switch {
		case left != nil:
			fell = fmt.Sprint("half-way still: ", left)
		case made != nil && (back != nil || n == last):
			fell = fmt.Sprintf("neither as before: %v, nor as after: %v", back, made)
		case made == nil && back != nil && p.stored: // and it can be undone
			if err := x.does(undoes); err != nil {
				fell = fmt.Sprint("made, and not to be undone: ", err)
			} else if d := x.contents().differs(was, ""); d != nil {
				fell = fmt.Sprint("undone, and not as before: ", d)
			}
		}
		must(t, x.Close())
		if fell != "" {
			return fmt.Sprintf("cut before %d of %d, with the names before %d and the store before %d: %s", n, last, names, store, fell)
		}
	}
	return ""
}

// lacking are the calls of a kernel that lacks some.
type lacking struct {
	guardfs.Calls
	p *plot
}

func (k *lacking) Renameat2(a int, from string, b int, to string, flags uint) error {
	if !k.p.exchange && flags&unix.RENAME_EXCHANGE != 0 {
		return unix.EINVAL
	}
	return k.Calls.Renameat2(a, from, b, to, flags)
}

func (k *lacking) Openat(dir int, name string, flags int, mode uint32) (int, error) {
	if !k.p.nameless && flags&unix.O_TMPFILE == unix.O_TMPFILE {
		return -1, unix.EOPNOTSUPP
	}
	return k.Calls.Openat(dir, name, flags, mode)
}

// calls are those of a kernel as the plot wants it.
func (p *plot) calls(t *testing.T) guardfs.Calls {
	t.Helper()
	local, err := guardfs.LocalCalls()
	must(t, err)
	return &lacking{local, p}
}

// cutPlots cuts the power in random changes, and in those of passages.
func cutPlots(t *testing.T, bad string, cuts int) error {
	const each = 20
	r := rand.New(rand.NewPCG(*plotSeed, 5))
	steps := slices.Sorted(maps.Keys(passages))
	for n := 0; n < cuts; n += each {
		p := newPlot(r)
		if n/each%2 == 0 {
			p = passage(r, steps[n/each/2%len(steps)])
		}
		if len(p.change) == 0 {
			continue
		}
		x := grow(t, func(c *config.FS) {
			if !p.stored {
				c.Checkpoint.MaxFileBytes = 2
			}
		})
		must(t, x.Close())
		k := &power{Calls: p.calls(t), x: x, bad: bad, synced: map[uint64]contentOf{}}
		x.calls = k
		x.open()
		x.write("first", "first")
		must(t, x.does(deletes("first"))) // so that there is a store and a trash
		if fell := cutPower(x, k, r, p, each); fell != "" {
			return fmt.Errorf("%+v: %s", p, fell)
		}
		must(t, os.RemoveAll(x.dir()))
	}
	return nil
}

// The power is cut at any moment of a change: after the next start all is as before or as it should become, and what was said to be made is.
// An engine that does not sync the contents, the names or its store is caught.
func TestPowerCut(t *testing.T) {
	for _, bad := range []string{"", "nosync", "nodirsync", "unsaved"} {
		t.Run(bad, func(t *testing.T) {
			t.Parallel()
			if err := cutPlots(t, bad, *powerCuts); (err == nil) != (bad == "") {
				t.Errorf("%q: %v", bad, err)
			} else if bad != "" {
				t.Logf("%.400v", err)
			}
		})
	}
}
