package readers

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
	"unicode/utf8"

	"moltisfs/readers/office"
)

// Passages is the text of a document as a search takes it: all that [Readers.Read] shows of it, page after page.
type Passages struct {
	Text   []byte
	Places []Place // where the parts of Text stand, in order: all of it; none where there is no text
	Cut    bool    // there is more than Text has
	Late   bool    // there may be more another time: the time was over
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
		p.Late = p.Late || c.Truncated
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
	return ctx.Err()
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

// member is a file in an archive. Its name is clean: relative, without "..", and of characters that show.
type member struct {
	name    string
	content io.Reader
}

// members calls use for the files of the archive f, in their order, and says whether f is one: a zip or a tar, compressed or not, that is no document.
// An error of use ends it.
func (r *Readers) members(ctx context.Context, f *file, use func(member) error) (is bool, err error) {
	named := func(name string, content io.Reader) error {
		clean := path.Clean("/" + name)[1:]
		if clean == "" || len(clean) > 1000 || !utf8.ValidString(clean) || strings.ContainsFunc(clean, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil
		}
		return use(member{clean, content})
	}
	o := &Options{}
	switch {
	case knowsZip(f, o):
		z, err := openZip(f)
		if err != nil || office.Open(ctx, z) != nil {
			return false, nil // whose reader says what is wrong with it
		}
		for i, e := range z.File {
			if i == tarEntries {
				return true, &Limit{What: "archive", Resource: "entries", Max: tarEntries}
			}
			if err := ctx.Err(); err != nil {
				return true, err
			}
			if !e.Mode().IsRegular() {
				continue
			}
			content, err := e.Open()
			if err != nil {
				content = io.NopCloser(failing{err})
			}
			if e.Flags&1 != 0 {
				content = io.NopCloser(failing{&Encrypted{What: "file in the archive"}})
			}
			err = named(e.Name, content)
			content.Close() //nolint:errcheck // nothing was written through it
			if err != nil {
				return true, err
			}
		}
		return true, nil
	case knowsCompressed(f, o):
		free, err := r.reserve(ctx, "file", unpackMemory)
		if err != nil {
			return false, err
		}
		defer free()
		ctx, cancel := context.WithTimeout(ctx, r.config.Deadline)
		defer cancel()
		u := &unpacker{in: &countReader{r: contextReader{ctx, f.section()}}, max: unpackedList}
		if u.out, err = packingOf(f.head).open(u.in); err != nil {
			return false, nil
		}
		if c, ok := u.out.(io.Closer); ok {
			defer c.Close()
		}
		b := bufio.NewReaderSize(u, 4096)
		if head, _ := b.Peek(512); !isTar(head) {
			return false, nil
		}
		return true, tarMembers(ctx, b, named)
	case isTar(f.head):
		return true, tarMembers(ctx, contextReader{ctx, f.section()}, named)
	}
	return false, nil
}

func tarMembers(ctx context.Context, r io.Reader, use func(string, io.Reader) error) error {
	t := tar.NewReader(r)
	for range tarEntries {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damagedOr(ctx, "tar archive", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := use(h.Name, t); err != nil {
			return err
		}
	}
	return &Limit{What: "archive", Resource: "entries", Max: tarEntries}
}

func isTar(head []byte) bool { return len(head) >= 263 && string(head[257:262]) == "ustar" }

// failing gives an error in place of content.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// errFound ends the way through an archive.
var errFound = errors.New("it is found")

// readMember reads the file of the archive f that o.Pages names. is says that f is an archive.
func (r *Readers) readMember(ctx context.Context, f *file, o *Options) (c Content, is bool, err error) {
	name := path.Clean("/" + o.Pages)[1:]
	var content []byte
	is, err = r.members(ctx, f, func(m member) error {
		if m.name != name {
			return nil
		}
		content, err = io.ReadAll(io.LimitReader(m.content, memoryLimit+1))
		switch {
		case err != nil:
			return damagedOr(ctx, "file in the archive", err)
		case len(content) > memoryLimit:
			return &Limit{What: "file in the archive", Resource: "bytes", Max: memoryLimit}
		}
		return errFound
	})
	if is && f.Denied != nil { // the same whether or not it is there
		if no := f.Denied(name); no != nil {
			return nil, true, no
		}
	}
	switch {
	case !is:
		return nil, false, err
	case err == nil:
		return nil, true, &BadRequest{Field: "pages", Why: fmt.Sprintf("there is no file %.200q in the archive", o.Pages), Do: "Leave pages out for the names of its files."}
	case err != errFound:
		return nil, true, err
	}
	inner := *o
	inner.Pages = ""
	c, err = r.Read(ctx, Source{R: bytes.NewReader(content), Size: int64(len(content)), Name: name}, inner)
	if err != nil {
		return nil, true, err
	}
	*c.record() = ReadRecord{Unit: "member " + c.record().Unit, Total: -1, Lossy: true}
	note := c.noted()
	*note = strings.TrimSpace(fmt.Sprintf("This is %s of the archive. %s", name, *note))
	return c, true, nil
}
