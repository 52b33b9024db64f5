package guardfs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
)

// Names that this package gives beside the agent's files. A temporary file that is to trade places with another
// carries its own inode number and the beginning of the other's hash in its name, so that Sweep can tell
// what a killed process left behind; and all of them the tag of their place, if it has one, so that SweepOf can tell whose they are.
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

// Reserved reports whether name, in any spelling, is that of such a directory: nobody lists or enters one by way of a walk, and
// a Judge SHOULD refuse all that is in one.
func Reserved(name string) bool {
	return len(name) >= len(TrashPrefix) && name[0] == '.' && strings.EqualFold(name[:len(TrashPrefix)], TrashPrefix)
}

// TrashName is the name of this user's.
func TrashName() string { return TrashPrefix + "-" + strconv.Itoa(os.Getuid()) }

// Private reports whether i is a directory of this user that nobody else may enter.
func (i *Info) Private() bool {
	return i.Kind == KindDir && int(i.UID) == os.Getuid() && i.Mode&0o077 == 0
}

// tempName is for what never trades places, and has no tag.
func tempName() string { return stagedName("") }

// stagedName is for a new file that does not know yet with what it will trade places.
func stagedName(tag string) string { return compose(tag) }

// compose makes a temporary name of a random part, others, and the tag, if there is one.
func compose(tag string, others ...string) string {
	parts := append([]string{random()}, others...)
	if tag != "" {
		parts = append(parts, tag)
	}
	return tempPrefix + strings.Join(parts, "-") + tempSuffix
}

func random() string {
	var b [randomHex / 2]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return hex.EncodeToString(b[:])
}

// Temporary reports whether name is one that this package gives to its own temporary files: a walk leaves such names out. The
// names ending in ".kept" are not: they hold what somebody wrote and nobody should miss.
func Temporary(name string) bool {
	middle, ours := strings.CutPrefix(name, tempPrefix)
	if ours {
		_, _, _, ours = parseTemp(middle)
	}
	return ours
}

// keptName is for what must not be lost and could not stay where it was.
func keptName() string { return strings.TrimSuffix(tempName(), tempSuffix) + keptSuffix }

// tradeName is the temporary name for an object with inode number ino that is to trade places with one that has that
// hash.
func tradeName(ino uint64, hash, tag string) string {
	return compose(tag, strconv.FormatUint(ino, 10), hash[:min(hashPart, len(hash))])
}

// parseTemp takes a temporary name apart, without its prefix. hash is "" for one that never traded places, tag for one without.
func parseTemp(middle string) (ino uint64, hash, tag string, ok bool) {
	middle, ok = strings.CutSuffix(middle, tempSuffix)
	parts := strings.Split(middle, "-")
	if !ok || len(parts[0]) != randomHex || strings.Trim(parts[0], "0123456789abcdef") != "" {
		return 0, "", "", false
	}
	if len(parts)%2 == 0 {
		tag, parts = parts[len(parts)-1], parts[:len(parts)-1]
		if len(tag) != TagLen {
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

// Label has the temporary names that are given by way of the place from now on carry tag, by which SweepOf finds them: TagLen hexadecimal digits that no other
// operation has, or "" for none. Nothing else may be done with the place at the same time.
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
