package image

import (
	"bufio"
	"bytes"
	"compress/lzw"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"moltisfs/readers/unreadable"
)

// salvage decodes the file raw, which is cut off or damaged, as far as that goes. rows is how many rows of pixels, counted from the edge at which the
// file begins, are decoded; the others are grey. It returns why where there is none.
//
// The decoders of the library give all of a picture or nothing. So they get a file that they take whole: the same one with fewer rows in its header, or
// with pixels of nothing behind those that can be unpacked.
func (p *Picture) salvage(ctx context.Context, why error) (img image.Image, rows int, err error) {
	do := salvages[p.format.Name]
	if do == nil || !errors.As(why, new(*unreadable.Damaged)) || checkPixels(p.header.Width, p.header.Height, MaxPixels) != nil {
		return nil, 0, why
	}
	f := *p.format
	f.decode = func(ctx context.Context, b []byte) (image.Image, error) {
		m, n := do(ctx, b, p.header)
		if rows = n; m == nil || n <= 0 {
			return nil, why
		}
		return m, ctx.Err()
	}
	if img, err = f.tryDecode(ctx, p.raw, p.header); err != nil {
		return nil, 0, err
	}
	h := p.header.Height
	if rows = min(rows, h); rows == h {
		return img, h, nil
	}
	whole := image.Rect(0, 0, p.header.Width, h)
	there := image.Rect(0, 0, whole.Dx(), rows)
	if fromBelow(p.format.Name, p.raw) {
		there = image.Rect(0, h-rows, whole.Dx(), h)
	}
	canvas := image.NewRGBA(whole)
	draw.Draw(canvas, whole, image.NewUniform(color.Gray{128}), image.Point{}, draw.Src)
	draw.Draw(canvas, there, img, img.Bounds().Min.Add(there.Min), draw.Src)
	return canvas, rows, nil
}

// salvages has for each format the function that decodes a damaged file of it, and counts its whole rows.
var salvages = map[string]func(context.Context, []byte, image.Config) (image.Image, int){
	"png": salvagePNG, "jpeg": salvageJPEG, "gif": salvageGIF, "webp": salvageWebP, "bmp": salvageBMP, "tiff": salvageTIFF,
}

// fromBelow says that the last row of the picture comes first in the file.
func fromBelow(format string, b []byte) bool {
	return format == "bmp" && (b[14] == 12 || int32(binary.LittleEndian.Uint32(b[22:])) > 0)
}

// tallest looks for the most of h rows with which try gives a picture; some of the last may be missed.
func tallest(h int, try func(rows int) image.Image) (img image.Image, rows int) {
	if img = try(h); img != nil {
		return img, h
	}
	for low, high := 0, h; high-low > 1 && (rows == 0 || high-low > h/128); {
		at := (low + high) / 2
		if m := try(at); m != nil {
			img, rows, low = m, at, at
		} else {
			high = at
		}
	}
	return img, rows
}

// salvageJPEG leaves out of a progressive file the passes that can't be decoded, each of which only sharpens the picture.
func salvageJPEG(ctx context.Context, b []byte, c image.Config) (image.Image, int) {
	frame := -1
	var scans []int
	for i := 2; i+1 < len(b); {
		if b[i] != 0xff || b[i+1] == 0xff {
			i++
			continue
		}
		switch marker := b[i+1]; {
		case marker >= 0xc0 && marker <= 0xc2 && frame < 0:
			frame = i
		case marker == 0xda:
			scans = append(scans, i)
		case marker == 0 || marker >= 0xd0 && marker <= 0xd9: // of the pixels
			i += 2
			continue
		}
		n := 2
		if i+4 <= len(b) {
			n += int(binary.BigEndian.Uint16(b[i+2:]))
		}
		if i+max(n, 4) > len(b) {
			b = b[:i] // a segment that is cut
		}
		i += n
	}
	if frame < 0 || frame+7 > len(b) || len(scans) == 0 {
		return nil, 0
	}
	try := func(end, rows int) image.Image {
		head := bytes.Clone(b[:frame+7])
		binary.BigEndian.PutUint16(head[frame+5:], uint16(rows))
		img, err := jpeg.Decode(reader{ctx, io.MultiReader(bytes.NewReader(head), bytes.NewReader(b[frame+7:end]), bytes.NewReader([]byte("\xff\xd9")))})
		if err != nil {
			return nil
		}
		return img
	}
	for i := len(scans) - 1; i > 0 && b[frame+1] == 0xc2; i-- {
		if img := try(scans[i], c.Height); img != nil {
			return img, c.Height
		}
	}
	return tallest(c.Height, func(rows int) image.Image { return try(len(b), rows) })
}

