//go:build nodynamic

package image

import (
	_ "unsafe" // for go:linkname

	_ "github.com/gen2brain/avif"
	_ "github.com/gen2brain/heic"
)

// The decoders as WebAssembly, gzipped: libavif with libaom, and libheif with libde265. Only these
// bytes are taken from the two packages, by their unexported names, which the pinned versions
// cannot change. The packages' own code around them bounds neither memory nor time, and that of
// heic gets strides wrong in narrow images.
//
// Without the tag nodynamic both packages load a shared library of the system when the program
// starts. Native code must not see a stranger's file, so only this build imports them.
var (
	//go:linkname avifWasm github.com/gen2brain/avif.avifWasm
	avifWasm []byte
	//go:linkname heifWasm github.com/gen2brain/heic.heifWasm
	heifWasm []byte
)
