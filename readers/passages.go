package readers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"moltisfs/readers/office"
)

// Passages is the text of a document as a search takes it: all that [Readers.Read] shows of it, page after page.
type Passages struct {
	Text   []byte
	Places []Place // where the parts of Text stand, in order: all of it; none where there is no text
	Cut    bool    // there is more than Text has
	Late   bool    // the time was over, so there may be more another time
}

// Place is the place of a part of a text, which is whole lines. Options with its Pages and Offset show it.
type Place struct {
	Bytes  int    `json:"bytes"`           // of the part
	Name   string `json:"name,omitempty"`  // "page 3", "Sheet: May", "cell 4"; "" where the number of the line is all
	Pages  string `json:"pages,omitempty"` // or the name of a file in an archive: then Member is set
	Offset int    `json:"offset,omitempty"`
	Lines  bool   `json:"lines,omitempty"` // each line has an offset of its own, the next one
	Member bool   `json:"member,omitempty"`
}

// MaxDocument is the longest document whose text is searched, in bytes; and so long is the text, about.
const MaxDocument = 64 << 20

// IsDocument says of a file that begins with head, and of which r gives size bytes, that Read shows a text of it that its bytes do not have.
// binary says that there is a NUL near its beginning. It is asked of many files, most of which are none.
func IsDocument(head []byte, r io.ReaderAt, size int64, binary bool) bool {
	if head = head[:min(len(head), headBytes)]; len(head) == 0 || !binary && !mayHide(head, size) {
		return false
	}
	f, o := &file{Source: Source{R: r, Size: size}, head: head, ended: int64(len(head)) >= size}, &Options{}
	if knowsImage(f, o) {
		return false
	}
	for _, kind := range inOrder[1 : len(inOrder)-2] { // the last two are text, and what has none
		if kind.knows(f, o) {
			return true
		}
	}
	return binary && (bytes.HasPrefix(head, []byte("SQLite format 3\x00")) || isTar(head))
}

// IsConverted says that Read makes what it shows of such a file, which takes a while: of a document or a picture.
func IsConverted(head []byte, r io.ReaderAt, size int64) bool {
	return IsDocument(head, r, size, isBinary(head)) || knowsImage(&file{Source: Source{R: r, Size: size}, head: head}, &Options{})
}

// mayHide says of a text by its first bytes that Read may take it for something else.
func mayHide(head []byte, size int64) bool {
	switch c := head[0]; {
	case mayBePDF(head):
		return true
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		for i := 1; i < len(head) && i < 80 && head[i] > ' '; i++ {
			if head[i] == ':' {
				return office.LooksEmail(head)
			}
		}
		return bytes.HasPrefix(head, []byte("PK")) || bytes.HasPrefix(head, []byte("BZh"))
	case c == '{', c <= ' ':
		start := bytes.TrimLeft(head[:min(len(head), 64)], " \t\r\n")
		return bytes.HasPrefix(start, []byte{'{'}) && (int64(len(head)) < size || bytes.Contains(head, []byte(`"nbformat"`)))
	}
	return head[0] == '(' || head[0] >= utf8.RuneSelf
}

