package guardfs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// LockFiles is how many lock files there are, and so how many a call can hold. Keys that share one wait for each other, which does no harm.
const LockFiles = 1024

// Locks keeps the calls of all sessions and processes that share one data directory from changing the same place at
// the same time. It binds only those who ask: foreign writers are caught by Commit.
//
// A key's lock is one of a fixed number of files in the directory, held with flock: the kernel lets go of it when
// its process dies, in whatever way. Within the process waiters are served in order; between processes the
// waiting is by asking again, about once in a millisecond. Safe for concurrent use.
type Locks struct {
	shared *lockTable
	holder string
}

type lockTable struct {
	dir   string
	slots [LockFiles]lockSlot
}

// lockSlot is the part of a lock within this process.
type lockSlot struct {
	mu      sync.Mutex
	held    bool
	holder  string
	waiting []chan struct{} // first come, first served; closing one hands the lock over
}

// OpenLocks opens, and makes if necessary, the lock files' directory, which SHOULD be in the data directory and out
// of the agent's reach.
func OpenLocks(dir string) (*Locks, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the lock directory: %w", err)
	}
	return &Locks{shared: &lockTable{dir: dir}, holder: "process " + strconv.Itoa(os.Getpid())}, nil
}

// For is l for one named holder, such as a session; the name appears in the *LockedError of those who wait.
func (l *Locks) For(holder string) *Locks {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, holder)
	return &Locks{shared: l.shared, holder: "process " + strconv.Itoa(os.Getpid()) + ", " + clean}
}

// NameKey is the key of a name at which nothing is, whose directory need not be there either: name is a true one.
func NameKey(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = foldBase(p)
	}
	return "name:" + strings.Join(parts, "/")
}

// slotsOf are the numbers of the lock files of keys, each with one of them.
func slotsOf(keys []string) map[int]string {
	named := make(map[int]string, len(keys))
	for _, key := range keys {
		sum := sha256.Sum256([]byte(key))
		named[int(binary.BigEndian.Uint32(sum[:])%LockFiles)] = key
	}
	return named
}

// LockFilesOf is how many files Lock opens, and holds open, for keys.
func LockFilesOf(keys []string) int {
	if lockless {
		return 0
	}
	return len(slotsOf(keys))
}

// Lock takes the locks of all keys (Place.LockKey, NameKey), in an order that is the same for everybody. When ctx ends first it
// takes none and answers *LockedError. A caller MUST NOT lock again before it has unlocked. unlock may be called
// more than once.
func (l *Locks) Lock(ctx context.Context, keys ...string) (unlock func(), err error) {
	if lockless {
		return func() {}, nil
	}
	named := slotsOf(keys)
	indexes := slices.Sorted(maps.Keys(named))
	held := make([]func(), 0, len(indexes))
	release := sync.OnceFunc(func() {
		for _, f := range slices.Backward(held) {
			f()
		}
	})
	for _, i := range indexes {
		free, err := l.one(ctx, i)
		if err != nil {
			release()
			var locked *LockedError
			if errors.As(err, &locked) {
				locked.Key = named[i]
			}
			return nil, err
		}
		held = append(held, free)
	}
	return release, nil
}

// one takes one lock: first within the process, then among processes.
func (l *Locks) one(ctx context.Context, i int) (free func(), err error) {
	slot := &l.shared.slots[i]
	if err := slot.enter(ctx, l.holder); err != nil {
		return nil, err
	}
	file, err := l.acquire(ctx, i)
	if err != nil {
		slot.leave()
		return nil, err
	}
	return func() {
		file.Close() //nolint:errcheck // closing is what lets go
		slot.leave()
	}, nil
}

func (s *lockSlot) enter(ctx context.Context, holder string) error {
	s.mu.Lock()
	if !s.held {
		s.held, s.holder = true, holder
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	s.mu.Unlock()
	select {
	case <-turn:
		s.mu.Lock()
		s.holder = holder
		s.mu.Unlock()
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range s.waiting {
		if w == turn {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return &LockedError{Holder: s.holder, Err: context.Cause(ctx)}
		}
	}
	// It was handed over in this very moment: pass it on.
	by := s.holder
	s.pass()
	return &LockedError{Holder: by, Err: context.Cause(ctx)}
}

func (s *lockSlot) leave() {
	s.mu.Lock()
	s.pass()
	s.mu.Unlock()
}

// pass hands the lock to the first in line. s.mu is held.
func (s *lockSlot) pass() {
	if len(s.waiting) == 0 {
		s.held, s.holder = false, ""
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
}

// acquire locks the file and writes the holder's name into it.
func (l *Locks) acquire(ctx context.Context, i int) (*os.File, error) {
	path := filepath.Join(l.shared.dir, fmt.Sprintf("%03x", i))
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening lock file: %w", err)
		}
		err = waitLock(ctx, file)
		if err != nil {
			by := readHolder(file)
			file.Close() //nolint:errcheck // closing is what lets go
			if ctx.Err() != nil && err == ctx.Err() {
				return nil, &LockedError{Holder: by, Err: context.Cause(ctx)}
			}
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		// The file may have been deleted while we waited; then somebody else locks another one of that name.
		mine, err := file.Stat()
		if err == nil {
			var there os.FileInfo
			if there, err = os.Stat(path); err == nil && os.SameFile(mine, there) {
				writeHolder(file, l.holder, mine.Size())
				return file, nil
			}
		}
		file.Close() //nolint:errcheck // closing is what lets go
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("checking lock file: %w", err)
		}
	}
}

// waitLock asks for the lock until it is free or ctx ends. The pauses are the same for those who came first and
// last, so that nobody is pushed aside for long.
func waitLock(ctx context.Context, file *os.File) error {
	for {
		ok, err := tryLock(file)
		if ok || err != nil {
			return err
		}
		pause := time.NewTimer(200*time.Microsecond + rand.N(800*time.Microsecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// writeHolder tells those who wait who has the lock. It is a courtesy: errors do not matter.
func writeHolder(file *os.File, holder string, size int64) {
	line := holder + "\n"
	if size > int64(len(line)) {
		file.Truncate(int64(len(line))) //nolint:errcheck // see above
	}
	file.WriteAt([]byte(line), 0) //nolint:errcheck // see above
}

func readHolder(file *os.File) string {
	var buf [200]byte
	n, _ := file.ReadAt(buf[:], 0) //nolint:errcheck // see writeHolder
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return line
}
