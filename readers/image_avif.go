//go:build nodynamic

package readers

import (
	"bytes"
	"fmt"
	"image/png"

	"github.com/gen2brain/avif"
)

const avifBuilt = true

// avifToPNG decodes the first frame, in a worker process: the decoder is WebAssembly, but with no cap on memory and no
// way to cut it off.
func avifToPNG(data []byte) ([]byte, error) {
	img, err := avif.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, &Damaged{"avif image", fmt.Sprintf("%.120q", err.Error())}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
