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

	"moltisfs/internal/guardfs/flock"
)

// lockSlots is how many locks there are, of names and as many of trees. Keys that share one wait for each other, which does no harm.
const lockSlots = 1024

// Locks keeps the calls of all sessions and processes that share one data directory from changing the same place at
// the same time. It binds only those who ask: foreign writers are caught by Publish.
//
// A key's lock is one of a fixed number of bytes of one file in the directory, so that a call has one file open however many keys it
// locks. Where the system can't lock bytes for an open file (F_OFD_SETLK, which only Linux is asked for) it is one of as many files, held
// with flock or its like. A key of a tree (TreeKey) can be held by several at once (Shared). The kernel lets go of either when its process
// dies, in any way. A waiter asks again, about twice in a millisecond, in the same process as in another. Safe for concurrent use.
type Locks struct {
	dir    string
	bytes  bool // the locks are bytes of one file
	holder string
	name   string // of whom holder is, without the process
	beyond Beyond // nil: there is none
}

// Beyond is locks that other machines take too. Its Lock is that of Locks, and of keys that mean the same on every machine; holder is who
// asks. An error that has a method Holder says who is in the way.
type Beyond interface {
	Lock(ctx context.Context, holder string, keys ...string) (unlock func(), err error)
}

// OpenLocks opens, and makes if necessary, the lock files' directory, which SHOULD be in the data directory and out
// of the agent's reach.
func OpenLocks(dir string) (*Locks, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the lock directory: %w", err)
	}
	l := &Locks{dir: dir, holder: "process " + strconv.Itoa(os.Getpid())}
	f, err := os.OpenFile(l.path(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock file: %w", err)
	}
	l.bytes = canLockBytes(f)
	f.Close() //nolint:errcheck // nothing was written to it
	return l, nil
}

// path names the file whose bytes are the locks.
func (l *Locks) path() string { return filepath.Join(l.dir, "bytes") }

// For is l for one named holder, such as a session; the name appears in the *LockedError of those who wait.
func (l *Locks) For(holder string) *Locks {
	l = &Locks{dir: l.dir, bytes: l.bytes, beyond: l.beyond}
	l.name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, holder)
	l.holder = "process " + strconv.Itoa(os.Getpid()) + ", " + l.name
	return l
}

// Further is l with locks that other machines take too. Lock takes those after its own and gives them back before, so that the calls of
// one machine never meet there. Use and Abandoned are of the machine alone.
func (l *Locks) Further(b Beyond) *Locks {
	further := *l
	further.beyond = b
	return &further
}

// NameKey is the key of a name at which nothing is, whose directory need not be there either: name is a true one.
func NameKey(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = foldBase(p)
	}
	return "name:" + strings.Join(parts, "/")
}

const treePrefix, sharedPrefix = "tree:", "shared "

// TreeKey is the key of all that is below the true name name: a rename of it has the key alone, a change below shares it.
func TreeKey(name string) string { return treePrefix + NameKey(name) }

// Shared is the key of a tree for a holder who lets others have it too, as long as they share it.
func Shared(key string) string { return sharedPrefix + key }

// slotsOf are the numbers of the lock files of keys, each with one of them, one that is not shared if there is one.
func slotsOf(keys []string) map[int]string {
	named := make(map[int]string, len(keys))
	for _, key := range keys {
		bare := strings.TrimPrefix(key, sharedPrefix)
		sum := sha256.Sum256([]byte(bare))
		i := int(binary.BigEndian.Uint32(sum[:]) % lockSlots)
		if strings.HasPrefix(bare, treePrefix) {
			i += lockSlots
		}
		if named[i] == "" || bare == key {
			named[i] = key
		}
	}
	return named
}

// Open is how many files Lock opens, and holds open, for keys.
func (l *Locks) Open(keys []string) int {
	switch {
	case lockless:
		return 0
	case l.bytes:
		return 1
	}
	return len(slotsOf(keys))
}

// errLockFileGone: the lock file was deleted while it was waited for; others lock another one of its name.
var errLockFileGone = errors.New("the lock file was deleted")