// salvageTIFF finds the strips that are whole. Rows that are not compressed need not be.
func salvageTIFF(ctx context.Context, b []byte, c image.Config) (image.Image, int) {
	order, at := tiffOrder(b), int64(tiffOrder(b).Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return nil, 0
	}
	b = bytes.Clone(b)
	for e := b[at+2:]; len(e) >= 12; e = e[12:] {
		if tag := order.Uint16(e); tag == 257 {
			return tallest(c.Height, func(rows int) image.Image {
				if order.Uint16(e[2:]) == 3 {
					order.PutUint16(e[8:], uint16(rows))
				} else {
					order.PutUint32(e[8:], uint32(rows))
				}
				img, err := decodeTIFF(ctx, b)
				if err != nil {
					return nil
				}
				return img
			})
		} else if tag > 257 {
			break
		}
	}
	return nil, 0
}

// salvageWebP knows the lossy kind only: of the other no row is right before all of its transforms are known.
func salvageWebP(ctx context.Context, b []byte, c image.Config) (image.Image, int) {
	at := bytes.Index(b, []byte("VP8 "))
	if at < 0 || at+18 > len(b) || len(b) > 1<<31 {
		return nil, 0
	}
	b = bytes.Clone(b[:len(b)&^1])
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	binary.LittleEndian.PutUint32(b[at+4:], min(binary.LittleEndian.Uint32(b[at+4:]), uint32(len(b)-at-8)))
	return tallest(c.Height, func(rows int) image.Image {
		binary.LittleEndian.PutUint16(b[at+16:], uint16(rows))
		img, err := webpShown(webp.Decode(reader{ctx, bytes.NewReader(b)}))
		if err != nil {
			return nil
		}
		return img
	})
}

// nothing is an endless file of zeros.
type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func salvageBMP(ctx context.Context, b []byte, c image.Config) (image.Image, int) {
	img, err := bmp.Decode(reader{ctx, io.MultiReader(bytes.NewReader(b), nothing{})})
	if err != nil || b[14] == 12 {
		return nil, 0
	}
	row := (c.Width*int(binary.LittleEndian.Uint16(b[28:])) + 31) / 32 * 4
	return img, (len(b) - int(binary.LittleEndian.Uint32(b[10:]))) / row
}

// salvageGIF unpacks the pixels of the first frame and packs them anew.
func salvageGIF(ctx context.Context, b []byte, c image.Config) (image.Image, int) {
	_, at, _ := gifFrames(b)
	if at < 0 || at+11 > len(b) {
		return nil, 0
	}
	flags, w, h := b[at+9], int(binary.LittleEndian.Uint16(b[at+5:])), int(binary.LittleEndian.Uint16(b[at+7:]))
	size, colours := at+10, 2<<(b[10]&7)
	if flags&0x80 != 0 {
		colours = 2 << (flags & 7)
		size += 3 * colours
	}
	if size+1 > len(b) || b[size] < 2 || b[size] > 8 || checkPixels(w, h, MaxPixels) != nil {
		return nil, 0
	}
	var packed []byte
	for i := size + 1; i < len(b) && b[i] != 0; i += int(b[i]) + 1 {
		packed = append(packed, b[i+1:min(i+1+int(b[i]), len(b))]...)
	}
	pixels := make([]byte, w*h)
	n, _ := io.ReadFull(lzw.NewReader(bytes.NewReader(packed), lzw.LSB, int(b[size])), pixels)
	for i, v := range pixels[:n] {
		if int(v) >= colours {
			pixels[i] = 0
		}
	}
	whole := bytes.NewBuffer(bytes.Clone(b[:size+1]))
	blocks := bufio.NewWriterSize(gifBlocks{whole}, 255)
	z := lzw.NewWriter(blocks, lzw.LSB, int(b[size]))
	z.Write(pixels)
	z.Close()
	blocks.Flush()
	whole.WriteString("\x00\x3b")
	img, err := decodeGIF(ctx, whole.Bytes())
	if err != nil {
		return nil, 0
	}
	if n == w*h || flags&0x40 != 0 && n > 0 {
		return img, c.Height // interlaced: every eighth row comes first
	}
	return img, int(binary.LittleEndian.Uint16(b[at+3:])) + n/w
}

