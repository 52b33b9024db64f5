//go:build nodynamic

package readers

import (
	_ "unsafe" // for go:linkname

	_ "github.com/gen2brain/heic"
)

// heifWasm is libheif with libde265 as WebAssembly, gzipped. Only the decoder is taken from the package, by its unexported name, which the pinned
// version cannot change: the package's own code around it assumes other strides than libheif's in narrow images, overwrites the first pixels when it
// frees the memory that it returns, and bounds neither memory nor time.
//
//go:linkname heifWasm github.com/gen2brain/heic.heifWasm
var heifWasm []byte
