package testdir

import "moltisfs/internal/ids"

// NumberedIDs makes ids of numbers for tests whose texts have ids in them. Each has two check characters, a
// Reed-Solomon code over GF(32), so that those of neighbours differ.
func NumberedIDs() {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	mul := func(a, b byte) (p byte) { // modulo x^5+x^2+1
		for ; b > 0; b >>= 1 {
			if b&1 != 0 {
				p ^= a
			}
			if a <<= 1; a&0x20 != 0 {
				a ^= 0x25
			}
		}
		return p & 0x1f
	}
	ids.Draw = func(seq int64) string {
		var digits []byte
		for n := uint64(seq); n > 0 || digits == nil; n >>= 5 {
			digits = append([]byte{byte(n & 31)}, digits...)
		}
		hi, lo := byte(len(digits)), byte(0x11) // the remainder modulo x² + 6x + 8
		for _, d := range digits {
			f := hi ^ d
			hi, lo = lo^mul(f, 6), mul(f, 8)
		}
		digits = append(digits, hi, lo)
		for i, d := range digits {
			digits[i] = alphabet[d]
		}
		return string(digits)
	}
}