// Passages gives the text of a document. A file in which there is none has no Places. Errors are those of Read.
func (r *Readers) Passages(ctx context.Context, s Source) (p *Passages, err error) {
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, &Damaged{What: "file", Why: fmt.Sprintf("%s (%.120q)", gaveUp, fmt.Sprint(v))}
		}
	}()
	if s.Size > MaxDocument {
		return nil, &TooLarge{Size: s.Size, Max: MaxDocument, What: "document"}
	}
	f := &file{Source: s}
	if err := f.begin(); err != nil {
		return nil, fmt.Errorf("reading the beginning of the file: %w", err)
	}
	defer f.release()
	p = &Passages{}
	is, err := p.archive(ctx, r, f)
	if err == nil && !is {
		err = p.add(ctx, r, s, "")
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// archive adds the files in the archive f, if it is one. What is not text by its first bytes is passed by, as in a directory.
func (p *Passages) archive(ctx context.Context, r *Readers, f *file) (is bool, err error) {
	type held struct {
		name    string
		content []byte
	}
	var files []held
	seen, room := map[string]bool{}, int64(MaxDocument)
	is, err = r.members(ctx, f, func(m member) error {
		if seen[m.name] { // Read finds the first of the name
			return nil
		}
		seen[m.name] = true
		b := bufio.NewReaderSize(m.content, headBytes)
		head, err := b.Peek(headBytes)
		if binary := isBinary(head); err == nil || err == io.EOF {
			if len(head) == 0 || binary && !IsDocument(head, bytes.NewReader(head), int64(len(head)), true) {
				return nil
			}
		}
		content, err := io.ReadAll(io.LimitReader(b, min(room, memoryLimit)+1))
		if err != nil || int64(len(content)) > min(room, memoryLimit) {
			p.Cut = true // it is damaged, encrypted or too large
			return ctx.Err()
		}
		room -= int64(len(content))
		files = append(files, held{m.name, content})
		return nil
	})
	if errors.As(err, new(*Limit)) || errors.As(err, new(*Damaged)) && len(files) > 0 {
		p.Cut, err = true, nil
	}
	for i := 0; err == nil && i < len(files); i++ {
		err = p.add(ctx, r, Source{R: bytes.NewReader(files[i].content), Size: int64(len(files[i].content))}, files[i].name)
		if err != nil && ctx.Err() == nil {
			p.Cut, err = true, nil
		}
	}
	return is, err
}

// add appends the text of s, which is a document, or the file member of an archive.
func (p *Passages) add(ctx context.Context, r *Readers, s Source, member string) error {
	c, err := r.Read(ctx, s, Options{Limit: math.MaxInt32, AllowLarge: true, MaxBytes: MaxDocument, MaxFileBytes: MaxDocument, all: true})
	if err != nil {
		return err
	}
	p.take(c, member)
	return ctx.Err()
}

// take appends the text of c, which Read gave of a document, or of the file member of an archive.
func (p *Passages) take(c Content, member string) {
	at := Place{Name: member, Pages: member, Member: member != ""}
	named := func(what string, n int) string {
		return strings.TrimPrefix(fmt.Sprintf("%s, %s %d", member, what, n), ", ")
	}
	switch c := c.(type) {
	case *Text:
		at.Offset, at.Lines = 1, true
		from, end, line := 0, 0, 0
		for l := range strings.Lines(c.Content) {
			line++
			if c.Format != "" && member == "" && (strings.HasPrefix(l, "## Sheet: ") || strings.HasPrefix(l, "## Slide ")) {
				p.put(at, c.Content[from:end])
				from, at.Name, at.Offset = end, strings.TrimSpace(l[3:]), line
			}
			end += len(l)
		}
		p.put(at, c.Content[from:])
		p.Cut = p.Cut || c.TotalLines < 0
	case *Notebook:
		for i, cell := range c.Cells {
			at.Offset = c.StartCell + i
			at.Name = named("cell", at.Offset)
			p.put(at, cell.Source)
			for _, out := range cell.Outputs {
				p.put(at, out.Text)
			}
		}
		p.Cut = p.Cut || c.Truncated
	case *PDF:
		for _, page := range c.read {
			at.Name, at.Pages = named("page", page.Number), fmt.Sprint(page.Number)
			if member == "" { // else Read does not come to it
				p.put(at, page.Text)
			}
		}
		p.Cut = p.Cut || c.Truncated
		p.Late = p.Late || c.late
	case *Binary:
		for i, entry := range c.Listing {
			if member != "" {
				break // an archive within an archive is not opened
			}
			at.Offset = max(c.StartEntry, 1) + i
			at.Name = named("entry", at.Offset)
			p.put(at, entry)
		}
		p.Cut = p.Cut || c.EntriesCut
	}
}

// put appends a text, which stands at one place.
func (p *Passages) put(at Place, text string) {
	if text == "" {
		return
	}
	if text[len(text)-1] != '\n' {
		text += "\n"
	}
	at.Bytes = len(text)
	p.Places, p.Text = append(p.Places, at), append(p.Text, text...)
}
