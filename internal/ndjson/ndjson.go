// Package ndjson reads newline-delimited JSON: the program's batch and MCP over stdio. It knows
// lines only; whoever reads one decodes it.
package ndjson

import (
	"bufio"
	"errors"
	"io"
)

// ErrTooLong says that a line was longer than its limit. It was read to its end and forgotten; the
// next one can be read.
var ErrTooLong = errors.New("the line is too long")

// ReadLine reads one line, its end included, or the rest of the input. A line of more than limit
// bytes is ErrTooLong and never held. The end of the input is io.EOF, and only when nothing came
// before it.
func ReadLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > limit; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong && (err == nil || errors.Is(err, io.EOF)):
			return nil, ErrTooLong
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		}
		return nil, err
	}
}
