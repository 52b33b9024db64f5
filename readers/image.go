package readers

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strings"

	"moltisfs/readers/image"
)

// imageMemory is the longest image file that AllowLarge lets in.
const imageMemory = 64 << 20

// Image is a picture that a model can look at. The bytes are the file's own when they already fit and models take its format; else it
// was turned as its EXIF data says, scaled, and encoded again as PNG or JPEG. Sizes are in pixels.
type Image struct {
	ReadRecord `json:"-"`

	Width          int    `json:"width"`
	Height         int    `json:"height"`
	Format         string `json:"format"` // of Base64: "png", "jpeg", "gif", "webp"
	MediaType      string `json:"media_type"`
	OriginalFormat string `json:"original_format"`
	OriginalWidth  int    `json:"original_width"` // as shown upright
	OriginalHeight int    `json:"original_height"`
	WasResized     bool   `json:"was_resized"`
	// Scale times a coordinate in this image is the coordinate in the original. 1 when it was not
	// resized.
	Scale  float64 `json:"scale"`
	Frames int     `json:"frames,omitempty"` // of an animation, of which only the first is looked at, and shown when it was encoded again; or the pages of a TIFF, or the parts of a picture
	// Page is the number of the TIFF page that is shown, or of the part. NextPages is a Pages argument for those that follow.
	Page      int    `json:"page,omitempty"`
	NextPages string `json:"next_pages,omitempty"`
	Bytes     int    `json:"bytes"` // of the encoded image
	// TokenEstimate is how many tokens the image costs a model: one for 750 pixels.
	TokenEstimate int    `json:"token_estimate"`
	Note          string `json:"note,omitempty"`
	Base64        string `json:"base64"`
}

// Kind is "image".
func (*Image) Kind() string     { return "image" }
func (c *Image) noted() *string { return &c.Note }

func knowsImage(f *file, o *Options) bool { return image.FormatOf(f.head) != nil && !forced(f, o) }

func readImage(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	format := image.FormatOf(f.head)
	raw, err := f.all(ctx, o.longest(false, imageMemory), "image file", false)
	if err != nil {
		return nil, err
	}
	m := &Image{OriginalFormat: format.Name, Scale: 1}
	m.Sum, m.Whole, m.Lossy = sum(raw), true, true
	if format.Name == "tiff" {
		if raw, err = m.turnToPage(raw, o); err != nil {
			return nil, err
		}
	}
	p, err := format.Open(raw)
	if err != nil {
		if !noText(f.head) {
			return nil, errNotMine // a text that begins like an image
		}
		return nil, err
	}
	memory, err := p.Memory(o.AllowLarge)
	if err != nil {
		return nil, err
	}
	free, err := r.reserve(ctx, "image", memory)
	if err != nil {
		return nil, err
	}
	defer free()
	if p.Frames > 0 {
		m.Frames, m.Note = p.Frames, fmt.Sprintf("An animation of %d frames; expect to see only the first.", p.Frames)
	}
	if p.CutShort {
		m.Note = strings.TrimSpace(m.Note + " The file is cut off: it ends within a frame.")
	}
	want := image.Want{Edge: o.ImageMaxEdge, Most: o.ImageMaxBytes}
	across, down := p.Parts(want.Edge)
	if m.Page == 0 && o.Pages != "" && across*down > 1 {
		if err := m.turnTo(across*down, o); err != nil {
			return nil, err
		}
		want.Part = m.Page
	}
	shown, err := p.Show(ctx, &r.images, want)
	if err != nil {
		return nil, err
	}
	say := func(format string, args ...any) {
		m.Note = strings.TrimSpace(m.Note + " " + fmt.Sprintf(format, args...))
	}
	if rows := p.Rows(); shown.Rows >= 0 && shown.Rows < rows {
		say("The file is damaged or cut off: %d of its %d rows of pixels could be decoded, and the rest is grey here.", shown.Rows, rows)
	} else if shown.Rows >= 0 {
		say("The file is damaged or cut off: it is shown as far as it could be decoded.")
	}
	m.Width, m.Height, m.Format, m.MediaType = shown.Width, shown.Height, shown.Format, "image/"+shown.Format
	m.OriginalWidth, m.OriginalHeight = shown.OriginalWidth, shown.OriginalHeight
	if was, is := max(shown.Area.Dx(), shown.Area.Dy()), max(m.Width, m.Height); was != is {
		m.WasResized, m.Scale = true, math.Round(float64(was)/float64(is)*1e4)/1e4
	}
	switch n := across * down; {
	case want.Part > 0:
		say("Part %d of %d (%d × %d), from pixel %d, %d of the original on; an answer shows one.", m.Page, n, across, down, shown.Area.Min.X, shown.Area.Min.Y)
	case m.Page == 0 && n > 1 && m.Scale >= 2:
		say(`It is much larger; pages: "1" shows the first of its %d parts (%d × %d) at full size.`, n, across, down)
	}
	m.Bytes, m.Base64 = len(shown.Data), base64.StdEncoding.EncodeToString(shown.Data)
	m.TokenEstimate = imageTokens(m.Width, m.Height)
	return m, nil
}

// turnToPage returns the TIFF file b with the page that was asked for as its first.
func (m *Image) turnToPage(b []byte, o *Options) ([]byte, error) {
	all := image.TIFFPages(b)
	if len(all) < 2 {
		return b, nil
	}
	if err := m.turnTo(len(all), o); err != nil {
		return nil, err
	}
	m.Note = fmt.Sprintf("Page %d of %d; an answer shows one.", m.Page, m.Frames)
	return image.TIFFPage(b, all[m.Page-1]), nil
}

// turnTo notes which of total pages was asked for, and which follow.
func (m *Image) turnTo(total int, o *Options) error {
	list, err := parsePages(o.Pages, total)
	if err != nil {
		return err
	}
	m.Frames, m.Page = total, list[0]
	if o.Pages == "" || len(list) == 1 {
		list = span(list[0], min(list[0]+MaxPages, total))
	}
	m.NextPages = pageList(list[1:])
	m.Unit, m.Total, m.Whole = "page", total, false
	m.shows(m.Page)
	return nil
}

// imageTokens estimates what an image costs a model: a token for 750 pixels, and not more than
// 1600, to which larger images are scaled down before the model sees them. Both figures are from
// the vision page of Anthropic's documentation.
func imageTokens(width, height int) int { return min((width*height+749)/750, 1600) }
