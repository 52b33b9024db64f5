package blob

import (
	"context"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Packer packs contents and unpacks them. All goroutines of a store share one.
type Packer struct {
	Files
	sealer
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// Options of a Packer.
type Options struct {
	Dir        string   // of the files
	EncryptTo  string   // an age recipient; "" for no encryption
	Identities []string // of age, to read what is encrypted
	Keys       Keys
}

// New makes a Packer. Close gives its memory back.
func New(o Options) (*Packer, error) {
	p := &Packer{Files: Files{Dir: o.Dir}}
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

// Pack stores content in as few bytes as it takes: as a delta on base (nil: none) or whole,
// encrypted, in a file if it is large.
func (p *Packer) Pack(ctx context.Context, h Hash, content []byte, base *Version) (Packed, error) {
	out := p.pack(content, base)
	if p.on() {
		if err := p.seal(ctx, h, &out); err != nil {
			return out, err
		}
	}
	return out, p.Place(h, &out)
}

// Whole packs content without a base and leaves it to Place to write a file. Key is what it was
// sealed with before, 0 for nothing: it is sealed with the same again, whether this Packer seals
// what it packs or not. ok is false where a key would have to be made first: the caller is in a
// transaction and cannot begin another.
func (p *Packer) Whole(ctx context.Context, h Hash, content []byte, key int64) (
	out Packed, ok bool, err error) {
	out = p.pack(content, nil)
	switch {
	case key != 0:
		err = p.sealAgain(ctx, key, h, &out)
	case p.on():
		if !p.ready() {
			return out, false, nil
		}
		err = p.seal(ctx, h, &out)
	}
	return out, err == nil, err
}

// Place writes what is large to a file of its own.
func (p *Packer) Place(h Hash, out *Packed) (err error) {
	if len(out.Z) > FileAbove && out.File == "" {
		if out.File, err = p.Write(h, out.Z); err == nil {
			out.Codec |= CodecFile
		}
	}
	return err
}

// pack chooses the smaller of a delta against base (nil: none) and the compressed whole.
func (p *Packer) pack(content []byte, base *Version) Packed {
	if base.suits(content) {
		d := makeDelta(nil, base.Content, content)
		out := Packed{Codec: CodecDelta, Base: base, Depth: base.Depth + 1, Z: d}
		if len(d) > deltaZstdAbove {
			if z := p.enc.EncodeAll(d, nil); len(z) < len(d) {
				out.Z, out.Codec = z, CodecDelta|codecZstd
			}
		}
		// A whole source file compresses to about a third; a delta well below that needs no comparison.
		if len(out.Z) < len(content)/8 {
			return out
		}
		if whole := p.pack(content, nil); len(whole.Z) <= len(out.Z)*5/4 {
			return whole
		}
		return out
	}
	if len(content) > zstdAbove {
		if z := p.enc.EncodeAll(content, nil); len(z) < len(content) {
			return Packed{Codec: codecZstd, Z: z}
		}
	}
	return Packed{Z: content}
}

// Unpack turns a row into its content; base is the content that a delta applies to. Whoever gets
// the bytes has to compare them with their hash: damage may unpack too.
func (p *Packer) Unpack(ctx context.Context, r *Row, base []byte) (_ []byte, err error) {
	z := r.Z
	if r.Codec&CodecFile != 0 {
		if z, err = p.Read(string(r.Z), r.Bytes); err != nil {
			return nil, err
		}
	}
	if r.Codec&CodecSealed != 0 {
		if z, err = p.unseal(ctx, r.Key, r.Hash, r.Codec&^(CodecFile|CodecSealed), z); err != nil {
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
