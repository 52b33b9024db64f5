package blob

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Codec says how the bytes of a row are to be read; the bits combine. The order of decoding is
// store, sealed, zstd, delta. They are in every catalog on disk.
type Codec int64

const (
	codecZstd   Codec = 1 << iota
	CodecDelta        // against the row's base
	CodecStore        // the bytes are in the Store
	CodecSealed       // encrypted; the row's key says with which
)

const (
	MaxDepth   = 32        // deltas in a chain before a whole content
	StoreAbove = 256 << 10 // packed bytes above which the Store is cheaper than overflow pages
	MaxDelta   = 16 << 20  // of base and target: above, a whole content is as good

	zstdAbove      = 64      // shorter input never gets shorter
	deltaZstdAbove = 320     // a shorter delta gains little, and trying takes a tenth of a save
	maxSize        = 1 << 31 // no single content is larger: zstd and int32 tables rely on it
)

var (
	// ErrSealed: the bytes are there, encrypted to a key that this process does not hold.
	ErrSealed = errors.New("content is encrypted to a key that is not at hand")
	// ErrIdentity: one of the identities is none.
	ErrIdentity = errors.New("an identity is not one that age can read")
)

// Row is a content as it is stored.
type Row struct {
	Hash  Hash
	Size  int64 // of the content
	Codec Codec
	Key   int64 // see Keys; 0: it is in clear
	Bytes int64 // as they are stored
	Z     []byte
	Name  string // in the Store, with CodecStore
}

// Packer packs contents and unpacks them. All goroutines of a store share one.
type Packer struct {
	sealer
	store Store
	enc   *zstd.Encoder
	dec   *zstd.Decoder
}

// Options of a Packer.
type Options struct {
	Store      Store    // of large contents
	EncryptTo  string   // an age recipient; "" for no encryption
	Identities []string // of age, to read what is encrypted
	Keys       Keys
}

// New makes a Packer. Close gives its memory back.
func New(o Options) (*Packer, error) {
	p := &Packer{store: o.Store}
	if err := p.sealer.init(o); err != nil {
		return nil, err
	}
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(2), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("setting up zstd: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxSize))
	if err != nil {
		return nil, fmt.Errorf("setting up zstd: %w", err)
	}
	p.enc, p.dec = enc, dec
	return p, nil
}

// Close must be called when nobody packs or unpacks any more.
func (p *Packer) Close() {
	p.enc.Close()
	p.dec.Close()
}

// Pack makes the row of content, which has the hash h: as a delta against base (nil: none) or whole,
// encrypted, in the Store if it is large. key is the one that sealed it before, 0 for none: it is
// sealed with the same again, whether this Packer seals what it packs or not.
func (p *Packer) Pack(ctx context.Context, h Hash, content, base []byte, key int64) (r Row, err error) {
	r = Row{Hash: h, Size: int64(len(content))}
	r.Codec, r.Z = p.pack(content, base)
	if key != 0 || p.on() {
		if err := p.seal(ctx, &r, key); err != nil {
			return r, err
		}
	}
	if r.Bytes = int64(len(r.Z)); r.Bytes > StoreAbove {
		r.Name, r.Codec = NewName(h), r.Codec|CodecStore
		err = p.store.Put(ctx, r.Name, r.Z)
		r.Z = nil
	}
	return r, err
}

// pack chooses the smaller of a delta against base and the compressed whole.
func (p *Packer) pack(content, base []byte) (Codec, []byte) {
	if base != nil && len(base) <= MaxDelta && len(content) <= MaxDelta && len(content) > 0 {
		d, codec := makeDelta(nil, base, content), CodecDelta
		if len(d) > deltaZstdAbove {
			if z := p.enc.EncodeAll(d, nil); len(z) < len(d) {
				d, codec = z, CodecDelta|codecZstd
			}
		}
		// A whole source file compresses to about a third; a delta well below that needs no comparison.
		if len(d) < len(content)/8 {
			return codec, d
		}
		if wcodec, whole := p.pack(content, nil); len(whole) <= len(d)*5/4 {
			return wcodec, whole
		}
		return codec, d
	}
	if len(content) > zstdAbove {
		if z := p.enc.EncodeAll(content, nil); len(z) < len(content) {
			return codecZstd, z
		}
	}
	return 0, content
}

// Unpack turns a row into its content; base is the content that a delta applies to. What lies in the Store is in r.Z then. The caller has
// to compare the bytes with their hash: damage may unpack too.
func (p *Packer) Unpack(ctx context.Context, r *Row, base []byte) (_ []byte, err error) {
	if r.Codec&CodecStore != 0 && r.Z == nil {
		if r.Z, err = p.store.Get(ctx, r.Name, r.Bytes); err != nil {
			return nil, err
		}
	}
	z := r.Z
	if r.Codec&CodecSealed != 0 {
		if z, err = p.unseal(ctx, r, z); err != nil {
			return nil, err
		}
	}
	if r.Size < 0 || r.Size > maxSize {
		return nil, fmt.Errorf("impossible size %d", r.Size)
	}
	if r.Codec&codecZstd != 0 {
		hint := r.Size
		if r.Codec&CodecDelta != 0 {
			hint = min(hint, int64(4*len(z)))
		}
		if z, err = p.dec.DecodeAll(z, make([]byte, 0, min(hint, 64<<20))); err != nil {
			return nil, err
		}
	}
	if r.Codec&CodecDelta != 0 {
		return applyDelta(base, z, r.Size)
	}
	if int64(len(z)) != r.Size {
		return nil, fmt.Errorf("%d bytes where %d belong", len(z), r.Size)
	}
	return z, nil
}

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
