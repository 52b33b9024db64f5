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

// unpackedList is how many bytes of a compressed tar are walked for its listing. Of a compressed text the first memoryLimit bytes are shown.
const unpackedList = 256 << 20

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

// openXZ relies on the cap on unpacked bytes: a dictionary may be declared as 4 GB, but only written bytes are ever
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

// readCompressed reads a compressed text, and the names or the media type of any other compressed file.
func readCompressed(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	p := packingOf(f.head)
	if err := f.fits(o); err != nil {
		return nil, err
	}
	free, err := r.reserve(ctx, "file", unpackMemory)
	if err != nil {
		return nil, err
	}
	defer free()
	ctx, cancel := context.WithTimeout(ctx, r.config.Deadline)
	defer cancel()
	u := &unpacker{in: &countReader{r: contextReader{ctx, f.section()}}, max: memoryLimit}
	var buf bytes.Buffer
	why := func(err error) error {
		switch {
		case !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return damagedOr(ctx, p.name+" file", err)
		case buf.Len() == 0:
			return &Limit{What: "file", Resource: "time"}
		}
		return &OutOfTime{Line: bytes.Count(buf.Bytes(), newline) + 1, Byte: int64(buf.Len()), Size: -1, Unpacks: true}
	}
	if u.out, err = p.open(u.in); err != nil {
		return nil, why(err)
	}
	if c, ok := u.out.(io.Closer); ok {
		defer c.Close()
	}
	_, stop := io.CopyN(&buf, u, headBytes)
	ended := stop == io.EOF
	if head := buf.Bytes(); stop == nil || ended || ctx.Err() == nil && len(head) > 0 {
		b := &Binary{Bytes: max(f.Size, 0), MediaType: p.media}
		b.window(o)
		inner := &file{head: head, ended: ended}
		tar := isTar(head)
		if tar || o.Encoding == "" && isBinary(head) || image.FormatOf(head) != nil && !forced(inner, o) || knowsPDF(inner, o) {
			if o.BinaryPolicy == "base64" {
				if err := b.encode(ctx, f, o); err != nil {
					return nil, err
				}
			}
			if tar {
				u.max = unpackedList
				return b, b.describeTar(ctx, io.MultiReader(bytes.NewReader(head), u), p.name+"-compressed tar archive")
			}
			b.Summary = fmt.Sprintf("%s-compressed %s", p.name, mediaType(head))
			return b, nil
		}
	}
	if stop == nil {
		_, stop = io.Copy(&buf, u)
	} else if ended {
		stop = nil
	}
	raw, note := buf.Bytes(), ""
	if stop != nil {
		stop = why(stop)
		switch {
		case ctx.Err() != nil || len(raw) == 0:
			return nil, stop
		case o.fromEnd():
			return nil, &Unsupported{What: "the end of this " + p.name + " file", Why: stop.Error(), Do: "Unpack it with another program, or ask for lines from its beginning."}
		}
		note = fmt.Sprintf("Only the first %s of the text are here: %s.", unreadable.Bytes(int64(len(raw))), stop)
		if !errors.As(stop, new(*Damaged)) {
			note += " Unpack it with another program to read the rest."
			if i := bytes.LastIndexByte(raw, '\n'); i >= 0 {
				raw = raw[:i+1] // half a line could be taken for a whole one
			}
		}
	}
	enc, mark, content, err := decodeWhole(raw, o.Encoding)
	if err != nil {
		return nil, err
	}
	t := renderText(content, o)
	t.readAs(enc, mark)
	t.Format, t.Unit, t.Lossy = p.name, p.name+" line", true
	if t.TotalLines == 0 {
		t.noText(f.Size, 0)
	}
	if stop != nil {
		t.unknownTotal(note)
	}
	return t, f.addSum(ctx, &t.ReadRecord)
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

// unpacker reads the output of a decompressor within bounds: absolute, and in proportion to what went in.
type unpacker struct {
	in  *countReader
	out io.Reader
	n   int64
	max int64
}

func (u *unpacker) Read(p []byte) (int, error) {
	if u.n >= u.max {
		return 0, &Limit{What: "file", Resource: "unpacked bytes", Max: u.max}
	}
	n, err := u.out.Read(p[:min(int64(len(p)), u.max-u.n)])
	u.n += int64(n)
	// A log of one line may be packed as well as a bomb: as much is shown as has come out.
	if u.n > unreadable.RatioFree && u.n > unreadable.RatioCap*max(u.in.n, 1) {
		return n, &Limit{What: "file", Resource: "compression ratio", Max: unreadable.RatioCap}
	}
	return n, err
}
