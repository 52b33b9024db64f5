package checkpoint

import "strings"

// ID names a checkpoint towards people and models: "ck-", the sequence number in Crockford's base
// 32, and two check characters. It is short, because models copy it. It is checked, because they
// also invent it.
//
// The check is a Reed-Solomon code over GF(32). It finds every single and double substitution and
// every exchange of two characters; anything else passes with a chance of 1 in 1024. The length is
// part of the sum, so that a lost or doubled leading character is found as well.
type ID string

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const (
	checkpointPrefix = "ck-"
	trashPrefix      = "tr-"
	maxDigits        = 13 // 65 bits
)

// gfMul multiplies in GF(2^5) modulo x^5+x^2+1.
func gfMul(a, b byte) byte {
	var p byte
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			p ^= a
		}
		a <<= 1
		if a&0x20 != 0 {
			a ^= 0x25
		}
	}
	return p & 0x1f
}

// checkDigits computes the remainder of the message polynomial modulo (x-α)(x-α²), α = 2.
func checkDigits(digits []byte) (hi, lo byte) {
	// (x-2)(x-4) = x² + 6x + 8
	hi, lo = byte(len(digits)), 0x11
	for _, d := range digits {
		f := hi ^ d
		hi, lo = lo^gfMul(f, 6), gfMul(f, 8)
	}
	return hi, lo
}

func makeID(prefix string, seq int64) string {
	var buf [maxDigits]byte
	i := len(buf)
	for n := uint64(seq); ; n >>= 5 {
		i--
		buf[i] = byte(n & 31)
		if n < 32 {
			break
		}
	}
	digits := buf[i:]
	hi, lo := checkDigits(digits)
	var b strings.Builder
	b.WriteString(prefix)
	for _, d := range digits {
		b.WriteByte(crockford[d])
	}
	b.WriteByte(crockford[hi])
	b.WriteByte(crockford[lo])
	return b.String()
}

// parseID reads what makeID wrote. It forgives what Crockford forgives: case, O for 0, I and L for
// 1, and white space around.
func parseID(prefix, s string) (int64, error) {
	bad := func(why string) (int64, error) {
		if len(s) > 64 {
			s = s[:64]
		}
		return 0, &BadIDError{s, why}
	}
	t := strings.ToUpper(strings.TrimSpace(s))
	t, ok := strings.CutPrefix(t, strings.ToUpper(prefix))
	if !ok {
		return bad("must begin with " + prefix)
	}
	if len(t) < 3 || len(t) > maxDigits+2 {
		return bad("wrong length")
	}
	var digits [maxDigits + 2]byte
	for i := range len(t) {
		c := t[i]
		switch c {
		case 'O':
			c = '0'
		case 'I', 'L':
			c = '1'
		}
		d := strings.IndexByte(crockford, c)
		if d < 0 {
			return bad("has a character that no id has")
		}
		digits[i] = byte(d)
	}
	body := digits[:len(t)-2]
	hi, lo := checkDigits(body)
	if hi != digits[len(t)-2] || lo != digits[len(t)-1] {
		return bad("its check characters do not fit; copy it again from the list")
	}
	var n uint64
	for _, d := range body {
		if n>>58 != 0 {
			return bad("too large")
		}
		n = n<<5 | uint64(d)
	}
	if n == 0 || n > 1<<62 || (len(body) > 1 && body[0] == 0) {
		return bad("no id is written that way")
	}
	return int64(n), nil
}

// ParseID checks s and returns it in its canonical spelling.
func ParseID(s string) (ID, error) {
	seq, err := parseID(checkpointPrefix, s)
	if err != nil {
		return "", err
	}
	return idOf(seq), nil
}

// ParseTrashID is ParseID for an entry of the trash.
func ParseTrashID(s string) (TrashID, error) {
	seq, err := parseID(trashPrefix, s)
	if err != nil {
		return "", err
	}
	return TrashID(makeID(trashPrefix, seq)), nil
}

func idOf(seq int64) ID {
	if seq == 0 {
		return ""
	}
	return ID(makeID(checkpointPrefix, seq))
}

func (id ID) seq() (int64, error) { return parseID(checkpointPrefix, string(id)) }
