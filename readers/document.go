package readers

import (
	"bytes"
	"context"
	"errors"
	"strings"

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
	d := office.Open(ctx, z, windowOf(o))
	if d == nil {
		return nil, errNotMine
	}
	if f.Size > o.MaxFileBytes && !o.window() && !o.AllowLarge {
		return nil, &TooLarge{Size: f.Size, Max: o.MaxFileBytes, What: "file", Windowed: true}
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
	t.Changed, t.ChangedBelow = f.grown, f.grown
	return t, f.addSum(ctx, &t.Sight)
}

// windowOf is what need be kept of a document's text.
func windowOf(o *Options) office.Window { return office.Window{Offset: o.Offset, FromEnd: o.fromEnd()} }

// documentText is the window of what was collected from a document of size bytes.
func documentText(d *office.Document, format string, size int64, o *Options) (*Text, error) {
	if d.Full && o.fromEnd() {
		return nil, endUnreachable(o, "it has a line of more than "+unreadable.Bytes(office.MaxText))
	}
	content := bytes.TrimRight(d.Text(), "\n")
	if len(content) > 0 {
		content = append(content, '\n')
	}
	t := renderAfter(d.Dropped, content, o)
	t.Format, t.Encoding, t.Unit, t.Lossy = format, "utf-8", format+" line", true
	if t.TotalLines == 0 {
		t.noText(size, d.Pictures())
	}
	t.Note = strings.TrimSpace(t.Note + " " + d.Mentions(t.StartLine <= 1))
	if d.Full {
		t.unknownTotal(t.Note)
		switch {
		case t.NextOffset > 0 || t.NextColumn > 0 || t.RenderedLines == 0:
		case d.GoesOn():
			t.NextOffset = t.StartLine + t.RenderedLines
		default:
			t.Note = strings.TrimSpace(t.Note + " What follows cannot be shown: it is in or behind a line of more than " + unreadable.Bytes(office.MaxText) + ".")
		}
	}
	return t, nil
}
