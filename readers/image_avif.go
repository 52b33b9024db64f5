//go:build nodynamic

package readers

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"io"
	_ "unsafe" // for go:linkname

	"github.com/gen2brain/avif"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

const avifBuilt = true

// What the package's own start would set, by its unexported names, which the pinned version cannot change: its start compiles the decoder anew in every
// process, for which it has no setting, and lets it write to standard output, where our reply goes.
//
//go:linkname avifStart github.com/gen2brain/avif.initOnce
var avifStart func()

//go:linkname avifWasm github.com/gen2brain/avif.avifWasm
var avifWasm []byte

//go:linkname avifRuntime github.com/gen2brain/avif.rt
var avifRuntime wazero.Runtime

//go:linkname avifCode github.com/gen2brain/avif.cm
var avifCode wazero.CompiledModule

//go:linkname avifModule github.com/gen2brain/avif.mc
var avifModule wazero.ModuleConfig

// avifDecoder makes the first frame a PNG, in a worker process: the decoder is WebAssembly, but with no cap on memory and no
// way to cut it off.
func avifDecoder(cache string) (func([]byte, *workReply) error, error) {
	ctx := context.Background()
	c := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesThreads)
	run, code, err := compiled(ctx, c, cache, avifWasm)
	if err != nil {
		return nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, run); err != nil {
		return nil, err
	}
	avifRuntime, avifCode, avifModule = run, code, wazero.NewModuleConfig().WithStdout(io.Discard).WithStderr(io.Discard)
	avifStart = func() {}
	return func(data []byte, reply *workReply) error {
		img, err := avif.Decode(bytes.NewReader(data))
		if err != nil {
			return &Damaged{"avif image", fmt.Sprintf("%.120q", err.Error())}
		}
		var out bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img); err != nil {
			return err
		}
		reply.PNG = out.Bytes()
		return nil
	}, nil
}