// Lock takes the locks of all keys (Entry.LockKey, NameKey, TreeKey, Shared), in an order that is the same for everybody. When ctx ends first it
// takes none and answers *LockedError. A caller MUST NOT lock again before it has unlocked. unlock may be called
// more than once.
func (l *Locks) Lock(ctx context.Context, keys ...string) (unlock func(), err error) {
	if lockless {
		return func() {}, nil
	}
	named := slotsOf(keys)
	for {
		if unlock, err = l.all(ctx, named); err != errLockFileGone {
			break
		}
	}
	if err != nil || l.beyond == nil {
		return unlock, err
	}
	local := unlock
	free, err := l.beyond.Lock(ctx, l.name, keys...)
	if err != nil {
		local()
		if of, ok := errors.AsType[interface {
			error
			Holder() string
		}](err); ok {
			err = &LockedError{Holder: of.Holder(), Err: context.Cause(ctx)}
		}
		return nil, err
	}
	return func() { free(); local() }, nil
}

// all takes the locks of these slots, each with one of its keys.
func (l *Locks) all(ctx context.Context, named map[int]string) (unlock func(), err error) {
	var files []*os.File
	release := sync.OnceFunc(func() {
		for _, f := range files {
			if l.bytes {
				unlockBytes(f) //nolint:errcheck // closing lets go, if later
			}
			flock.Close(f) //nolint:errcheck // closing lets go
		}
	})
	if l.bytes {
		file, err := os.OpenFile(l.path(), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening lock file: %w", err)
		}
		files = append(files, file)
	}
	for _, i := range slices.Sorted(maps.Keys(named)) {
		shared := strings.HasPrefix(named[i], sharedPrefix)
		if l.bytes {
			file := files[0]
			err = l.acquire(ctx, file, int64(i)*holderSize, func() (bool, error) { return tryLockByte(file, int64(i), shared) })
		} else {
			var file *os.File
			if file, err = l.acquireFile(ctx, i, shared); err == nil {
				files = append(files, file)
			}
		}
		if err != nil {
			release()
			if locked, ok := errors.AsType[*LockedError](err); ok {
				locked.Key = named[i]
			}
			return nil, err
		}
	}
	if l.bytes {
		there, err := isAt(files[0], l.path())
		if err == nil && !there {
			err = errLockFileGone
		}
		if err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// acquireFile locks the file that is the lock i.
func (l *Locks) acquireFile(ctx context.Context, i int, shared bool) (*os.File, error) {
	try := flock.TryLock
	if shared {
		try = flock.TryLockShared
	}
	path := filepath.Join(l.dir, fmt.Sprintf("%03x", i))
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening lock file: %w", err)
		}
		err = l.acquire(ctx, file, 0, func() (bool, error) { return try(file) })
		there := false
		if err == nil {
			there, err = isAt(file, path)
		}
		if there {
			return file, nil
		}
		flock.Close(file) //nolint:errcheck // closing lets go
		if err != nil {
			return nil, err
		}
	}
}

// isAt says whether path is still file's. A lock file may be deleted while somebody waits for it; then others lock another one of its name.
func isAt(file *os.File, path string) (bool, error) {
	mine, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("checking lock file: %w", err)
	}
	there, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("checking lock file: %w", err)
	}
	return err == nil && os.SameFile(mine, there), nil
}

// acquire asks for a lock of file until it is free or ctx ends, and writes the holder's name at byte at of it. The pauses are the same for
// those who came first and last, so that nobody is pushed aside for long.
func (l *Locks) acquire(ctx context.Context, file *os.File, at int64, try func() (bool, error)) error {
	for {
		ok, err := try()
		if err != nil {
			return fmt.Errorf("locking %s: %w", file.Name(), err)
		}
		if ok {
			writeHolder(file, at, l.holder)
			return nil
		}
		pause := time.NewTimer(200*time.Microsecond + rand.N(800*time.Microsecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return &LockedError{Holder: readHolder(file, at), Err: context.Cause(ctx)}
		}
	}
}

// holderSize is the room for the name of a holder, with the newline at its end; the rest of an earlier name may be behind that.
const holderSize = 256

// writeHolder tells those who wait who has the lock. It is a courtesy: errors do not matter.
func writeHolder(file *os.File, at int64, holder string) {
	file.WriteAt([]byte(holder[:min(len(holder), holderSize-1)]+"\n"), at) //nolint:errcheck // see above
}

func readHolder(file *os.File, at int64) string {
	var buf [holderSize]byte
	n, _ := file.ReadAt(buf[:], at) //nolint:errcheck // see writeHolder
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return line
}
