//go:build !rooted

package guardfs

import (
	"path"
	"sync"
)

// pins are the directories that places are in, each held by one descriptor, however many places there are: a restore of thousands of files in a
// few directories does with few. Every place finds its directory by its own path; only then, if that is the very object that another place
// holds, on the same mount and still under the same name, it shares the other's descriptor. Safe for concurrent use.
type pins struct {
	mu   sync.Mutex
	dirs map[pinKey]*pin
}

type pinKey struct {
	id    Identity // its number can't be another's while the descriptor is open
	mount uint64
	name  string
}

type pin struct {
	pins   *pins
	calls  Calls
	key    pinKey
	fd     int
	places int
}

// take makes d an owner of the directory called name that fd is a handle on: of fd itself, or, with fd closed, of the one that others hold.
func (ps *pins) take(k *kernel, d *descriptor, fd int, st *status, name string) *pin {
	key := pinKey{st.info.ID, st.mount, name}
	ps.mu.Lock()
	held := ps.dirs[key]
	if held == nil {
		held = &pin{pins: ps, calls: k.calls, key: key, fd: fd}
		ps.dirs[key] = held
	}
	held.places++
	ps.mu.Unlock()
	if held.fd != fd {
		// Where the server of a file system has forgotten the name, an old handle may have none any more, though its object has.
		if now, err := k.name(held.fd); err != nil || now != name {
			ps.release(held) //nolint:errcheck // nothing was written through it
			held = &pin{pins: ps, calls: k.calls, key: key, fd: fd, places: 1}
		} else {
			k.close(fd) //nolint:errcheck // nothing was written through it
		}
	}
	d.fd, d.owner = held.fd, held
	return held
}

// share makes d one more owner of what held holds, while another one is.
func (ps *pins) share(d *descriptor, held *pin) {
	ps.mu.Lock()
	held.places++
	ps.mu.Unlock()
	d.fd, d.owner = held.fd, held
}

// Close ends one place's use of it.
func (p *pin) Close(int) error { return p.pins.release(p) }

func (ps *pins) release(held *pin) error {
	ps.mu.Lock()
	held.places--
	last := held.places == 0
	if last && ps.dirs[held.key] == held {
		delete(ps.dirs, held.key)
	}
	ps.mu.Unlock()
	if !last {
		return nil
	}
	return held.calls.Close(held.fd)
}

// PlacesOpen is how many files are open at most for places of these true names, all at once.
func PlacesOpen(names []string) int {
	dirs := map[string]bool{}
	for _, name := range names {
		dirs[path.Dir(name)] = true
	}
	return len(dirs)
}

// SharedDirs says that PlacesOpen counts directories, not names.
const SharedDirs = true
