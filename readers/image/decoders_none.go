//go:build !nodynamic

package image

// A build without the tag nodynamic has neither decoder and refuses both kinds: see decoders.go.
var avifWasm, heifWasm []byte
