package readers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"

	"moltisfs/internal/text"
	"moltisfs/readers/office"
)

func knowsMarkup(f *file, o *Options) bool {
	if isBinary(f.head) {
		return false
	}
	if o.Render {
		return office.LooksHTML(f.head) || office.LooksEmail(f.head)
	}
	return !o.Source && o.Encoding == "" && office.LooksEmail(f.head) && office.HidesText(f.head)
}

// readMarkup shows HTML and email as a person would see them.
func readMarkup(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	limit := o.MaxFileBytes
	if o.window() || o.AllowLarge {
		limit = max(limit, memoryLimit)
	}
	raw, err := f.all(ctx, limit, "file", limit < memoryLimit)
	if err != nil {
		return nil, err
	}
	d := office.New(ctx, windowOf(o))
	format := "html"
	if office.LooksHTML(f.head) {
		_, text, err := decodeWhole(raw, cmp.Or(o.Encoding, htmlCharset(f.head)))
		if err != nil {
			return nil, err
		}
		err = d.HTML(bytes.NewReader(text))
		if err != nil && !errors.Is(err, office.ErrFull) {
			return nil, damagedOr(ctx, "HTML page", err)
		}
	} else {
		format = "email"
		if err := d.Email(raw); err != nil && !errors.Is(err, office.ErrFull) {
			return nil, damagedOr(ctx, "email", err)
		}
	}
	t, err := documentText(d, format, f.Size, o)
	if err != nil {
		return nil, err
	}
	t.Sum, t.Changed, t.ChangedBelow = sum(raw), f.grown, f.grown
	// Nobody has seen the file's own lines: an overwrite must not rest on this.
	t.Whole, t.Unit, t.Total, t.Shown = false, "source line", -1, nil
	t.Note = strings.TrimSpace(t.Note + " This is the text, not the source; render: false gives the source.")
	return t, nil
}

// htmlCharset is what the page says of itself, if that is an encoding.
func htmlCharset(head []byte) string {
	i := bytes.Index(bytes.ToLower(head[:min(len(head), 2048)]), []byte("charset="))
	if i < 0 {
		return ""
	}
	s := strings.TrimLeft(string(head[i+8:min(len(head), i+48)]), `"' `)
	if j := strings.IndexAny(s, `"' />;`); j >= 0 {
		s = s[:j]
	}
	return knownEncoding(s)
}

// knownEncoding is the name where it is one, else empty.
func knownEncoding(name string) string {
	if text.Lookup(name) == nil {
		return ""
	}
	return name
}
