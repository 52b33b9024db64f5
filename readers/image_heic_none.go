//go:build !nodynamic

package readers

// heifWasm is missing: the package that holds it looks for a shared library of the system when a program starts, unless it is built with
// the tag "nodynamic".
var heifWasm []byte
