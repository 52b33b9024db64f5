package acp

import (
	"bytes"
	"context"
	"path/filepath"
	"unicode/utf8"

	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
	"moltisfs/internal/session"
	"moltisfs/internal/text"
)

type content struct {
	Content string `json:"content"`
}

// read gives lines of a file, each with its end, in UTF-8 and without a byte order mark.
func (c *call) read(ctx context.Context) error {
	name := *c.params.Path
	if c.Overlay != nil {
		if err := c.opens(ctx, name, false); err != nil {
			return err
		}
	}
	err := c.Read(ctx, name,
		func(ctx context.Context, s *engine.Source) (*engine.ReadRecord, error) {
			part, sight, err := c.lines(ctx, s)
			c.answer = content{string(part)}
			return sight, err
		})
	if missing(err) && c.cfg.MissingRead == "empty" {
		c.answer, err = content{}, nil
	}
	return err
}

// lines gives the lines that the call asks for. A file over max_read_bytes is read through for a window
// alone.
func (c *call) lines(ctx context.Context, s *engine.Source) ([]byte, *engine.ReadRecord, error) {
	most, first, n := c.e.Config().MaxReadBytes, max(c.params.Line.n, 1), -1
	if c.params.Limit.is {
		n = c.params.Limit.n
	}
	whole := first == 1 && n < 0
	if s.Info.Size > most && !whole {
		part, sight, err := s.Lines(ctx, first, n, most)
		if err == nil && !utf8.Valid(part) {
			err = engine.Refuse(refusal.NotText, s.Path, nil)
		}
		return part, sight, err
	}
	raw, sight, err := s.Bytes(ctx, 0, -1, most)
	if err != nil {
		return nil, nil, err
	}
	all := raw
	if !s.Unsaved {
		if all, err = decoded(raw, s.Path); err != nil {
			return nil, nil, err
		}
	}
	if whole {
		return all, sight, nil
	}
	part, last, total := window(all, first, n)
	if s.Given += int64(len(part) - len(raw)); len(part) == len(all) {
		return part, sight, nil
	}
	sight = &engine.ReadRecord{Unit: "line", Lines: total, Hash: sight.Hash}
	if last >= first {
		sight.Ranges = []session.Range{{First: first, Last: last}}
	}
	return part, sight, nil
}

// window is n lines from first on, with n below zero all of them; last is the last of those, and
// total is how many there are. A final newline makes no extra line.
func window(all []byte, first, n int) (part []byte, last, total int) {
	from, to, line := len(all), len(all), 0
	for at := 0; at < len(all); {
		if line++; line == first {
			from = at
		}
		if n >= 0 && line == first+n {
			to = at
		} else if line >= first && to == len(all) {
			last = line
		}
		next := bytes.IndexByte(all[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return all[min(from, to):to], last, line
}

// decoded is the text of a file that is text, in whatever encoding.
func decoded(raw []byte, name string) ([]byte, error) {
	no := engine.Refuse(refusal.NotText, name, nil)
	if text.Sniff(raw) == text.Binary {
		return nil, no
	}
	e, mark := text.ToRead("", raw)
	if e.Encoding == nil {
		return nil, no
	}
	out, ok := e.Exact(raw[mark:])
	if !ok {
		return nil, no
	}
	return out, nil
}

// write replaces the whole of a file or makes it, with the directories above it: the protocol has
// no other way to make them.
func (c *call) write(ctx context.Context) error {
	a := engine.WriteArgs{Path: *c.params.Path, Text: *c.params.Content,
		Rules: engine.Rules{Parents: true}}
	if c.Overlay != nil {
		if err := c.opens(ctx, a.Path, true); err != nil {
			return err
		}
	}
	_, _, err := c.Write(ctx, a)
	if engine.Accident.In(err) { // nobody can say by this method that one is meant
		a.Rules.Meant = true
		_, _, err = c.Write(ctx, a)
	}
	return err
}

// opens has the overlay know what is on the disk: an editor's error about a path where nothing is
// says that it has no text of it, and what is written there is a file that the editor makes. The
// directories above it are ours to make, and then so is the file.
func (c *call) opens(ctx context.Context, name string, writes bool) error {
	disk := *c.Call
	disk.Overlay = nil
	_, err := disk.Stat(ctx, name, false)
	o := &opened{Overlay: c.Overlay, nothing: missing(err)}
	if o.nothing && writes {
		_, err := disk.Stat(ctx, filepath.Dir(name), true)
		o.makes = err == nil && o.Takes()
	}
	c.Overlay = o
	return ctx.Err()
}

// opened is an editor that is asked for one path.
type opened struct {
	dialect.Overlay
	nothing, makes bool // nothing is on the disk; the editor makes it
}

// Takes says whether the editor takes texts.
func (o *opened) Takes() bool {
	g, ok := o.Overlay.(Giver)
	return !ok || g.Takes()
}

func (o *opened) Load(ctx context.Context, name string) (string, bool, error) {
	text, held, err := o.Overlay.Load(ctx, name)
	if err != nil && o.nothing && ctx.Err() == nil {
		err = nil
	}
	return text, held || err == nil && o.makes, err
}
