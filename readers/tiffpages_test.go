package readers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image/color"
	"strings"
	"testing"
)

// pagesTIFF, by the numbers of TIFF 6.0, has a page of one shade of grey for each shade, and a small copy of each, which is no page.
func pagesTIFF(shades ...byte) []byte {
	const side = 40
	order := binary.LittleEndian
	b := append([]byte("II*\x00"), 0, 0, 0, 0)
	link := 4 // where the offset of the next directory stands
	for _, shade := range shades {
		for _, smaller := range []uint32{0, 1} {
			at := uint32(len(b))
			for range side * side {
				b = append(b, shade)
			}
			order.PutUint32(b[link:], uint32(len(b)))
			entries := [][2]uint32{{254, smaller}, {256, side}, {257, side}, {258, 8}, {259, 1}, {262, 1},
				{273, at}, {278, side}, {279, side * side}}
			b = order.AppendUint16(b, uint16(len(entries)))
			for _, e := range entries {
				b = order.AppendUint16(b, uint16(e[0]))
				b = order.AppendUint16(b, 4)
				b = order.AppendUint32(b, 1)
				b = order.AppendUint32(b, e[1])
			}
			link = len(b)
			b = append(b, 0, 0, 0, 0)
		}
	}
	return b
}

// A fax of several pages says how many, and shows each.
func TestTIFFPages(t *testing.T) {
	raw := pagesTIFF(10, 120, 230)
	for _, c := range []struct {
		pages string
		page  int
		shade uint8
		next  string
	}{{"", 1, 10, "2-3"}, {"2", 2, 120, "3"}, {"3", 3, 230, ""}, {"2-3", 2, 120, "3"}, {"1,3", 1, 10, "3"}} {
		m := readAs[*Image](t, raw, Options{Pages: c.pages})
		got := color.GrayModel.Convert(decodeImage(t, m.Base64).At(5, 5)).(color.Gray).Y
		if m.Frames != 3 || m.Page != c.page || m.NextPages != c.next || got != c.shade || m.Whole || m.Note != fmt.Sprintf("Page %d of 3; an answer shows one.", c.page) {
			t.Errorf("pages %q: page %d of %d, shade %d, next %q, %q", c.pages, m.Page, m.Frames, got, m.NextPages, m.Note)
		}
		if fmt.Sprintf("%s %d %v", m.Unit, m.Total, m.Shown) != fmt.Sprintf("page 3 [{%d %d}]", c.page, c.page) {
			t.Errorf("pages %q: shown %v of %d %ss", c.pages, m.Shown, m.Total, m.Unit)
		}
	}
	var bad *BadPages
	if _, err := readBytes(t, raw, Options{Pages: "4"}); !errors.As(err, &bad) {
		t.Errorf("page 4 of 3: %v", err)
	}
	one := readAs[*Image](t, pagesTIFF(10), Options{Pages: "1"})
	if one.Frames != 0 || one.Page != 0 || !one.Whole || !strings.Contains(one.Note, "pages") {
		t.Errorf("one page: %d of %d, %q", one.Page, one.Frames, one.Note)
	}
	// A chain of directories that comes back to its beginning ends.
	loop := pagesTIFF(10, 120)
	binary.LittleEndian.PutUint32(loop[len(loop)-4:], binary.LittleEndian.Uint32(loop[4:]))
	if m := readAs[*Image](t, loop, Options{}); m.Frames != 2 {
		t.Errorf("a loop has %d pages", m.Frames)
	}
}
