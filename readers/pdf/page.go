// Package pdf reads the pages of a PDF: text, annotations and form fields, and how the page looks.
//
// PDFium does it, a C++ library compiled to WebAssembly. PDFs are strangers' programs in all but
// name, so it runs in a sandbox without files, network or clock, with a cap on memory, and a
// deadline cuts it off. Every document gets an instance of its own. After a trap the sandbox is
// thrown away whole; the compiled code stays (package wasm).
//
// The room opens nothing and starts nothing else. Which pages are read, and what is said of them,
// is its caller's business.
package pdf

import (
	"context"
	"encoding/base64"
	stdimage "image"

	"moltisfs/readers/image"
	"moltisfs/readers/unreadable"
)

// Job is what the engine is asked.
type Job struct {
	Pages     func(total int) ([]int, error) // which pages, of so many
	Render    bool
	Edge      int
	ImageMax  int64
	TextBytes int64
}

// Page is what the engine answers for one page.
type Page struct {
	Number      int
	Text        string // the text layer, and behind it what annotations and form fields say
	NoText      bool   // there is no text layer
	Objects     int    // drawn on the page itself, counted where there is no text layer; -1 when the engine cannot tell
	Annotations int    // links included
	Overlaid    bool   // a form field or an annotation is shown on it
	Unsaid      bool   // one of them has no text
	Failed      bool
	Image       *PageImage
}

// DrawnOn says that a viewer shows something on the page.
func (p *Page) DrawnOn() bool { return p.Objects != 0 || p.Overlaid }

// Pages is the engine's whole answer.
type Pages struct {
	Total int
	Asked []int
	Pages []Page // a prefix of Asked: the engine stops when the text is longer than the answer may be
	Late  bool   // the rest was not read in time
}

// PageImage is one page as it looks.
type PageImage struct {
	Page      int    `json:"page"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Format    string `json:"format"`
	MediaType string `json:"media_type"`
	Base64    string `json:"base64"`
}

// pageImage encodes a rendered page.
func pageImage(ctx context.Context, number int, img stdimage.Image, limit int64) (*PageImage, error) {
	b := img.Bounds()
	m, err := image.Fit(ctx, img, 1, max(b.Dx(), b.Dy()), limit)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, &unreadable.Limit{What: "PDF", Resource: "bytes of base64 for a page image", Max: limit}
	}
	return &PageImage{Page: number, Width: m.Width, Height: m.Height, Format: m.Format, MediaType: "image/" + m.Format,
		Base64: base64.StdEncoding.EncodeToString(m.Data)}, nil
}
