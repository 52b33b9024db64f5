package readers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"moltisfs/internal/share"
	"moltisfs/internal/text"
)

// headBytes are read first, and all kinds are told apart by them. It is one read of a small file.
const headBytes = 16 << 10

// buffers holds scratch space between calls, for bytes that never leave a call.
var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// file is a source whose beginning has been read.
type file struct {
	Source
	head    []byte // the first bytes; all of them when ended
	ended   bool   // head reaches the end of the file
	grown   bool
	scratch *[]byte
}

// begin reads the head. It asks for one byte more than the size, to see whether the file has grown.
func (f *file) begin() error {
	f.scratch = buffers.Get().(*[]byte)
	want := int64(headBytes)
	if f.Size > 0 && f.Size < want {
		want = f.Size + 1
	}
	n, err := readAt(f.R, (*f.scratch)[:want], 0)
	if err != nil {
		return err
	}
	if f.Size > 0 && int64(n) > f.Size {
		f.grown, n = true, int(f.Size)
	}
	f.head = (*f.scratch)[:n]
	switch {
	case n == int(f.Size), int64(n) < want:
		f.ended = true
		f.grown = f.grown || (f.Size > 0 && int64(n) < f.Size)
		f.Size = int64(n)
	case f.Size == 0:
		f.Size = -1 // it is longer than the file system says; how long, only reading tells
	}
	return nil
}

func (f *file) release() {
	buffers.Put(f.scratch)
	f.head, f.scratch = nil, nil
}

// readAt fills p from the offset and returns less only at the end of the file.
func readAt(r io.ReaderAt, p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		m, err := r.ReadAt(p[n:], off+int64(n))
		n += m
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, nil // a reader that gives neither bytes nor an error has ended
		}
	}
	return n, nil
}

// all returns the whole file, refusing above the limit. The slice is good until release and must not be kept: where the
// head is the whole file it is the head.
func (f *file) all(ctx context.Context, limit int64, what string, windowed bool) ([]byte, error) {
	if f.ended {
		if int64(len(f.head)) > limit {
			return nil, &TooLarge{Size: f.Size, Max: limit, What: what, Windowed: windowed}
		}
		return f.head, nil
	}
	if f.Size > limit {
		return nil, &TooLarge{Size: f.Size, Max: limit, What: what, Windowed: windowed}
	}
	b, more, err := f.upTo(ctx, limit)
	if err != nil {
		return nil, err
	}
	if more && f.Size < 0 {
		return nil, &TooLarge{Max: limit, What: what, Windowed: windowed}
	}
	return b, nil
}

// fits refuses a file above o.MaxFileBytes, unless a part of it was asked for or all of it in spite of its length.
func (f *file) fits(o *Options) error {
	if f.Size > o.MaxFileBytes && !o.window() && !o.AllowLarge {
		return &TooLarge{Size: f.Size, Max: o.MaxFileBytes, What: "file", Windowed: true}
	}
	return nil
}

// upTo returns the first bytes of the file, at most limit of them and at most its size as first told, and whether there
// are more.
func (f *file) upTo(ctx context.Context, limit int64) (b []byte, more bool, err error) {
	if f.ended {
		return f.head[:min(int64(len(f.head)), limit)], int64(len(f.head)) > limit, nil
	}
	known := f.Size >= 0
	size := limit
	if known {
		size = min(size, f.Size)
	} else {
		size = min(size, 64<<10)
	}
	b = make([]byte, size+1)
	n := copy(b, f.head)
	for {
		// A deadline is looked at between chunks: a slow mount must not hold the caller.
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		end := min(len(b), n+4<<20)
		m, err := readAt(f.R, b[n:end], int64(n))
		if err != nil {
			return nil, false, err
		}
		n += m
		if n < end { // the end of the file
			f.grown = f.grown || known && int64(n) < f.Size
			return b[:n], false, nil
		}
		if n < len(b) {
			continue
		}
		if known && int64(len(b)) > f.Size {
			f.grown = true
			return b[:f.Size], false, nil
		}
		if int64(len(b)) > limit {
			return b[:limit], true, nil
		}
		grown := make([]byte, min(int64(len(b))*4, limit+1))
		copy(grown, b)
		b = grown
	}
}

// section is the file as an io.Reader, up to the size it was said to have.
func (f *file) section() *io.SectionReader {
	size := f.Size
	if size < 0 {
		size = 1 << 62
	}
	return io.NewSectionReader(f.R, 0, size)
}

// contextReader ends with the context's error once it is over.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// Encodings lists the names that Options.Encoding takes, the common ones first. Usual aliases are taken too.
func Encodings() []string {
	return slices.DeleteFunc(text.Names(), func(name string) bool {
		d, _ := text.ToRead(name, nil)
		return d.Name != name // is read as another that holds it
	})
}

// CheckEncoding says that there is no encoding of this name; "" is none and good.
func CheckEncoding(name string) error {
	if name == "" {
		return nil
	}
	_, _, err := encodingOf(name, nil)
	return err
}

