package readers

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"moltisfs/readers/image"
	"moltisfs/readers/unreadable"
)

const (
	// unpackedText is how much of a compressed text is held. A longer one is unpacked anew for each window.
	unpackedText = memoryLimit
	// unpackedList is how much of a compressed tar is walked for its listing.
	unpackedList = 256 << 20
)

// packing is one way of compressing a single file.
type packing struct {
	name  string
	media string
	knows func([]byte) bool
	open  func(io.Reader) (io.Reader, error)
}

var packings = [...]packing{
	{"gzip", "application/gzip", begins("\x1f\x8b\x08"), func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"zstd", "application/zstd", begins("\x28\xb5\x2f\xfd"), openZstd},
	{"bzip2", "application/x-bzip2", func(h []byte) bool {
		return len(h) > 10 && string(h[:3]) == "BZh" && h[3] >= '1' && h[3] <= '9' && string(h[4:10]) == "1AY&SY"
	}, func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
	{"xz", "application/x-xz", begins("\xfd7zXZ\x00"), openXZ},
}

func begins(with string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(with)) }
}

func openZstd(r io.Reader) (io.Reader, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// openXZ relies on the cap on what is unpacked: a dictionary may be declared as 4 GB, but only what is written to it is ever
// memory.
func openXZ(r io.Reader) (io.Reader, error) {
	return xz.ReaderConfig{SingleStream: false}.NewReader(r)
}

func packingOf(head []byte) *packing {
	for i := range packings {
		if packings[i].knows(head) {
			return &packings[i]
		}
	}
	return nil
}

func knowsCompressed(f *file, o *Options) bool { return packingOf(f.head) != nil }

// readCompressed reads a compressed text as the text, and says of anything else what is inside.
func readCompressed(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	p := packingOf(f.head)
	if f.Size > o.MaxFileBytes && !o.window() && !o.AllowLarge {
		return nil, &TooLarge{Size: f.Size, Max: o.MaxFileBytes, What: "file", Windowed: true}
	}
	free, err := r.reserve(ctx, "file", unpackMemory)
	if err != nil {
		return nil, err
	}
	defer free()
	ctx, cancel := context.WithTimeout(ctx, r.config.Deadline)
	defer cancel()
	u := &unpacker{in: &countReader{r: contextReader{ctx, f.section()}}, max: unpackedText}
	if u.out, err = p.open(u.in); err != nil {
		return nil, damagedOr(ctx, p.name+" file", err)
	}
	if c, ok := u.out.(io.Closer); ok {
		defer c.Close()
	}
	head := make([]byte, headBytes)
	// Not io.ReadFull: its own ErrUnexpectedEOF could not be told from that of a file which is cut off.
	n, ended, stop := 0, false, error(nil)
	for n < len(head) && !ended {
		m, err := u.Read(head[n:])
		n += m
		ended = err != nil
		if err != nil && err != io.EOF {
			if stop = damagedOr(ctx, p.name+" file", err); ctx.Err() != nil || n == 0 {
				return nil, lateUnpacking(stop, head[:n])
			}
		}
	}
	head = head[:n]
	if n >= 263 && string(head[257:262]) == "ustar" {
		b, err := packedBinary(ctx, f, o, p)
		if err != nil {
			return nil, err
		}
		u.max = unpackedList
		err = b.describeTar(contextReader{ctx, io.MultiReader(bytes.NewReader(head), u)}, p.name+"-compressed tar archive")
		return b, err
	}
	inner := &file{head: head, ended: ended}
	if o.Encoding == "" && isBinary(head) || image.FormatOf(head) != nil && !forced(inner, o) || knowsPDF(inner, o) {
		b, err := packedBinary(ctx, f, o, p)
		if err != nil {
			return nil, err
		}
		b.Summary = fmt.Sprintf("%s-compressed %s", p.name, mediaType(head))
		return b, nil
	}
	raw := append(make([]byte, 0, 4*headBytes), head...)
	if !ended {
		var buf bytes.Buffer
		buf.Write(raw)
		if _, err = io.Copy(&buf, u); err != nil {
			if stop = damagedOr(ctx, p.name+" file", err); ctx.Err() != nil {
				return nil, lateUnpacking(stop, buf.Bytes())
			}
		}
		raw = buf.Bytes()
	}
	if errors.Is(stop, errUnpacked) {
		return r.readPacked(ctx, f, o, p)
	}
	note := ""
	if stop != nil {
		if o.Tail || o.Offset < 0 {
			return nil, &Unsupported{What: "the end of this " + p.name + " file", Why: stop.Error(), Do: "Unpack it with another program, or ask for lines from its beginning."}
		}
		note = fmt.Sprintf("Only the first %s of the text are here: %s.", unreadable.Bytes(int64(len(raw))), stop)
		if !isDamage(stop) {
			note += " Unpack it with another program to read the rest."
			if i := bytes.LastIndexByte(raw, '\n'); i >= 0 {
				raw = raw[:i+1] // half a line could be taken for a whole one
			}
		}
	}
	enc, content, err := decodeWhole(raw, o.Encoding)
	if err != nil {
		return nil, err
	}
	t := renderText(content, o)
	t.Encoding, t.Format, t.Unit, t.Lossy = enc, p.name, p.name+" line", true
	if t.TotalLines == 0 {
		t.noText(f.Size, 0)
	}
	t.Changed, t.ChangedBelow = f.grown, f.grown
	if stop != nil {
		t.unknownTotal(note)
	}
	return t, f.addSum(ctx, &t.Sight)
}

// lateUnpacking says how far a compressed text was unpacked when the time was over.
func lateUnpacking(err error, raw []byte) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &OutOfTime{Line: bytes.Count(raw, newline) + 1, Byte: int64(len(raw)), Size: -1, Unpacks: true}
}

