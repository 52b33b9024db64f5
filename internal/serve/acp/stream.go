package acp

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// keptLine is how large a line may be for its memory to be kept for the next one.
const keptLine = 1 << 20

// lines reads lines of any length: the longest one is what it holds.
type lines struct {
	r    *bufio.Reader
	long []byte
}

func linesOf(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next is one line with its end, good until the next call. What comes before the end of the input
// without one gets one.
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	if cap(l.long) > keptLine {
		l.long = nil
	}
	l.long = append(l.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.r.ReadSlice('\n')
		l.long = append(l.long, line...)
	}
	if errors.Is(err, io.EOF) && len(l.long) > 0 {
		return append(l.long, '\n'), nil
	}
	return l.long, err
}

// peer is where lines go.
type peer struct {
	mu  sync.Mutex
	out io.Writer
	err error // of the first write that failed; nothing is written after it
}

// send writes whole lines.
func (p *peer) send(line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		_, p.err = p.out.Write(line)
	}
	return p.err
}
