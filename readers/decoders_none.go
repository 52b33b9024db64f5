//go:build !nodynamic

package readers

// A build without the tag nodynamic has neither decoder and refuses both kinds: see decoders.go.
var avifWasm, heifWasm []byte
