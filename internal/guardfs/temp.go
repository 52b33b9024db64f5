package guardfs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Names that this package gives beside the agent's files. All temporary ones carry the tag of their
// process, which Temporaries has on record; those of holds see HoldName.
const (
	tempPrefix = ".moltis-"
	tempSuffix = ".tmp"
	keptSuffix = ".kept"
	randomHex  = 24 // 96 bits: not to be guessed, not to collide

	// TagLen is the length of the tag of an operation, or of a process: hexadecimal digits.
	TagLen = 16
)

// TrashPrefix begins the names of the directories that hold what was moved out of a tree as a whole, each on the volume of what it holds.
const TrashPrefix = ".moltis-trash"

// IsTrash reports whether name, in letters of either case, is that of such a directory.
func IsTrash(name string) bool {
	return len(name) >= len(TrashPrefix) && name[0] == '.' && strings.EqualFold(name[:len(TrashPrefix)], TrashPrefix)
}

// Reserved reports whether name, in letters of either case, is one that this package gives: nobody
// lists it or enters it by way of a walk, and a Judge SHOULD refuse it, with all that is below.
func Reserved(name string) bool {
	if len(name) <= len(tempPrefix) || name[0] != '.' || !strings.EqualFold(name[:len(tempPrefix)], tempPrefix) {
		return false
	}
	return IsTrash(name) || Temporary(strings.ToLower(name))
}

// ReservedPath reports whether any part of a path is Reserved.
func ReservedPath(path string) bool {
	for rest := path; ; {
		at := strings.Index(rest, "/"+tempPrefix)
		if at < 0 {
			return false
		}
		name, _, _ := strings.Cut(rest[at+1:], "/")
		if Reserved(name) {
			return true
		}
		rest = rest[at+1:]
	}
}

// TrashName is the name of that of the user as whom calls are made.
func (f *FS) TrashName() string { return TrashPrefix + "-" + strconv.Itoa(f.user()) }

// Private reports whether a directory of that user is there that nobody else may enter.
func (p *Place) Private() bool {
	i := &p.object.Info
	return i.Kind == KindDir && int(i.UID) == p.fs.user() && i.Mode&0o077 == 0
}

// temporary is a name beside what is at p for a file that is not complete, on record before it is
// given.
func (p *Place) temporary() (string, error) {
	process, err := p.fs.temporaries.give(p.object.True)
	return compose(process), err
}

// ours says that name is a temporary one that a process on record gives, or has left.
func (f *FS) ours(name string) bool {
	_, process, ok := parse(name)
	return ok && f.temporaries.knows(process)
}

// compose makes a temporary name of a random part and the tag of a process, if there is one.
func compose(process string) string {
	name := tempPrefix + random()
	if process != "" {
		name += "-" + process
	}
	return name + tempSuffix
}

func isRandom(s string) bool { return len(s) == randomHex && strings.Trim(s, "0123456789abcdef") == "" }

func random() string {
	var b [randomHex / 2]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return hex.EncodeToString(b[:])
}

// Temporary reports whether name looks like one that this package gives to its own temporary files.
// Whether it is one, the record tells. The names ending in ".kept" are not: they hold what somebody
// wrote and nobody should miss.
func Temporary(name string) bool {
	_, _, ours := parse(name)
	return ours
}

// IsKept reports whether name is one under which something is kept beside a file.
func IsKept(name string) bool {
	middle, ours := strings.CutPrefix(name, tempPrefix)
	random, kept := strings.CutSuffix(middle, keptSuffix)
	return ours && kept && isRandom(random)
}

// keptName is for what must not be lost and could not stay where it was.
func keptName() string { return strings.TrimSuffix(compose(""), tempSuffix) + keptSuffix }

// parse takes a temporary name apart. operation is "" for one that is no hold, process for one of
// nobody on record.
func parse(name string) (operation, process string, ok bool) {
	if operation, process, ok = ParseHold(name); ok {
		return operation, process, ok
	}
	middle, ok := strings.CutPrefix(name, tempPrefix)
	middle, ok2 := strings.CutSuffix(middle, tempSuffix)
	random, process, tagged := strings.Cut(middle, "-")
	return "", process, ok && ok2 && isRandom(random) && tagged == isTag(process)
}

func newBefore(info Info, content []byte, xattrs map[string][]byte) *Before {
	return &Before{
		Exists: true, Info: info, Content: content, Hash: hashOf(content),
		Meta: Metadata{Mode: info.Mode, UID: info.UID, GID: info.GID, ModTime: info.ModTime, Xattrs: xattrs},
	}
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
