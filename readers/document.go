package readers

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"

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
	var record ReadRecord
	if err := f.addSum(ctx, &record); err != nil {
		return nil, err
	}
	d.Enough = enough(o)
	key := record.Sum + " " + o.Pages
	if made := r.kept.get(key); record.Sum != "" && made != nil && (!made.Partial || d.Enough != nil && d.Enough(made.Text())) {
		d = made
	} else {
		free, err := r.reserve(ctx, "document", documentMemory)
		if err != nil {
			return nil, err
		}
		defer free()
		if d.Format == "xlsx" || d.Format == "ods" {
			d.Sheet = strings.TrimSpace(o.Pages)
		}
		var none *office.NoSheet
		if err := d.Write(); errors.As(err, &none) {
			return nil, &BadPages{Pages: unreadable.Clip(o.Pages, 60), Why: "there is no such sheet", Sheets: none.Names}
		} else if err != nil {
			return nil, damagedOr(ctx, d.Format+" document", err)
		}
		if record.Sum != "" && !o.all { // a search has the text kept elsewhere
			r.kept.put(key, d)
		}
	}
	t, err := documentText(d, d.Format, f.Size, o)
	if err != nil {
		return nil, err
	}
	t.Sum = record.Sum
	return t, nil
}

func knowsEncrypted(f *file, o *Options) bool {
	return len(f.head) > 0 && f.head[0] == 0xd0 && !forced(f, o) && office.Encrypted(f.R)
}

func refuseEncrypted(context.Context, *Readers, *file, *Options) (Content, error) {
	return nil, &Encrypted{What: "Office document"}
}

// enough reports of the first part of a text whether it holds the window o. It is nil where only the whole does.
func enough(o *Options) func([]byte) bool {
	if o.fromEnd() {
		return nil
	}
	return func(part []byte) bool {
		part = part[text.SkipLines(part, max(o.Offset, 1)-1):]
		return int64(len(part)) > o.MaxBytes || countLines(part) > o.lines()
	}
}

// kept is the document that was read last, as far as its text was made, for the calls that read on: under the hash of the file and the part that was asked for.
type kept struct {
	mu  sync.Mutex
	key string
	doc *office.Document
}

// get is the document kept under that key; nil where it is another.
func (k *kept) get(key string) *office.Document {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key != k.key {
		return nil
	}
	return k.doc
}

// put keeps d, which nobody changes any more, in place of the one before.
func (k *kept) put(key string, d *office.Document) {
	d.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key, k.doc = key, d
}

// documentText is the window that o asks for of the text collected in d, from a file of size bytes.
func documentText(d *office.Document, format string, size int64, o *Options) (*Text, error) {
	if d.Full && o.fromEnd() {
		return nil, endUnreachable(o, "its text is longer than "+unreadable.Bytes(office.MaxText))
	}
	t := renderText(d.Text(), o)
	t.Format, t.Encoding, t.Unit, t.Lossy = format, "utf-8", format+" line", true
	if t.TotalLines == 0 {
		t.noText(size, d.Pictures)
	}
	t.Note = strings.TrimSpace(t.Note + " " + d.Mentions(t.StartLine <= 1))
	if len(d.Sheets) > 1 && d.Sheet == "" && t.StartLine <= 1 {
		t.Note = strings.TrimSpace(t.Note + " Its sheets are " + sheetNames(d.Sheets) + "; pages: with such a name shows one alone.")
	}
	switch {
	case d.Full:
		t.unknownTotal(strings.TrimSpace(t.Note + " Only the first " + unreadable.Bytes(office.MaxText) + " of the text can be shown."))
	case d.Partial:
		t.goOn(t.StartLine+t.RenderedLines, true)
		t.unknownTotal(t.Note)
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
		if err != nil {
			return nil, damagedOr(ctx, "HTML page", err)
		}
	} else {
		format = "email"
		if err := d.Email(raw); err != nil {
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
