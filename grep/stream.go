package grep

import (
	"bytes"
	"errors"
	"io"
)

// sizes are the memory of a search, in bytes. Tests shrink them to reach every boundary.
type sizes struct {
	buffer   int   // each worker's
	big      int   // the one big buffer of a search, for lines and multiline texts over buffer
	pieceLap int   // pieces of a line over big overlap by this
	multiLap int   // windows of a multiline text over big overlap by this
	longLine int   // matches of a line over this are not listed before they are counted
	split    int64 // files from here on are shared between workers,
	segment  int64 // in ranges of this much
	automata int   // all workers'
}

func defaultSizes() sizes {
	return sizes{
		buffer: 256 << 10, big: 8 << 20, pieceLap: 64 << 10, multiLap: 1 << 20,
		longLine: 256 << 10,
		split:    4 << 20, segment: 1 << 20, automata: 3 << 20,
	}
}

// chunk is some whole lines of a file, or a piece of one long line.
type chunk struct {
	b     []byte // b[:from] was searched before; it is there for context
	from  int
	last  bool  // nothing follows
	piece int   // not pieceNone: b[from:] is a part of one line
	at    int64 // offset of b[0] in the file
}

// skipMark leaves the mark of UTF-8 at the beginning of a file out.
func (c *chunk) skipMark() {
	if c.at == 0 && c.from == 0 {
		k := bomLen(c.b)
		c.b, c.at = c.b[k:], int64(k)
	}
}

const (
	pieceNone = iota
	pieceFirst
	pieceMiddle
	pieceLast
)

// stream cuts a reader into chunks that end at line ends. It uses the buffer of the worker, or the
// one big buffer of the search while a line does not fit. fn returns false to stop.
type stream struct {
	r     io.Reader
	buf   []byte
	n     int         // bytes in buf that were read already
	big   chan []byte // holds the big buffer while it is free
	size  *sizes
	lines int   // lines of context to keep in front of a chunk
	skip  bool  // begin after the first line end: the reader starts one byte before a range
	limit int64 // lines that start at or after this offset are not wanted; 0: none
	at    int64 // offset of buf[0]
	stop  func() bool
}

var errStopped = errors.New("stopped")

// run feeds fn. It returns errStopped when stop said so, and read errors as they are.
//
// Each round fills the buffer and gives fn the whole lines in it. Then the rest, and the lines of
// context before it, move to the front. Invariant: at is the file offset of buf[0], and buf[:from]
// was given before.
func (s *stream) run(fn func(c chunk) bool) error {
	own := s.buf
	borrowed := false
	defer func() {
		if borrowed {
			s.big <- s.buf
		}
	}()
	from, piece := 0, pieceNone
	for {
		if s.stop() {
			return errStopped
		}
		eof, err := s.fill()
		if err != nil {
			return err
		}
		b := s.buf[:s.n]
		if s.skip {
			k := bytes.IndexByte(b, '\n')
			switch {
			case k < 0 && eof:
				return nil
			case k < 0:
				s.at += int64(s.n)
				s.n = 0
				if s.limit > 0 && s.at > s.limit {
					return nil
				}
				continue
			}
			s.skip = false
			s.shift(k + 1) // only whole lines may stand in front of a chunk
			b = s.buf[:s.n]
		}
		if s.limit > 0 && s.at+int64(from) >= s.limit && piece == pieceNone {
			return nil
		}
		end := len(b)
		last := eof
		if s.limit > 0 {
			// The last line wanted is the one that holds the byte before limit.
			if k := s.limit - 1 - s.at; k < int64(len(b)) {
				if e := bytes.IndexByte(b[max(k, 0):], '\n'); e >= 0 {
					end, last = int(max(k, 0))+e+1, true
				}
			}
		}
		if !last {
			end = bytes.LastIndexByte(b[from:], '\n') + 1 + from
		}
		if end == from && !last {
			// Not even one whole line. First take the big buffer, then drop the context, then cut
			// the line into pieces.
			if !borrowed && len(s.buf) < s.size.big {
				borrowed = s.borrow()
				continue
			}
			if from > 0 && piece == pieceNone {
				s.shift(from)
				from = 0
				continue
			}
			kind := pieceMiddle
			if piece == pieceNone {
				kind = pieceFirst
			}
			if !fn(chunk{b: b, from: from, piece: kind, at: s.at}) {
				return nil
			}
			piece = kind
			s.shift(s.n - s.size.pieceLap)
			from = 0
			continue
		}
		if piece != pieceNone {
			k := bytes.IndexByte(b[:end], '\n') + 1
			if k == 0 {
				k = end
			}
			ends := last && k == end
			if !fn(chunk{b: b[:k], from: from, piece: pieceLast, last: ends, at: s.at}) || ends {
				return nil
			}
			piece = pieceNone
			s.shift(k)
			from = 0
			continue
		}
		if !fn(chunk{b: b[:end], from: from, last: last, at: s.at}) || last {
			return nil
		}
		keep, whole := contextStart(b[:end], s.lines, len(s.buf)/2)
		switch {
		case !whole && !borrowed && len(s.buf) < s.size.big:
			borrowed = s.borrow()
			keep, _ = contextStart(b[:end], s.lines, len(s.buf)/2)
		case borrowed && s.n-keep <= len(own)/2:
			// The long lines are over: give the big buffer back, another worker may wait for it.
			s.n = copy(own, s.buf[keep:s.n])
			s.at += int64(keep)
			s.big <- s.buf
			s.buf, borrowed, from = own, false, end-keep
			continue
		}
		s.shift(keep)
		from = end - keep
	}
}

// borrow goes on in the big buffer. It waits until that is free.
func (s *stream) borrow() bool {
	b := <-s.big
	if b == nil {
		b = make([]byte, s.size.big)
	}
	copy(b, s.buf[:s.n])
	s.buf = b
	return true
}

// fill reads until the buffer is full or the reader ends.
func (s *stream) fill() (eof bool, err error) {
	n, eof, err := readFull(s.r, s.buf[s.n:])
	s.n += n
	return eof, err
}

func (s *stream) shift(k int) {
	s.n = copy(s.buf, s.buf[k:s.n])
	s.at += int64(k)
}

// contextStart is where the last lines of b begin, at most room bytes before its end. whole says
// that all of them fit.
func contextStart(b []byte, lines, room int) (start int, whole bool) {
	k := len(b)
	for ; lines > 0 && k > 0; lines-- {
		p := bytes.LastIndexByte(b[:k-1], '\n') + 1
		if len(b)-p > room {
			return k, false
		}
		k = p
	}
	return k, true
}
