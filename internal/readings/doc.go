// Package readings knows what else a model may have meant by a path, a regular expression or a glob
// that led to nothing: quotes around it, another system's separators, a line number behind it,
// another dialect, literal text. It is pure: whoever asks tries the readings, in their order, and
// offers the first that leads somewhere.
package readings
