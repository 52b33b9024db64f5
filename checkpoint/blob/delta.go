package blob

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"
)

// A delta describes a target as pieces of a base and new bytes:
//
//	uvarint size of the target
//	then until the end:  uvarint n<<1|1, uvarint offset   copy n bytes of the base from offset
//	                     uvarint n<<1,   n bytes          these bytes
//
// Pieces are found by a table of the base's aligned 16-byte blocks. An edit leaves most of a file
// as it is, so the encoder spends its time comparing equal bytes, and is faster than compressing
// the file.
const deltaBlock = 16

var errDelta = errors.New("delta does not fit its base")

var deltaTables = sync.Pool{New: func() any { return new([]int32) }}

func blockHash(b []byte, shift uint) uint32 {
	x := binary.LittleEndian.Uint64(b)
	y := binary.LittleEndian.Uint64(b[8:])
	return uint32(((x ^ bits.RotateLeft64(y, 29)) * 0x9E3779B97F4A7C15) >> shift)
}

// commonPrefix returns how many leading bytes a and b share.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		x := binary.LittleEndian.Uint64(a[len(a)-i-8:]) ^ binary.LittleEndian.Uint64(b[len(b)-i-8:])
		if x != 0 {
			return i + bits.LeadingZeros64(x)/8
		}
	}
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}

// makeDelta appends to out the delta that turns base into target.
func makeDelta(out, base, target []byte) []byte {
	out = binary.AppendUvarint(out, uint64(len(target)))
	copyOp := func(off, n int) {
		if n > 0 {
			out = binary.AppendUvarint(out, uint64(n)<<1|1)
			out = binary.AppendUvarint(out, uint64(off))
		}
	}
	literal := func(b []byte) {
		if len(b) > 0 {
			out = binary.AppendUvarint(out, uint64(len(b))<<1)
			out = append(out, b...)
		}
	}
	prefix := commonPrefix(base, target)
	suffix := commonSuffix(base[prefix:], target[prefix:])
	if prefix < deltaBlock/2 { // a copy of a few bytes costs more than the bytes
		prefix = 0
	}
	if suffix < deltaBlock/2 {
		suffix = 0
	}
	copyOp(0, prefix)
	end := len(target) - suffix
	middle(base, target, prefix, end, copyOp, literal)
	copyOp(len(base)-suffix, suffix)
	return out
}

// middle encodes target[from:to], the part that is neither common prefix nor suffix.
func middle(base, target []byte, from, to int, copyOp func(int, int), literal func([]byte)) {
	if to-from < 2*deltaBlock {
		literal(target[from:to])
		return
	}
	logSize := uint(bits.Len(uint(len(base) / deltaBlock)))
	logSize = max(logSize+1, 6)
	shift := 64 - logSize
	tp := deltaTables.Get().(*[]int32)
	defer deltaTables.Put(tp)
	if cap(*tp) < 1<<logSize {
		*tp = make([]int32, 1<<logSize)
	}
	table := (*tp)[:1<<logSize]
	clear(table)
	for i := 0; i+deltaBlock <= len(base); i += deltaBlock {
		table[blockHash(base[i:], shift)] = int32(i + 1)
	}
	lit := from
	for i := from; i+deltaBlock <= to; {
		o := int(table[blockHash(target[i:], shift)]) - 1
		if o < 0 || string(base[o:o+deltaBlock]) != string(target[i:i+deltaBlock]) {
			i++
			continue
		}
		n := deltaBlock + commonPrefix(base[o+deltaBlock:], target[i+deltaBlock:to])
		for o > 0 && i > lit && base[o-1] == target[i-1] {
			o, i, n = o-1, i-1, n+1
		}
		literal(target[lit:i])
		copyOp(o, n)
		i += n
		lit = i
	}
	literal(target[lit:to])
}

// applyDelta is the inverse of makeDelta. It never writes more than size bytes, whatever the delta
// says.
func applyDelta(base, delta []byte, size int64) ([]byte, error) {
	n, k := binary.Uvarint(delta)
	if k <= 0 || n != uint64(size) {
		return nil, errDelta
	}
	delta = delta[k:]
	out := make([]byte, 0, size)
	for len(delta) > 0 {
		op, k := binary.Uvarint(delta)
		if k <= 0 {
			return nil, errDelta
		}
		delta = delta[k:]
		n := op >> 1
		if n == 0 || n > uint64(size)-uint64(len(out)) {
			return nil, errDelta
		}
		if op&1 == 0 {
			if n > uint64(len(delta)) {
				return nil, errDelta
			}
			out = append(out, delta[:n]...)
			delta = delta[n:]
			continue
		}
		off, k := binary.Uvarint(delta)
		if k <= 0 || off > uint64(len(base)) || n > uint64(len(base))-off {
			return nil, errDelta
		}
		delta = delta[k:]
		out = append(out, base[off:off+n]...)
	}
	if int64(len(out)) != size {
		return nil, errDelta
	}
	return out, nil
}
