// Package ids draws and reads the names of checkpoints and of entries in the trash: a prefix such as
// "ck-" and ten random characters of Crockford's base 32. They are short, because models copy them.
// A mistyped or invented one names nothing.
package ids

import (
	"crypto/rand"
	"strings"
)

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const length = 10

// Numbered makes New answer as stores of format 7 did: by seq. Tests whose texts have ids in them
// set it before anything is opened.
var Numbered bool

// New draws a name for the row seq.
func New(prefix string, seq int64) string {
	if Numbered {
		return Format7(prefix, seq)
	}
	b := make([]byte, length)
	rand.Read(b)
	for i := range b {
		b[i] = alphabet[b[i]&31]
	}
	return prefix + string(b)
}

// Parse gives s in its canonical spelling, or why it can't be an id with that prefix. It forgives
// what Crockford forgives: case, O for 0, I and L for 1, and white space around.
func Parse(prefix, s string) (id, why string) {
	t, ok := strings.CutPrefix(strings.ToUpper(strings.TrimSpace(s)), strings.ToUpper(prefix))
	if !ok {
		return "", "must begin with " + prefix
	}
	if len(t) < 3 || len(t) > length { // those of format 7 are shorter
		return "", "wrong length"
	}
	t = strings.NewReplacer("O", "0", "I", "1", "L", "1").Replace(t)
	if strings.Trim(t, alphabet) != "" {
		return "", "has a character that no id has"
	}
	return prefix + t, ""
}

// Format7 is the name that a store of format 7 gave the row seq: its number and two check characters.
// Those are a Reed-Solomon code over GF(32).
func Format7(prefix string, seq int64) string {
	var digits []byte
	for n := uint64(seq); n > 0 || digits == nil; n >>= 5 {
		digits = append([]byte{byte(n & 31)}, digits...)
	}
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
	hi, lo := byte(len(digits)), byte(0x11) // the remainder modulo x² + 6x + 8
	for _, d := range digits {
		f := hi ^ d
		hi, lo = lo^mul(f, 6), mul(f, 8)
	}
	for i, d := range digits {
		digits[i] = alphabet[d]
	}
	return prefix + string(digits) + string([]byte{alphabet[hi], alphabet[lo]})
}
