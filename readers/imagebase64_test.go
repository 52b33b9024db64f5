package readers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"
)

// noisePNG is a PNG of noise whose size lies between three quarters of the limit and the limit: it fits as
// bytes, but not as base64.
func noisePNG(t *testing.T, limit int) []byte {
	t.Helper()
	side := 1
	for side*side*3 < limit*7/8 {
		side++
	}
	m := image.NewRGBA(image.Rect(0, 0, side, side))
	rng := rand.New(rand.NewPCG(7, 7))
	for y := range side {
		for x := range side {
			v := rng.Uint32()
			m.SetRGBA(x, y, color.RGBA{uint8(v), uint8(v >> 8), uint8(v >> 16), 0xff})
		}
	}
	var b bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, m))
	if n := b.Len(); n <= limit/4*3 || n >= limit {
		t.Fatalf("%d bytes do not lie between %d and %d", n, limit/4*3, limit)
	}
	return b.Bytes()
}

// APIs count base64. An image above their limit makes every following request of the conversation fail.
func TestImageLimitIsOfBase64(t *testing.T) {
	check := func(what, encoded string, limit int) {
		if n := len(encoded); n == 0 || n > limit {
			t.Errorf("%s: %d bytes of base64, the limit is %d", what, n, limit)
		}
	}
	const api = 5_242_880 // "image exceeds 5 MB maximum"
	check("default", readAs[*Image](t, noisePNG(t, api), Options{}).Base64, api)
	const small = 40_000
	raw := noisePNG(t, small)
	o := Options{ImageMaxBytes: small}
	check("file", readAs[*Image](t, raw, o).Base64, small)
	notebook, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{},
		"cells": []any{map[string]any{"id": "c", "cell_type": "code", "source": "draw()", "metadata": map[string]any{}, "execution_count": 1,
			"outputs": []any{map[string]any{"output_type": "display_data", "metadata": map[string]any{}, "data": map[string]any{"image/png": toBase64(raw)}}}}}})
	must(t, err)
	check("notebook", readAs[*Notebook](t, notebook, o).Cells[0].Outputs[0].Base64, small)
	for limit := 8_000; limit < 40_000; limit += 4_000 {
		page := readAs[*PDF](t, corpusFile(t, "pdf/gs_standard.pdf"), Options{Render: true, Pages: "1", ImageMaxEdge: 500, ImageMaxBytes: int64(limit)})
		check(fmt.Sprintf("page within %d", limit), page.Images[0].Base64, limit)
	}
}
