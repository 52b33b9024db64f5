package readers

import (
	"context"
	"io"
)

// packedKeep is how far back a packedAt can be read without starting over.
const packedKeep = 8 << 20

// packedAt lets a compressed file be read like a file: forward as it unpacks, a little back from what it keeps, further back by unpacking from the
// beginning again. What stops the unpacking ends the file; why is in stop. It is for one goroutine.
type packedAt struct {
	ctx  context.Context
	open func() (io.Reader, error)

	r    io.Reader
	kept []byte // what was unpacked last
	at   int64  // where kept begins
	stop error
}

func (p *packedAt) ReadAt(b []byte, off int64) (n int, err error) {
	if p.r == nil || off < p.at {
		if err := p.close(); err != nil {
			return 0, err
		}
		if p.r, err = p.open(); err != nil {
			return 0, err
		}
		p.kept, p.at, p.stop = p.kept[:0], 0, nil
	}
	for {
		if have := p.at + int64(len(p.kept)) - off; have > 0 {
			c := copy(b[n:], p.kept[int64(len(p.kept))-have:])
			n += c
			off += int64(c)
		}
		if n == len(b) {
			return n, nil
		}
		if p.stop != nil {
			return n, io.EOF
		}
		if err := p.ctx.Err(); err != nil {
			return n, err
		}
		p.more()
	}
}

// more unpacks the next piece.
func (p *packedAt) more() {
	const piece = 256 << 10
	if len(p.kept) > 2*packedKeep {
		drop := len(p.kept) - packedKeep
		p.kept = p.kept[:copy(p.kept, p.kept[drop:])]
		p.at += int64(drop)
	}
	if free := cap(p.kept) - len(p.kept); free < piece {
		p.kept = append(p.kept, make([]byte, piece)...)[:len(p.kept)]
	}
	n, err := p.r.Read(p.kept[len(p.kept) : len(p.kept)+piece])
	p.kept = p.kept[:len(p.kept)+n]
	p.stop = err
}

// short says that the unpacking ended before the end.
func (p *packedAt) short() bool { return p.stop != nil && p.stop != io.EOF }

func (p *packedAt) close() error {
	c, ok := p.r.(io.Closer)
	p.r = nil
	if ok {
		return c.Close()
	}
	return nil
}