// encodingOf is the encoding in which a file that begins with b is read, and the length of its byte order mark. asked overrules
// detection.
func encodingOf(asked string, b []byte) (d text.Detected, mark int, err error) {
	if d, mark = text.ToRead(asked, b); d.Encoding == nil {
		return d, 0, &BadEncoding{Name: asked, Why: "there is no such encoding"}
	}
	return d, mark, nil
}

// decodeWhole turns a whole file into UTF-8. For UTF-8 the result is the file itself, bad bytes included.
func decodeWhole(raw []byte, asked string) (d text.Detected, mark int, content []byte, err error) {
	if d, mark, err = encodingOf(asked, raw); err != nil {
		return d, mark, nil, err
	}
	content, err = decode(d.Encoding, raw[mark:])
	return d, mark, content, err
}

// decode returns UTF-8. Bytes that the encoding does not know become U+FFFD.
func decode(e *text.Encoding, b []byte) ([]byte, error) {
	out, err := e.Decode(b)
	if err != nil {
		return nil, &BadEncoding{Name: e.Name, Why: fmt.Sprintf("the file is not in it (%v)", err)}
	}
	return out, nil
}

// Known is the encoding in which t was read by o, for a session to go on with: with a question mark behind it where nobody named it.
func (t *Text) Known(o Options) string {
	name, _, _ := strings.Cut(t.Encoding, " ")
	if o.Encoding == "" {
		name += text.GuessMark
	}
	return name
}

// readAs notes in which encoding t was read, and behind a byte order mark of how many bytes.
func (t *Text) readAs(d text.Detected, mark int) {
	t.Encoding, t.EncodingGuess, t.RunnerUp = d.Name, d.Guessed && d.Mapped(), ""
	if mark > 0 {
		t.Encoding += " with BOM"
	}
	if t.EncodingGuess && d.Next != nil {
		t.RunnerUp = d.Next.Name
	}
}

// isBinary decides by the first bytes that a file is not text in any encoding.
func isBinary(head []byte) bool { return text.Sniff(head) == text.Binary }

// noText says of a file that begins like a picture or a PDF that it is no text that only speaks of one.
func noText(head []byte) bool { return isBinary(head) || !text.MostlyUTF8(head) }

// textButForNULs says that the first bytes of a binary file are text in UTF-8, had they no NULs.
func textButForNULs(head []byte) bool {
	rest := bytes.ReplaceAll(head, []byte{0}, nil)
	controls := 0
	for _, c := range rest {
		if c < ' ' && !bytes.ContainsRune([]byte("\t\n\r\f\b\x1b"), rune(c)) {
			controls++
		}
	}
	return len(rest) > 0 && controls*10 <= len(rest) && text.MostlyUTF8(rest)
}

// countReplaced counts the bytes that a decoder showed as U+FFFD. In UTF-8 the page counts it, where the bad bytes are still there; a U+FFFD that was written
// as such, which other encodings can hardly hold, is counted with the others.
func (t *Text) countReplaced() {
	name, _, _ := strings.Cut(t.Encoding, " ")
	if e := text.Lookup(name); e != nil && e.Mapped() {
		t.InvalidBytes += strings.Count(t.Content, "\uFFFD") * e.Unit
	}
}

// skipChars returns how many bytes the first n characters take, and how many of the n there were.
func skipChars(b []byte, n int) (size, chars int) {
	for chars < n && size < len(b) {
		if b[size] < utf8.RuneSelf {
			size++
		} else {
			_, w := utf8.DecodeRune(b[size:])
			size += w
		}
		chars++
	}
	return size, chars
}

// DecoderMemory is about how many bytes all decoders of a process take together, whatever the number of Readers: images, PDFs,
// documents and compressed files. One principal has half of it at the most, or one file that needs more. A call that finds
// too little left waits, up to Config.Deadline, and in turn with other principals.
const DecoderMemory = 1 << 30

// The most bytes that one decoder takes, beside images, whose pixels are counted.
const (
	documentMemory = 128 << 20
	unpackMemory   = 128 << 20
)

// decoders is one for the process, as its memory is.
var decoders = share.New(DecoderMemory)

// reserve takes room for a decoder that needs about so many bytes, and gives the function that frees it. Nobody may reserve twice.
func (r *Readers) reserve(ctx context.Context, what string, bytes int64) (free func(), err error) {
	bytes = min(bytes, r.config.Memory) // a file that needs more is read alone; of less memory it takes a larger part
	bytes = int64(float64(bytes) / float64(r.config.Memory) * DecoderMemory)
	who := share.Of(ctx)
	if !decoders.Try(who, bytes) {
		inTime, cancel := context.WithTimeout(ctx, r.config.Deadline)
		defer cancel()
		began := time.Now()
		if err := decoders.Take(inTime, who, bytes); err != nil {
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, &Busy{What: what, Waited: time.Since(began)}
		}
		runtime.GC() // garbage of others is no room yet
	}
	return func() { decoders.Give(who, bytes) }, nil
}

// addSum adds the hash of a file whose bytes were read in another way than as a whole.
func (f *file) addSum(ctx context.Context, s *ReadRecord) error {
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
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, new(Hinter)):
		return err
	}
	return &Damaged{What: what, Why: err.Error()}
}
