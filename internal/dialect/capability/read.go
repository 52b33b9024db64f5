package capability

import (
	"context"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/text"
)

// binary is the encoding of bytes that are no text. They come and go as base64.
const binary = "binary"

type readArgs struct {
	Path     string  `json:"path"`
	Encoding *string `json:"encoding,omitempty" default:"utf-8"`
	Offset   *int64  `json:"offset,omitempty" min:"0"`
	Limit    *int64  `json:"limit,omitempty" min:"0"`
}

func (a *readArgs) paths() []string { return []string{a.Path} }

func (a *readArgs) asked() (w engine.Asked) {
	if a.Offset != nil || a.Limit != nil {
		w.Window = fmt.Sprintf("offset %d limit %d bytes", value(a.Offset, 0), value(a.Limit, -1))
	}
	return w
}

// content is a file, or a part of it.
type content struct {
	Content   string  `json:"content"`
	Size      int64   `json:"size"`
	Modified  *string `json:"modified"`
	Checksum  string  `json:"checksum"`
	Truncated bool    `json:"truncated"`
	Hidden    int     `json:"hidden_chars,omitempty"`
	Lines     []int   `json:"hidden_lines,omitempty"`
}

func runRead(ctx context.Context, c *call, a *readArgs) (any, error) {
	var out *content
	err := c.e.Read(ctx, c.Call, a.Path, func(ctx context.Context,
		s *engine.Source) (*engine.Sight, error) {
		w := window{off: value(a.Offset, 0), n: value(a.Limit, -1)}
		part, sight, err := w.read(ctx, s, value(a.Encoding, "utf-8"), c.e.Config().MaxReadBytes)
		if err != nil {
			return nil, err
		}
		sum, err := s.Hash(ctx)
		out = &content{part, s.Info.Size, stamp(s.Info.ModTime), sum, w.end < s.Info.Size, 0, nil}
		out.Hidden, out.Lines = text.HiddenLines(part)
		return sight, err
	})
	return out, err
}

// A window is n bytes of a file from off on, with n below zero all that follow.
type window struct{ off, n, end int64 }

// read gives a window as text in an encoding. In UTF-8 it has the characters that begin in it, so
// that windows side by side leave nothing out. In other encodings it must not cut one.
func (w *window) read(ctx context.Context, s *engine.Source, encoding string,
	most int64) (string, *engine.Sight, error) {
	e, _ := text.ToRead(encoding, nil)
	if e != text.UTF8 {
		raw, sight, err := s.Bytes(ctx, w.off, w.n, most)
		w.end = w.off + int64(len(raw))
		switch {
		case err != nil:
			return "", nil, err
		case encoding == binary:
			return base64.StdEncoding.EncodeToString(raw), sight, nil
		}
		e, mark := text.ToRead(encoding, raw)
		if e == nil {
			return "", nil, &encodingError{encoding}
		}
		out, err := e.Decode(raw[mark:])
		if err != nil || !utf8.Valid(out) {
			return "", nil, &encodingError{e.Name}
		}
		return string(out), sight, nil
	}
	// A character has up to three bytes after the one that it begins with.
	const around = utf8.UTFMax - 1
	from := max(w.off-around, 0)
	n, lead := w.n, w.off-from
	if n >= 0 {
		n = min(n, 1<<62) + lead + around
	}
	if left := s.Info.Size - w.off; left > most && (w.n < 0 || w.n > most) {
		if w.n >= 0 {
			left = min(left, w.n)
		}
		return "", nil, &guardfs.TooLargeError{Path: s.Path, Size: left, Max: most}
	}
	raw, sight, err := s.Bytes(ctx, from, n, most+2*around)
	if err != nil {
		return "", nil, err
	}
	first := begins(raw, int(min(lead, int64(len(raw)))))
	last := len(raw)
	if w.n >= 0 && lead+w.n < int64(last) {
		last = max(begins(raw, int(lead+w.n)), first)
	}
	part := raw[first:last]
	if w.end = from + int64(last); w.off > s.Info.Size {
		w.end = w.off
	}
	if !utf8.Valid(part) {
		return "", nil, &encodingError{"utf-8"}
	}
	if sight != nil {
		sight.Whole = int64(len(part)) == s.Info.Size
	}
	return string(part), sight, nil
}

// begins is the first place from at on that is not within a character.
func begins(b []byte, at int) int {
	for back := 1; back < utf8.UTFMax && back <= at; back++ {
		if _, n := utf8.DecodeRune(b[at-back:]); n > back {
			return at - back + n
		}
		if utf8.RuneStart(b[at-back]) {
			break
		}
	}
	return at
}
