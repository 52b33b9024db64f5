//go:build !nodynamic

package readers

const avifBuilt = false

// avifDecoder refuses. The decoder's package looks for a shared library of the system when a program starts, unless it is
// built with the tag "nodynamic": native code must not see a stranger's file, so only that build has AVIF.
func avifDecoder(string) (func([]byte, *workReply) error, error) { return nil, errNoAVIF }