// gifBlocks writes each of up to 255 bytes as one block.
type gifBlocks struct{ w *bytes.Buffer }

func (g gifBlocks) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; rest = rest[min(len(rest), 255):] {
		g.w.WriteByte(byte(min(len(rest), 255)))
		g.w.Write(rest[:min(len(rest), 255)])
	}
	return len(p), nil
}

// salvagePNG unpacks the pixels and packs them anew, with rows of nothing where they end or make no sense. Check sums are not looked at.
func salvagePNG(ctx context.Context, b []byte, c image.Config) (image.Image, int) {
	var before []byte
	var data []io.Reader
	for i := 8; i+8 < len(b); {
		end := i + 8 + int(min(binary.BigEndian.Uint32(b[i:]), uint32(len(b)-i-8)))
		switch kind := string(b[i+4 : i+8]); kind {
		case "IDAT":
			data = append(data, bytes.NewReader(b[i+8:end]))
		case "IHDR", "PLTE", "tRNS":
			before = appendChunk(before, kind, b[i+8:end])
		}
		i = end + 4
	}
	unpacked, err := zlib.NewReader(io.MultiReader(data...))
	if err != nil {
		return nil, 0
	}
	w, h, bits := c.Width, c.Height, int(b[24])*[7]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[b[25]%7]
	interlaced := b[28] == 1
	passes := [][4]int{{0, 0, 1, 1}}
	if interlaced {
		passes = [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
	}
	rows := 0
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		to := bufio.NewWriterSize(in, 64<<10)
		to.WriteString("\x89PNG\r\n\x1a\n")
		to.Write(before)
		idat := bufio.NewWriterSize(chunks{to}, 32<<10)
		z, _ := zlib.NewWriterLevel(idat, zlib.NoCompression)
		for _, p := range passes {
			wide, high := (w-p[0]+p[2]-1)/p[2], (h-p[1]+p[3]-1)/p[3]
			row := make([]byte, 1+(wide*bits+7)/8)
			for range high {
				if wide == 0 {
					break
				}
				if unpacked != nil {
					if _, err := io.ReadFull(unpacked, row); err != nil || row[0] > 4 {
						unpacked = nil
						clear(row)
					} else {
						rows++
					}
				}
				if _, err := z.Write(row); err != nil {
					return
				}
			}
		}
		z.Close()
		idat.Flush()
		to.Write(appendChunk(nil, "IEND", nil))
		to.Flush()
		in.Close()
	}()
	img, err := png.Decode(reader{ctx, out})
	out.Close()
	<-done
	if err != nil {
		return nil, 0
	}
	if interlaced && rows > 0 {
		return img, h
	}
	return img, rows
}

// chunks writes each piece as a chunk of pixels of a PNG.
type chunks struct{ w io.Writer }

func (c chunks) Write(p []byte) (int, error) {
	_, err := c.w.Write(appendChunk(nil, "IDAT", p))
	return len(p), err
}

func appendChunk(b []byte, kind string, data []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	at := len(b)
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[at:]))
}
