package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// codec says how the bytes of a data row are to be read; the bits combine. The order of decoding is external, sealed,
// zstd, delta.
type codec int64

const (
	codecZstd   codec = 1 << iota
	codecDelta        // against the row's base
	codecExt          // the row holds a file name below blobs/
	codecSealed       // encrypted; the row's key says with which
)

const (
	maxDepth       = 32        // deltas in a chain before a key frame
	extAbove       = 256 << 10 // stored bytes above which a file of its own is cheaper than overflow pages
	cloneAbove     = 512 << 10 // content below is written as fast as it is cloned and compared
	zstdAbove      = 64        // shorter input never gets shorter
	deltaZstdAbove = 320       // a shorter delta gains a few bytes at most, and trying takes a tenth of a save
	sizeCeil       = 1 << 31   // no single content is larger: zstd and int32 tables rely on it
	defaultMax     = 1 << 30
)

type hash [sha256.Size]byte

func (h hash) String() string { return hex.EncodeToString(h[:]) }

func parseHash(s string) (h hash, err error) {
	if len(s) != 2*len(h) {
		return h, fmt.Errorf("a hash has %d hex digits, this has %d", 2*len(h), len(s))
	}
	_, err = hex.Decode(h[:], []byte(s))
	return h, err
}

// packer holds the compressor. One is shared by all goroutines of a store.
type packer struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newPacker() (*packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithEncoderConcurrency(2), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("setting up zstd: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(sizeCeil))
	if err != nil {
		return nil, fmt.Errorf("setting up zstd: %w", err)
	}
	return &packer{enc, dec}, nil
}

func (p *packer) close() {
	p.enc.Close()
	p.dec.Close()
}

// packed is content ready to be stored.
type packed struct {
	codec codec
	base  *version // with codecDelta
	depth int
	z     []byte
}

// pack chooses the smaller of a delta against base (nil: none) and the compressed whole.
func (p *packer) pack(content []byte, base *version) packed {
	if base.suits(content) {
		d := makeDelta(nil, base.content, content)
		out := packed{codec: codecDelta, base: base, depth: base.depth + 1, z: d}
		if len(d) > deltaZstdAbove {
			if z := p.enc.EncodeAll(d, nil); len(z) < len(d) {
				out.z, out.codec = z, codecDelta|codecZstd
			}
		}
		// A whole source file compresses to about a third; a delta well below that needs no comparison.
		if len(out.z) < len(content)/8 {
			return out
		}
		if whole := p.pack(content, nil); len(whole.z) > len(out.z)*5/4 {
			return out
		} else {
			return whole
		}
	}
	if len(content) > zstdAbove {
		if z := p.enc.EncodeAll(content, nil); len(z) < len(content) {
			return packed{codec: codecZstd, z: z}
		}
	}
	return packed{z: content}
}

// suits says whether content may become a delta against v (nil: none).
func (v *version) suits(content []byte) bool {
	return v != nil && v.depth < maxDepth && len(v.content) <= maxDelta && len(content) <= maxDelta && len(content) > 0
}

// dense says whether content of more than cloneAbove bytes hardly shrinks, going by samples: finding that out by packing the whole costs more
// than storing it. A file that repeats itself far apart is taken for dense too.
func (p *packer) dense(content []byte) bool {
	const samples, size = 16, 16 << 10
	all := make([]byte, 0, samples*size)
	for i := range samples {
		at := (len(content) - size) / (samples - 1) * i
		all = append(all, content[at:at+size]...)
	}
	return len(p.enc.EncodeAll(all, nil)) > len(all)/4*3
}

// unpack reverses pack for one row; base is the decoded base of a delta.
func (p *packer) unpack(c codec, z, base []byte, size int64) ([]byte, error) {
	if size < 0 || size > sizeCeil {
		return nil, fmt.Errorf("impossible size %d", size)
	}
	if c&codecZstd != 0 {
		hint := size
		if c&codecDelta != 0 {
			hint = min(hint, int64(4*len(z)))
		}
		out, err := p.dec.DecodeAll(z, make([]byte, 0, min(hint, 64<<20)))
		if err != nil {
			return nil, err
		}
		z = out
	}
	if c&codecDelta != 0 {
		return applyDelta(base, z, size)
	}
	if int64(len(z)) != size {
		return nil, fmt.Errorf("%d bytes where %d belong", len(z), size)
	}
	return z, nil
}
