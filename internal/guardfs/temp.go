package guardfs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Names that this package gives beside the agent's files. A temporary file that is to trade places with another
// carries its own inode number and the beginning of the other's hash in its name, so that Sweep can tell
// what a killed process left behind.
const (
	tempPrefix = ".moltis-"
	tempSuffix = ".tmp"
	keptSuffix = ".kept"
	randomHex  = 24 // 96 bits: not to be guessed, not to collide
	hashPart   = 16
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

func tempName() string {
	var b [randomHex / 2]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return tempPrefix + hex.EncodeToString(b[:]) + tempSuffix
}

// Temporary reports whether name is one that this package gives to its own temporary files: a walk leaves such names out. The
// names ending in ".kept" are not: they hold what somebody wrote and nobody should miss.
func Temporary(name string) bool {
	middle, ours := strings.CutPrefix(name, tempPrefix)
	if ours {
		_, _, ours = parseTemp(middle)
	}
	return ours
}

// keptName is for what must not be lost and could not stay where it was.
func keptName() string { return strings.TrimSuffix(tempName(), tempSuffix) + keptSuffix }

// tradeName is the temporary name for an object with inode number ino that is to trade places with one that has that
// hash.
func tradeName(ino uint64, hash string) string {
	name := strings.TrimSuffix(tempName(), tempSuffix)
	return fmt.Sprintf("%s-%d-%.*s%s", name, ino, hashPart, hash, tempSuffix)
}

// parseTemp takes a temporary name apart, without its prefix. hash is "" for one that never traded places.
func parseTemp(middle string) (ino uint64, hash string, ok bool) {
	middle, ok = strings.CutSuffix(middle, tempSuffix)
	parts := strings.Split(middle, "-")
	if !ok || len(parts[0]) != randomHex || strings.Trim(parts[0], "0123456789abcdef") != "" {
		return 0, "", false
	}
	switch len(parts) {
	case 1:
		return 0, "", true
	case 3:
		ino, err := strconv.ParseUint(parts[1], 10, 64)
		return ino, parts[2], err == nil && len(parts[2]) == hashPart
	}
	return 0, "", false
}

// anyHas says whether one of the hashes is that of which a temporary name has the beginning.
func anyHas(hashes []string, beginning string) bool {
	return beginning != "" && slices.ContainsFunc(hashes, func(h string) bool { return strings.HasPrefix(h, beginning) })
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
