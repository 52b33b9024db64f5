package match

import (
	"encoding/binary"
	"unicode/utf8"
	"unsafe"
)

const escape = 0x1b

// ASCIIPrefix gives the length of the ASCII that b begins with, up to the first escape: an escape
// may switch to another character set. Such text reads the same in nearly every encoding.
func ASCIIPrefix(b []byte) int { return vectors().asciiPrefix(b) }

func (l level) asciiPrefix(b []byte) int {
	if l == avx2 && len(b) >= 32 {
		return l.asciiScan(unsafe.Pointer(unsafe.SliceData(b)), len(b))
	}
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		y := x ^ escape*ones // a zero byte where x has an escape
		if (x|(y-ones)&^y)&highs != 0 {
			break
		}
	}
	for ; i < len(b) && b[i] < utf8.RuneSelf && b[i] != escape; i++ {
	}
	return i
}
