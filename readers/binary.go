package readers

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"math"
	"strings"
	"time"

	"github.com/gabriel-vasile/mimetype"

	"moltisfs/readers/parquet"
	"moltisfs/readers/sqlite"
)

// Binary is a file that is neither text nor anything else that can be shown.
type Binary struct {
	ReadRecord `json:"-"`

	Bytes     int64  `json:"bytes"`
	MediaType string `json:"media_type"`
	// Summary is one line on the inside of an archive: "zip archive, 12 entries, …". Listing names its entries,
	// a hundred unless Limit says otherwise; Entries is how many there are, or how many were looked at
	// when EntriesCut. Where no bytes are given Offset counts entries: StartEntry is set beyond the first, and NextOffset is the next one.
	Summary    string   `json:"summary,omitempty"`
	Listing    []string `json:"listing,omitempty"`
	Entries    int      `json:"entries,omitempty"`
	EntriesCut bool     `json:"entries_cut,omitempty"`
	StartEntry int      `json:"start_entry,omitempty"`
	// Base64 is given under BinaryPolicy "base64": from StartOffset (1 is the first byte), with NextOffset for the next part.
	Base64      string `json:"base64,omitempty"`
	StartOffset int64  `json:"start_offset,omitempty"`
	NextOffset  int64  `json:"next_offset,omitempty"`
	Truncated   bool   `json:"truncated,omitempty"`
	Note        string `json:"note,omitempty"`

	entries entryWindow
}

// entryWindow is the part of a listing that was asked for.
type entryWindow struct {
	first, most int // from 1
	room        int // bytes
}

// window takes the part of the listing from the arguments, unless they are about bytes.
func (b *Binary) window(o *Options) {
	b.entries = entryWindow{1, listed, int(o.MaxBytes)}
	if o.BinaryPolicy == "base64" {
		if o.Offset > 1 {
			b.entries.most = 0 // the first page of the bytes has it
		}
		b.entries.room = DefaultMaxBytes // there is no second page of it
		return
	}
	b.entries.first = max(o.Offset, 1)
	if o.Limit > 0 {
		b.entries.most = o.Limit
	}
}

// reach is how many entries have to be looked at in formats that are walked one by one.
func (w *entryWindow) reach() int { return max(tarEntries, w.first+w.most) }

// entry counts one more and names it when it is in the window.
func (b *Binary) entry(name func() string) {
	b.Entries++
	if b.Entries < b.entries.first || len(b.Listing) >= b.entries.most || b.entries.room <= 0 {
		return
	}
	l := name()
	b.Listing = append(b.Listing, l)
	b.entries.room -= len(l) + 1
}

// listedAll sets StartEntry, EntriesCut and NextOffset once every entry has been counted.
func (b *Binary) listedAll() {
	if b.Entries > 0 && b.entries.first > 1 {
		b.StartEntry = b.entries.first
	}
	b.EntriesCut = b.EntriesCut || b.Entries > len(b.Listing)
	if next := b.entries.first + len(b.Listing); b.StartOffset == 0 && next <= b.Entries && len(b.Listing) > 0 {
		b.NextOffset, b.Truncated = int64(next), true
	}
}

// Kind is "binary".
func (*Binary) Kind() string     { return "binary" }
func (c *Binary) noted() *string { return &c.Note }

func readBinary(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	b := &Binary{Bytes: max(f.Size, int64(len(f.head))), MediaType: mediaType(f.head)}
	b.window(o)
	if o.BinaryPolicy == "base64" {
		if err := f.fits(o); err != nil {
			return nil, err
		}
		if err := b.encode(ctx, f, o); err != nil {
			return nil, err
		}
	}
	if err := b.describe(ctx, f, r.config.Deadline); err != nil {
		return nil, err
	}
	if b.Sum == "" && f.ended {
		b.Sum = sum(f.head)
	}
	return b, nil
}

// encode adds the bytes themselves, as many as fit the byte limit in base64.
func (b *Binary) encode(ctx context.Context, f *file, o *Options) error {
	start := int64(max(o.Offset, 1)) - 1
	if o.Tail || o.Offset < 0 {
		back := int64(-o.Offset)
		if o.Tail {
			back = int64(o.Limit)
		}
		if back == 0 {
			back = o.MaxBytes / 4 * 3
		}
		start = max(b.Bytes-back, 0)
	}
	n := o.MaxBytes / 4 * 3
	if o.Limit > 0 {
		n = min(n, int64(o.Limit))
	}
	n = min(n, max(b.Bytes-start, 0))
	if err := ctx.Err(); err != nil {
		return err
	}
	part := make([]byte, n)
	m, err := readAt(f.R, part, start)
	if err != nil {
		return err
	}
	part = part[:m]
	b.Base64, b.StartOffset = base64.StdEncoding.EncodeToString(part), start+1
	if end := start + int64(m); end < b.Bytes {
		b.NextOffset, b.Truncated = end+1, true
	}
	b.Unit, b.Total = "byte", int(b.Bytes)
	if m > 0 {
		b.Shown = []Span{{int(start) + 1, int(start) + m}}
	}
	if start == 0 && !b.Truncated {
		b.Whole, b.Sum = true, sum(part)
	}
	return nil
}

// mediaType names the type without parameters.
func mediaType(head []byte) string {
	name, _, _ := strings.Cut(mimetype.Detect(head[:min(len(head), 3072)]).String(), ";")
	return name
}

const (
	listed     = 100    // entries named by default
	tarEntries = 10_000 // headers walked, or more to get to those asked for
)

// describe lists the entries of an archive, and the schema of a database, for which it takes until the deadline. Every other file has its media type only.
func (b *Binary) describe(ctx context.Context, f *file, deadline time.Duration) error {
	switch {
	case bytes.HasPrefix(f.head, []byte("SQLite format 3\x00")):
		var log io.Reader
		if f.Beside != nil {
			wal, err := f.Beside("-wal")
			if err != nil {
				b.Note = "What only its write-ahead log may have is not shown."
			} else if wal != nil {
				defer wal.Close() //nolint:errcheck // nothing was written through it
				log = contextReader{ctx, wal}
			}
		}
		inTime, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		b.Summary, b.EntriesCut = sqlite.Describe(inTime, f.R, b.Bytes, log, b.entry)
		b.listedAll()
	case bytes.HasPrefix(f.head, []byte("PAR1")):
		if b.MediaType = "application/vnd.apache.parquet"; f.Size >= 0 {
			var err error
			if b.Summary, err = parquet.Describe(f.R, f.Size, b.entry); err != nil {
				b.Summary = "Parquet file; " + err.Error()
			}
			b.listedAll()
		}
	case bytes.HasPrefix(f.head, []byte("PK\x03\x04")), bytes.HasPrefix(f.head, []byte("PK\x05\x06")):
		z, err := openZip(f)
		if err != nil {
			b.Summary = "zip archive; " + err.Error()
			break
		}
		if err := b.describeArchive(ctx, "zip archive", math.MaxInt, func(use func(entry) error) error { return walkZip(z, use) }); err != nil {
			return err
		}
		b.Summary += " unpacked"
	case isTar(f.head):
		return b.describeTar(ctx, f.section(), "tar archive")
	}
	return ctx.Err()
}