// readPacked shows a window of a text that is too long to hold unpacked, within the caller's deadline.
func (r *Readers) readPacked(ctx context.Context, f *file, o *Options, p *packing) (Content, error) {
	src := &packedAt{ctx: ctx, open: func() (io.Reader, error) {
		u := &unpacker{in: &countReader{r: f.section()}, max: 1 << 62}
		var err error
		u.out, err = p.open(u.in)
		return u, err
	}}
	defer src.close()
	inner := &file{Source: Source{R: src, ID: f.ID, Changed: f.Changed}}
	if err := inner.begin(); err != nil {
		return nil, damagedOr(ctx, p.name+" file", err)
	}
	defer inner.release()
	inner.Size = -1
	inner.unpacks = true
	c, err := r.readWindow(ctx, inner, o)
	if err != nil {
		return nil, damagedOr(ctx, p.name+" file", err)
	}
	t := c.(*Text)
	if src.short() {
		if o.fromEnd() {
			return nil, &Unsupported{What: "the end of this " + p.name + " file", Why: damagedOr(ctx, p.name+" file", src.stop).Error(), Do: "Unpack it with another program, or ask for lines from its beginning."}
		}
		t.unknownTotal(fmt.Sprintf("What follows cannot be unpacked: %s.", damagedOr(ctx, p.name+" file", src.stop)))
		if t.NextOffset > t.TotalLinesAtLeast {
			t.NextOffset = 0
		}
	}
	t.Format, t.Unit, t.Lossy = p.name, p.name+" line", true
	t.Changed, t.ChangedBelow = f.grown, f.grown
	return t, f.addSum(ctx, &t.Sight)
}

func isDamage(err error) bool {
	var d *Damaged
	return errors.As(err, &d)
}

// packedBinary describes a compressed file that holds no text, with its own bytes where the policy gives them.
func packedBinary(ctx context.Context, f *file, o *Options, p *packing) (*Binary, error) {
	b := &Binary{Bytes: max(f.Size, 0), MediaType: p.media}
	b.Changed = f.grown
	b.window(o)
	if o.BinaryPolicy != "base64" {
		return b, nil
	}
	return b, b.encode(ctx, f, o)
}

// addSum adds the hash of a file whose bytes were read in another way than as a whole.
func (f *file) addSum(ctx context.Context, s *Sight) error {
	if f.Size < 0 || f.Size > memoryLimit {
		return nil
	}
	raw, err := f.all(ctx, memoryLimit, "file", true)
	if err != nil {
		return err
	}
	s.Sum = sum(raw)
	return nil
}

// damagedOr keeps our own errors and the context's, and calls everything else damage.
func damagedOr(ctx context.Context, what string, err error) error {
	var ours Hinter
	var late *OutOfTime
	switch {
	case errors.Is(err, errUnpacked), errors.As(err, &late):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &ours):
		return err
	}
	return &Damaged{What: what, Why: err.Error()}
}

type countReader struct {
	r io.Reader
	n int64
}

func (c *countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// errUnpacked ends the unpacking where the limit is.
var errUnpacked = errors.New("the limit of unpacked bytes is reached")

// unpacker reads what a decompressor gives, within bounds: absolute, and in proportion to what went in.
type unpacker struct {
	in  *countReader
	out io.Reader
	n   int64
	max int64
}

func (u *unpacker) Read(p []byte) (int, error) {
	if u.n >= u.max {
		return 0, errUnpacked
	}
	n, err := u.out.Read(p[:min(int64(len(p)), u.max-u.n)])
	u.n += int64(n)
	// A log of one line may be packed as well as a bomb: as much is shown as has come out.
	if u.n > unreadable.RatioFree && u.n > unreadable.RatioCap*max(u.in.n, 1) {
		return n, &Limit{What: "file", Resource: "compression ratio", Max: unreadable.RatioCap}
	}
	return n, err
}

// Close frees what the decompressor holds.
func (u *unpacker) Close() error {
	if c, ok := u.out.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
