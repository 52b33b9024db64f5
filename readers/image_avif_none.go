//go:build !nodynamic

package readers

import (
	"context"
	"image"
)

// decodeAVIF refuses. The decoder's package looks for a shared library of the system when a program starts, unless it is
// built with the tag "nodynamic": native code must not see a stranger's file, so only that build has AVIF.
func decodeAVIF(context.Context, *Readers, []byte) (image.Image, error) {
	return nil, &Unsupported{
		What: "an AVIF image",
		Why:  "this program was built without the tag nodynamic",
		Do:   "Convert it to JPEG or PNG first.",
	}
}
