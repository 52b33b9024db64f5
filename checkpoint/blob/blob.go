// Package blob keeps contents small: as a difference to an earlier version or compressed, encrypted
// where that is asked for, and the large ones in files of their own. It knows nothing of
// operations. The catalog, which belongs to the caller, holds a Row for each content and knows
// which row a delta stands on.
package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Codec says how the bytes of a row are to be read; the bits combine. The order of decoding is
// file, sealed, zstd, delta. They are in every store on disk.
type Codec int64

const (
	codecZstd   Codec = 1 << iota
	CodecDelta        // against the row's base
	CodecFile         // the row holds the name of a file
	CodecSealed       // encrypted; the row's key says with which
)

const (
	MaxDepth  = 32        // deltas in a chain before a whole content
	FileAbove = 256 << 10 // packed bytes above which a file of its own is cheaper than overflow pages
	MaxDelta  = 16 << 20  // of base and target: above, a whole content is as good

	zstdAbove      = 64      // shorter input never gets shorter
	deltaZstdAbove = 320     // a shorter delta gains little, and trying takes a tenth of a save
	maxSize        = 1 << 31 // no single content is larger: zstd and int32 tables rely on it
)

var (
	// ErrSealed: the bytes are there, encrypted to a key that this process does not hold.
	ErrSealed = errors.New("content is encrypted to a key that is not at hand")
	// ErrIdentity: one of the identities is none.
	ErrIdentity = errors.New("an identity is not one that age can read")
	// ErrName: what a row gives as the name of a file is not one that Files gave out.
	ErrName = errors.New("the row names no blob file")
)

// Hash is the SHA-256 of a content.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash reads what String wrote.
func ParseHash(s string) (h Hash, err error) {
	if len(s) != 2*len(h) {
		return h, fmt.Errorf("a hash has %d hex digits, this has %d", 2*len(h), len(s))
	}
	_, err = hex.Decode(h[:], []byte(s))
	return h, err
}

// Row is what the catalog holds of a content.
type Row struct {
	Hash  Hash
	Size  int64 // of the content
	Codec Codec
	Key   int64 // see Keys; 0: it is in clear
	Bytes int64 // as they are stored
	Z     []byte
}

// Packed is a content ready to be stored. Z is held also where File is set, since the file may have
// to be written again.
type Packed struct {
	Codec Codec
	Base  *Version // with CodecDelta
	Depth int      // of deltas below
	Key   int64
	Z     []byte
	File  string // with CodecFile
}
