package readers

import (
	"context"
	"errors"
	"io"
	"sync"
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
