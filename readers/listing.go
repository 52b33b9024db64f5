package readers

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"moltisfs/readers/unreadable"
)

const (
	listed       = 100     // entries named unless told
	tarEntries   = 10_000  // headers walked, or more to get to those asked for
	zipDirectory = 8 << 20 // bytes of a zip's central directory: archive/zip holds all of it
)

// describe lists the entries of an archive. Every other file has its media type only.
func (b *Binary) describe(ctx context.Context, f *file) error {
	switch {
	case bytes.HasPrefix(f.head, []byte("PK\x03\x04")), bytes.HasPrefix(f.head, []byte("PK\x05\x06")):
		b.describeZip(f)
	case len(f.head) >= 263 && string(f.head[257:262]) == "ustar":
		return b.describeTar(contextReader{ctx, f.section()}, "tar archive")
	}
	return ctx.Err()
}

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

func (b *Binary) describeZip(f *file) {
	z, err := openZip(f)
	if err != nil {
		b.Summary = "zip archive; " + err.Error()
		return
	}
	var total uint64
	for _, e := range z.File {
		total += e.UncompressedSize64
		b.entry(func() string { return unreadable.Entry(e.Name, int64(min(e.UncompressedSize64, 1<<62))) })
	}
	b.listedAll()
	b.Summary = fmt.Sprintf("zip archive, %s, %s unpacked", unreadable.Plural(len(z.File), "entry"), unreadable.Bytes(int64(min(total, 1<<62))))
}

// describeTar lists headers; the bodies are skipped without being kept.
func (b *Binary) describeTar(r io.Reader, what string) error {
	t := tar.NewReader(r)
	var total int64
	most := b.entries.reach()
	for b.Entries < most {
		h, err := t.Next()
		if err != nil {
			if c, ok := r.(contextReader); ok && c.ctx.Err() != nil {
				return c.ctx.Err()
			}
			b.EntriesCut = b.EntriesCut || err != io.EOF
			break
		}
		total += h.Size
		b.entry(func() string {
			name := h.Name
			if h.Linkname != "" {
				name += " -> " + h.Linkname
			}
			return unreadable.Entry(name, h.Size)
		})
	}
	b.listedAll()
	more := ""
	if b.Entries == most {
		more = " or more"
	}
	entries := "entries"
	if b.Entries == 1 {
		entries = "entry"
	}
	b.Summary = fmt.Sprintf("%s, %s%s %s, %s", what, unreadable.Number(int64(b.Entries)), more, entries, unreadable.Bytes(total))
	return nil
}
