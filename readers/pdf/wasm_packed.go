//go:build packed

package pdf

import (
	_ "embed"

	"github.com/klauspost/compress/zstd"
	engine "github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
)

// packed is the output of scripts/pack. The linker leaves the package's own copy out if nothing calls
// Init.
//
//go:embed pdfium.wasm.zst
var packed []byte

func sandbox(c webassembly.Config) (engine.Pool, error) {
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if c.WASM, err = d.DecodeAll(packed, nil); err != nil {
		return nil, err
	}
	return webassembly.InitWithWASM(c)
}
