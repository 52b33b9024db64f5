package readers

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"moltisfs/readers/office"
	"moltisfs/readers/unreadable"
)

// zipDirectory is how many bytes a zip's central directory may have: archive/zip holds all of it.
const zipDirectory = 8 << 20

// openZip opens a zip whose central directory is of bearable size.
func openZip(f *file) (*zip.Reader, error) {
	size := f.section().Size()
	if f.Size < 0 {
		return nil, &Damaged{What: "zip archive", Why: "its size is not known"}
	}
	tail := make([]byte, min(size, 66<<10))
	n, err := readAt(f.R, tail, size-int64(len(tail)))
	if err != nil {
		return nil, err
	}
	tail = tail[:n]
	if i := bytes.LastIndex(tail, []byte("PK\x05\x06")); i >= 0 && i+22 <= len(tail) {
		if n := int64(binary.LittleEndian.Uint32(tail[i+12:])); n != 0xffffffff && n > zipDirectory {
			return nil, &Limit{What: "archive", Resource: "bytes of directory", Is: n, Max: zipDirectory}
		}
		if j := bytes.LastIndex(tail[:i], []byte("PK\x06\x06")); j >= 0 && j+56 <= len(tail) {
			if n := int64(binary.LittleEndian.Uint64(tail[j+40:])); n < 0 || n > zipDirectory {
				return nil, &Limit{What: "archive", Resource: "bytes of directory", Is: n, Max: zipDirectory}
			}
		}
	}
	z, err := zip.NewReader(f.R, size)
	if err != nil && z == nil {
		return nil, &Damaged{What: "zip archive", Why: err.Error()}
	}
	return z, nil
}

// entry is a file, a directory or a link in an archive, as the archive names it. What open gives is good until the next entry.
type entry struct {
	name, link string
	size       int64
	regular    bool
	open       func() io.Reader
}

// walkZip calls use for the entries of z in their order. An error of use ends it.
func walkZip(z *zip.Reader, use func(entry) error) error {
	for _, e := range z.File {
		open := func() io.Reader {
			if e.Flags&1 != 0 {
				return failing{&Encrypted{What: "file in the archive"}}
			}
			content, err := e.Open()
			if err != nil {
				return failing{err}
			}
			return content // to close it frees nothing
		}
		if err := use(entry{e.Name, "", int64(min(e.UncompressedSize64, 1<<61)), e.Mode().IsRegular(), open}); err != nil {
			return err
		}
	}
	return nil
}

// walkTar calls use for the entries of the tar r in their order. An error of use ends it.
func walkTar(ctx context.Context, r io.Reader, use func(entry) error) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damagedOr(ctx, "tar archive", err)
		}
		if err := use(entry{h.Name, h.Linkname, min(h.Size, 1<<61), h.Typeflag == tar.TypeReg, func() io.Reader { return t }}); err != nil {
			return err
		}
	}
}

func isTar(head []byte) bool { return len(head) >= 263 && string(head[257:262]) == "ustar" }

// failing gives an error in place of content.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// describeArchive lists the entries that walk gives, most of them at the most. Of what is damaged it lists as much as there is.
func (b *Binary) describeArchive(ctx context.Context, what string, most int, walk func(use func(entry) error) error) error {
	var total int64
	err := walk(func(e entry) error {
		if b.Entries == most {
			return errFound
		}
		total = min(total+e.size, 1<<61)
		b.entry(func() string {
			name := e.name
			if e.link != "" {
				name += " -> " + e.link
			}
			return unreadable.Entry(name, e.size)
		})
		return nil
	})
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	b.EntriesCut = b.EntriesCut || err != nil
	b.listedAll()
	entries := unreadable.Plural(b.Entries, "entry")
	if err == errFound {
		entries = strings.Replace(entries, " ", " or more ", 1)
	}
	b.Summary = fmt.Sprintf("%s, %s, %s", what, entries, unreadable.Bytes(total))
	return nil
}

// describeTar lists the entries of the tar r; the bodies are skipped without being kept.
func (b *Binary) describeTar(ctx context.Context, r io.Reader, what string) error {
	return b.describeArchive(ctx, what, b.entries.reach(), func(use func(entry) error) error { return walkTar(ctx, contextReader{ctx, r}, use) })
}

// member is a file in an archive. Its name is clean: relative, without "..", and of characters that show.
type member struct {
	name    string
	content io.Reader
}

// members calls use for the files of the archive f, in their order, and says whether f is one: a zip or a tar, compressed or not, that is no document.
// An error of use ends it.
func (r *Readers) members(ctx context.Context, f *file, use func(member) error) (is bool, err error) {
	n := 0
	named := func(e entry) error {
		if n++; n > tarEntries {
			return &Limit{What: "archive", Resource: "entries", Max: tarEntries}
		}
		clean := path.Clean("/" + e.name)[1:]
		if !e.regular || clean == "" || len(clean) > 1000 || !utf8.ValidString(clean) || strings.ContainsFunc(clean, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return ctx.Err()
		}
		return use(member{clean, e.open()})
	}
	o := &Options{}
	switch {
	case knowsZip(f, o):
		z, err := openZip(f)
		if err != nil || office.Open(ctx, z) != nil {
			return false, nil // whose reader says what is wrong with it
		}
		return true, walkZip(z, named)
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
		return true, walkTar(ctx, b, named)
	case isTar(f.head):
		return true, walkTar(ctx, contextReader{ctx, f.section()}, named)
	}
	return false, nil
}

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
