package readers

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"moltisfs/internal/text"
	"moltisfs/readers/office"
	"moltisfs/readers/unreadable"
)

func knowsZip(f *file, o *Options) bool {
	return bytes.HasPrefix(f.head, []byte("PK\x03\x04")) && !forced(f, o)
}

// readZip reads the documents that are zip archives. Other archives go on to binary, which lists them.
func readZip(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	z, err := openZip(f)
	if err != nil {
		return nil, errNotMine
	}
	d := office.Open(ctx, z)
	if d == nil {
		return nil, errNotMine
	}
	if err := f.fits(o); err != nil {
		return nil, err
	}
	free, err := r.reserve(ctx, "document", documentMemory)
	if err != nil {
		return nil, err
	}
	defer free()
	if err := d.Write(); err != nil && !errors.Is(err, office.ErrFull) {
		return nil, damagedOr(ctx, d.Format+" document", err)
	}
	t, err := documentText(d, d.Format, f.Size, o)
	if err != nil {
		return nil, err
	}
	return t, f.addSum(ctx, &t.ReadRecord)
}

// documentText is the window that o asks for of the text collected in d, from a file of size bytes.
func documentText(d *office.Document, format string, size int64, o *Options) (*Text, error) {
	if d.Full && o.fromEnd() {
		return nil, endUnreachable(o, "its text is longer than "+unreadable.Bytes(office.MaxText))
	}
	content := bytes.TrimRight(d.Text(), "\n")
	if len(content) > 0 {
		content = append(content, '\n')
	}
	t := renderText(content, o)
	t.Format, t.Encoding, t.Unit, t.Lossy = format, "utf-8", format+" line", true
	if t.TotalLines == 0 {
		t.noText(size, d.Pictures())
	}
	t.Note = strings.TrimSpace(t.Note + " " + d.Mentions(t.StartLine <= 1))
	if d.Full {
		t.unknownTotal(strings.TrimSpace(t.Note + " Only the first " + unreadable.Bytes(office.MaxText) + " of the text can be shown."))
	}
	return t, nil
}

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
	limit := o.longest(o.window(), memoryLimit)
	raw, err := f.all(ctx, limit, "file", limit < memoryLimit)
	if err != nil {
		return nil, err
	}
	d := office.New(ctx)
	format := "html"
	if office.LooksHTML(f.head) {
		_, _, text, err := decodeWhole(raw, o.Encoding)
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
	t.Sum = sum(raw)
	// Nobody has seen the file's own lines: an overwrite must not rest on this.
	t.Whole, t.Unit, t.Total, t.Shown = false, "source line", -1, nil
	t.Note = strings.TrimSpace(t.Note + " This is the text, not the source; render: false gives the source.")
	return t, nil
}

// knownEncoding is the name where it is one, else empty.
func knownEncoding(name string) string {
	if text.Lookup(name) == nil {
		return ""
	}
	return name
}
