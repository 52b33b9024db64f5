package guardfs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
)

// Names that this package gives beside the agent's files. A temporary file that is to trade places
// with another carries its own inode number and the beginning of the other's hash in its name, so
// that SweepOf can tell what a killed process left behind; and all of them a tag: that of their
// process, which Temporaries has on record, and that of their place, if it has one.
const (
	tempPrefix = ".moltis-"
	tempSuffix = ".tmp"
	keptSuffix = ".kept"
	randomHex  = 24 // 96 bits: not to be guessed, not to collide
	hashPart   = 16

	// TagLen is the length of what Place.Label takes.
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

// TrashName is the name of this user's.
func TrashName() string { return TrashPrefix + "-" + strconv.Itoa(os.Getuid()) }

// Private reports whether i is a directory of this user that nobody else may enter.
func (i *Info) Private() bool {
	return i.Kind == KindDir && int(i.UID) == os.Getuid() && i.Mode&0o077 == 0
}

// temporary is a name beside what is at p, which is on record before it is given.
func (p *Place) temporary(others ...string) (string, error) {
	tag, err := p.fs.temporaries.give(p.object.True)
	return compose(tag+p.tag, others...), err
}

// trade is a temporary name for an object with inode number ino that is to trade places with one
// that has that hash.
func (p *Place) trade(ino uint64, hash string) (string, error) {
	return p.temporary(strconv.FormatUint(ino, 10), hash[:min(hashPart, len(hash))])
}

// ours says that name is a temporary one that a process on record gives, or has left.
func (f *FS) ours(name string) bool {
	if _, process, ok := ParseHold(name); ok {
		return f.temporaries.knows(process)
	}
	middle, ok := strings.CutPrefix(name, tempPrefix)
	if !ok {
		return false
	}
	_, _, tag, ok := parseTemp(middle)
	return ok && f.temporaries.knows(tag)
}

// compose makes a temporary name of a random part, others, and the tag, if there is one.
func compose(tag string, others ...string) string {
	parts := append([]string{random()}, others...)
	if tag != "" {
		parts = append(parts, tag)
	}
	return tempPrefix + strings.Join(parts, "-") + tempSuffix
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
	middle, ours := strings.CutPrefix(name, tempPrefix)
	if ours {
		_, _, _, ours = parseTemp(middle)
	}
	if !ours {
		_, _, ours = ParseHold(name)
	}
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

// tagged says that a tag is that of a process or of an operation, or of both.
func tagged(tag, of string) bool {
	return of != "" && (strings.HasPrefix(tag, of) || strings.HasSuffix(tag, of))
}

// parseTemp takes a temporary name apart, without its prefix. hash is "" for one that never traded places, tag for one without.
func parseTemp(middle string) (ino uint64, hash, tag string, ok bool) {
	middle, ok = strings.CutSuffix(middle, tempSuffix)
	parts := strings.Split(middle, "-")
	if !ok || !isRandom(parts[0]) {
		return 0, "", "", false
	}
	if len(parts)%2 == 0 {
		tag, parts = parts[len(parts)-1], parts[:len(parts)-1]
		if len(tag) != TagLen && len(tag) != 2*TagLen {
			return 0, "", "", false
		}
	}
	switch len(parts) {
	case 1:
		return 0, "", tag, true
	case 3:
		ino, err := strconv.ParseUint(parts[1], 10, 64)
		return ino, parts[2], tag, err == nil && len(parts[2]) == hashPart
	}
	return 0, "", "", false
}

// Label has the temporary names that are given by way of the place from now on carry tag, by which
// SweepOf finds them: TagLen hexadecimal digits that no other operation has, or "" for none.
// Nothing else may be done with the place at the same time.
func (p *Place) Label(tag string) { p.tag = tag }

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
